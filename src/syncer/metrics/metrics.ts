/** All metrics of the daemon, initialized at the start. Here those that every controller has, named as client-go and controller-runtime do. */

import type { InformerMetrics } from '../../kube/informer/informer.ts';
import type { QueueMetrics } from '../../kube/work-queue.ts';
import {
  leaderSeries,
  processSeries,
  requestSeries,
  type RequestSeries,
} from '../../base/metrics/process-series.ts';
import { type Labels, type Observe, SeriesRegistry } from '../../base/metrics/series.ts';
import { byLabel, informerSeries, syncSeries, type SyncSeries } from './sync-series.ts';

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
const RECONCILE_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export function controllerSeries(
  registry: SeriesRegistry,
  sync: SyncSeries,
): (name: string, workers: number) => ControllerSeries {
  const described = (name: string, help: string, ...labels: string[]) => ({
    name: `controller_runtime_${name}`,
    help,
    labels: ['controller', ...labels],
  });
  const total = registry.counter(described('reconcile_total', 'Reconciles by result.', 'result'));
  const errors = registry.counter(described('reconcile_errors_total', 'Reconciles that failed.'));
  const time = registry.histogram({
    ...described('reconcile_time_seconds', 'Duration of a reconcile.'),
    buckets: RECONCILE_BUCKETS,
  });
  const max = registry.gauge(
    described('max_concurrent_reconciles', 'Maximum number of concurrent reconciles.'),
  );
  const active = registry.gauge(described('active_workers', 'Number of workers in use.'));
  return (controller, workers) => {
    const of = { controller };
    const count = byLabel(total, 'result', RESULTS, of);
    const [failed, observe, setMax] = [errors.of(of), time.of(of), max.of(of)];
    return {
      running: (isRunning) => setMax(isRunning ? workers : 0),
      reconciled(result, seconds) {
        count(result)();
        if (result === 'error') failed();
        observe(seconds);
      },
      active: active.of(of),
      blocked: (reason, blocked) => sync.blocked(controller, reason, blocked),
      latency: (seconds) => sync.latency(seconds),
    };
  };
}

/** client-go's buckets, 10 ns × 10ⁿ, without those below 10 µs, which this process cannot reach. */
const QUEUE_BUCKETS = [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000];

export function queueSeries(
  registry: SeriesRegistry,
  monotonicMs: () => number,
): (name: string) => QueueMetrics {
  /** By queue. A reload replaces the queue, and the work of both counts. */
  const works = new Map<string, RunningWork>();
  const described = (name: string, help: string) => ({
    name: `workqueue_${name}`,
    help,
    labels: ['name', 'controller'],
  });
  const depth = registry.gauge(described('depth', 'Current depth of the work queue.'));
  const adds = registry.counter(described('adds_total', 'Total number of adds handled by the work queue.'));
  const retries = registry.counter(
    described('retries_total', 'Total number of retries handled by the work queue.'),
  );
  const waited = registry.histogram({
    ...described(
      'queue_duration_seconds',
      'Time that a key stays in the work queue before a worker takes it.',
    ),
    buckets: QUEUE_BUCKETS,
  });
  const worked = registry.histogram({
    ...described('work_duration_seconds', 'Time that the processing of a key takes.'),
    buckets: QUEUE_BUCKETS,
  });
  const unfinished = registry.gauge(
    described('unfinished_work_seconds', 'Sum of the time spent so far on keys in progress.'),
    () => works.forEach((work) => work.refresh()),
  );
  const longest = registry.gauge(
    described(
      'longest_running_processor_seconds',
      'Time that the longest running worker has spent on its key.',
    ),
  );
  return (name) => {
    const of = { name, controller: name };
    const [observeWaited, observeWorked] = [waited.of(of), worked.of(of)];
    const running =
      works.get(name) ??
      new RunningWork(monotonicMs, { unfinished: unfinished.of(of), longest: longest.of(of) });
    works.set(name, running);
    return {
      depth: depth.of(of),
      added: adds.of(of),
      retried: retries.of(of),
      queued(seconds) {
        observeWaited(seconds);
        running.began();
      },
      worked(seconds) {
        observeWorked(seconds);
        running.ended(seconds);
      },
    };
  };
}

/** Start times of the keys in progress; at most one per worker. */
class RunningWork {
  readonly #monotonicMs: () => number;
  readonly #gauges: { readonly unfinished: Observe; readonly longest: Observe };
  readonly #startsMs: number[] = [];

  constructor(monotonicMs: () => number, gauges: { unfinished: Observe; longest: Observe }) {
    this.#monotonicMs = monotonicMs;
    this.#gauges = gauges;
  }

  began(): void {
    this.#startsMs.push(this.#monotonicMs());
  }

  /** Removes the start time closest to the one that the duration implies. */
  ended(seconds: number): void {
    const startMs = this.#monotonicMs() - seconds * 1000;
    let closest = 0;
    for (let i = 1; i < this.#startsMs.length; i++) {
      if (distance(this.#startsMs[i], startMs) < distance(this.#startsMs[closest], startMs)) closest = i;
    }
    this.#startsMs.splice(closest, 1);
  }

  refresh(): void {
    const nowMs = this.#monotonicMs();
    const seconds = this.#startsMs.map((startMs) => (nowMs - startMs) / 1000);
    this.#gauges.unfinished(seconds.reduce((sum, one) => sum + one, 0));
    this.#gauges.longest(Math.max(0, ...seconds));
  }
}

function distance(a: number | undefined, b: number): number {
  return Math.abs((a ?? Infinity) - b);
}
