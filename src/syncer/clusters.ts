/** Connects the daemon to both clusters, and checks its rights. */

import { hostname } from 'node:os';
import { missingRights } from '../kube/access-review.ts';
import type { ServerAccess } from '../kube/access.ts';
import { RestClient } from '../kube/client/client.ts';
import type { TransportLimits } from '../kube/client/transport.ts';
import { discreetClient } from '../kube/discreet-client.ts';
import { CachingDiscovery } from '../kube/discovery.ts';
import { AggregatingRecorder, EventSeriesLimit } from '../kube/event-recorder.ts';
import { SERVICES } from '../kube/object.ts';
import {
  kubeconfigFromSecret,
  loadClusterAccess,
  MissingKubeconfigError,
  MissingSecretError,
  type ParseKubeconfig,
} from '../kube/credentials/kubeconfig.ts';
import {
  TransportError,
  type ClusterClient,
  type ClusterName,
  type EventRecorder,
  type WatchClient,
} from '../kube/types.ts';
import type { Config } from './config/config.ts';
import { TerminalError, messageOf } from '../base/errors.ts';
import { ignoreNotFound, isAnonymous, isTransient, StatusError } from '../kube/status-error.ts';
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import { isReported, type Logger } from '../base/logger.ts';
import type { Metrics } from './metrics/metrics.ts';
import { retry, type BackoffLimits } from '../base/retry.ts';
import {
  DISCOVERY,
  kindPolicy,
  missingKindMessage,
  resolveNamedKinds,
  type NamedKind,
  type Discoveries,
  type ReferencedKind,
} from './references/referenced-kind.ts';
import { reportOwnUser } from './own-user.ts';
import { enablingSettings, syncedKinds } from './kinds/synced-kinds.ts';
import { describeRight, requiredRights, type Right } from './rights.ts';
import { ownerOf } from './translation.ts';
import type { OwnerReference } from './translate/forge.ts';

/** The reporting controller of the Events on objects. */
export const CONTROLLER = 'endpoint-syncer/controller';

export interface ClustersOptions {
  readonly config: Config;
  /** Each write is sent as a dry run and logged as a difference. */
  readonly isDryRun: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly version: string;
  /** Cancels connecting and all requests in flight. */
  readonly signal: AbortSignal;
  /** Absent: the host cluster of the configuration. Its user is reported by the caller. */
  readonly host?: HostConnection | undefined;
  /** The URL to use instead of the one in the Secret of the virtual cluster, if the configuration names none. */
  readonly serverOf?: ((ofSecret: string) => string) | undefined;
  /** Parses the kubeconfig in that Secret. Default: in this thread. */
  readonly parseKubeconfig?: ParseKubeconfig | undefined;
  /** Default: over HTTP. */
  readonly connect?: ((access: ServerAccess) => WatchClient) | undefined;
  readonly virtualClient?: TransportLimits | undefined;
  readonly onWait?: ((reason: string) => void) | undefined;
  /**
   * For a command, whose answer has to be complete: how long each step is retried while a cluster does not respond. What responds slowly is
   * waited for. Default: the daemon, which waits for a cluster until `signal` aborts, and for nothing that only some objects need.
   */
  readonly giveUpMs?: number | undefined;
  /** Of the process, where it has several syncs. */
  readonly eventSeries?: EventSeriesLimit;
  /** Of credentials. Default: a line on standard error, for a command. */
  readonly warn?: ((message: string) => void) | undefined;
}

export interface HostConnection {
  readonly client: WatchClient;
  readonly server: string;
  /** Namespace of its context, or of the Pod; '' for none. */
  readonly namespace: string;
  readonly description: string;
}

const CONNECT_DELAYS: BackoffLimits = { baseMs: 500, maxMs: 15_000 };

/** Of a client of a command: a kube-apiserver may take a minute for a request, and then answers itself that this was too long. */
export const COMMAND_LIMITS: TransportLimits = { timeoutMs: 65_000 };
/** {@link ClustersOptions.giveUpMs} of commands. */
export const COMMAND_GIVES_UP_MS = 15_000;

