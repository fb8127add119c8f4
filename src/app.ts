/** The composition root of the daemon: makes every part, hands each its ports, and ends them in order. */

import type { ObservableInformer } from './cluster/informer.ts';
import type { EventRecorder } from './cluster/types.ts';
import { diffConfig, withLiveChanges } from './config/diff.ts';
import type { Config } from './config/types.ts';
import { connectClusters, type Clusters } from './daemon/clusters.ts';
import { createGeneration, type Generation } from './daemon/generation.ts';
import { TerminalError } from './kube/errors.ts';
import type { Clock } from './lib/clock.ts';
import type { Random } from './lib/random.ts';
import type { ManagementApi } from './management/management-api.ts';
import { startHealthServer, type CheckResult, type Checks, type HealthServer } from './observe/health.ts';
import type { Logger } from './observe/logger.ts';
import { createMetrics, type Metrics } from './observe/metrics.ts';
import type { ReferencedKind } from './sync/references/referenced-kind.ts';
import { checkNamespaceMappings } from './translate/namespace-mapping-checks.ts';

export interface DaemonOptions {
  readonly config: Config;
  /** Logs each write instead of doing it. */
  readonly isDryRun: boolean;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
  /** Aborts a start that waits for a cluster. */
  readonly signal: AbortSignal;
}

export interface Daemon {
  /** `http://host:port` of `/healthz`, `/readyz` and `/metrics`. */
  readonly healthUrl: string;
  /** Takes over what may change live. Rejects, and changes nothing, when the new configuration lacks a right. */
  reload(config: Config): Promise<void>;
  /** The file is invalid: the running configuration stays in force, and people can see it. */
  reloadFailed(): void;
  /** Stops intake, finishes what is queued, sends what is pending. */
  stop(): Promise<void>;
}

/** A cache that has heard nothing for so long is not current: watches get a bookmark every minute. */
const STALENESS_MAX_MS = 5 * 60_000;

/** Connects, checks rights, and starts to sync. Rejects with `TerminalError` where only a person can help. */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const metrics = createMetrics({ monotonicMs: () => options.clock.monotonicMs() });
  const daemon = new SyncDaemon(options, metrics);
  try {
    await daemon.start();
  } catch (error) {
    await daemon.stop();
    throw error;
  }
  return daemon;
}

class SyncDaemon implements Daemon {
  readonly #options: DaemonOptions;
  readonly #metrics: Metrics;
  #config: Config;
  #health: HealthServer | undefined;
  #clusters: Clusters | undefined;
  #recorder: EventRecorder | undefined;
  #generation: Generation | undefined;
  #management: ManagementApi | undefined;
  #isConfigInvalid = false;

  constructor(options: DaemonOptions, metrics: Metrics) {
    this.#options = options;
    this.#metrics = metrics;
    this.#config = options.config;
  }

  get healthUrl(): string {
    return this.#health?.url ?? '';
  }

