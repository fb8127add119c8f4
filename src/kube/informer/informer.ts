/** A cache of one resource, kept current by a list-watch, that publishes its changes to subscribers. */

import { objectKey, type KubeObject, type ObjectKey, type Resource } from '../object.ts';
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { Logger } from '../../base/logger.ts';
import {
  ListWatch,
  type ListWatchCondition,
  type ListWatchMetrics,
  type ListWatchSink,
} from './list-watch.ts';
import { ObjectCache } from './object-cache.ts';
import type { CacheEvent, IndexFunctions, Informer, WatchClient, WatchEventType } from '../types.ts';

/** What an informer reports. */
export interface InformerMetrics extends ListWatchMetrics {
  /** An event without a change: a replay, an older state, or a write of this process. */
  ignored(): void;
  /** `read` supplies the gauges at each scrape. */
  watchState(read: () => InformerState): void;
}

export interface InformerState {
  readonly objects: number;
  readonly stalenessSeconds: number;
  readonly isSynced: boolean;
}

export interface InformerOptions {
  client: Pick<WatchClient, 'list' | 'watch'>;
  resource: Resource;
  /** Absent: every namespace. */
  namespace?: string;
  labelSelector?: string;
  /** Caches `metadata` alone. */
  isMetadataOnly?: boolean;
  indexes?: IndexFunctions;
  /** Returns the part of an object that is cached, such as without `managedFields`; it may change its argument. */
  transform?: (object: KubeObject) => KubeObject;
  clock: Clock;
  random: Random;
  logger: Logger;
  metrics: InformerMetrics;
  pageSize?: number;
  silenceLimitMs?: number;
}

/** An informer with its condition, for readiness. */
export interface ObservableInformer extends Informer {
  readonly condition: ListWatchCondition;
}

export function createInformer(options: InformerOptions): ObservableInformer {
  return new CachingInformer(options);
}

class CachingInformer implements ObservableInformer, ListWatchSink {
  readonly resource: Resource;
  readonly #options: InformerOptions;
  readonly #cache: ObjectCache;
  readonly #listWatch: ListWatch;
  readonly #handlers: ((event: CacheEvent) => void)[] = [];
  readonly #createdAtMs: number;
  #synced = Promise.withResolvers<void>();
  #isSynced = false;
  /** Cached keys that the list in progress has not returned yet. */
  #unlisted = new Set<ObjectKey>();
  #isRewound = false;

  constructor(options: InformerOptions) {
    this.resource = options.resource;
    this.#options = options;
    this.#cache = new ObjectCache(options.indexes ?? {});
    this.#createdAtMs = options.clock.monotonicMs();
    this.#listWatch = new ListWatch({ ...options, sink: this });
    options.metrics.watchState(() => ({
      objects: this.size,
      stalenessSeconds: this.stalenessMs / 1000,
      isSynced: this.#isSynced,
    }));
  }

  get(key: ObjectKey): KubeObject | undefined {
    return this.#cache.indexer.get(key);
  }

  list(): Iterable<KubeObject> {
    return this.#cache.indexer.list();
  }

  byIndex(index: string, value: string): ReadonlySet<ObjectKey> {
    return this.#cache.indexer.byIndex(index, value);
  }

  get size(): number {
    return this.#cache.indexer.size;
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  get resourceVersion(): string {
    return this.#listWatch.resourceVersion;
  }

  get stalenessMs(): number {
    return this.#options.clock.monotonicMs() - (this.condition.receivedAtMs ?? this.#createdAtMs);
  }

  get condition(): ListWatchCondition {
    return this.#listWatch.condition;
  }

  async whenSynced(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#isSynced) return;
    const aborted = Promise.withResolvers<never>();
    const abort = (): void => aborted.reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    try {
      await Promise.race([this.#synced.promise, aborted.promise]);
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  subscribe(handler: (event: CacheEvent) => void): void {
    this.#handlers.push(handler);
  }

  observeWrite(object: KubeObject): void {
    this.#store(object);
  }

  observeDelete(key: ObjectKey, uid: string): void {
    this.#cache.forget(key, uid);
  }

  observeRead(object: KubeObject): void {
    const event = this.#store(object);
    if (event !== undefined) this.#publish(event);
  }

  observeAbsence(key: ObjectKey, uid: string): void {
    const held = this.get(key);
    this.#cache.forget(key, uid);
    if (held?.metadata.uid === uid) this.#publish({ type: 'deleted', key, object: held });
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#listWatch.run(signal);
  }

  listStarted(isRewound: boolean): void {
    this.#isRewound = isRewound;
    this.#unlisted = new Set(this.#cache.indexer.keys());
  }

  listPage(objects: readonly KubeObject[]): void {
    for (const object of objects) {
      this.#unlisted.delete(objectKey(object));
      const kept = this.#keep(object);
      this.#publish(this.#isRewound ? this.#cache.replace(kept) : this.#cache.apply(kept));
    }
  }

  listComplete(resourceVersion: string): void {
    const listVersion = this.#isRewound ? undefined : resourceVersion;
    for (const key of this.#unlisted) {
      const event = this.#cache.removeUnlisted(key, listVersion);
      if (event !== undefined) this.#publish(event);
    }
    this.#unlisted = new Set();
    this.#isRewound = false;
    if (this.#isSynced) return;
    this.#isSynced = true;
    this.#synced.resolve();
  }

  event(type: Exclude<WatchEventType, 'BOOKMARK'>, object: KubeObject): void {
    const kept = this.#keep(object);
    this.#publish(type === 'DELETED' ? this.#cache.remove(kept) : this.#cache.apply(kept));
  }

  #store(object: KubeObject): CacheEvent | undefined {
    if (this.#isElsewhere(object)) return undefined;
    // The caller may use its object later: the transformed one must be a copy.
    return this.#cache.apply(this.#keep({ ...object, metadata: { ...object.metadata } }));
  }

  #keep(object: KubeObject): KubeObject {
    return this.#options.transform?.(object) ?? object;
  }

  #publish(event: CacheEvent | undefined): void {
    if (event === undefined) {
      this.#options.metrics.ignored();
      return;
    }
    const published = this.#isSynced ? event : { ...event, isInitial: true };
    for (const handler of this.#handlers) this.#call(handler, published);
  }

  /** A handler that throws affects neither the other handlers nor the cache. */
  #call(handler: (event: CacheEvent) => void, event: CacheEvent): void {
    try {
      handler(event);
    } catch (error) {
      const stack = error instanceof Error ? error.stack : String(error);
      this.#options.logger.error(
        { resource: this.resource.plural, key: event.key, stack },
        'event handler failed',
      );
    }
  }

  #isElsewhere(object: KubeObject): boolean {
    const { namespace } = this.#options;
    return namespace !== undefined && object.metadata.namespace !== namespace;
  }
}