/** Reads the kubeconfigs and opens the clients. Waits for a kubeconfig Secret that does not exist yet. */
export async function connectClusters(options: ClustersOptions): Promise<Clusters> {
  const { config, serverOf, giveUpMs } = options;
  const limits = giveUpMs === undefined ? undefined : COMMAND_LIMITS;
  const connection = options.host ?? connectHost({ ...options, limits });
  const host = closedWith(options.signal, connection.client);
  const hostNamespace = config.host.namespace || connection.namespace;
  if (hostNamespace === '') {
    throw new TerminalError(
      `endpointSyncer.host.namespace is not set, and ${connection.description} names no namespace. ` +
        'Set it to the host namespace of the virtual cluster.',
    );
  }
  const place = { host, server: connection.server, namespace: hostNamespace };
  const { access: virtualAccess, secret } = await accessToVirtual(place, options);
  const virtualHint =
    secret === '' || config.virtual.server !== '' || serverOf !== undefined
      ? undefined
      : hintForServer(virtualAccess.server);
  if (virtualAccess.server === connection.server) {
    throw new TerminalError(
      `the virtual and the host cluster are the same API server, ${connection.server} (${virtualAccess.description}; ${connection.description}): objects would be synced into themselves; ` +
        `set endpointSyncer.virtual.kubeconfig (or virtual.secret${isNamed(config) ? '' : `: there is no ${usualSecret(config)} in namespace "${hostNamespace}"`}) and endpointSyncer.host.kubeconfig`,
    );
  }
  const connected =
    options.connect?.(virtualAccess) ??
    measuredClient('virtual', virtualAccess, { ...options, limits: options.virtualClient ?? limits });
  // A command writes to the terminal of the person who runs it.
  const isPublic = secret !== '' && giveUpMs === undefined;
  const virtual = closedWith(
    options.signal,
    isPublic ? discreetClient(connected, virtualAccess.description) : connected,
  );
  const servers = { virtual: virtualAccess.server, host: connection.server };
  const descriptions = { virtual: virtualAccess.description, host: connection.description };
  const found = { hostNamespace, virtualSecret: secret };
  const located = { ...options, config: withPlace(config, found), virtualHint };
  return new Clusters(located, { host, virtual }, { ...found, servers, descriptions });
}

interface HostPlace {
  readonly host: WatchClient;
  readonly server: string;
  /** Of the virtual cluster. */
  readonly namespace: string;
}

interface VirtualAccess {
  readonly access: ServerAccess;
  /** Of the host namespace, with this access; '' for none. */
  readonly secret: string;
}

/** Where the configuration names no way to the virtual cluster, and the usual kubeconfig is missing or that of the host: by the Secret that vCluster writes, if it exists. */
async function accessToVirtual(place: HostPlace, options: ClustersOptions): Promise<VirtualAccess> {
  const { config, logger } = options;
  const isOptional = !isNamed(config) && !hasOtherKubeconfig(place, options);
  const secret = isOptional ? usualSecret(config) : config.virtual.secret;
  const access = secret === '' ? undefined : await accessBySecret(place, secret, isOptional, options);
  if (access === undefined) return { access: accessTo('virtual', options), secret: '' };
  if (isOptional)
    logger.info(
      { secret: `${place.namespace}/${secret}` },
      'the virtual cluster is that of the Secret, as the configuration names no kubeconfig',
    );
  return { access, secret };
}

function isNamed({ virtual: { secret, kubeconfig, context } }: Config): boolean {
  return [secret, kubeconfig, context].some((setting) => setting !== '');
}

function usualSecret({ name }: Config): string {
  return `vc-${name}`;
}

/** The one that kubectl would use is that of another cluster than the host. */
function hasOtherKubeconfig({ server }: HostPlace, { config, clock }: ClustersOptions): boolean {
  const warn = (): void => undefined;
  const virtual = { ...config.virtual, server: '' };
  try {
    return accessTo('virtual', { config: { ...config, virtual }, clock, warn }).server !== server;
  } catch (error) {
    if (error instanceof MissingKubeconfigError) return false;
    throw error;
  }
}

/** Undefined if an optional one does not exist. */
function accessBySecret(
  { host, namespace }: HostPlace,
  name: string,
  isOptional: boolean,
  options: ClustersOptions,
): Promise<ServerAccess | undefined> {
  const { config, clock, serverOf, parseKubeconfig: parse } = options;
  const settings = { clock, server: config.virtual.server, serverOf, parse };
  return untilResponse(options, 'host', async () => {
    try {
      return await kubeconfigFromSecret(host, { namespace, name }, settings);
    } catch (error) {
      if (isOptional && error instanceof MissingSecretError) return undefined;
      throw error;
    }
  });
}

/** The configuration with what connecting has found. */
export function withPlace(config: Config, { hostNamespace, virtualSecret }: Place): Config {
  const { host, virtual } = config;
  return {
    ...config,
    host: { ...host, namespace: host.namespace || hostNamespace },
    virtual: { ...virtual, secret: isNamed(config) ? virtual.secret : virtualSecret },
  };
}

export function connectHost(options: ConnectHostOptions): HostConnection {
  const access = accessTo('host', options);
  const { server, namespace, description } = access;
  return { client: measuredClient('host', access, options), server, namespace, description };
}

interface ConnectHostOptions extends ClientParts, Pick<ClustersOptions, 'warn'> {
  readonly config: Pick<Config, 'host' | 'virtual'>;
}

