/** What the patches of a rehearsal ran on, for a trace of them after it. */

import type { JsonObject } from '../../base/json.ts';
import type { SyncedKind } from '../../syncer/kinds/kind.ts';
import { createPatchPipeline, type PipelineOptions } from '../../syncer/patch/pipeline.ts';
import type { Direction, PatchContext, PatchPipeline } from '../../syncer/patch/types.ts';

export interface Application {
  readonly kind: SyncedKind;
  readonly options: PipelineOptions;
  readonly direction: Direction;
  /** Before the first patch. */
  readonly object: JsonObject;
  readonly context: PatchContext;
}

/** `createPipeline` of a rehearsal; reports each object that is patched. */
export function reportingPipeline(
  report: (application: Application) => void,
): (kind: SyncedKind, options: PipelineOptions) => PatchPipeline {
  return (kind, options) => {
    const pipeline = createPatchPipeline(options);
    return {
      ...pipeline,
      apply: (direction, object, context) => {
        report({ kind, options, direction, object, context });
        return pipeline.apply(direction, object, context);
      },
    };
  };
}
