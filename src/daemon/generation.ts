/** Everything that one configuration makes: names, compiled patches, sandbox, engine. A reload ends one generation and starts another. */

import type { ObservableInformer } from '../cluster/informer.ts';
import type { EventRecorder } from '../cluster/types.ts';
import type { Config } from '../config/types.ts';
import type { Clusters } from './clusters.ts';
import type { Clock } from '../lib/clock.ts';
import type { Random } from '../lib/random.ts';
import type { CheckResult } from '../observe/health.ts';
import type { Logger } from '../observe/logger.ts';
import type { Metrics } from '../observe/metrics.ts';
import { compilePatches, type CompiledPatches } from '../patch/compile.ts';
import { measuredPipeline } from '../patch/measured-pipeline.ts';
import { createSandbox, type Sandbox } from '../sandbox/sandbox.ts';
import { createEngine, type Engine, type EngineMetrics } from '../sync/engine.ts';
import type { ReferenceMetrics } from '../sync/references/environment.ts';
import type { ReferencedKind } from '../sync/references/referenced-kind.ts';
import { References } from '../sync/references/references.ts';
import { createTranslation, createTranslators } from '../sync/translation.ts';

export interface GenerationOptions {
  readonly config: Config;
  /** What the patches name. */
  readonly references: readonly ReferencedKind[];
  readonly clusters: Clusters;
  readonly recorder: EventRecorder;
  readonly isDryRun: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

export interface Generation {
  readonly engine: Engine;
  /** Those of the kinds that patches name; a kind that only data lead to never keeps the daemon from being ready. */
  readonly referenceInformers: readonly ObservableInformer[];
  /** Starts to sync. */
  start(): void;
  sandboxCheck(): CheckResult;
  stop(): Promise<void>;
}

/** Prepares everything that can fail, so that the generation before may run until this one can take over. */
export async function createGeneration(options: GenerationOptions): Promise<Generation> {
  const { config, clusters, logger } = options;
  const owner = await clusters.resolveOwner(config);
  const compiled = compilePatches(config.sync.endpoints.patches);
  const sandbox = await sandboxFor(options, compiled);
  const references = new References(
    {
      ...options,
      ...createTranslators(config),
      discoveries: clusters.discoveries,
      owner,
      clients: clusters,
      metrics: referenceMetrics(options),
    },
    options.references,
  );
  const referenceInformers = references.informers;
  const { lookup } = references;
  const translation = createTranslation({ config, compiled, evaluator: sandbox, lookup });
  const engine = createEngine({
    ...options,
    ...translation,
    pipeline: measuredPipeline(translation.pipeline, options.clock, options.metrics.sync),
    references,
    owner,
    clients: clusters,
    metrics: engineMetrics(options),
  });
  let running: Promise<void> | undefined;
  return {
    engine,
    referenceInformers,
    start() {
      running ??= engine
        .run()
        .catch((error: unknown) => logger.error({ err: error }, 'the engine ended by an error'));
    },
    sandboxCheck: () => ({
      isOk: true,
      detail:
        sandbox === undefined ? 'not needed, no patch has an expression' : `${sandbox.pids.length} processes`,
    }),
    async stop() {
      await engine.stop();
      await running;
      await sandbox?.[Symbol.asyncDispose]();
    },
  };
}

/** No expression, no child process. */
async function sandboxFor(
  { config, clock, logger, metrics }: GenerationOptions,
  { programs }: CompiledPatches,
): Promise<Sandbox | undefined> {
  if (programs.length === 0) return undefined;
  const vcluster = { name: config.name, namespace: config.host.namespace, config: config.vclusterConfig };
  return createSandbox({
    programs,
    vcluster,
    namespaces: config.sync.namespaces,
    limits: config.sandbox,
    clock,
    logger,
    metrics: metrics.sync,
  });
}

function engineMetrics({ config, metrics }: GenerationOptions): EngineMetrics {
  const { sync } = metrics;
  return {
    queue: metrics.queue('endpoints'),
    controller: {
      ...metrics.controller('endpoints', config.workers),
      blocked: (reason, count) => sync.blocked(reason, count),
      latency: (seconds) => sync.latency(seconds),
    },
    writes: sync,
    informer: (cluster, resource) => metrics.informer(cluster, resource.plural),
  };
}

/** Blocked references are counted apart from blocked Endpoints. */
function referenceMetrics({ config, metrics }: GenerationOptions): ReferenceMetrics {
  const { sync } = metrics;
  return {
    queue: metrics.queue('references'),
    controller: {
      ...metrics.controller('references', config.workers),
      blocked: (reason, count) =>
        sync.blocked(reason.startsWith('Reference') ? reason : `Reference${reason}`, count),
      latency: (seconds) => sync.latency(seconds),
    },
    writes: sync,
    informer: (cluster, resource) => metrics.informer(cluster, resource.plural),
  };
}
