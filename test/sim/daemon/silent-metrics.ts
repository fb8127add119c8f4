/** Metrics that nobody reads. */

import type { ReferenceMetrics } from '../../../src/syncer/references/environment.ts';
import type { EngineMetrics } from '../../../src/syncer/engine.ts';

const nothing = (): void => undefined;

export const SILENT_REFERENCE_METRICS: ReferenceMetrics = {
  queue: { depth: nothing, added: nothing, retried: nothing, queued: nothing, worked: nothing },
  writes: { written: nothing },
  controller: { reconciled: nothing, active: nothing, blocked: nothing, latency: nothing },
  informer: () => ({
    expect: nothing,
    ended: nothing,
    received: nothing,
    ignored: nothing,
    watchState: nothing,
  }),
};

export const SILENT_METRICS: EngineMetrics = {
  ...SILENT_REFERENCE_METRICS,
  queue: () => SILENT_REFERENCE_METRICS.queue,
  controller: () => SILENT_REFERENCE_METRICS.controller,
};
