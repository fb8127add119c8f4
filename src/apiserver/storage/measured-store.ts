/** A store that measures the latency of each request to another store. */

import type { Clock } from '../../base/clock.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Observe, SeriesRegistry } from '../../base/metrics/series.ts';
import type {
  ListPage,
  ListResult,
  Notes,
  Projected,
  Projection,
  Store,
  StoredEntry,
  StoreKey,
  StoreRange,
  StoreWatch,
  WatchObserver,
} from './store.ts';

const OPERATIONS = ['get', 'list', 'create', 'update', 'delete'] as const;
type Operation = (typeof OPERATIONS)[number];

const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export class MeasuredStore implements Store {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #observe = new Map<Operation, Observe>();

  constructor(store: Store, clock: Clock, registry: SeriesRegistry) {
    this.#store = store;
    this.#clock = clock;
    const duration = registry.histogram({
      name: 'endpoint_syncer_store_request_duration_seconds',
      help: 'Latency of requests to the store of the key and token API, by operation.',
      labels: ['operation'],
      buckets: BUCKETS,
    });
    for (const operation of OPERATIONS) this.#observe.set(operation, duration.of({ operation }));
  }

  revision(): Promise<number> {
    return this.#store.revision();
  }

  get(key: StoreKey): Promise<StoredEntry | undefined> {
    return this.#measured('get', this.#store.get(key));
  }

  list(range: StoreRange, page?: ListPage): Promise<ListResult> {
    return this.#measured('list', this.#store.list(range, page));
  }

  create(key: StoreKey, value: JsonObject): Promise<StoredEntry> {
    return this.#measured('create', this.#store.create(key, value));
  }

  update(key: StoreKey, value: JsonObject, expectedRevision: number): Promise<StoredEntry> {
    return this.#measured('update', this.#store.update(key, value, expectedRevision));
  }

  delete(key: StoreKey, expectedRevision: number): Promise<StoredEntry> {
    return this.#measured('delete', this.#store.delete(key, expectedRevision));
  }

  watch(range: StoreRange, afterRevision: number, observer: WatchObserver): Promise<StoreWatch> {
    return this.#store.watch(range, afterRevision, observer);
  }

  project(resource: string, projection: Projection): Projected {
    return this.#store.project(resource, projection);
  }

  checkWritable(): Promise<void> {
    return this.#store.checkWritable();
  }

  notes(table: string): Notes {
    return this.#store.notes(table);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#store[Symbol.asyncDispose]();
  }

  #measured<Result>(operation: Operation, result: Promise<Result>): Promise<Result> {
    const startedMs = this.#clock.monotonicMs();
    const observe = (): void =>
      this.#observe.get(operation)?.((this.#clock.monotonicMs() - startedMs) / 1000);
    result.then(observe, observe);
    return result;
  }
}
