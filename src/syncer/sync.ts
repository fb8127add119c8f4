/** The sync of one virtual cluster, without the process around it: connect, check rights, run, reload, drain. */

import { configurationHash, diffConfig, withLiveChanges, type Config } from './config/config.ts';
import { messageOf, TerminalError } from '../base/errors.ts';
import { sleep } from '../base/clock.ts';
import type { CheckResult, Checks } from '../base/health.ts';
import type { Logger } from '../base/logger.ts';
import type { CacheBudget } from '../kube/informer/cache-budget.ts';
import { guardedClient } from '../kube/lease.ts';
import { type Clusters, type ClustersOptions, connectClusters, type Place, withPlace } from './clusters.ts';
import { reportCopiesLeft } from './copies-left.ts';
import { createEngine, needsNewEngine, type EngineParts, type RunningEngine } from './engine.ts';
import {
  CONFIGURATION,
  CONFIGURATION_TEXT,
  leaseName,
  type LeadershipOptions,
  startLeadership,
} from './leadership.ts';
import { VirtualIdentity } from './virtual-identity.ts';
import { createSandbox } from '../expressions/sandbox.ts';
import { DryRun, type DryRunRow } from './reconcile/dry-run.ts';
import { checkNamespaceMappings } from './translate/namespace-mappings.ts';
import { LEASES } from '../kube/lease.ts';
import { NAMESPACES } from '../kube/object.ts';
import { isNotFound } from '../kube/status-error.ts';
import type { ClusterClient } from '../kube/types.ts';

export interface SyncOptions
  extends
    ClustersOptions,
    Pick<LeadershipOptions, 'createLock' | 'leaseAnnotations'>,
    Pick<EngineParts, 'hasHostControllers'> {
  /** See `LoadedConfig`; of the members of a fleet, `leaseAnnotations` have that of the fleet. */
  readonly textHash?: string | undefined;
  readonly createSandbox?: typeof createSandbox | undefined;
  /** Of the caches. When it is exceeded, the sync fails. Default: everything is cached. */
  readonly budget?: CacheBudget | undefined;
}

const IDLE_CHECK_MS = 50;

/** A replica that starts alone takes the lease at about the time at which its caches are filled. */
const STANDBY_AFTER_MS = 1000;

/** The process exits within 8 s, of which a second is for the steps after the drain. The next start reconciles what remains. */
const DRAIN_MS = 6500;

/** Rejects with `TerminalError` for errors that a retry does not fix. */
export async function startSync(options: SyncOptions): Promise<Sync> {
  const { clock, logger, isDryRun } = options;
  const startedMs = clock.monotonicMs();
  await using resources = new AsyncDisposableStack();
  // Aborted with the start; after it only by the stop, so that requests in flight can be completed.
  const connection = new AbortController();
  const follow = (): void => connection.abort();
  options.signal.addEventListener('abort', follow);
  if (options.signal.aborted) follow();
  const clusters = resources.use(
    await connectClusters({
      ...options,
      warn: (message) => logger.warn({}, message),
      signal: connection.signal,
    }),
  );
  const config = located(options.config, clusters.place);
  const named = await clusters.resolveReferences(config);
  await Promise.all([
    clusters.checkRights(config, named),
    reportMissingHostNamespace(config, clusters.host, logger),
  ]);
  const leadership = resources.use(startLeadership({ ...options, config, client: clusters.host }));
  const clients = {
    virtual: guardedClient(clusters.virtual, leadership),
    host: guardedClient(clusters.host, leadership),
  };
  const recorder = clusters.createRecorder(clients.virtual);
  const hostRecorder = clusters.createRecorder(clusters.host);
  resources.defer(() => recorder.flush());
  resources.defer(() => hostRecorder.flush());
  const dryRun = isDryRun ? new DryRun(logger) : undefined;
  const reports = { ...options, config, leadership, recorder: hostRecorder };
  const identity = new VirtualIdentity({ ...reports, clients: clusters });
  const configuration = new ConfigurationInUse({ ...reports, client: clusters.host });
  const parts = {
    ...options,
    createSandbox: options.createSandbox ?? createSandbox,
    configuration,
    identity,
    dryRun,
    clusters,
    clients,
    leadership,
    recorder,
    connection,
  };
  const engine = await createEngine(parts, config, named);
  const sync = new Sync(parts, { config, engine }, resources.move());
  options.signal.removeEventListener('abort', follow);
  configuration.use(config);
  configuration.read(config);
  configuration.publishText(options.textHash);
  engine.start();
  sync.report(startedMs);
  return sync;
}

