/** The latency of the requests to a store. */

import type { Clock } from '../../base/clock.ts';
import type { Observe, SeriesRegistry } from '../../base/metrics/series.ts';
import type { Store } from './store.ts';

const OPERATIONS = ['get', 'list', 'create', 'update', 'delete'] as const;

const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** The store, whose requests are measured when they are sent through the result. */
export function measuredStore(store: Store, clock: Clock, registry: SeriesRegistry): Store {
  const duration = registry.histogram({
    name: 'endpoint_syncer_store_request_duration_seconds',
    help: 'Latency of requests to the store of the key and token API, by operation.',
    labels: ['operation'],
    buckets: BUCKETS,
  });
  const observers = new Map<string | symbol, Observe>();
  for (const operation of OPERATIONS) observers.set(operation, duration.of({ operation }));
  return new Proxy(store, {
    get: (_store, name) => {
      const member: unknown = Reflect.get(store, name);
      if (typeof member !== 'function') return member;
      const observe = observers.get(name);
      return (...parameters: unknown[]): unknown => {
        const startedMs = clock.monotonicMs();
        const result: unknown = Reflect.apply(member, store, parameters);
        const ended = (): void => observe?.((clock.monotonicMs() - startedMs) / 1000);
        if (observe !== undefined && result instanceof Promise) void result.then(ended, ended);
        return result;
      };
    },
  });
}
