/** Everything built from one configuration: name translation, compiled patches, sandbox, engine. A reload replaces the generation. */

import { isDeepStrictEqual } from 'node:util';
import type { ObservableInformer } from '../kube/informer/informer.ts';
import { ServerHistory } from '../kube/informer/list-watch.ts';
import type { Config } from './config/config.ts';
import { jsonEquals, type JsonObject } from '../base/json.ts';
import type { Clusters } from './clusters.ts';
import { compileKinds, syncedKinds } from './kinds/synced-kinds.ts';
import { createPatchPipeline, measuredPipeline, type PipelineOptions } from './patch/pipeline.ts';
import type { PatchPipeline } from './patch/types.ts';
import type { SyncedKind } from './kinds/kind.ts';
import { CopyOwner } from './reconcile/environment.ts';
import { KeptEvaluations } from './reconcile/kept-evaluations.ts';
import { prune } from '../expressions/program-entry.ts';
import type { createSandbox } from '../expressions/sandbox.ts';
import type { Program, Sandbox } from '../expressions/types.ts';
import { Engine, type EngineOptions, type Generation } from './engine.ts';
import type { ReferenceListener } from './references/environment.ts';
import type { ReferencedKind } from './references/referenced-kind.ts';
import { References } from './references/references.ts';
import type { KindSync } from './reconcile/kind-sync.ts';
import { createTranslators, pipelineOptions, sandboxSettings } from './translation.ts';

export interface GenerationOptions extends Omit<
  EngineOptions,
  'kinds' | 'labels' | 'syncs' | 'names' | 'owner' | 'references' | 'sandbox' | 'servers' | 'virtualCaches'
> {
  readonly references: readonly ReferencedKind[];
  readonly clusters: Pick<Clusters, 'discoveries' | 'resolveOwner'>;
  readonly createSandbox: typeof createSandbox;
  readonly giveUpMs?: number | undefined;
  /** Undefined in the daemon. */
  readonly referenceDecided?: ReferenceListener | undefined;
  readonly createPipeline?: (kind: SyncedKind, options: PipelineOptions) => PatchPipeline;
}

/** The generations of both configurations do the same: they differ at most in values of vCluster that no expression reads. */
export function isSameGeneration(before: Config, after: Config): boolean {
  const { vclusterValues } = after;
  if (!isDeepStrictEqual({ ...before, vclusterValues }, after)) return false;
  const paths = compileKinds(syncedKinds(after), after.patches).flatMap(({ patches }) =>
    patches.programs.flatMap(({ reads }) => reads.vcluster),
  );
  const read = (config: Config): JsonObject | null => prune({ ...sandboxSettings(config).vcluster }, paths);
  return jsonEquals(read(before), read(after));
}

/** Completes every step that can fail, so that the previous generation can run until this one is ready. */
export async function createGeneration(options: GenerationOptions): Promise<Generation> {
  const { config, clusters, createPipeline = (_, parts) => createPatchPipeline(parts) } = options;
  const resolveOwner = () => clusters.resolveOwner(config);
  const owner = new CopyOwner(await resolveOwner(), resolveOwner);
  const servers = { virtual: new ServerHistory(), host: new ServerHistory() };
  const virtualCaches = new Map<string, ObservableInformer>();
  const compiled = compileKinds(syncedKinds(config, virtualCaches), config.patches);
  const sandbox = await sandboxFor(options, compiled);
  const translators = createTranslators(config);
  const syncs: KindSync[] = [];
  const references = new References(
    {
      ...options,
      ...translators,
      discoveries: clusters.discoveries,
      servers,
      owner,
      objection: () => engine.objection(),
    },
    options.references,
    syncs,
  );
  const { lookup, prepare } = references;
  const kinds = compiled.map(({ kind, patches }) => {
    const evaluations = sandbox && keptEvaluations(sandbox, patches.programs);
    const parts = { compiled: patches, evaluator: evaluations, lookup, prepare };
    const pipeline = createPipeline(kind, pipelineOptions(config, kind, parts));
    return {
      kind,
      pipeline: measuredPipeline(pipeline, options.clock, options.metrics.sync),
      evaluations,
    };
  });
  const parts = { kinds, syncs, virtualCaches, references, servers, owner, sandbox };
  const engine = new Engine({ ...options, ...translators, ...parts });
  return engine;
}

function keptEvaluations(sandbox: Sandbox, programs: readonly Program[]): KeptEvaluations | undefined {
  return programs.length === 0 ? undefined : new KeptEvaluations(sandbox, programs);
}

export const IDLE_GENERATION: Generation = {
  checks: {},
  isCached: true,
  isIdle: true,
  objects: {},
  initialOutcomes: {},
  importedKinds: [],
  pathsNeverMatched: [],
  start: () => undefined,
  stop: async () => undefined,
  abandon: () => 0,
};

async function sandboxFor(
  { config, clock, logger, metrics, createSandbox: create }: GenerationOptions,
  compiled: ReturnType<typeof compileKinds>,
): Promise<Sandbox | undefined> {
  const programs = compiled.flatMap(({ patches }) => patches.programs);
  if (programs.length === 0) return undefined;
  return create({ ...sandboxSettings(config), programs, clock, logger, metrics: metrics.sync });
}
