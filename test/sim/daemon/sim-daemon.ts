/** The real engine as one process: it can crash at any request, be paused, and be started again. */

import { silentLogger } from '../../../src/base/logger.ts';
import type { Random } from '../../../src/base/random.ts';
import type { Config } from '../../../src/config/types.ts';
import { createDiscovery } from '../../../src/kube/discovery.ts';
import type { ClusterName, EventRecorder, RecordedEvent } from '../../../src/kube/types.ts';
import { createEngine, type Engine } from '../../../src/syncer/engine.ts';
import { endpointsKind } from '../../../src/syncer/kinds/endpoints.ts';
import { compilePatches } from '../../../src/syncer/patch/compile.ts';
import { kindPolicy, resolveNamedKinds } from '../../../src/syncer/references/kinds/referenced-kind.ts';
import { References } from '../../../src/syncer/references/references.ts';
import { SyncedReferrers } from '../../../src/syncer/synced-referrers.ts';
import { createTranslation, createTranslators } from '../../../src/syncer/translation.ts';
import type { Faults } from '../world/faults.ts';
import { SimClient } from '../world/sim-client.ts';
import { ProcessClock, type SimClock } from '../world/sim-clock.ts';
import type { SimCluster } from '../world/sim-cluster.ts';
import { SimEvaluator } from './sim-evaluator.ts';
import { SILENT_METRICS, SILENT_REFERENCE_METRICS } from './silent-metrics.ts';

export const DAEMON_MANAGER = 'endpoint-syncer';

export interface SimDaemonOptions {
  readonly clusters: Readonly<Record<ClusterName, SimCluster>>;
  readonly clock: SimClock;
  readonly faults: Faults;
  readonly random: Random;
  /** Called for each Event that the engine records. */
  readonly recorded: (event: RecordedEvent) => void;
}

export class SimDaemon {
  readonly #options: SimDaemonOptions;
  #process: ProcessClock | undefined;
  #engine: Engine | undefined;
  /** The process ends with the write that makes this 0. */
  #writesLeft = Infinity;

  constructor(options: SimDaemonOptions) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#process !== undefined && !this.#process.isDead;
  }

  /** Starts a new process under a configuration; the one before must have ended. */
  start(config: Config): void {
    const process = new ProcessClock(this.#options.clock);
    this.#process = process;
    this.#writesLeft = Infinity;
    void this.#run(config, process);
  }

  /** The process is gone, and with it everything that it was about to do; requests that left it reach the server. */
  crash(): void {
    this.#process?.crash();
    this.#engine = undefined;
  }

  crashAfterWrites(count: number): void {
    this.#writesLeft = count;
  }

  pause(): void {
    this.#process?.pause();
  }

  resume(): void {
    this.#process?.resume();
  }

  async #run(config: Config, process: ProcessClock): Promise<void> {
    const clients = { virtual: this.#client('virtual', process), host: this.#client('host', process) };
    const discoveries = { virtual: createDiscovery(clients.virtual), host: createDiscovery(clients.host) };
    const policy = kindPolicy(config.sync);
    const named = await this.#retried(() => resolveNamedKinds(policy, discoveries), process);
    const recorder: EventRecorder = {
      event: (_object, _resource, event) => this.#options.recorded(event),
      flush: async () => undefined,
    };
    const { random } = this.#options;
    const common = {
      config,
      clients,
      clock: process,
      random,
      logger: silentLogger,
      recorder,
      dryRun: undefined,
    };
    const compiled = compilePatches(config.sync.endpoints.patches);
    const evaluator = new SimEvaluator(compiled.programs, config, { process, faults: this.#options.faults });
    const translators = createTranslators(config);
    const referrers = new SyncedReferrers(translators.names);
    const references = new References(
      { ...common, ...translators, discoveries, owner: undefined, metrics: SILENT_REFERENCE_METRICS },
      named,
      referrers,
    );
    const { lookup, prepare } = references;
    const translation = createTranslation({
      config,
      kind: endpointsKind,
      compiled,
      evaluator,
      lookup,
      prepare,
    });
    this.#engine = createEngine({
      ...common,
      ...translators,
      kinds: [{ kind: endpointsKind, pipeline: translation.pipeline }],
      virtualCaches: new Map(),
      references,
      referrers,
      whenLeading: async () => undefined,
      owner: undefined,
      metrics: SILENT_METRICS,
    });
    await this.#engine.run();
  }

  /** A start that waits for a cluster. */
  async #retried<T>(attempt: () => Promise<T>, process: ProcessClock): Promise<T> {
    for (;;) {
      try {
        return await attempt();
      } catch {
        await new Promise<void>((resolve) => process.schedule(1000, resolve));
      }
    }
  }

  #client(cluster: ClusterName, process: ProcessClock): SimClient {
    const { clusters, clock, faults } = this.#options;
    return new SimClient({
      cluster: clusters[cluster],
      clock,
      process,
      faults,
      manager: DAEMON_MANAGER,
      committed: () => {
        this.#writesLeft -= 1;
        if (this.#writesLeft === 0) this.crash();
      },
    });
  }
}