interface Parts extends EngineParts {
  readonly clusters: Clusters;
  readonly identity: VirtualIdentity;
  readonly configuration: ConfigurationInUse;
  readonly connection: AbortController;
}

/** The part that a reload replaces. */
interface Running {
  readonly config: Config;
  readonly engine: RunningEngine;
}

export class Sync {
  /** Resolves with the reason when the sync cannot continue; the caller then stops it. */
  readonly failed: Promise<string>;
  readonly #parts: Parts;
  readonly #resources: AsyncDisposableStack;
  #running: Running;
  #hasFailed = false;
  readonly #stopping = new AbortController();
  #reporting: Promise<unknown> = Promise.resolve();

  constructor(parts: Parts, running: Running, resources: AsyncDisposableStack) {
    this.#parts = parts;
    this.#running = running;
    this.#resources = resources;
    const { budget, leadership, metrics } = parts;
    metrics.sync.pathsNeverMatched(() => this.#running.engine.pathsNeverMatched.length);
    this.failed = Promise.race([
      leadership.lost,
      ...(budget === undefined ? [] : [exceeded(budget)]),
    ]).finally(() => (this.#hasFailed = true));
  }

  /** Applies the changes that need no restart. Rejects without a change if a right for the new configuration is missing. */
  async reload(config: Config, textHash?: string): Promise<void> {
    const { logger, metrics, clusters, configuration } = this.#parts;
    const before = this.#running.config;
    const { live, restart } = diffConfig(before, located(config, clusters.place));
    if (restart.length > 0) logger.warn({ paths: restart }, 'configuration changes need a restart');
    if (live.length > 0) await this.#use(withLiveChanges(before, config));
    configuration.read(before, restart.length === 0 ? undefined : `${restart.join(', ')}: needs a restart`);
    if (restart.length === 0) configuration.publishText(textHash);
    metrics.sync.reloaded('ok');
    if (live.length > 0) logger.info({ paths: live }, 'configuration reloaded');
  }

  /** The running engine continues until the new one can start without an error, or where a new one would do the same. */
  async #use(config: Config): Promise<void> {
    const { config: before, engine } = this.#running;
    this.#running = { config, engine: needsNewEngine(before, config) ? await this.#replace(config) : engine };
    this.#parts.configuration.use(config);
  }

  async #replace(config: Config): Promise<RunningEngine> {
    const { clusters } = this.#parts;
    const named = await clusters.resolveReferences(config);
    await clusters.checkRights(config, named);
    const engine = await createEngine(this.#parts, config, named);
    const { signal } = this.#stopping;
    const { engine: previous } = this.#running;
    if (!signal.aborted) await previous.stop();
    if (signal.aborted) {
      // Nothing else stops its sandbox.
      await engine.stop();
      throw signal.reason;
    }
    engine.start(previous.importedKinds);
    this.#reporting = Promise.all([this.#reporting, this.#reportCopiesLeft(config)]);
    return engine;
  }

  /** Reports why the files are not applied; the running configuration remains active. */
  reloadFailed(reason: string): void {
    this.#parts.configuration.read(this.#running.config, reason);
    this.#parts.metrics.sync.reloaded('error');
  }

  /** Reports what the sync does not depend on: it starts before. */
  report(startedMs: number): void {
    this.#reporting = this.#report(startedMs);
  }

  async #report(startedMs: number): Promise<void> {
    const { clock, clusters, logger } = this.#parts;
    const { signal } = this.#stopping;
    const seconds = (): number => Math.round(clock.monotonicMs() - startedMs) / 1000;
    if (!(await this.whenCached(signal))) return;
    const objects = this.#running.engine.objects;
    logger.info({ servers: clusters.servers, objects, seconds: seconds() }, 'ready');
    await Promise.all([
      this.#reportFirstPass(seconds),
      clusters.reportUsers(),
      this.#reportCopiesLeft(this.#running.config),
    ]);
  }

  async #reportFirstPass(seconds: () => number): Promise<void> {
    const { signal } = this.#stopping;
    await this.firstPass(signal);
    if (signal.aborted) return;
    const { initialOutcomes, pathsNeverMatched } = this.#running.engine;
    const unmatched = pathsNeverMatched.length === 0 ? {} : { pathsNeverMatched };
    this.#parts.logger.info({ ...initialOutcomes, ...unmatched, seconds: seconds() }, 'first pass complete');
  }

