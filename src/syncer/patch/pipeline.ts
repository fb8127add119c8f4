/** The patches of one kind, compiled once and applied to one object at a time. */

import type { Clock } from '../../base/clock.ts';
import { PatchError } from '../../base/errors.ts';
import type { VclusterContext } from '../../expressions/types.ts';
import {
  type CompiledPatch,
  createFlow,
  dependOnOrder,
  mayBeKept,
  readsHostObject,
  ruleVersions,
} from './compile.ts';
import { FilledContext, withEmptyLists } from './empty-lists.ts';
import { PatchRun, type PatchSettings, type RunInput, type RunSettings, type Stage } from './patch-run.ts';
import type { PatchedObject, PatchPipeline } from './types.ts';

export interface PipelineOptions extends PatchSettings {
  readonly vcluster: VclusterContext;
  /** `path`: a patch that fails is left out, where both sides can keep what they have. Default: the object fails. */
  readonly onError?: 'object' | 'path';
}

export function createPatchPipeline(options: PipelineOptions): PatchPipeline {
  const { patches } = options.compiled;
  if (patches.length === 0) return NO_PATCHES;
  const rulesOf = ruleVersions(patches, options.vcluster);
  const unmatched = new Set(patches);
  let isApplied = false;
  const settings = { ...options, rulesOf, unmatched };
  const stages = { toHost: stagesOf(patches), toVirtual: stagesOf(patches.toReversed()) };
  return {
    isEmpty: false,
    readsHostObject: patches.some(
      ({ actions: { toHost }, filters }) =>
        (toHost.kind === 'evaluate' && readsHostObject(toHost.program)) ||
        filters.some(({ program }) => readsHostObject(program)),
    ),
    apply(direction, stored, storedContext) {
      isApplied ||= direction === 'toHost';
      const object = withEmptyLists(stored);
      const input = { direction, object, context: new FilledContext(storedContext), failed: [] };
      const run = new PatchRun(settings, input, stages[direction]);
      const withoutFailing = (error: unknown): Promise<PatchedObject> =>
        patchedWithoutFailing(settings, { run, input, error }, stages[direction]);
      try {
        const patched = run.patched();
        return patched instanceof Promise ? patched.catch(withoutFailing) : patched;
      } catch (error) {
        return withoutFailing(error);
      }
    },
    neverMatched: () => (isApplied ? [...unmatched].map(describePatch) : []),
    ...createFlow(patches, options.contentMembers),
    rulesOf,
  };
}

/** Of most kinds: what they copy is not patched, and flows both ways. */
const NO_PATCHES: PatchPipeline = {
  isEmpty: true,
  readsHostObject: false,
  neverMatched: () => [],
  apply: (_direction, object) => ({ object, references: [], notAllowed: [], unresolved: [] }),
  flowOf: () => 'both',
  twoWayPaths: () => [],
  hostOwnedPaths: () => [],
  rulesOf: () => undefined,
};

/** Runs again without each patch that fails, for the others: results of the sandbox are cached. */
async function patchedWithoutFailing(
  settings: PipelineOptions & RunSettings,
  first: { readonly run: PatchRun; readonly input: RunInput; readonly error: unknown },
  stages: readonly Stage[],
): Promise<PatchedObject> {
  const failed: PatchError[] = [];
  let stop: PatchError | undefined;
  let { run, error: thrown } = first;
  for (;;) {
    const error = run.causeOf(thrown);
    if (!(error instanceof PatchError) || failed.some(({ index }) => index === error.index)) throw error;
    failed.push(error);
    if (!mayBeLeftOut(error, settings)) stop ??= error;
    run = new PatchRun(settings, { ...first.input, failed }, stages);
    try {
      const patched = await run.patched();
      if (stop === undefined) return patched;
      break;
    } catch (next) {
      thrown = next;
    }
  }
  throw stop.with(failed.filter((error) => error !== stop));
}

function describePatch({ index, config: { path } }: CompiledPatch): string {
  return `patches[${index}], path ${path}`;
}

function mayBeLeftOut(
  { index }: PatchError,
  { onError, compiled, contentMembers }: PipelineOptions,
): boolean {
  const patch = compiled.patches.find((each) => each.index === index);
  return onError === 'path' && patch !== undefined && mayBeKept(patch, contentMembers);
}

function stagesOf(patches: readonly CompiledPatch[]): readonly Stage[] {
  const stages: CompiledPatch[][] = [];
  for (const patch of patches) {
    const last = stages.at(-1);
    if (last === undefined || last.some((other) => dependOnOrder(other, patch))) {
      stages.push([patch]);
    } else {
      last.push(patch);
    }
  }
  return stages;
}

interface PatchMetrics {
  patched(seconds: number): void;
  patchFailed(reason: string): void;
}

export function measuredPipeline(
  pipeline: PatchPipeline,
  clock: Clock,
  metrics: PatchMetrics,
): PatchPipeline {
  if (pipeline.isEmpty) return pipeline;
  return {
    ...pipeline,
    apply(direction, object, context) {
      const startedMs = clock.monotonicMs();
      const succeed = (patched: PatchedObject): PatchedObject => {
        for (const { kind } of patched.failed?.errors ?? []) metrics.patchFailed(kind);
        metrics.patched((clock.monotonicMs() - startedMs) / 1000);
        return patched;
      };
      const fail = (error: unknown): never => {
        if (error instanceof PatchError)
          for (const { kind } of [error, ...error.others]) metrics.patchFailed(kind);
        throw error;
      };
      const patched = pipeline.apply(direction, object, context);
      return patched instanceof Promise ? patched.then(succeed, fail) : succeed(patched);
    },
  };
}
