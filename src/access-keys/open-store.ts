/** Opens the store that the configuration names. */

import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { RestClient } from '../kube/client/client.ts';
import { loadClusterAccess } from '../kube/credentials/kubeconfig.ts';
import type { WatchClient } from '../kube/types.ts';
import type { ManagementConfig } from './config.ts';
import { codeOf, TerminalError } from '../base/errors.ts';
import { MASTER_KEY_FILE } from './credentials/master-key.ts';
import { openKubernetesStore, verifySecrets } from '../apiserver/storage/secrets/kubernetes-store.ts';
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import type { Logger } from '../base/logger.ts';
import { MemoryStore } from '../apiserver/storage/revisioned-store.ts';
import { databaseFile } from '../apiserver/storage/sqlite/database-file.ts';
import { SqliteStore } from '../apiserver/storage/sqlite/sqlite-store.ts';
import type { Store, StoreVerdict } from '../apiserver/storage/store.ts';

export interface OpenStoreOptions {
  readonly config: ManagementConfig;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Aborts the wait for a host cluster that does not respond. */
  readonly signal: AbortSignal;
  readonly version: string;
}

/** Prefix of the Secrets: all replicas of the API in a namespace share one store. */
const SHARED_STORE = 'management';

/** Rejects with a `TerminalError` for what a retry does not change. */
export async function openStore(options: OpenStoreOptions, host: HostCluster): Promise<Store> {
  const { config, clock, random, logger, signal } = options;
  switch (config.store.driver) {
    case 'memory':
      return new MemoryStore();
    case 'sqlite':
      await refuseEmptied(config.dataDir);
      return SqliteStore.open({ file: databaseFile(config.dataDir), clock, logger });
    case 'kubernetes':
      return openKubernetesStore({ ...secretsOf(host), clock, random, logger }, signal);
  }
}

/** An empty database next to a master key has lost its keys; serving without them would hide the loss. */
async function refuseEmptied(dataDir: string): Promise<void> {
  const [database, masterKey] = [databaseFile(dataDir), join(dataDir, MASTER_KEY_FILE)];
  if ((await sizeOf(database)) !== 0 || (await sizeOf(masterKey)) === undefined) return;
  throw new TerminalError(
    `${database} is empty (0 bytes), but ${masterKey} exists, so there was a store: restore ${database} from a backup, ` +
      'or remove it to start with an empty store',
  );
}

async function sizeOf(file: string): Promise<number | undefined> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw new TerminalError(`${file} cannot be read: ${String(error)}`, { cause: error });
  }
}

/** See {@link verifySecrets}. Throws a `TerminalError` if the configuration names no cluster or no namespace. */
export function verifySharedStore(
  { clock, random }: OpenStoreOptions,
  host: HostCluster,
): Promise<StoreVerdict> {
  return verifySecrets({ ...secretsOf(host), clock, random });
}

function secretsOf(host: HostCluster): { client: WatchClient; namespace: string; name: string } {
  const { client, storeNamespace: namespace } = host.connected();
  if (namespace !== '') return { client, namespace, name: SHARED_STORE };
  throw new TerminalError(
    'managementApi.store: the kubernetes driver needs a namespace for its Secrets: set managementApi.store.namespace',
  );
}

/** The connection to the host cluster, opened on first use. */
export class HostCluster implements AsyncDisposable {
  readonly #options: OpenStoreOptions;
  #connection: ReturnType<typeof connect> | undefined;

  constructor(options: OpenStoreOptions) {
    this.#options = options;
  }

  /** Throws a `TerminalError` if no cluster is named or its kubeconfig is unusable. */
  connected(): ReturnType<typeof connect> {
    this.#connection ??= connect(this.#options);
    return this.#connection;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection?.client[Symbol.asyncDispose]();
  }
}

function connect({ config, clock, logger, version }: OpenStoreOptions) {
  const access = loadClusterAccess(config.host, {
    clock,
    setting: 'with --host-kubeconfig or in endpointSyncer.host.kubeconfig',
    warn: (message) => logger.warn({}, message),
  });
  const metrics = { requested: () => undefined };
  const client = new RestClient({
    cluster: 'host',
    access,
    clock,
    metrics,
    userAgent: `endpoint-syncer/${version}`,
  });
  /** Where the `kubernetes` driver keeps its Secrets. */
  const storeNamespace = config.store.namespace || config.host.namespace || access.namespace;
  return { client, storeNamespace };
}
