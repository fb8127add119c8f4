/** The real daemon as one process: it can crash at any request, be paused, reload its configuration, lose its Lease, and be started again. */

import { silentLogger, type Logger } from '../../../src/base/logger.ts';
import type { Random } from '../../../src/base/random.ts';
import { withLiveChanges, type Config } from '../../../src/syncer/config/config.ts';
import type { SandboxOptions } from '../../../src/expressions/sandbox.ts';
import { ownerOf } from '../../../src/syncer/translation.ts';
import { CachingDiscovery } from '../../../src/kube/discovery.ts';
import { AggregatingRecorder, EventSeriesLimit } from '../../../src/kube/event-recorder.ts';
import { guardedClient } from '../../../src/kube/lease.ts';
import type { KubeObject, Resource } from '../../../src/kube/object.ts';
import { isNotFound } from '../../../src/kube/status-error.ts';
import type { ClusterName, EventRecorder, WatchClient } from '../../../src/kube/types.ts';
import { createEngine, type RunningEngine } from '../../../src/syncer/engine.ts';
import { startLeadership, type Leadership } from '../../../src/syncer/leadership.ts';
import type { Metrics } from '../../../src/syncer/metrics/metrics.ts';
import { DryRun } from '../../../src/syncer/reconcile/dry-run.ts';
import { DISCOVERY, kindPolicy, resolveNamedKinds } from '../../../src/syncer/references/referenced-kind.ts';
import type { Faults } from '../world/faults.ts';
import { SimClient } from '../world/sim-client.ts';
import type { VirtualClock } from '../../../src/base/clock.ts';
import { ProcessClock } from '../world/process-clock.ts';
import type { SimCluster } from '../world/sim-cluster.ts';
import { SimEvaluator } from './sim-evaluator.ts';

export const DAEMON_MANAGER = 'endpoint-syncer';

/** After a process has ended with exit code 1. */
const RESTART_MS = 2000;
const RETRY_MS = 1000;

export interface SimDaemonOptions {
  readonly clusters: Readonly<Record<ClusterName, SimCluster>>;
  readonly clock: VirtualClock;
  readonly faults: Faults;
  readonly random: Random;
  readonly isDryRun: boolean;
  /** The configuration file as it is now. */
  readonly config: () => Config;
  /** A write of this daemon was committed; `isDead`: its process has ended since it sent the request. */
  readonly wrote: (daemon: SimDaemon, resource: Resource, isDead: boolean) => void;
  /** This daemon deletes what is being deleted already. */
  readonly deletedAgain?: (object: KubeObject) => void;
  /** Default: silent. */
  readonly logger?: Logger;
  readonly trace: (line: string) => void;
}

/** One life of the daemon, from its start to its end. */
interface Life {
  readonly process: ProcessClock;
  readonly leadership: Leadership;
  readonly recorder: EventRecorder;
  readonly raw: Clients;
  readonly clients: Clients;
  config: Config;
  engine: RunningEngine | undefined;
  /** Reloads follow each other. */
  reloading: Promise<void>;
}

interface Clients {
  readonly virtual: WatchClient;
  readonly host: WatchClient;
}

export class SimDaemon {
  readonly #options: SimDaemonOptions;
  #life: Life | undefined;
  #resumedAtMs = -Infinity;
  /** The process ends with the write that makes this 0. */
  #writesLeft = Infinity;

