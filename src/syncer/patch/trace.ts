/** Runs the patches of one kind on one object, one at a time, and records what each matched and changed. */

import { PatchError } from '../../base/errors.ts';
import { valueAt, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { Evaluator, ProgramId } from '../../expressions/types.ts';
import { mayBeKept, type CompiledPatch } from './compile.ts';
import { printPath } from './path-syntax.ts';
import { locate } from './walk.ts';
import { createPatchPipeline, type PipelineOptions } from './pipeline.ts';
import type { ReferenceRules } from './reference-translation.ts';
import type { ConcretePath } from '../translate/types.ts';
import type { Direction, PatchContext, PatchPipeline } from './types.ts';

export interface TracedMatch {
  readonly path: string;
  readonly before: JsonValue | undefined;
  readonly after: JsonValue | undefined;
}

export interface TracedPatch {
  readonly index: number;
  readonly path: string;
  /** `evaluate`, `keep`, or the member of the entry: `reference`, `labels`. */
  readonly action: string;
  readonly matches: readonly TracedMatch[];
  /** If nothing matched: the longest prefix of the path that exists. */
  readonly nearest?: string;
  readonly durationMs: number;
  readonly error?: PatchError;
}

export interface PatchTrace {
  /** In execution order. A failed patch ends the trace if it ends the sync of the object. */
  readonly patches: readonly TracedPatch[];
  readonly object: JsonObject;
}

export interface TraceOptions extends PipelineOptions {
  readonly monotonicMs: () => number;
  /** Default: the patch that ends the sync of the object ends the trace. */
  readonly continuesAfterError?: boolean;
}

/** The same object as from a pipeline. Patch errors are recorded, not thrown. */
export async function tracePatches(
  options: TraceOptions,
  direction: Direction,
  input: JsonObject,
  context: PatchContext,
): Promise<PatchTrace> {
  const patches: TracedPatch[] = [];
  let object = input;
  const configured = options.compiled.patches;
  const references: ReferenceRules = { ...options.references, translatedNamespaces: new Map() };
  for (const patch of direction === 'toHost' ? configured : configured.toReversed()) {
    const traced = await tracePatch({ ...options, references }, { direction, patch, object, context });
    patches.push(traced.patch);
    const isLeftOut = options.onError === 'path' && mayBeKept(patch, options.contentMembers);
    if (traced.patch.error !== undefined && !isLeftOut && options.continuesAfterError !== true) break;
    object = traced.object;
  }
  return { patches, object };
}

/** A pipeline that reports a trace of every object it patches. Its result is without the patches that fail, so that the effect of the others is
 * seen; with `onError: path` it is what the daemon writes. Each patch runs twice, so it is meant for single objects. */
export function tracingPipeline(
  options: TraceOptions,
  report: (direction: Direction, trace: PatchTrace) => void,
): PatchPipeline {
  const pipeline = createPatchPipeline(options);
  return {
    ...pipeline,
    async apply(direction, object, context) {
      const { compiled, onError } = options;
      const trace = await tracePatches({ ...options, continuesAfterError: true }, direction, object, context);
      report(direction, trace);
      const failed = new Set(
        trace.patches.flatMap(({ index, error }) => (error === undefined ? [] : [index])),
      );
      if (failed.size === 0 || onError === 'path') return pipeline.apply(direction, object, context);
      const patches = compiled.patches.filter(({ index }) => !failed.has(index));
      return createPatchPipeline({ ...options, compiled: { ...compiled, patches } }).apply(
        direction,
        object,
        context,
      );
    },
  };
}

interface PatchStep {
  readonly direction: Direction;
  readonly patch: CompiledPatch;
  readonly object: JsonObject;
  readonly context: PatchContext;
}

async function tracePatch(
  options: TraceOptions,
  { direction, patch, object, context }: PatchStep,
): Promise<{ patch: TracedPatch; object: JsonObject }> {
  let places: readonly ConcretePath[] =
    patch.filters.length === 0 ? locate(patch.paths[direction], object) : [];
  const action = patch.actions[direction];
  const results = new Map<number, JsonValue | undefined>();
  const { programs } = options.compiled;
  const pipeline = createPatchPipeline({
    ...options,
    onError: 'object',
    compiled: { patches: [patch], programs },
    evaluator:
      action.kind === 'evaluate' && options.evaluator !== undefined
        ? recordingEvaluator(options.evaluator, action.program.id, results)
        : options.evaluator,
  });
  const start = options.monotonicMs();
  let after = object;
  let error: PatchError | undefined;
  try {
    const patched = await pipeline.apply(direction, object, context);
    ({ object: after } = patched);
    places = patched.matched?.get(patch.index) ?? places;
    error = patched.unresolved[0]?.error;
  } catch (cause) {
    if (!(cause instanceof PatchError)) throw cause;
    error = cause;
  }
  const durationMs = options.monotonicMs() - start;
  const matches = places.map((place, at) => ({
    path: printPath(place),
    before: valueAt(object, place),
    after: results.has(at) ? (results.get(at) ?? undefined) : valueAt(after, place),
  }));
  const traced = {
    index: patch.index,
    path: patch.config.path,
    action: action.kind === 'value' ? action.mode : action.kind,
    matches,
    durationMs,
    ...(places.length === 0 ? { nearest: nearestPath(object, patch) } : {}),
    ...(error === undefined ? {} : { error }),
  };
  return { patch: traced, object: after };
}

/** Records the result of each match by index: the deletion of an element shifts the paths of the elements after it. */
function recordingEvaluator(
  evaluator: Evaluator,
  program: ProgramId,
  results: Map<number, JsonValue | undefined>,
): Evaluator {
  return {
    async evaluate(request) {
      const response = await evaluator.evaluate(request);
      if (request.program === program && response.errors === undefined)
        response.values.forEach((value, at) => results.set(at, value));
      return response;
    },
  };
}

function nearestPath(object: JsonObject, { paths, segments }: CompiledPatch): string {
  for (let length = segments.length; length > 0; length--) {
    const [place] = locate({ ...paths.toVirtual, segments: segments.slice(0, length) }, object);
    if (place !== undefined) return printPath(place);
  }
  return '';
}