function accessTo(
  cluster: ClusterName,
  { config, clock, warn }: Pick<ConnectHostOptions, 'config' | 'clock' | 'warn'>,
): ServerAccess {
  const setting = `with --${cluster}-kubeconfig or in endpointSyncer.${cluster}.kubeconfig`;
  return loadClusterAccess(config[cluster], { clock, setting, warn });
}

interface ConnectOptions extends ClustersOptions {
  readonly virtualHint?: string | undefined;
}

/** If `virtual.server` is set, localhost is intended: a sidecar runs in vCluster's Pod. */
function hintForServer(server: string): string | undefined {
  if (!['localhost', '127.0.0.1'].includes(new URL(server).hostname)) return undefined;
  return "the kubeconfig Secret names localhost, which only vCluster's own Pod reaches; outside of it, set endpointSyncer.virtual.server to the URL of its Service";
}

export interface ClientParts extends Pick<ClustersOptions, 'clock' | 'metrics' | 'version'> {
  /** Default: enough for one sync. */
  readonly limits?: TransportLimits | undefined;
}

export function measuredClient(
  cluster: ClusterName,
  access: ServerAccess,
  { clock, metrics, version, limits }: ClientParts,
): WatchClient {
  return new RestClient({
    cluster,
    access,
    clock,
    metrics: metrics.requests(new URL(access.server).host),
    userAgent: `endpoint-syncer/${version}`,
    ...limits,
  });
}

function closedWith(signal: AbortSignal, client: WatchClient): WatchClient {
  signal.addEventListener('abort', () => void client[Symbol.asyncDispose](), { once: true });
  return client;
}

/** What connecting finds. */
export interface Place {
  /** The host namespace of the virtual cluster: configured, or the host context's own. */
  readonly hostNamespace: string;
  /** With the kubeconfig of the virtual cluster; '' for none. */
  readonly virtualSecret: string;
}

export class Clusters implements AsyncDisposable {
  readonly virtual: WatchClient;
  readonly host: WatchClient;
  readonly place: Place;
  readonly servers: Readonly<Record<ClusterName, string>>;
  /** Where the access to each is from, such as a context of a kubeconfig. */
  readonly descriptions: Readonly<Record<ClusterName, string>>;
  readonly discoveries: Discoveries;
  readonly #options: ConnectOptions;
  readonly #eventSeries: EventSeriesLimit;

  constructor(
    options: ConnectOptions,
    { virtual, host }: Readonly<Record<ClusterName, WatchClient>>,
    found: Place & Pick<Clusters, 'servers' | 'descriptions'>,
  ) {
    this.#options = options;
    this.#eventSeries = options.eventSeries ?? new EventSeriesLimit();
    this.virtual = virtual;
    this.host = host;
    this.place = { hostNamespace: found.hostNamespace, virtualSecret: found.virtualSecret };
    this.servers = found.servers;
    this.descriptions = found.descriptions;
    this.discoveries = { virtual: new CachingDiscovery(this.virtual), host: new CachingDiscovery(this.host) };
  }

