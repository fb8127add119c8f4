/** The composition root of a fleet: finds the vClusters of a host, and syncs each member in this process. */

import { hostname } from 'node:os';
import { type Clock, sleep } from '../base/clock.ts';
import { InvariantError, TerminalError } from '../base/errors.ts';
import { type CheckResult, type Checks, startHealthServer } from '../base/health.ts';
import type { Logger } from '../base/logger.ts';
import { mergedText } from '../base/metrics/series.ts';
import type { Random } from '../base/random.ts';
import { type Config, configurationHash, diffConfig, type FleetConfig } from '../syncer/config/config.ts';
import { isFleetNamespace } from '../syncer/config/fleet-rules.ts';
import { missingRights } from '../kube/access-review.ts';
import { borrowedClient } from '../kube/borrowed-client.ts';
import { AggregatingRecorder, EventSeriesLimit } from '../kube/event-recorder.ts';
import { LEASES } from '../kube/lease.ts';
import {
  asJson,
  keyOf,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  type StringMap,
} from '../kube/object.ts';
import type { ClusterClient, EventRecorder, WatchClient } from '../kube/types.ts';
import { connectHost, type HostConnection, untilResponse } from '../syncer/clusters.ts';
import { startSync, type Sync, type SyncOptions } from '../syncer/sync.ts';
import { type Companion, startCompanion, type StartCompanion } from '../syncer/companion.ts';
import { informerCheck } from '../kube/informer/informer-check.ts';
import { CONFIGURATION, CONFIGURATION_TEXT, leaseName } from '../syncer/leadership.ts';
import { createMetrics, type Metrics } from '../syncer/metrics/metrics.ts';
import type { SandboxProcesses } from '../expressions/processes.ts';
import { createSandbox } from '../expressions/sandbox.ts';
import { reportOwnUser } from '../syncer/own-user.ts';
import { describeRight, companionRights } from '../syncer/rights.ts';
import { type FleetRules, isSelected, memberSelector } from './decide-member.ts';
import { FleetDiscovery } from './discovery.ts';
import { plainMemberConfig } from './member-config.ts';
import { confinedClient, hostLimits, sharedCaches } from './member-limits.ts';
import { MemberLock, type MemberLockOptions } from './member-lock.ts';
import { MemberNote } from './member-note.ts';
import { fleetSeries, Members, type MemberStart } from './members.ts';
import { FormerMembers } from './former-members.ts';
import { replicaOf, Replicas } from './replicas.ts';
import { fleetRights, usableNamespaces } from './rights.ts';
import { sharedSandboxes } from './shared-sandboxes.ts';
import { DEPLOYMENTS, FLEET, serverOf, STATEFUL_SETS } from './vcluster.ts';
import { kubeconfigParser, ThreadReader, type ValuesReader } from './values-reader.ts';
import { textAt } from '../base/json.ts';

export interface FleetOptions {
  readonly config: Config;
  readonly textHash?: string | undefined;
  /** Each write is sent as a dry run and logged as a difference. */
  readonly isDryRun: boolean;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
  /** Aborts a start that waits for the host. */
  readonly signal: AbortSignal;
  /** Starts the key and token API; absent if it is disabled. */
  readonly startCompanion?: StartCompanion;
}

/** Each member watches some resources of the host, and may have a few requests that hang. */
const CONNECTIONS_MAX = 4096;
const STARTED_CHECK_MS = 250;
const HOST_CLIENT = { connections: CONNECTIONS_MAX, watchesMax: CONNECTIONS_MAX };
/** A larger page is listed in smaller ones: nothing else runs while it is parsed. */
const DISCOVERY_CLIENT = { ...HOST_CLIENT, responseBytesMax: 4 * 2 ** 20 };
/** Of all members and the fleet itself, besides requests that hang: a start of many members opens no more connections than these. */
const HOST_REQUESTS_MAX = 64;
const HANGING_MS = 1000;
const NOT_CONNECTED: CheckResult = { isOk: false, detail: 'the host cluster is not connected yet' };

