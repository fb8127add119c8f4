/** A pipeline that counts what it patches, what fails, and how long it takes. */

import type { Clock } from '../../base/clock.ts';
import { PatchError } from '../../base/errors.ts';
import type { PatchedObject, PatchPipeline } from './types.ts';

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
