/** All metrics of the daemon, initialized at the start: the usual controller metrics first, then our own. */

import { controllerSeries, type ControllerSeries } from './controller-series.ts';
import { informerSeries, type InformerSeries } from './informer-series.ts';
import {
  leaderSeries,
  processSeries,
  requestSeries,
  type RequestSeries,
} from '../../base/metrics/process-series.ts';
import { queueSeries, type QueueSeries } from './queue-series.ts';
import { SeriesRegistry } from '../../base/metrics/series.ts';
import { syncSeries, type SyncSeries } from './sync-series.ts';

/** Recorders for all modules. Each module declares the part that it needs as a structural type. */
export interface Metrics {
  /** Prometheus' text format, and the `Content-Type` that goes with it. */
  text(): Promise<string>;
  readonly contentType: string;
  /** Registry for the metrics of the key and token API. */
  readonly registry: SeriesRegistry;
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
export function createMetrics(options: { monotonicMs: () => number; version: string }): Metrics {
  const registry = new SeriesRegistry();
  const queue = queueSeries(registry, options.monotonicMs);
  const controller = controllerSeries(registry);
  const requests = requestSeries(registry);
  const informer = informerSeries(registry);
  const leads = leaderSeries(registry);
  const sync = syncSeries(registry);
  processSeries(registry, options.version);
  return {
    text: () => registry.text(),
    contentType: registry.contentType,
    registry,
    queue,
    controller,
    requests,
    informer,
    leads,
    sync,
  };
}