/** Rejects with `TerminalError` for errors that a retry does not fix, such as a missing right. */
export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const { clock, config, isDryRun, logger, version } = options;
  const metrics = createMetrics({ monotonicMs: () => clock.monotonicMs(), version });
  const readiness = { checks: (): Checks => ({ connected: () => NOT_CONNECTED }) };
  const served = { registries: () => [metrics.registry] as Parameters<typeof mergedText>[0] };
  await using resources = new AsyncDisposableStack();
  const health = resources.use(
    await startHealthServer({
      bindAddress: config.http.bindAddress,
      healthChecks: { ping: () => ({ isOk: true }) },
      readyChecks: () => readiness.checks(),
      metrics: { text: () => mergedText(served.registries()), contentType: metrics.contentType },
      logger,
    }),
  );
  logger.info(
    { version, isDryRun, http: health.url, namespaces: config.fleet.namespaces },
    'starting a fleet',
  );
  const companion = resources.use(startCompanion(options.startCompanion, metrics.registry, logger));
  const warn = (message: string): void => logger.warn({}, message);
  const connected = connectHost({ config, clock, metrics, version, warn, limits: HOST_CLIENT });
  resources.use(connected.client);
  const shares = { requestsMax: HOST_REQUESTS_MAX, hanging: { afterMs: HANGING_MS, clock } };
  const host = { ...connected, client: borrowedClient(connected.client, shares) };
  const discoveryClient = resources.use(
    connectHost({ config, clock, metrics, version, limits: DISCOVERY_CLIENT }).client,
  );
  // On connections of its own: the requests of the members, however many wait, delay no renewal.
  const leaseClient = resources.use(connectHost({ config, clock, metrics, version, warn }).client);
  const located = { ...options, config: locatedIn(host, config) };
  const include = await allowedNamespaces(host, located);
  const namespaces = { ...config.fleet.namespaces, include: [...include] };
  const replicaId = crypto.randomUUID();
  const parts = { ...located, host, discoveryClient, leaseClient, metrics, companion, namespaces, replicaId };
  const fleet = new Fleet(parts, health.url);
  resources.defer(() => fleet.close());
  fleetSeries(metrics.registry, () => fleet.members.states());
  served.registries = () => [metrics.registry, ...fleet.members.registries()];
  readiness.checks = () => fleet.checks();
  await fleet.start();
  fleet.own(resources.move());
  return fleet;
}

/** With the fleet's own namespace, in which its replicas find each other. */
function locatedIn({ namespace: own, description }: HostConnection, config: Config): Config {
  const namespace = config.host.namespace || own;
  if (namespace !== '') return { ...config, host: { ...config.host, namespace } };
  throw new TerminalError(
    `endpointSyncer.host.namespace is not set, and ${description} names no namespace. Set it to the namespace of the fleet.`,
  );
}

/** The included namespaces in which the fleet has its rights. Rejects with a `TerminalError` if there is none, or a right of the key and token API is missing. */
async function allowedNamespaces(
  { client }: HostConnection,
  options: FleetOptions,
): Promise<readonly string[]> {
  const { config, isDryRun, logger } = options;
  const ofCompanion = companionRights(config, isDryRun);
  const rights = [...fleetRights(config), ...ofCompanion];
  const missing = await untilResponse(options, 'host', () => missingRights(client, rights));
  for (const right of missing) logger.error({ right: describeRight(right) }, 'right is missing');
  const isApiServed = !missing.some((right) => ofCompanion.includes(right));
  const usable = isApiServed ? usableNamespaces(config, missing) : [];
  const grant = 'grant what "endpoint-syncer rbac" prints to the user of the kubeconfig';
  if (usable.length === 0)
    throw new TerminalError(`${missing.length} rights of the fleet are missing on the host; ${grant}`);
  const left = config.fleet.namespaces.include.filter((name) => !usable.includes(name));
  if (left.length > 0)
    logger.warn({ namespaces: left }, `these namespaces are left out until a restart; ${grant}`);
  return usable;
}

export interface FleetParts extends FleetOptions {
  readonly host: HostConnection;
  /** For what the vClusters are found by, of which users write any amount. */
  readonly discoveryClient: WatchClient;
  /** For the Leases of the replicas. */
  readonly leaseClient: ClusterClient;
  readonly metrics: Metrics;
  readonly companion: Companion;
  /** As far as rights allow. */
  readonly namespaces: FleetConfig['namespaces'];
  readonly replicaId: string;
  /** How members are connected and evaluate expressions. Absent: over HTTP, in processes. */
  readonly sync?: Pick<SyncOptions, 'connect' | 'createSandbox'>;
  /** Absent: a thread. */
  readonly reader?: ValuesReader;
}