  async start(): Promise<void> {
    const { config, logger, version, isDryRun } = this.#options;
    this.#health = await startHealthServer({
      bindAddress: config.httpBindAddress,
      healthChecks: { ping: () => ({ isOk: true }) },
      readyChecks: this.#readyChecks(),
      metrics: this.#metrics,
      logger,
    });
    this.#metrics.leads(config.name, false);
    logger.info({ version, isDryRun, http: this.#health.url, name: config.name }, 'starting');
    this.#management = await startManagement(this.#options);
    this.#clusters = await connectClusters({ ...this.#options, metrics: this.#metrics });
    this.#config = this.#located(config);
    const references = await this.#clusters.resolveReferences(this.#config);
    await this.#clusters.checkRights(this.#config, references);
    this.#recorder = this.#clusters.createRecorder();
    this.#generation = await this.#prepare(this.#config, references);
    this.#generation?.start();
  }

  async reload(config: Config): Promise<void> {
    const { logger } = this.#options;
    this.#isConfigInvalid = false;
    const { live, restart } = diffConfig(this.#config, this.#located(config));
    if (restart.length > 0)
      logger.warn({ paths: restart }, 'configuration changed where a restart is needed');
    if (live.length > 0) await this.#replace(withLiveChanges(this.#config, config));
    this.#metrics.sync.reloaded('ok');
    if (live.length > 0) logger.info({ paths: live }, 'configuration reloaded');
  }

  /** What runs goes on until everything that can fail about its successor has succeeded. */
  async #replace(config: Config): Promise<void> {
    const references = (await this.#clusters?.resolveReferences(config)) ?? [];
    await this.#clusters?.checkRights(config, references);
    const next = await this.#prepare(config, references);
    await this.#generation?.stop();
    next?.start();
    this.#generation = next;
    this.#config = config;
  }

  reloadFailed(): void {
    this.#isConfigInvalid = true;
    this.#metrics.sync.reloaded('error');
  }

  async stop(): Promise<void> {
    await Promise.all([this.#generation?.stop(), this.#management?.[Symbol.asyncDispose]()]);
    await this.#recorder?.flush();
    await this.#clusters?.[Symbol.asyncDispose]();
    await this.#health?.[Symbol.asyncDispose]();
  }

  /** The configuration with the host namespace filled in, where it is the context's own. */
  #located(config: Config): Config {
    const namespace = config.host.namespace || (this.#clusters?.hostNamespace ?? '');
    checkMappings(config, namespace);
    return { ...config, host: { ...config.host, namespace } };
  }

  async #prepare(config: Config, references: readonly ReferencedKind[]): Promise<Generation | undefined> {
    if (!config.sync.endpoints.enabled || this.#clusters === undefined || this.#recorder === undefined) {
      this.#options.logger.warn({}, 'sync.toHost.endpoints.enabled is false: nothing is synced');
      return undefined;
    }
    return createGeneration({
      ...this.#options,
      config,
      references,
      clusters: this.#clusters,
      recorder: this.#recorder,
      metrics: this.#metrics,
    });
  }

  #readyChecks(): Checks {
    return {
      connected: () => ok(this.#clusters !== undefined, 'clusters are not connected yet'),
      'virtual-endpoints': () => this.#cacheCheck(0),
      'virtual-services': () => this.#cacheCheck(1),
      'host-endpoints': () => this.#cacheCheck(2),
      references: () => this.#referencesCheck(),
      workers: () =>
        ok(!this.#isSyncing || this.#generation?.engine.isWorking === true, 'workers wait for the caches'),
      'management-api': () =>
        this.#config.management.enabled && !this.#options.isDryRun
          ? ok(this.#management !== undefined, 'the key and token API has not started yet')
          : { isOk: true, detail: 'not enabled' },
      sandbox: () => this.#generation?.sandboxCheck() ?? { isOk: true, detail: 'not needed' },
      configuration: () =>
        this.#isConfigInvalid
          ? { isOk: true, detail: 'the file was not taken over, the configuration before it is in force' }
          : { isOk: true },
    };
  }

  get #isSyncing(): boolean {
    return this.#config.sync.endpoints.enabled;
  }

  /** Every cache of a kind that a patch names. */
  #referencesCheck(): CheckResult {
    const informers = this.#generation?.referenceInformers ?? [];
    if (!this.#isSyncing || informers.length === 0) return { isOk: true, detail: 'not needed' };
    const checks = informers.map((informer) => this.#informerCheck(informer));
    return checks.find(({ isOk }) => !isOk) ?? { isOk: true, detail: `${informers.length} caches` };
  }

  #cacheCheck(index: number): CheckResult {
    if (!this.#isSyncing) return { isOk: true, detail: 'not needed' };
    return this.#informerCheck(this.#generation?.engine.informers[index]);
  }

  #informerCheck(informer: ObservableInformer | undefined): CheckResult {
    if (informer === undefined) return { isOk: false, detail: 'not started' };
    const { lastError } = informer.condition;
    const why = lastError === undefined ? '' : `, last error: ${lastError}`;
    if (!informer.isSynced) return { isOk: false, detail: `not synced yet${why}` };
    const staleness = `heard of ${Math.round(informer.stalenessMs / 1000)} s ago`;
    return {
      isOk: informer.stalenessMs < STALENESS_MAX_MS,
      detail: `${informer.size} objects, ${staleness}${why}`,
    };
  }
}

/** The key and token API beside the sync. Loaded only where it is served. A dry run would write into its store. */
async function startManagement(options: DaemonOptions): Promise<ManagementApi | undefined> {
  const { config, isDryRun, logger } = options;
  if (!config.management.enabled) return undefined;
  if (isDryRun) {
    logger.info({}, 'the key and token API is not served by a dry run');
    return undefined;
  }
  const { startManagementApi } = await import('./management/management-api.ts');
  return startManagementApi({ ...options, config: config.management });
}

/** Once more with the host namespace, which may not have been known when the file was read. */
function checkMappings({ name, sync }: Config, hostNamespace: string): void {
  if (sync.namespaces.kind !== 'mappings') return;
  const problems = checkNamespaceMappings(sync.namespaces.byName, name, hostNamespace);
  if (problems.length > 0) throw new TerminalError(problems.map(({ message }) => message).join('\n'));
}

function ok(isOk: boolean, detail: string): CheckResult {
  return isOk ? { isOk } : { isOk, detail };
}
