/** Both clusters of a configuration, for one command: connected, with the host namespace filled in; whole lists, and failures that the user can act on. */

import { TerminalError } from '../../base/errors.ts';
import { listPages } from '../../kube/list-pages.ts';
import { apiVersionOf, type KubeObject, type Resource } from '../../kube/object.ts';
import { isAnonymous, StatusError } from '../../kube/status-error.ts';
import { TransportError, type ClusterClient, type ClusterName, type WatchClient } from '../../kube/types.ts';
import { silentLogger } from '../../base/logger.ts';
import type { ServerAccess } from '../../kube/access.ts';
import {
  COMMAND_GIVES_UP_MS,
  COMMAND_LIMITS,
  connectClusters,
  measuredClient,
  withPlace,
  type Clusters,
  type ClustersOptions,
} from '../clusters.ts';
import type { Config } from '../config/config.ts';
import { createMetrics } from '../metrics/metrics.ts';

export interface Connection extends AsyncDisposable {
  /** With the host namespace, where it is the context's own. */
  readonly config: Config;
  readonly clusters: Clusters;
  /** The configuration was read from the host: nothing outside of the namespaces that it maps is written or deleted. */
  readonly isHosted?: boolean;
}

export interface ConnectOptions extends Pick<ClustersOptions, 'clock' | 'random' | 'version'> {
  /** The URL to use instead of the one in the Secret of the virtual cluster. */
  readonly serverOf?: ((ofSecret: string) => string) | undefined;
  readonly isHosted?: boolean;
  /** See {@link ClustersOptions}. */
  readonly giveUpMs?: number;
}

/** Connects for the time of `work`. Rejects with `TerminalError` where a kubeconfig or Secret is missing or a cluster cannot be reached. */
export async function whileConnected<T>(
  config: Config,
  options: ConnectOptions,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  await using connection = await connect(config, options);
  try {
    return await work(connection);
  } catch (error) {
    throw withPortForward(error, connection);
  }
}

/** The URL in vCluster's Secret is that of its Pod or Service, which a laptop does not reach. */
function withPortForward(error: unknown, { config, clusters }: Connection): unknown {
  const { name, virtual, host } = config;
  if (!(error instanceof UnreachableError)) return error;
  if (error.cluster !== 'virtual' || virtual.secret === '')
    return withAccess(error, clusters.descriptions[error.cluster]);
  const access = (['kubeconfig', 'context'] as const)
    .map((flag) => (host[flag] === '' ? '' : `--${flag} ${host[flag]} `))
    .join('');
  const forward = `kubectl ${access}-n ${host.namespace} port-forward service/${name} 8443:443`;
  const advice = `where it is not reachable, run "${forward}" and pass --virtual-server https://localhost:8443`;
  const message = `${error.message}; the URL is ${clusters.servers.virtual}: ${advice}`;
  return new TerminalError(message, { cause: error.cause });
}

async function connect(
  config: Config,
  { isHosted = false, giveUpMs = COMMAND_GIVES_UP_MS, ...options }: ConnectOptions,
): Promise<Connection> {
  // Afterwards, the connection closes its clients itself, however long the command takes.
  const connecting = new AbortController();
  try {
    const clusters = await connectClusters({
      ...options,
      metrics: metricsOf(options),
      config,
      isDryRun: true,
      logger: silentLogger,
      signal: connecting.signal,
      giveUpMs,
    });
    return {
      config: withPlace(config, clusters.place),
      clusters,
      isHosted,
      [Symbol.asyncDispose]: () => clusters[Symbol.asyncDispose](),
    };
  } catch (error) {
    connecting.abort();
    throw error;
  }
}

/** For a command that reads the host before it has a configuration. */
export function hostClient(
  access: ServerAccess,
  parts: Pick<ClustersOptions, 'clock' | 'version'>,
): WatchClient {
  return measuredClient('host', access, { ...parts, metrics: metricsOf(parts), limits: COMMAND_LIMITS });
}

/** Which nothing reads. */
function metricsOf({ clock, version }: Pick<ClustersOptions, 'clock' | 'version'>) {
  return createMetrics({ monotonicMs: () => clock.monotonicMs(), version });
}

// Requests.

/** Every object of one kind in these namespaces ('' means all), with its type, which items of a list lack. */
export async function listAll(
  client: ClusterClient,
  resource: Resource,
  namespaces: readonly string[],
  labelSelector?: string,
): Promise<KubeObject[]> {
  const type = { apiVersion: apiVersionOf(resource), kind: resource.kind };
  const typed = (object: KubeObject): KubeObject => ({ ...object, ...type });
  const found: KubeObject[] = [];
  for (const namespace of namespaces) {
    const options = {
      ...(namespace === '' ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
    };
    const listed = await reaching(client.cluster, () => listPages(client, resource, options, typed));
    for (const object of listed) found.push(object); // more than a call takes as arguments
  }
  return found;
}

/** A cluster does not respond. */
class UnreachableError extends TerminalError {
  readonly cluster: ClusterName;

  constructor(cluster: ClusterName, cause: TransportError) {
    super(`cannot connect to the ${cluster} cluster: ${cause.message}`, { cause });
    this.cluster = cluster;
  }
}

/** Of a cluster that does not respond, the error names what has its URL. */
export function withAccess(error: unknown, description: string): unknown {
  if (!(error instanceof UnreachableError)) return error;
  return new TerminalError(`${error.message}; the URL is that of ${description}`, { cause: error });
}

/** The failure of a request as an error that the user can act on. */
export async function reaching<T>(cluster: ClusterName, request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    if (error instanceof StatusError)
      throw new TerminalError(`the ${cluster} cluster: ${error.message}${adviceFor(error)}`, {
        cause: error,
      });
    if (error instanceof TransportError) throw new UnreachableError(cluster, error);
    throw error;
  }
}

function adviceFor(error: StatusError): string {
  const { code } = error;
  if (isAnonymous(error))
    return '; no credential reached it: check the user of the context in the kubeconfig, and proxies before the API server';
  if (code === 401) return '; renew the token or certificate there';
  if (code === 403) return '; grant what "endpoint-syncer rbac" prints to the user of the kubeconfig';
  return '';
}