export class Fleet {
  /** `http://host:port` of `/healthz`, `/readyz` and `/metrics`. */
  readonly healthUrl: string;
  readonly members: Members;
  readonly #parts: FleetParts;
  readonly #discovery: FleetDiscovery;
  readonly #recorder: EventRecorder;
  readonly #reader: ValuesReader;
  readonly #formers: FormerMembers;
  readonly #eventSeries = new EventSeriesLimit();
  readonly #sandboxes: SandboxProcesses;
  /** Undefined in a dry run, which writes no Leases. */
  readonly #replicas: Replicas | undefined;
  readonly #stopping = new AbortController();
  #config: Config;
  #textHash: string | undefined;
  #isStarted = false;
  #resources: AsyncDisposable | undefined;
  #watching: Promise<void> | undefined;

  constructor(parts: FleetParts, healthUrl: string) {
    const { config, host, metrics } = parts;
    this.#parts = parts;
    this.#config = config;
    this.#textHash = parts.textHash;
    this.healthUrl = healthUrl;
    this.#recorder = new AggregatingRecorder({
      ...parts,
      client: host.client,
      reportingController: 'endpoint-syncer/fleet',
      reportingInstance: hostname(),
      metrics: metrics.sync,
      limit: this.#eventSeries,
    });
    this.#sandboxes = sharedSandboxes(
      {
        sandboxes: config.fleet.limits.sandboxes,
        memoryBytes: this.#defaults(config).sandbox.memory,
      },
      parts,
    );
    this.#discovery = new FleetDiscovery({
      ...parts,
      fleet: fleetOf(parts, config),
      client: parts.discoveryClient,
      informerMetrics: ({ plural }) => metrics.informer('host', plural),
    });
    const replicas = parts.isDryRun ? undefined : this.#joinReplicas();
    this.#replicas = replicas;
    this.#reader = parts.reader ?? new ThreadReader(parts.clock);
    this.#formers = new FormerMembers({
      ...parts,
      client: host.client,
      discovery: this.#discovery,
      rules: () => rulesOf(parts, this.#config),
      isPlacedHere: (key) => this.#isPlacedHere(key),
      isMember: (key) => this.members.has(key),
      createLock: replicas && ((former) => this.#lockOfFormer(former, replicas)),
      signal: this.#stopping.signal,
      queueMetrics: metrics.queue('fleet-removals'),
    });
    this.members = new Members({
      ...parts,
      discovery: this.#discovery,
      reader: this.#reader,
      isPlacedHere: (key) => this.#isPlacedHere(key),
      isRenewalDue: () => this.#replicas?.isRenewalDue ?? false,
      rules: rulesOf(parts, config),
      startSync: (start) => this.#startSync(start),
      removals: this.#formers.removals,
      caches: sharedCaches(),
      report: (workload, note) => this.#report(workload, note),
      createNote: (vcluster) => this.#createNote(vcluster),
      queueMetrics: metrics.queue('fleet'),
    });
  }

  /** Resolves when every vCluster is known, and its member is being started. */
  async start(): Promise<void> {
    const { config, host, logger, metrics, signal } = this.#parts;
    const stopping = AbortSignal.any([signal, this.#stopping.signal]);
    this.#watching = this.#discovery.run(this.#stopping.signal);
    void reportOwnUser(host.client, { logger });
    await Promise.all(this.#discovery.informers.map((informer) => informer.whenSynced(stopping)));
    this.#reportSelection();
    this.#inUse(config);
    metrics.sync.configurationApplied(true);
    this.members.start();
    this.#formers.start();
    this.#isStarted = true;
  }

  own(resources: AsyncDisposable): void {
    this.#resources = resources;
  }

  /** Applies what every member gets and which ones are selected; anything else needs a restart. */
  async reload(config: Config, textHash?: string): Promise<void> {
    const { logger, metrics } = this.#parts;
    const { live, restart } = diffConfig(this.#config, config);
    const isLive = (path: string): boolean =>
      /^endpointSyncer\.(?:defaults|fleet\.(?:selector|limits(?!\.sandboxes)))\b/u.test(path);
    const [applied, others] = [restart.filter(isLive), [...live, ...restart.filter((path) => !isLive(path))]];
    if (others.length > 0) logger.warn({ paths: others }, 'configuration changes need a restart');
    const { defaults } = config;
    const { selector, limits } = config.fleet;
    const fleet = { ...this.#config.fleet, selector, limits };
    this.#config = { ...this.#config, defaults, fleet };
    if (others.length === 0) this.#textHash = textHash;
    this.#inUse(this.#config);
    metrics.sync.configurationApplied(others.length === 0);
    metrics.sync.reloaded('ok');
    if (applied.length === 0) return;
    this.members.use(rulesOf(this.#parts, this.#config));
    logger.info({ paths: applied }, 'configuration reloaded');
    this.#reportSelection();
  }

  /** The files are not applied; the running configuration remains active. */
  reloadFailed(): void {
    this.#parts.metrics.sync.configurationApplied(false);
    this.#parts.metrics.sync.reloaded('error');
  }

  /** Resolves when each member of this replica has started or cannot start, or when `signal` aborts. */
  async whenStarted(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    // No member is placed before this replica is live.
    const isStarting = (): boolean => this.#replicas?.check().isOk === false || this.members.areStarting;
    do await sleep(clock, STARTED_CHECK_MS, signal);
    while (!signal.aborted && isStarting());
  }

  /** Stops every member. Their copies stay. */
  async stop(): Promise<void> {
    const { companion, logger } = this.#parts;
    await Promise.all([this.close(), companion[Symbol.asyncDispose]()]);
    await this.#resources?.[Symbol.asyncDispose]();
    logger.info({}, 'stopped');
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#replicas?.leave();
    await this.#reader[Symbol.asyncDispose]();
    await Promise.all([this.members.stop(), this.#formers.stop(), this.#watching]);
    this.#sandboxes[Symbol.dispose]();
    await this.#recorder.flush();
  }

  checks(): Checks {
    const { companion } = this.#parts;
    return {
      connected: () => ({ isOk: true }),
      ...Object.fromEntries(
        this.#discovery.informers.map((informer) => [
          `host-${informer.resource.plural}`,
          () => informerCheck(informer),
        ]),
      ),
      'management-api': () => companion.check(),
      replicas: () => this.#replicas?.check() ?? { isOk: true, detail: 'a dry run' },
      ...this.members.checks(),
    };
  }

  /** What a member gets of which nothing else is known. */
  #defaults(config: Config): Config {
    const vcluster = { namespace: config.host.namespace, name: 'fleet' };
    const defaults = plainMemberConfig({ ...rulesOf(this.#parts, config), vcluster });
    if (defaults === undefined) throw new InvariantError('the loader has accepted invalid defaults');
    return defaults;
  }

  #joinReplicas(): Replicas {
    const { config, leaseClient, replicaId } = this.#parts;
    const { namespace } = config.host;
    const { leaseDuration, renewDeadline, retryPeriod } = this.#defaults(config).leaderElection;
    return new Replicas({
      ...this.#parts,
      client: leaseClient,
      namespace,
      id: replicaId,
      leaseDurationMs: leaseDuration,
      renewDeadlineMs: renewDeadline,
      retryPeriodMs: retryPeriod,
      changed: () => this.#placementChanged(),
      annotations: () => ({ [CONFIGURATION_TEXT]: this.#textHash ?? '' }),
    });
  }

  #isPlacedHere(vcluster: ObjectKey): boolean {
    const replicas = this.#replicas;
    return replicas === undefined || replicaOf(vcluster, replicas.live()) === replicas.identity;
  }

  #placementChanged(): void {
    const live = this.#replicas?.live() ?? [];
    this.#parts.logger.info({ replicas: live.length }, 'the replicas of the fleet changed');
    if (!this.#isStarted) return;
    this.members.decideAll();
    // One that has gone may have been removing what is left of a vCluster.
    void this.#formers.find();
  }

  #createLock(
    { leaderElection }: Config,
    replicas: Replicas,
    options: Pick<MemberLockOptions, 'lease' | 'annotations' | 'isInUse'>,
  ): MemberLock {
    const { host } = this.#parts;
    const retryPeriodMs = leaderElection.retryPeriod;
    return new MemberLock({
      ...this.#parts,
      client: host.client,
      replicas,
      retryPeriodMs,
      ...options,
    });
  }

  /** By the annotation, another replica finds what this one leaves. */
  #lockOfFormer(former: Config, replicas: Replicas): MemberLock {
    const lease = { namespace: former.host.namespace, name: leaseName(former.name) };
    return this.#createLock(former, replicas, { lease, annotations: () => this.#leaseAnnotations() });
  }

  #createNote({ namespace, name }: NamespacedName): MemberNote | undefined {
    const { host } = this.#parts;
    const replicas = this.#replicas;
    if (replicas === undefined) return undefined;
    const lease = { namespace, name: leaseName(name) };
    const annotations = (): StringMap => this.#leaseAnnotations();
    return new MemberNote({ ...this.#parts, client: host.client, annotations, lease, replicas });
  }

  /** The hash is that of what every member gets. */
  #inUse(config: Config): void {
    const { clock, metrics } = this.#parts;
    metrics.sync.configurationInUse(configurationHash(config), clock.now() / 1000);
  }

  #reportSelection(): void {
    const { logger } = this.#parts;
    const fleet = fleetOf(this.#parts, this.#config);
    const isInNamespaces = ({ metadata: { namespace = '' } }: KubeObject): boolean =>
      isFleetNamespace(namespace, fleet.namespaces);
    const workloads = this.#discovery.workloads().filter(isInNamespaces);
    const fields = {
      vclusters: workloads.length,
      selected: workloads.filter(isSelected(fleet)).length,
      namespaces: fleet.namespaces,
      selector: memberSelector(fleet),
    };
    if (fields.selected > 0) logger.info(fields, 'vClusters were found');
    else
      logger.warn(
        fields,
        'no vCluster is selected: a vCluster joins with the label of the selector on its StatefulSet or Deployment, controlPlane.statefulSet.labels of its values',
      );
  }

  async #startSync({ vcluster, ...start }: MemberStart): Promise<Sync> {
    const { host, isDryRun, clock, random, sync, version } = this.#parts;
    const replicas = this.#replicas;
    await this.#warnOfSidecar(start);
    const borrowed = borrowedClient(host.client, hostLimits(this.#config.fleet, clock));
    return startSync({
      ...start,
      isDryRun,
      clock,
      random,
      version,
      host: { ...host, client: confinedClient(borrowed, vcluster.namespace) },
      serverOf: serverOf(vcluster),
      parseKubeconfig: kubeconfigParser(this.#reader, vcluster, start.signal),
      eventSeries: this.#eventSeries,
      createSandbox: (sandbox) =>
        createSandbox({ ...sandbox, shared: { processes: this.#sandboxes, owner: vcluster.namespace } }),
      ...sync,
      createLock:
        replicas &&
        ((lease, annotations) =>
          this.#createLock(start.config, replicas, {
            lease,
            annotations,
            isInUse: () => this.#formers.removals.isRemoving(keyOf(vcluster)),
          })),
      leaseAnnotations: () => this.#leaseAnnotations(),
    });
  }

  /** A daemon without leader election does not hold the Lease, but has its configuration there until it ends. */
  async #warnOfSidecar({ config, logger }: Pick<MemberStart, 'config' | 'logger'>): Promise<void> {
    const key = { namespace: config.host.namespace, name: leaseName(config.name) };
    const lease = await this.#parts.host.client.get(LEASES, key).catch(() => undefined);
    const { [CONFIGURATION]: hash = '', [FLEET]: isOwn } = lease?.metadata.annotations ?? {};
    const holder = lease === undefined ? '' : textAt(asJson(lease), 'spec', 'holderIdentity');
    if (hash === '' || isOwn !== undefined || holder !== '') return;
    logger.warn(
      { lease: keyOf(key) },
      'a daemon without leader election syncs this vCluster, or did not end in an orderly way: if a sidecar still runs, remove it, or the label that selects the vCluster, because both write the same copies',
    );
  }

  #leaseAnnotations(): StringMap {
    const { namespace } = this.#config.host;
    return { [FLEET]: namespace, ...(this.#textHash && { [CONFIGURATION_TEXT]: this.#textHash }) };
  }

  #report(workload: KubeObject, note: string): void {
    const resource = workload.kind === DEPLOYMENTS.kind ? DEPLOYMENTS : STATEFUL_SETS;
    this.#recorder.event(workload, resource, { type: 'Warning', reason: 'NotJoined', note });
  }
}

function rulesOf(parts: FleetParts, config: Config): FleetRules {
  const { defaults, host } = config;
  return { fleet: fleetOf(parts, config), defaults, host };
}

function fleetOf({ namespaces }: FleetParts, { fleet }: Config): FleetConfig {
  return { ...fleet, namespaces };
}
