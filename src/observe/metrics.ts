/** Every series of the daemon, there from the start: the usual names of controllers first, then our own. */

import { controllerSeries, type ControllerSeries } from './controller-series.ts';
import { informerSeries, type InformerSeries } from './informer-series.ts';
import { leaderSeries, processSeries, requestSeries, type RequestSeries } from './process-series.ts';
import { queueSeries, type QueueSeries } from './queue-series.ts';
import { SeriesRegistry } from './series.ts';
import { syncSeries, type SyncSeries } from './sync-series.ts';

/** Handles for every room of the program; each takes only the part that it needs, as a structural type of its own. */
export interface Metrics {
  /** Prometheus' text format, and the `Content-Type` that goes with it. */
  text(): Promise<string>;
  readonly contentType: string;
  queue(name: string): QueueSeries;
  controller(name: string, workers: number): ControllerSeries;
  /** `host` is `host:port` of an API server. */
  requests(host: string): RequestSeries;
  informer(cluster: string, resource: string): InformerSeries;
  /** 1 while this process may write. */
  leads(lease: string, isLeader: boolean): void;
  readonly sync: SyncSeries;
}

/** `monotonicMs` is the clock that queues measure with. */
export function createMetrics(options: { monotonicMs: () => number }): Metrics {
  const registry = new SeriesRegistry();
  const queue = queueSeries(registry, options.monotonicMs);
  const controller = controllerSeries(registry);
  const requests = requestSeries(registry);
  const informer = informerSeries(registry);
  const leads = leaderSeries(registry);
  const sync = syncSeries(registry);
  processSeries(registry);
  return {
    text: () => registry.text(),
    contentType: registry.contentType,
    queue,
    controller,
    requests,
    informer,
    leads,
    sync,
  };
}
