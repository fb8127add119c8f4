/** Wraps a pipeline with metrics: the duration of patches, and failures by kind. */

import { PatchError } from '../../base/errors.ts';
import type { Clock } from '../../base/clock.ts';
import type { PatchedObject, PatchPipeline } from './types.ts';

export interface PatchMetrics {
  /** All patches of one object, in one direction. */
  patched(seconds: number): void;
  /** One patch failed on one object; `reason` is a `PatchErrorKind`. */
  patchFailed(reason: string): void;
}

export function measuredPipeline(
  pipeline: PatchPipeline,
  clock: Clock,
  metrics: PatchMetrics,
): PatchPipeline {
  if (pipeline.isEmpty) return pipeline;
  const failed = (error: unknown): never => {
    if (error instanceof PatchError) metrics.patchFailed(error.kind);
    throw error;
  };
  return {
    ...pipeline,
    apply(direction, object, context) {
      const startedMs = clock.monotonicMs();
      const succeeded = (patched: PatchedObject): PatchedObject => {
        metrics.patched((clock.monotonicMs() - startedMs) / 1000);
        return patched;
      };
      try {
        const result = pipeline.apply(direction, object, context);
        return result instanceof Promise ? result.then(succeeded, failed) : succeeded(result);
      } catch (error) {
        return failed(error);
      }
    },
  };
}