  #reportCopiesLeft(config: Config): Promise<void> {
    return reportCopiesLeft({ ...this.#parts, config });
  }

  /** Resolves with true when every object is cached and another replica leads; with false when this one leads, or when `signal` aborts. */
  async isStandby(signal: AbortSignal): Promise<boolean> {
    const { clock, leadership } = this.#parts;
    await this.#poll(() => leadership.isLeading || this.#running.engine.isCached, signal);
    if (!leadership.isLeading) await sleep(clock, STANDBY_AFTER_MS, signal);
    return !signal.aborted && !leadership.isLeading;
  }

  whenLeading(signal: AbortSignal): Promise<void> {
    return this.#parts.leadership.whenLeading(signal);
  }

  /** Resolves with true when every first list is cached, and with false when `signal` aborts, or when for `silenceMs` nothing was added to the caches. */
  async whenCached(signal: AbortSignal, silenceMs = Infinity): Promise<boolean> {
    const { clock } = this.#parts;
    let seen = { progress: '', atMs: 0 };
    const isSilent = (): boolean => {
      const progress = this.#progress();
      if (progress !== seen.progress) seen = { progress, atMs: clock.monotonicMs() };
      return clock.monotonicMs() - seen.atMs > silenceMs;
    };
    await this.#poll(() => this.#running.engine.isCached || isSilent(), signal);
    return !signal.aborted && this.#running.engine.isCached;
  }

  /** Of the first lists: the objects that are cached, and what is not ready. */
  #progress(): string {
    const { objects, checks } = this.#running.engine;
    return JSON.stringify([objects, Object.entries(checks).filter(([, check]) => check().isOk).length]);
  }

  async #poll(isDone: () => boolean, signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !isDone()) await sleep(this.#parts.clock, IDLE_CHECK_MS, signal);
  }

  failedChecks(): readonly string[] {
    return Object.entries(this.checks()).flatMap(([name, check]) => {
      const { isOk, detail = 'failed' } = check();
      return isOk ? [] : [`${name}: ${detail}`];
    });
  }

  /** Resolves when all objects of the first lists have been reconciled, or when `signal` aborts, with the rows of a dry run. */
  async firstPass(signal: AbortSignal): Promise<readonly DryRunRow[]> {
    const { clock, dryRun } = this.#parts;
    // Idle in two consecutive checks, because a decision may queue another object.
    for (let idle = 0; idle < 2 && !signal.aborted;) {
      await sleep(clock, IDLE_CHECK_MS, signal);
      idle = this.#running.engine.isIdle ? idle + 1 : 0;
    }
    return dryRun?.rows() ?? [];
  }

  /** Ignores new events, finishes the queue and sends pending Events, all within {@link DRAIN_MS}. Resolves with the number of remaining objects. */
  async stop(): Promise<number> {
    const { clock, connection } = this.#parts;
    this.#stopping.abort();
    let left = 0;
    const timer = clock.schedule(this.#hasFailed ? 0 : DRAIN_MS, () => {
      left = this.#running.engine.abandon();
      connection.abort();
    });
    await this.#running.engine.stop();
    await this.#reporting;
    await this.#resources.disposeAsync();
    timer.cancel();
    return left;
  }

  checks(): Checks {
    const { configuration, identity, leadership } = this.#parts;
    return {
      connected: () => ({ isOk: true }),
      'virtual-cluster': () => identity.check(),
      ...this.#running.engine.checks,
      'leader-election': () => leadership.check(),
      configuration: () => configuration.check(),
    };
  }
}

