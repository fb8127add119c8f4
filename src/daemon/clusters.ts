/** Both clusters as the daemon needs them: connected, allowed to do what the configuration asks for, and with its owner found. */

import { hostname } from 'node:os';
import { missingRights } from '../cluster/access-review.ts';
import type { ServerAccess } from '../cluster/access.ts';
import { createClient } from '../cluster/client.ts';
import { createDiscovery } from '../cluster/discovery.ts';
import { createEventRecorder, createLoggingRecorder } from '../cluster/event-recorder.ts';
import { kubeconfigFromSecret, loadClusterAccess } from '../cluster/kubeconfig.ts';
import { TransportError, type ClusterName, type EventRecorder, type WatchClient } from '../cluster/types.ts';
import type { Config } from '../config/types.ts';
import { TerminalError } from '../kube/errors.ts';
import { isNotFound, StatusError } from '../kube/status-error.ts';
import { sleep, type Clock } from '../lib/clock.ts';
import type { Random } from '../lib/random.ts';
import type { Logger } from '../observe/logger.ts';
import type { Metrics } from '../observe/metrics.ts';
import { backoffDelayMs } from '../queue/backoff.ts';
import { kindPolicy } from '../sync/reference-kinds.ts';
import {
  resolveNamedKinds,
  type Discoveries,
  type ReferencedKind,
} from '../sync/references/referenced-kind.ts';
import { describeRight, requiredRights, type Right } from '../sync/rights.ts';
import type { OwnerReference } from '../translate/forge.ts';

export interface ClustersOptions {
  readonly config: Config;
  readonly isDryRun: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly version: string;
  readonly signal: AbortSignal;
}

export interface Clusters extends AsyncDisposable {
  /** The host namespace of the virtual cluster: configured, or the host context's own. */
  readonly hostNamespace: string;
  readonly virtual: WatchClient;
  readonly host: WatchClient;
  /** Rejects with a `TerminalError` that names every missing right. */
  checkRights(config: Config, references: readonly ReferencedKind[]): Promise<void>;
  /** What the patches name, in both clusters. Rejects with a `TerminalError` for a kind that is not served, or not in namespaces. */
  resolveReferences(config: Config): Promise<readonly ReferencedKind[]>;
  readonly discoveries: Discoveries;
  /** Undefined where no owner is configured. Rejects with a `TerminalError` when it does not exist. */
  resolveOwner(config: Config): Promise<OwnerReference | undefined>;
  createRecorder(): EventRecorder;
}

const RETRY_BASE_MS = 500;
const RETRY_MAX_MS = 15_000;

/** Reads kubeconfigs and opens clients; a kubeconfig that lives in a Secret is waited for. */
export async function connectClusters(options: ClustersOptions): Promise<Clusters> {
  const { config, clock } = options;
  const hostAccess = loadClusterAccess(config.host, { clock });
  const host = clientFor('host', hostAccess, options);
  const hostNamespace = config.host.namespace || hostAccess.namespace;
  if (hostNamespace === '') {
    throw new TerminalError(
      `endpointSyncer.host.namespace is not set, and ${hostAccess.description} names no namespace. ` +
        'Set it to the host namespace of the virtual cluster.',
    );
  }
  const { secret } = config.virtual;
  const virtualAccess =
    secret === ''
      ? loadClusterAccess(config.virtual, { clock })
      : await untilAnswered(options, 'host', () => kubeconfigFromSecret(host, hostNamespace, secret, clock));
  if (virtualAccess.server === hostAccess.server) {
    throw new TerminalError(
      `The virtual and the host cluster are the same API server, ${hostAccess.server}: objects would be synced into themselves. ` +
        'Set endpointSyncer.virtual.kubeconfig (or virtual.secret) and endpointSyncer.host.kubeconfig.',
    );
  }
  const virtual = clientFor('virtual', virtualAccess, options);
  return new ConnectedClusters(options, { host, virtual, hostNamespace });
}

function clientFor(cluster: ClusterName, access: ServerAccess, options: ClustersOptions): WatchClient {
  const { clock, metrics, version } = options;
  const userAgent = `endpoint-syncer/${version}`;
  return createClient({
    cluster,
    access,
    clock,
    metrics: metrics.requests(new URL(access.server).host),
    userAgent,
  });
}