  /** Rejects with a `TerminalError` that names every missing right. */
  async checkRights(config: Config, references: readonly ReferencedKind[]): Promise<void> {
    const { isDryRun, logger } = this.#options;
    const rights = requiredRights(config, { isDryRun, references });
    // In sequence: a failure of one must not close the connections under the other.
    const all = [...(await this.#missing('host', rights)), ...(await this.#missing('virtual', rights))];
    if (all.length === 0) return;
    for (const right of all) logger.error({ right: describeRight(right) }, 'right is missing');
    const count = all.length === 1 ? '1 right is' : `${all.length} rights are`;
    const settings = enablingSettings(config, all);
    const which = settings.length === 0 ? '' : ` (${settings.join(', ')})`;
    throw new TerminalError(
      `${count} missing; grant what "endpoint-syncer rbac" prints to the user of the kubeconfig, or disable what needs it${which}`,
    );
  }

  /** Who owns the connections of the host reports its user. Never rejects. */
  async reportUsers(): Promise<void> {
    const { host, logger, config } = this.#options;
    // The Secret is vCluster's, with its administrator.
    const isExpected = config.virtual.secret !== '';
    await Promise.all([
      host === undefined && reportOwnUser(this.host, { logger }),
      reportOwnUser(this.virtual, { logger, isExpected }),
    ]);
  }

  /** Resolves the kinds that patches reference, in both clusters, without those that cannot be imported: the log names them. */
  async resolveReferences(config: Config): Promise<readonly ReferencedKind[]> {
    const { sync } = config;
    const { giveUpMs, logger } = this.#options;
    if (syncedKinds(config).length === 0) return [];
    const warn = ({ patch, apiVersion, kind }: NamedKind, error: unknown): void =>
      logger.warn({ patch, apiVersion, kind, why: messageOf(error) }, missingKindMessage(error));
    return untilResponse(this.#options, 'virtual', () =>
      resolveNamedKinds(kindPolicy(sync), this.discoveries, warn, giveUpMs === undefined ? DISCOVERY : {}),
    );
  }

  /** Undefined without a configured owner, or without the default one. Rejects with a `TerminalError` if a configured one does not exist. */
  async resolveOwner(config: Config): Promise<OwnerReference | undefined> {
    const { host, sync } = config;
    const owner = ownerOf(config);
    const isMapped = sync.namespaces.kind !== 'single';
    if (owner === undefined || (owner.isOptional && isMapped)) return undefined;
    const { apiVersion, kind, name, isOptional } = owner;
    return untilResponse(this.#options, 'host', async () => {
      // The default, in every start before the first copy.
      const isService = apiVersion === 'v1' && kind === 'Service';
      const resource = isService ? SERVICES : await new CachingDiscovery(this.host).resolve(apiVersion, kind);
      const object = await ignoreNotFound(this.host.get(resource, { namespace: host.namespace, name }));
      if (object !== undefined) return { apiVersion, kind, name, uid: object.metadata.uid ?? '' };
      if (isOptional) return undefined;
      throw new TerminalError(
        `endpointSyncer.owner: there is no ${kind} "${name}" in namespace "${host.namespace}" of the host cluster. ` +
          'Create it, or omit owner.',
      );
    });
  }

  createRecorder(client: ClusterClient): EventRecorder {
    const { isDryRun, clock, random, logger, metrics } = this.#options;
    if (isDryRun) return NO_EVENTS;
    return new AggregatingRecorder({
      client,
      reportingController: CONTROLLER,
      reportingInstance: hostname(),
      clock,
      random,
      logger,
      metrics: metrics.sync,
      limit: this.#eventSeries,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.virtual[Symbol.asyncDispose](), this.host[Symbol.asyncDispose]()]);
  }

  async #missing(cluster: ClusterName, rights: readonly Right[]): Promise<readonly Right[]> {
    const wanted = rights.filter((right) => right.cluster === cluster);
    return untilResponse(this.#options, cluster, () => missingRights(this[cluster], wanted));
  }
}

const NO_EVENTS: EventRecorder = { event: () => undefined, flush: async () => undefined };

/** Retries until the API server responds, and logs why it waits. A permanent error becomes a `TerminalError`. */
export async function untilResponse<T>(
  {
    config,
    clock,
    random,
    logger,
    signal,
    isDryRun,
    virtualHint,
    onWait,
    giveUpMs,
  }: Omit<ConnectOptions, 'metrics' | 'version'>,
  cluster: ClusterName,
  request: () => Promise<T>,
): Promise<T> {
  let attempts = 0;
  let lastError: unknown;
  // What the virtual cluster responds must not end the process while it serves the key and token API.
  const isOutlived = (error: unknown): boolean =>
    config.companion.isServed && cluster === 'virtual' && !(error instanceof TerminalError);
  try {
    return await retry(request, {
      ...CONNECT_DELAYS,
      clock,
      random,
      signal,
      durationMs: giveUpMs,
      // A dry run and commands, which connect as a dry run does, report a missing Secret immediately.
      isRetryable: (error) =>
        isTransient(error) || (!isDryRun && (error instanceof MissingSecretError || isOutlived(error))),
      onRetry(error, delayMs) {
        attempts += 1;
        lastError = error;
        onWait?.(messageOf(error));
        if (!isReported(attempts)) return;
        const message = messageOf(error);
        const hint = cluster === 'virtual' && virtualHint !== undefined ? { hint: virtualHint } : {};
        const fields = { cluster, error: message, ...hint, attempts, retryInMs: Math.round(delayMs) };
        const what =
          error instanceof MissingSecretError
            ? 'kubeconfig Secret does not exist'
            : 'cluster cannot be reached';
        logger.warn(fields, `${what}, waiting for it`);
      },
    });
  } catch (error) {
    if (!signal.aborted) throw asTerminal(cluster, error);
    const reason = lastError instanceof Error ? lastError.message : 'it does not respond';
    throw new TerminalError(`cannot connect to the ${cluster} cluster: ${reason}`, { cause: error });
  }
}

function asTerminal(cluster: ClusterName, error: unknown): unknown {
  if (error instanceof TransportError)
    return new TerminalError(`cannot connect to the ${cluster} cluster: ${error.message}`, { cause: error });
  if (!(error instanceof StatusError)) return error;
  const advice =
    error.code === 401
      ? ' Renew the token or certificate there.'
      : isAnonymous(error)
        ? ' No credential reached it: check the user of the context in the kubeconfig, and proxies before the API server.'
        : '';
  return new TerminalError(`The ${cluster} cluster refused: ${error.message}.${advice}`, { cause: error });
}