async function exceeded(budget: CacheBudget): Promise<string> {
  const { of, max } = await budget.exceeded;
  return `the caches need more than ${max} ${of}`;
}

/** Only with the host namespace, which may come from the kubeconfig context, can mappings be validated. */
function located(config: Config, place: Place): Config {
  const { name, sync } = config;
  const withNamespace = withPlace(config, place);
  if (sync.namespaces.kind === 'mappings') {
    const { byName } = sync.namespaces;
    const problems = checkNamespaceMappings(byName, name, withNamespace.host.namespace);
    if (problems.length > 0) throw new TerminalError(problems.map(({ message }) => message).join('\n'));
  }
  return withNamespace;
}

/** Never rejects. Without the right to read namespaces, which is optional, nothing is reported. */
async function reportMissingHostNamespace(
  { createNamespaces, host: { namespace } }: Config,
  client: ClusterClient,
  logger: Logger,
): Promise<void> {
  if (createNamespaces) return;
  try {
    await client.get(NAMESPACES, { namespace: '', name: namespace });
  } catch (error) {
    const hint = 'create it, or set endpointSyncer.host.namespace to the namespace of the virtual cluster';
    if (isNotFound(error)) logger.warn({ namespace, hint }, 'host namespace does not exist');
    else logger.debug({ namespace, error: String(error) }, 'host namespace cannot be checked');
  }
}

/** The configuration in use, and why that of the files is not: in readiness, metrics, the Lease, and Events on the Lease. */
class ConfigurationInUse {
  readonly #options;
  #detail = '';
  #isApplied = true;

  constructor(
    options: Pick<EngineParts, 'leadership' | 'recorder' | 'clock' | 'logger' | 'metrics'> & {
      readonly client: Pick<ClusterClient, 'get'>;
    },
  ) {
    this.#options = options;
  }

  use(config: Config): void {
    const { leadership, metrics, clock } = this.#options;
    const hash = configurationHash(config);
    const nowMs = clock.now();
    this.#detail = `${hash}, since ${new Date(nowMs).toISOString()}`;
    metrics.sync.configurationInUse(hash, nowMs / 1000);
    leadership.publish({ [CONFIGURATION]: hash });
  }

  /** All that the file says is in use. */
  publishText(textHash: string | undefined): void {
    if (textHash !== undefined) this.#options.leadership.publish({ [CONFIGURATION_TEXT]: textHash });
  }

  /** The files were read; `problem` is why what they say is not in use, or not all of it. */
  read(config: Config, problem?: string): void {
    this.#isApplied = problem === undefined;
    this.#options.metrics.sync.configurationApplied(this.#isApplied);
    if (problem !== undefined) void this.#report(config, problem);
  }

  check(): CheckResult {
    const rest = this.#isApplied ? '' : '; that of the files is not applied, the log says why';
    return { isOk: true, detail: `${this.#detail}${rest}` };
  }

  /** The right to create Events on the host is optional, and there may be no Lease. */
  async #report({ name, host }: Config, problem: string): Promise<void> {
    const { client, recorder, logger } = this.#options;
    try {
      const lease = await client.get(LEASES, { namespace: host.namespace, name: leaseName(name) });
      const note = `The changed configuration is not applied: ${problem}`;
      recorder.event(lease, LEASES, { type: 'Warning', reason: 'ConfigurationNotApplied', note });
    } catch (error) {
      logger.debug({ error: messageOf(error) }, 'no Event about the configuration');
    }
  }
}
