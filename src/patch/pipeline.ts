/** Applies all patches of one kind to one object: built once, run for every object, without a promise where none is needed. */

import { overlaps, type CompiledPatch, type CompiledPatches } from './compile.ts';
import { createFlow } from './flow.ts';
import { PatchRun, type RunSettings, type Stage } from './run.ts';
import type { PatchPipeline } from './types.ts';

export interface PipelineOptions extends RunSettings {
  readonly compiled: CompiledPatches;
}

export function createPatchPipeline(options: PipelineOptions): PatchPipeline {
  const { patches } = options.compiled;
  const isEmpty = patches.length === 0;
  const jobs = {
    toHost: { direction: 'toHost', stages: stagesOf(patches) },
    toVirtual: { direction: 'toVirtual', stages: stagesOf(patches.toReversed()) },
  } as const;
  return {
    isEmpty,
    apply(direction, object, context) {
      if (isEmpty) return { object, references: [], notAllowed: [] };
      return new PatchRun(options, jobs[direction], object, context).start();
    },
    ...createFlow(patches),
  };
}

/** Neighbours in the order that never meet in one object are one stage. */
function stagesOf(patches: readonly CompiledPatch[]): readonly Stage[] {
  const stages: CompiledPatch[][] = [];
  for (const patch of patches) {
    const last = stages.at(-1);
    if (last === undefined || last.some((other) => overlaps(other.segments, patch.segments))) {
      stages.push([patch]);
    } else {
      last.push(patch);
    }
  }
  return stages;
}
