/** All metrics of the daemon, initialized at the start: the usual controller metrics first, then our own. */

import type { InformerMetrics } from '../../kube/informer/informer.ts';
import type { QueueMetrics } from '../../kube/work-queue.ts';
import { informerSeries } from './informer-series.ts';
import {
  leaderSeries,
  processSeries,
  requestSeries,
  type RequestSeries,
} from '../../base/metrics/process-series.ts';
import { queueSeries } from './queue-series.ts';
import { type Labels, SeriesRegistry } from '../../base/metrics/series.ts';
import { syncSeries, type SyncSeries } from './sync-series.ts';

/** Recorders for all modules. Each module declares the part that it needs as a structural type. */
export interface Metrics {
  /** Prometheus' text format, and the `Content-Type` that goes with it. */
  text(): Promise<string>;
  readonly contentType: string;
  readonly registry: SeriesRegistry;
  queue(name: string): QueueMetrics;
  controller(name: string, workers: number): ControllerSeries;
  /** `host` is `host:port` of an API server. */
  requests(host: string): RequestSeries;
  informer(cluster: string, resource: string): InformerMetrics;
  /** 1 while this process may write. */
  leads(lease: string, isLeader: boolean): void;
  readonly sync: SyncSeries;
}

/** `monotonicMs` is the clock that queues measure with. */
export function createMetrics(options: { monotonicMs: () => number; version: string }): Metrics {
  const metrics = createSyncMetrics(options.monotonicMs);
  processSeries(metrics.registry, options.version);
  return metrics;
}

/** Without those of the process. `labels`: of every series. */
export function createSyncMetrics(monotonicMs: () => number, labels: Labels = {}): Metrics {
  const registry = new SeriesRegistry(labels);
  const sync = syncSeries(registry);
  return {
    text: () => registry.text(),
    contentType: registry.contentType,
    registry,
    queue: queueSeries(registry, monotonicMs),
    controller: controllerSeries(registry, sync),
    requests: requestSeries(registry),
    informer: informerSeries(registry),
    leads: leaderSeries(registry),
    sync,
  };
}

export interface ControllerSeries {
  running(isRunning: boolean): void;
  reconciled(result: ReconcileLabel, seconds: number): void;
  active(workers: number): void;
  /** Objects that are rejected or failing, by reason. */
  blocked(reason: string, count: number): void;
  /** Seconds from the first event of a change to the end of the write that syncs it. */
  latency(seconds: number): void;
}

const RESULTS = ['success', 'error', 'requeue_after', 'requeue'] as const;
export type ReconcileLabel = (typeof RESULTS)[number];
/** A subset of controller-runtime's buckets, up to one minute. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export function controllerSeries(
  registry: SeriesRegistry,
  sync: SyncSeries,
): (name: string, workers: number) => ControllerSeries {
  const labels = ['controller'];
  const prefix = 'controller_runtime';
  const total = registry.counter({
    name: `${prefix}_reconcile_total`,
    help: 'Reconciles by result.',
    labels: ['controller', 'result'],
  });
  const errors = registry.counter({
    name: `${prefix}_reconcile_errors_total`,
    help: 'Reconciles that failed.',
    labels,
  });
  const time = registry.histogram({
    name: `${prefix}_reconcile_time_seconds`,
    help: 'Duration of a reconcile.',
    labels,
    buckets: BUCKETS,
  });
  const max = registry.gauge({
    name: `${prefix}_max_concurrent_reconciles`,
    help: 'Maximum number of concurrent reconciles.',
    labels,
  });
  const active = registry.gauge({
    name: `${prefix}_active_workers`,
    help: 'Number of workers in use.',
    labels,
  });
  return (controller, workers) => {
    const results = RESULTS.map((result) => [result, total.of({ controller, result })] as const);
    const byResult = new Map<string, () => void>(results);
    const failed = errors.of({ controller });
    const observe = time.of({ controller });
    const setMax = max.of({ controller });
    return {
      running: (isRunning) => setMax(isRunning ? workers : 0),
      reconciled(result, seconds) {
        byResult.get(result)?.();
        if (result === 'error') failed();
        observe(seconds);
      },
      active: active.of({ controller }),
      blocked: (reason, count) => sync.blocked(controller, reason, count),
      latency: (seconds) => sync.latency(seconds),
    };
  };
}