  constructor(options: SimDaemonOptions) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#life !== undefined && !this.#life.process.isDead;
  }

  /** It is paused, or was so shortly before. */
  wasPausedSince(nowMs: number): boolean {
    return this.#life?.process.isPaused === true || this.#resumedAtMs >= nowMs;
  }

  /** Nothing is queued or under way. */
  get isIdle(): boolean {
    return this.#life?.engine?.isIdle === true;
  }

  /** Starts a new process; does nothing while one runs. */
  start(): void {
    if (this.isRunning) return;
    const { clock, random, isDryRun, logger = silentLogger } = this.#options;
    const config = this.#options.config();
    const process = new ProcessClock(clock);
    const raw = { virtual: this.#client('virtual', process), host: this.#client('host', process) };
    const common = { clock: process, random, logger };
    const leadership = startLeadership({
      ...common,
      config,
      client: raw.host,
      isDryRun,
      metrics: { leads: () => undefined },
    });
    const clients = {
      virtual: guardedClient(raw.virtual, leadership),
      host: guardedClient(raw.host, leadership),
    };
    const recorder = isDryRun
      ? NO_EVENTS
      : new AggregatingRecorder({
          ...common,
          client: clients.virtual,
          reportingController: 'endpoint-syncer/controller',
          reportingInstance: 'sim',
          metrics: { event: () => undefined },
          limit: new EventSeriesLimit(),
        });
    const life: Life = {
      process,
      leadership,
      recorder,
      raw,
      clients,
      config,
      engine: undefined,
      reloading: Promise.resolve(),
    };
    this.#life = life;
    this.#writesLeft = Infinity;
    void leadership.lost.then((why) => this.#exit(life, why));
    void this.#prepare(life, config).then((engine) => {
      life.engine = engine;
      engine.start();
    });
  }

  /** The process is gone, and with it everything that it was about to do; requests that left it reach the server. */
  crash(): void {
    this.#life?.process.crash();
  }

  crashAfterWrites(count: number): void {
    this.#writesLeft = count;
  }

  /** SIGTERM, which a paused process gets when it resumes: it finishes its work and releases its Lease. */
  async stop(): Promise<void> {
    const life = this.#life;
    if (life === undefined || life.process.isDead) return;
    await new Promise<void>((resolve) => life.process.schedule(1, resolve));
    await life.engine?.stop();
    await life.recorder.flush();
    await life.leadership[Symbol.asyncDispose]();
    life.process.crash();
  }

  pause(): void {
    this.#life?.process.pause();
  }

  resume(): void {
    if (this.#life?.process.isPaused === true) this.#resumedAtMs = this.#options.clock.nowMs;
    this.#life?.process.resume();
  }

  jumpClock(byMs: number): void {
    if (this.#life !== undefined) this.#life.process.skewMs += byMs;
  }

  /** The configuration file has changed: what may change live does. */
  reload(): void {
    const life = this.#life;
    if (life === undefined || life.process.isDead) return;
    life.reloading = life.reloading.then(async () => {
      await new Promise<void>((resolve) => life.process.schedule(1, resolve));
      const running = life.engine;
      // A start that is under way ends with the configuration that it has read.
      if (running === undefined) return this.#exit(life, 'its configuration has changed while it starts');
      const config = withLiveChanges(life.config, this.#options.config());
      const next = await this.#prepare(life, config);
      await running.stop();
      life.config = config;
      life.engine = next;
      next.start(running.importedKinds);
    });
  }

  async #prepare(life: Life, config: Config): Promise<RunningEngine> {
    const { process, leadership, recorder, raw, clients } = life;
    const { random, faults, isDryRun, logger = silentLogger } = this.#options;
    const discoveries = { virtual: new CachingDiscovery(raw.virtual), host: new CachingDiscovery(raw.host) };
    const named = await retried(process, () =>
      resolveNamedKinds(kindPolicy(config.sync), discoveries, () => undefined, DISCOVERY),
    );
    const parts = {
      clusters: { discoveries, resolveOwner: (of: Config) => this.#owner(life, of) },
      clients,
      leadership,
      recorder,
      createSandbox: async (options: SandboxOptions) => new SimEvaluator(options, { process, faults }),
      dryRun: isDryRun ? new DryRun(logger) : undefined,
      clock: process,
      random,
      logger,
      metrics: SILENT_METRICS as Metrics, // each member is a function
    };
    return createEngine(parts, config, named);
  }

  /** Without it a start ends. */
  async #owner(life: Life, config: Config) {
    const owner = ownerOf(config);
    if (owner === undefined || owner.isOptional) return undefined;
    const { apiVersion, kind, name } = owner;
    return retried(life.process, async () => {
      const resource = { group: '', version: 'v1', kind, plural: 'configmaps', isNamespaced: true };
      try {
        const object = await life.raw.host.get(resource, { namespace: config.host.namespace, name });
        return { apiVersion, kind, name, uid: object.metadata.uid ?? '' };
      } catch (error) {
        if (isNotFound(error) && life.engine !== undefined) return undefined;
        if (isNotFound(error)) this.#exit(life, 'the owner does not exist');
        throw error;
      }
    });
  }

  #exit(life: Life, why: string): void {
    // The holder of a Lease has a random name.
    this.#options.trace(`a daemon ends: ${why.replace(/ to .*/, '')}`);
    life.process.crash();
    this.#options.clock.schedule(RESTART_MS, () => this.start());
  }

  #client(cluster: ClusterName, process: ProcessClock): SimClient {
    const { clusters, clock, faults } = this.#options;
    return new SimClient({
      cluster: clusters[cluster],
      clock,
      process,
      faults,
      manager: DAEMON_MANAGER,
      committed: (resource) => {
        this.#options.wrote(this, resource, process.isDead);
        this.#writesLeft -= 1;
        if (this.#writesLeft === 0) this.crash();
      },
      ...(this.#options.deletedAgain && { deletedAgain: this.#options.deletedAgain }),
    });
  }
}

/** A start that waits for a cluster. */
async function retried<T>(process: ProcessClock, attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch {
      await new Promise<void>((resolve) => process.schedule(RETRY_MS, resolve));
    }
  }
}

const NO_EVENTS: EventRecorder = { event: () => undefined, flush: async () => undefined };

/** Metrics that no test reads: every member is a function that returns the same again. */
const SILENT_METRICS: unknown = new Proxy(() => undefined, {
  get: () => SILENT_METRICS,
  apply: () => SILENT_METRICS,
});
