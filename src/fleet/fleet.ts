/** The composition root of a fleet: finds the vClusters of a host, and syncs each member in this process. */

import { hostname } from 'node:os';
import { type Clock, sleep } from '../base/clock.ts';
import { InvariantError, messageOf, TerminalError } from '../base/errors.ts';
import { type CheckResult, type Checks, startHealthServer } from '../base/health.ts';
import type { Logger } from '../base/logger.ts';
import { mergedText } from '../base/metrics/series.ts';
import type { Random } from '../base/random.ts';
import { retry } from '../base/retry.ts';
import {
  type Config,
  configurationHash,
  diffConfig,
  type FleetConfig,
  type ConfigChecks,
} from '../config/config.ts';
import { isFleetNamespace } from '../config/fleet-rules.ts';
import { missingRights } from '../kube/access-review.ts';
import { borrowedClient } from '../kube/borrowed-client.ts';
import { createEventRecorder } from '../kube/event-recorder.ts';
import { checkHeld, guardedClient, LEASES } from '../kube/lease.ts';
import {
  asJson,
  keyOf,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  type StringMap,
} from '../kube/object.ts';
import { isForbidden } from '../kube/status-error.ts';
import { TransportError, type ClusterClient, type EventRecorder } from '../kube/types.ts';
import { connectHost, type HostConnection, untilResponse } from '../syncer/clusters.ts';
import { type ClusterSync, type ClusterSyncOptions, startClusterSync } from '../syncer/cluster-sync.ts';
import { type Companion, startCompanion, type StartCompanion } from '../syncer/companion.ts';
import { informerCheck } from '../syncer/engine.ts';
import { CONFIGURATION, leaseName } from '../syncer/leadership.ts';
import { createMetrics, type Metrics } from '../syncer/metrics/metrics.ts';
import { createSandbox } from '../syncer/sandbox/sandbox.ts';
import { describeRight, keyApiRights } from '../syncer/rights.ts';
import { decideByWorkload, type FleetRules, isSelected, memberSelector } from './decide-member.ts';
import { exactNamespaces, FleetDiscovery } from './discovery.ts';
import { plainMemberConfig } from './member-config.ts';
import { confinedClient, hostLimits } from './member-limits.ts';
import { MemberLock } from './member-lock.ts';
import { MemberNote } from './member-note.ts';
import { fleetSeries, Members, type MemberStart } from './members.ts';
import { formerMember, removeCopies } from './removal.ts';
import { replicaOf, Replicas } from './replicas.ts';
import { fleetRights, usableNamespaces } from './rights.ts';
import { DEPLOYMENTS, FLEET, serverOf, STATEFUL_SETS } from './vcluster.ts';
import { textAt } from '../base/json.ts';

export interface FleetOptions {
  readonly config: Config;
  /** Each write is sent as a dry run and logged as a difference. */
  readonly isDryRun: boolean;
  readonly checks: ConfigChecks;
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
/** Most members are idle most of the time, and each has a process for its expressions. */
const SANDBOX_IDLE_MS = 30_000;
const STARTED_CHECK_MS = 250;
const FORMER_DELAYS = { baseMs: 1000, maxMs: 60_000 };
const FORMER_PERIOD_MS = 5 * 60_000;
const HOST_CLIENT = { connections: CONNECTIONS_MAX, watchesMax: CONNECTIONS_MAX };
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
  const connected = connectHost({ config, clock, metrics, version, limits: HOST_CLIENT });
  resources.use(connected.client);
  const shares = { requestsMax: HOST_REQUESTS_MAX, hanging: { afterMs: HANGING_MS, clock } };
  const host = { ...connected, client: borrowedClient(connected.client, shares) };
  // On connections of its own: the requests of the members, however many wait, delay no renewal.
  const leaseClient = resources.use(connectHost({ config, clock, metrics, version }).client);
  const located = { ...options, config: locatedIn(host, config) };
  const include = await allowedNamespaces(host, located);
  const namespaces = { ...config.fleet.namespaces, include: [...include] };
  const replicaId = crypto.randomUUID();
  const parts = { ...located, host, leaseClient, metrics, companion, namespaces, replicaId };
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
  const ofKeyApi = keyApiRights(config, isDryRun);
  const rights = [...fleetRights(config), ...ofKeyApi];
  const missing = await untilResponse(options, 'host', () => missingRights(client, rights));
  for (const right of missing) logger.error({ right: describeRight(right) }, 'right is missing');
  const isApiServed = !missing.some((right) => ofKeyApi.includes(right));
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
  /** For the Leases of the replicas. */
  readonly leaseClient: ClusterClient;
  readonly metrics: Metrics;
  readonly companion: Companion;
  /** As far as rights allow. */
  readonly namespaces: FleetConfig['namespaces'];
  readonly replicaId: string;
  /** How members are connected and evaluate expressions. Absent: over HTTP, in processes. */
  readonly sync?: Pick<ClusterSyncOptions, 'connect' | 'createSandbox'>;
}

