/** The composition root of the daemon: connect, check rights, run, reload, drain. */

import { diffConfig, withLiveChanges } from '../config/diff.ts';
import type { Config } from '../config/types.ts';
import { TerminalError } from '../base/errors.ts';
import { sleep, type Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import { startHealthServer, type CheckResult, type Checks } from '../base/health.ts';
import type { Logger } from '../base/logger.ts';
import { guardedClient } from '../kube/guarded-client.ts';
import { connectClusters, type Clusters } from './clusters.ts';
import { startCompanion, type Companion, type StartCompanion } from './companion.ts';
import { Connection } from './connection.ts';
import { reportCopiesLeft } from './copies-left.ts';
import { createGeneration, IDLE_GENERATION, type Generation, type GenerationOptions } from './generation.ts';
import { startLeadership } from './leadership.ts';
import { createSandbox } from './sandbox/sandbox.ts';
import { DryRun, type DryRunRow } from './reconcile/write/dry-run.ts';
import { createMetrics, type Metrics } from './metrics/metrics.ts';
import { syncedKinds } from './kinds/synced-kinds.ts';
import { checkNamespaceMappings } from './translate/names/namespace-mapping-checks.ts';

export interface DaemonOptions {
  readonly config: Config;
  /** Has the API servers check each write without storing it, and logs what it would change. */
  readonly isDryRun: boolean;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
  /** Aborts a start that waits for a cluster. */
  readonly signal: AbortSignal;
  /** Starts what is served beside the sync, the key and token API. Absent where nothing is. */
  readonly startCompanion?: StartCompanion;
}

export interface Daemon {
  /** `http://host:port` of `/healthz`, `/readyz` and `/metrics`. */
  readonly healthUrl: string;
  /** Resolves with the reason when the daemon cannot continue; it has to be stopped then. */
  readonly failed: Promise<string>;
  /** Applies what may change live. Rejects, and changes nothing, when the new configuration lacks a right. */
  reload(config: Config): Promise<void>;
  /** The file is invalid: the running configuration stays in force, and readiness says so. */
  reloadFailed(): void;
  /** Resolves when everything that was there at the start has been dealt with, or when `signal` aborts; what a dry run has found. */
  firstPass(signal: AbortSignal): Promise<readonly DryRunRow[]>;
  /** Stops intake, finishes what is queued and sends pending Events, all within {@link DRAIN_MS}, and logs what is left. */
  stop(): Promise<void>;
}

const NOT_CONNECTED: CheckResult = { isOk: false, detail: 'clusters are not connected yet' };

const IDLE_CHECK_MS = 50;

/** What is not done then is left to the next start. The process ends within 8 s, so a second is for everything after. */
const DRAIN_MS = 6500;

/** Connects, checks rights, and starts to sync. Rejects with `TerminalError` where only a user can help. */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { clock, logger, version, isDryRun } = options;
  const metrics = createMetrics({ monotonicMs: () => clock.monotonicMs(), version });
  const readiness = { checks: (): Checks => ({ connected: () => NOT_CONNECTED }) };
  await using resources = new AsyncDisposableStack();
  const health = resources.use(
    await startHealthServer({
      bindAddress: options.config.httpBindAddress,
      healthChecks: { ping: () => ({ isOk: true }) },
      readyChecks: () => readiness.checks(),
      metrics,
      logger,
    }),
  );
  logger.info({ version, isDryRun, http: health.url, name: options.config.name }, 'starting');
  const companion = resources.use(await startCompanion(options.startCompanion, metrics.registry, logger));
  const connection = new Connection(options.signal);
  const clusters = resources.use(await connectClusters({ ...options, signal: connection.signal, metrics }));
  const config = located(options.config, clusters.hostNamespace);
  const references = await clusters.resolveReferences(config);
  await clusters.checkRights(config, references);
  const leads: Metrics['leads'] = (lease, isLeader) => metrics.leads(lease, isLeader);
  const leadership = resources.use(startLeadership({ ...options, config, client: clusters.host, leads }));
  const clients = {
    virtual: guardedClient(clusters.virtual, () => leadership.checkWrite()),
    host: guardedClient(clusters.host, () => leadership.checkWrite()),
  };
  const recorder = clusters.createRecorder(clients.virtual);
  resources.defer(() => recorder.flush());
  const dryRun = isDryRun ? new DryRun(logger) : undefined;
  const parts = {
    ...options,
    dryRun,
    metrics,
    clusters,
    clients,
    leadership,
    recorder,
    createSandbox,
    companion,
    connection,
  };
  const generation = await prepareGeneration({ ...parts, config, references });
  const daemon = new SyncDaemon(parts, { config, generation }, health.url, resources.move());
  readiness.checks = () => daemon.checks();
  connection.keep();
  generation.start();
  return daemon;
}

