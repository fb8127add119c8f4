/** `workqueue_*`, as client-go and controller-runtime name them. */

import type { Observe, SeriesRegistry } from '../../base/metrics/series.ts';
import type { QueueMetrics } from '../../kube/work-queue.ts';

/** client-go's buckets, 10 ns × 10ⁿ, without those below 10 µs, which this process cannot reach. */
const BUCKETS = [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000];

export function queueSeries(
  registry: SeriesRegistry,
  monotonicMs: () => number,
): (name: string) => QueueMetrics {
  const labels = ['name', 'controller'];
  /** By queue. A reload replaces the queue, and the work of both counts. */
  const works = new Map<string, RunningWork>();
  const depth = registry.gauge({ name: 'workqueue_depth', help: 'Current depth of the work queue.', labels });
  const adds = registry.counter({
    name: 'workqueue_adds_total',
    help: 'Total number of adds handled by the work queue.',
    labels,
  });
  const retries = registry.counter({
    name: 'workqueue_retries_total',
    help: 'Total number of retries handled by the work queue.',
    labels,
  });
  const waited = registry.histogram({
    name: 'workqueue_queue_duration_seconds',
    help: 'Time that a key stays in the work queue before a worker takes it.',
    labels,
    buckets: BUCKETS,
  });
  const worked = registry.histogram({
    name: 'workqueue_work_duration_seconds',
    help: 'Time that the processing of a key takes.',
    labels,
    buckets: BUCKETS,
  });
  const unfinished = registry.gauge(
    {
      name: 'workqueue_unfinished_work_seconds',
      help: 'Sum of the time spent so far on keys in progress.',
      labels,
    },
    () => works.forEach((work) => work.refresh()),
  );
  const longest = registry.gauge({
    name: 'workqueue_longest_running_processor_seconds',
    help: 'Time that the longest running worker has spent on its key.',
    labels,
  });
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