export class Fleet {
  /** `http://host:port` of `/healthz`, `/readyz` and `/metrics`. */
  readonly healthUrl: string;
  readonly members: Members;
  readonly #parts: FleetParts;
  readonly #discovery: FleetDiscovery;
  readonly #recorder: EventRecorder;
  /** Undefined in a dry run, which writes no Leases. */
  readonly #replicas: Replicas | undefined;
  readonly #stopping = new AbortController();
  #config: Config;
  #isStarted = false;
  #resources: AsyncDisposable | undefined;
  #watching: Promise<void> | undefined;

  constructor(parts: FleetParts, healthUrl: string) {
    const { config, host, metrics } = parts;
    this.#parts = parts;
    this.#config = config;
    this.healthUrl = healthUrl;
    this.#recorder = createEventRecorder({
      ...parts,
      client: host.client,
      reportingController: 'endpoint-syncer/fleet',
      reportingInstance: hostname(),
      metrics: metrics.sync,
    });
    this.#discovery = new FleetDiscovery({
      ...parts,
      fleet: fleetOf(parts, config),
      client: host.client,
      informerMetrics: ({ plural }) => metrics.informer('host', plural),
    });
    this.#replicas = parts.isDryRun ? undefined : this.#joinReplicas();
    this.members = new Members({
      ...parts,
      discovery: this.#discovery,
      isPlacedHere: (key) => this.#isPlacedHere(key),
      rules: rulesOf(parts, config),
      startSync: (start) => this.#startSync(start),
      remove: (removed, memberLogger) => this.#remove(removed, memberLogger),
      report: (workload, note) => this.#report(workload, note),
      createNote: (vcluster) => this.#createNote(vcluster),
      queueMetrics: metrics.queue('fleet'),
    });
  }

  /** Resolves when every vCluster is known, and its member is being started. */
  async start(): Promise<void> {
    const { config, metrics, signal } = this.#parts;
    const stopping = AbortSignal.any([signal, this.#stopping.signal]);
    this.#watching = this.#discovery.run(this.#stopping.signal);
    await Promise.all(this.#discovery.informers.map((informer) => informer.whenSynced(stopping)));
    this.#reportSelection();
    this.#inUse(config);
    metrics.sync.configurationApplied(true);
    this.members.start();
    this.#isStarted = true;
    void this.#findFormers();
  }

  own(resources: AsyncDisposable): void {
    this.#resources = resources;
  }

  /** Applies what every member gets and which ones are selected; anything else needs a restart. */
  async reload(config: Config): Promise<void> {
    const { logger, metrics } = this.#parts;
    const { live, restart } = diffConfig(this.#config, config);
    const isLive = (path: string): boolean =>
      /^endpointSyncer\.(?:defaults|fleet\.(?:selector|limits))\b/u.test(path);
    const [applied, others] = [restart.filter(isLive), [...live, ...restart.filter((path) => !isLive(path))]];
    if (others.length > 0) logger.warn({ paths: others }, 'configuration changes need a restart');
    const { defaults } = config;
    const { selector, limits } = config.fleet;
    const fleet = { ...this.#config.fleet, selector, limits };
    this.#config = { ...this.#config, defaults, fleet };
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
    await Promise.all([this.members.stop(), this.#watching]);
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

  #joinReplicas(): Replicas {
    const { config, leaseClient, replicaId } = this.#parts;
    const { namespace } = config.host;
    const defaults = plainMemberConfig({
      ...rulesOf(this.#parts, config),
      vcluster: { namespace, name: 'fleet' },
    });
    if (defaults === undefined) throw new InvariantError('the loader has accepted invalid defaults');
    const { leaseDuration, renewDeadline, retryPeriod } = defaults.leaderElection;
    return new Replicas({
      ...this.#parts,
      client: leaseClient,
      namespace,
      id: replicaId,
      leaseDurationMs: leaseDuration,
      renewDeadlineMs: renewDeadline,
      retryPeriodMs: retryPeriod,
      changed: () => this.#placementChanged(),
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
    void this.#findFormer();
  }

  #createLock({
    leaderElection,
  }: Config): ((lease: NamespacedName, annotations: () => StringMap) => MemberLock) | undefined {
    const { host } = this.#parts;
    const replicas = this.#replicas;
    if (replicas === undefined) return undefined;
    const retryPeriodMs = leaderElection.retryPeriod;
    const parts = { ...this.#parts, client: host.client, replicas, retryPeriodMs };
    return (lease, annotations) => new MemberLock({ ...parts, lease, annotations });
  }

  #createNote({ namespace, name }: NamespacedName): MemberNote | undefined {
    const { config, host } = this.#parts;
    const replicas = this.#replicas;
    if (replicas === undefined) return undefined;
    const lease = { namespace, name: leaseName(name) };
    return new MemberNote({
      ...this.#parts,
      client: host.client,
      fleet: config.host.namespace,
      lease,
      replicas,
    });
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

  async #startSync({ vcluster, ...start }: MemberStart): Promise<ClusterSync> {
    const { config: own, host, isDryRun, clock, random, sync, version } = this.#parts;
    await this.#warnOfSidecar(start);
    const borrowed = borrowedClient(host.client, hostLimits(this.#config.fleet, clock));
    return startClusterSync({
      ...start,
      isDryRun,
      clock,
      random,
      version,
      host: { ...host, client: confinedClient(borrowed, vcluster.namespace) },
      serverOf: serverOf(vcluster),
      createSandbox: (sandbox) => createSandbox({ ...sandbox, idleMs: SANDBOX_IDLE_MS }),
      ...sync,
      createLock: this.#createLock(start.config),
      leaseAnnotations: { [FLEET]: own.host.namespace },
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

  /** As the holder of its Lease: another replica may not have noticed yet that the vCluster is gone. */
  async #remove(config: Config, logger: Logger): Promise<void> {
    const { clock, config: own, host } = this.#parts;
    const { signal } = this.#stopping;
    const lease = { namespace: config.host.namespace, name: leaseName(config.name) };
    // By the annotation, another replica finds what this one leaves.
    const lock = this.#createLock(config)?.(lease, () => ({ [FLEET]: own.host.namespace }));
    if (lock === undefined) return;
    const giveUp = new AbortController();
    // Until the other replicas have been listed after its holder was read.
    const timer = clock.schedule(2 * config.leaderElection.retryPeriod, () => giveUp.abort());
    try {
      if (!(await lock.acquire(AbortSignal.any([signal, giveUp.signal]))))
        throw new TransportError(`the Lease ${keyOf(lease)} is held by "${lock.holder}"`);
      // Until now, it may have been installed again, and its copies are those of its objects then.
      const vcluster = { namespace: lease.namespace, name: config.name };
      const rules = rulesOf(this.#parts, this.#config);
      const existsAgain = new TransportError('the vCluster exists again');
      if (!(await this.#discovery.isDeleted(vcluster, signal))) throw existsAgain;
      const client = guardedClient(host.client, () => {
        checkHeld(lock);
        // It may be installed again meanwhile: what is deleted until the caches show it is copied again by its sync.
        const known = decideByWorkload(this.#discovery.known(keyOf(vcluster)), rules);
        if (known?.kind !== 'deleted') throw existsAgain;
      });
      await removeCopies({ config, client, logger, signal });
    } finally {
      timer.cancel();
      await lock.release();
    }
  }

  #report(workload: KubeObject, note: string): void {
    const resource = workload.kind === DEPLOYMENTS.kind ? DEPLOYMENTS : STATEFUL_SETS;
    this.#recorder.event(workload, resource, { type: 'Warning', reason: 'NotJoined', note });
  }

  /** Now and then, because a replica that was suspended may take a Lease after it was removed, and release it. */
  async #findFormers(): Promise<void> {
    const { clock, random } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#findFormer();
      await sleep(clock, FORMER_PERIOD_MS * (0.8 + 0.4 * random()), signal);
    }
  }

  /** vClusters that were deleted while no process of the fleet ran: their Leases are left. */
  async #findFormer(): Promise<void> {
    const { clock, host, logger, random } = this.#parts;
    const { signal } = this.#stopping;
    const find = async (): Promise<void> => {
      for (const namespace of exactNamespaces(fleetOf(this.#parts, this.#config)) ?? ['']) {
        const { items } = await host.client.list(LEASES, { signal, ...(namespace !== '' && { namespace }) });
        for (const lease of items) {
          const key = formerMember(lease);
          if (key !== undefined) this.members.addFormer(key);
        }
      }
    };
    const onRetry = (error: unknown): void =>
      logger.warn({ error: messageOf(error) }, 'Leases of former members cannot be listed, retrying');
    const isRetryable = (error: unknown): boolean => !isForbidden(error);
    // Without the right, it is left to the next replica that has it.
    await retry(find, { ...FORMER_DELAYS, clock, random, signal, isRetryable, onRetry }).catch(
      () => undefined,
    );
  }
}

function rulesOf(parts: FleetParts, config: Config): FleetRules {
  const { defaults, host } = config;
  return { fleet: fleetOf(parts, config), defaults, host, checks: parts.checks };
}

function fleetOf({ namespaces }: FleetParts, { fleet }: Config): FleetConfig {
  return { ...fleet, namespaces };
}
