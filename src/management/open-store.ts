/** The store that the configuration names, open. */

import { createClient } from '../cluster/client.ts';
import { loadClusterAccess } from '../cluster/kubeconfig.ts';
import type { WatchClient } from '../cluster/types.ts';
import type { ManagementConfig } from '../config/types.ts';
import { TerminalError } from '../kube/errors.ts';
import { openKubernetesStore } from '../kubernetes-store/open-store.ts';
import { verifySecrets } from '../kubernetes-store/verify.ts';
import type { Clock } from '../lib/clock.ts';
import type { Random } from '../lib/random.ts';
import type { Logger } from '../observe/logger.ts';
import { MemoryStore } from '../store/memory-store.ts';
import { databaseFile } from '../store/sqlite/database-file.ts';
import { SqliteStore } from '../store/sqlite/sqlite-store.ts';
import type { Store, StoreVerdict } from '../store/types.ts';

export interface OpenStoreOptions {
  readonly config: ManagementConfig;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Aborts the wait for a host cluster that does not answer. */
  readonly signal: AbortSignal;
  readonly version: string;
}

/** Every replica of the API in a namespace shares one store. */
const SHARED_STORE = 'management';

/** Rejects with a `TerminalError` where only a person can help. */
export async function openStore(options: OpenStoreOptions, host: HostCluster): Promise<Store> {
  const { config, clock, random, logger, signal } = options;
  switch (config.store.driver) {
    case 'memory':
      return new MemoryStore();
    case 'sqlite':
      return SqliteStore.open({ file: databaseFile(config.dataDir), clock, logger });
    case 'kubernetes':
      return openKubernetesStore({ ...secretsOf(host), clock, random, logger }, signal);
  }
}

/** See {@link verifySecrets}. Throws a `TerminalError` where no cluster or no namespace is named. */
export function verifySharedStore(
  { clock, random }: OpenStoreOptions,
  host: HostCluster,
): Promise<StoreVerdict> {
  return verifySecrets({ ...secretsOf(host), clock, random });
}

function secretsOf(host: HostCluster): { client: WatchClient; namespace: string; name: string } {
  const { client, namespace } = host.connected();
  if (namespace !== '') return { client, namespace, name: SHARED_STORE };
  throw new TerminalError(
    'managementApi.store: the kubernetes driver needs a namespace for its Secrets: set endpointSyncer.host.namespace',
  );
}

/** The host cluster for those parts that need one; nothing is read or opened before one of them asks. */
export class HostCluster implements AsyncDisposable {
  readonly #options: OpenStoreOptions;
  #connection: { readonly client: WatchClient; readonly namespace: string } | undefined;

  constructor(options: OpenStoreOptions) {
    this.#options = options;
  }

  /** Throws a `TerminalError` when no cluster is named, or its kubeconfig is unusable. */
  connected(): { readonly client: WatchClient; readonly namespace: string } {
    this.#connection ??= this.#connect();
    return this.#connection;
  }

  #connect(): { readonly client: WatchClient; readonly namespace: string } {
    const { config, clock, version } = this.#options;
    const access = loadClusterAccess(config.host, { clock });
    const metrics = { requested: () => undefined };
    const userAgent = `endpoint-syncer/${version}`;
    const client = createClient({ cluster: 'host', access, clock, metrics, userAgent });
    return { client, namespace: config.host.namespace || access.namespace };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection?.client[Symbol.asyncDispose]();
  }
}
