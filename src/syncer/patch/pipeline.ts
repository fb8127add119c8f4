/** The patches of one kind, compiled once and applied to one object at a time. Asynchronous only if an evaluation needs the sandbox process. */

import { overlaps, type CompiledPatch, type CompiledPatches } from './compile.ts';
import { createFlow } from './flow.ts';
import { PatchRun, type RunSettings, type Stage } from './run.ts';
import type { Program } from '../sandbox/types.ts';
import type { PatchPipeline } from './types.ts';

export interface PipelineOptions extends RunSettings {
  readonly compiled: CompiledPatches;
  /** Top-level members below which paths may be two-way. */
  readonly contentMembers: readonly string[];
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
    readsHostObject: patches.some(
      ({ actions: { toHost } }) => toHost.kind === 'evaluate' && readsHost(toHost.program),
    ),
    apply(direction, object, context) {
      if (isEmpty) return { object, references: [], notAllowed: [], unresolved: [] };
      return new PatchRun(options, jobs[direction], object, context).start();
    },
    ...createFlow(patches, options.contentMembers),
  };
}

function readsHost({ reads }: Program): boolean {
  return reads.hostObject.length > 0;
}

/** Consecutive patches that never match the same place form one stage. */
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