/** What lives as long as the daemon. */
interface DaemonParts extends DaemonOptions, Omit<GenerationOptions, 'references' | 'config' | 'clusters'> {
  readonly clusters: Clusters;
  readonly companion: Companion;
  readonly connection: Connection;
}

/** What a reload replaces. */
interface Running {
  readonly config: Config;
  readonly generation: Generation;
}

class SyncDaemon implements Daemon {
  readonly healthUrl: string;
  readonly failed: Promise<string>;
  readonly #parts: DaemonParts;
  readonly #resources: AsyncDisposableStack;
  #running: Running;
  #isConfigInvalid = false;
  #hasFailed = false;

  constructor(parts: DaemonParts, running: Running, healthUrl: string, resources: AsyncDisposableStack) {
    this.healthUrl = healthUrl;
    this.#parts = parts;
    this.#running = running;
    this.#resources = resources;
    this.failed = parts.leadership.lost.finally(() => (this.#hasFailed = true));
  }

  async reload(config: Config): Promise<void> {
    const { logger, metrics, clusters } = this.#parts;
    this.#isConfigInvalid = false;
    const before = this.#running.config;
    const { live, restart } = diffConfig(before, located(config, clusters.hostNamespace));
    if (restart.length > 0)
      logger.warn({ paths: restart }, 'configuration changed where a restart is needed');
    if (live.length > 0) await this.#replace(withLiveChanges(before, config));
    metrics.sync.reloaded('ok');
    if (live.length > 0) logger.info({ paths: live }, 'configuration reloaded');
  }

  /** The running generation continues until everything that can fail about its successor has succeeded. */
  async #replace(config: Config): Promise<void> {
    const { clusters } = this.#parts;
    const references = await clusters.resolveReferences(config);
    await clusters.checkRights(config, references);
    const generation = await prepareGeneration({ ...this.#parts, config, references });
    await this.#running.generation.stop();
    generation.start();
    this.#running = { config, generation };
  }

  reloadFailed(): void {
    this.#isConfigInvalid = true;
    this.#parts.metrics.sync.reloaded('error');
  }

  async firstPass(signal: AbortSignal): Promise<readonly DryRunRow[]> {
    const { clock, dryRun } = this.#parts;
    // Twice in a row: a decision may queue another object.
    for (let idle = 0; idle < 2 && !signal.aborted;) {
      await sleep(clock, IDLE_CHECK_MS, signal);
      idle = this.#running.generation.isIdle() ? idle + 1 : 0;
    }
    return dryRun?.rows() ?? [];
  }

  async stop(): Promise<void> {
    const { clock, companion, connection, logger } = this.#parts;
    let left = 0;
    const timer = clock.schedule(this.#hasFailed ? 0 : DRAIN_MS, () => {
      left = this.#running.generation.abandon();
      connection.close();
    });
    await Promise.all([this.#running.generation.stop(), companion[Symbol.asyncDispose]()]);
    await this.#resources.disposeAsync();
    timer.cancel();
    if (left === 0) logger.info({ left }, 'stopped');
    else logger.warn({ left }, 'stopped');
  }

  checks(): Checks {
    const { companion, leadership } = this.#parts;
    return {
      connected: () => ({ isOk: true }),
      ...this.#running.generation.checks,
      'leader-election': () => leadership.check(),
      'management-api': () => companion.check(),
      configuration: () =>
        this.#isConfigInvalid
          ? { isOk: true, detail: 'the file is invalid, the configuration before it is in force' }
          : { isOk: true },
    };
  }
}

async function prepareGeneration(options: GenerationOptions): Promise<Generation> {
  await reportCopiesLeft(options);
  if (syncedKinds(options.config).length > 0) return createGeneration(options);
  options.logger.warn({}, 'sync.toHost.endpoints.enabled is false: nothing is synced');
  return IDLE_GENERATION;
}

/** The configuration with the host namespace filled in, where it is the context's own: mappings can be checked against it only now. */
function located(config: Config, hostNamespace: string): Config {
  const { name, sync, management } = config;
  const namespace = config.host.namespace || hostNamespace;
  if (sync.namespaces.kind === 'mappings') {
    const { byName } = sync.namespaces;
    const problems = checkNamespaceMappings(byName, name, namespace, management.store.namespace);
    if (problems.length > 0) throw new TerminalError(problems.map(({ message }) => message).join('\n'));
  }
  return { ...config, host: { ...config.host, namespace } };
}