class ConnectedClusters implements Clusters {
  readonly virtual: WatchClient;
  readonly host: WatchClient;
  readonly hostNamespace: string;
  readonly discoveries: Discoveries;
  readonly #options: ClustersOptions;

  constructor(options: ClustersOptions, parts: Pick<Clusters, 'virtual' | 'host' | 'hostNamespace'>) {
    this.#options = options;
    this.virtual = parts.virtual;
    this.host = parts.host;
    this.hostNamespace = parts.hostNamespace;
    this.discoveries = { virtual: createDiscovery(this.virtual), host: createDiscovery(this.host) };
  }

  async checkRights(config: Config, references: readonly ReferencedKind[]): Promise<void> {
    const { isDryRun } = this.#options;
    const rights = requiredRights(config, { isDryRun, references });
    const missing = await Promise.all([this.#missing('host', rights), this.#missing('virtual', rights)]);
    const lines = missing.flat().map((right) => `  ${describeRight(right)}`);
    if (lines.length === 0) return;
    throw new TerminalError(
      `These rights are missing; grant them to the user of the kubeconfig, or switch off what needs them:\n${lines.join('\n')}`,
    );
  }

  async resolveReferences({ sync }: Config): Promise<readonly ReferencedKind[]> {
    if (!sync.endpoints.enabled) return [];
    return untilAnswered(this.#options, 'virtual', () =>
      resolveNamedKinds(kindPolicy(sync), this.discoveries),
    );
  }

  async resolveOwner({ owner, host }: Config): Promise<OwnerReference | undefined> {
    if (owner === undefined) return undefined;
    const { apiVersion, kind, name } = owner;
    return untilAnswered(this.#options, 'host', async () => {
      const resource = await createDiscovery(this.host).resolve(apiVersion, kind);
      const object = await this.host
        .get(resource, { namespace: host.namespace, name })
        .catch((error: unknown) => {
          if (!isNotFound(error)) throw error;
          throw new TerminalError(
            `endpointSyncer.owner: there is no ${kind} "${name}" in namespace "${host.namespace}" of the host cluster. ` +
              'Create it, or leave owner empty.',
            { cause: error },
          );
        });
      return { apiVersion, kind, name, uid: object.metadata.uid ?? '' };
    });
  }

  createRecorder(): EventRecorder {
    const { isDryRun, clock, random, logger, metrics } = this.#options;
    if (isDryRun) return createLoggingRecorder(logger);
    return createEventRecorder({
      client: this.virtual,
      reportingController: 'endpoint-syncer/controller',
      reportingInstance: hostname(),
      clock,
      random,
      logger,
      metrics: metrics.sync,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.virtual[Symbol.asyncDispose](), this.host[Symbol.asyncDispose]()]);
  }

  async #missing(cluster: ClusterName, rights: readonly Right[]): Promise<readonly Right[]> {
    const wanted = rights.filter((right) => right.cluster === cluster);
    return untilAnswered(this.#options, cluster, () => missingRights(this[cluster], wanted));
  }
}

/** Asks until the API server answers; says in the log why it waits. What the server refuses for good becomes a `TerminalError`. */
async function untilAnswered<T>(
  { clock, random, logger, signal }: ClustersOptions,
  cluster: ClusterName,
  ask: () => Promise<T>,
): Promise<T> {
  for (let failures = 0; ; failures++) {
    signal.throwIfAborted();
    try {
      return await ask();
    } catch (error) {
      if (!isPassing(error)) throw asTerminal(cluster, error);
      const waitMs = backoffDelayMs(failures, RETRY_BASE_MS, RETRY_MAX_MS) * (0.5 + random() / 2);
      logger.error(
        { cluster, err: error, retryInMs: Math.round(waitMs) },
        'cluster cannot be reached, waiting for it',
      );
      await sleep(clock, waitMs, signal);
    }
  }
}

function isPassing(error: unknown): boolean {
  return (
    error instanceof TransportError ||
    (error instanceof StatusError && (error.code === 429 || error.code >= 500))
  );
}

function asTerminal(cluster: ClusterName, error: unknown): unknown {
  if (!(error instanceof StatusError)) return error;
  const advice =
    error.code === 401
      ? ' Its credentials are not accepted: check the token or certificate in the kubeconfig.'
      : '';
  return new TerminalError(`The ${cluster} cluster refused: ${error.message}.${advice}`, { cause: error });
}
