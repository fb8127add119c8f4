/** A cache of one resource, kept current by a list-watch, that publishes its changes to subscribers. */

import { jsonEquals } from '../../base/json.ts';
import {
  asJson,
  isOlder,
  keyOf,
  objectKey,
  parseKey,
  type KubeObject,
  type ObjectKey,
  type Resource,
} from '../object.ts';
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { Logger } from '../../base/logger.ts';
import {
  ListWatch,
  type ListWatchCondition,
  type ListWatchMetrics,
  type ListWatchSink,
  type ServerHistory,
  type StartedList,
} from './list-watch.ts';
import { ObjectCache, type ListInCache } from './object-cache.ts';
import type { CacheBudget, CacheShare } from './cache-budget.ts';
import { parseLabelSelector, type LabelPredicate } from '../label-selector.ts';
import type {
  CacheEvent,
  IndexFunctions,
  Informer,
  MalformedItem,
  ObjectVersion,
  WatchClient,
  WatchEventType,
} from '../types.ts';

export interface InformerMetrics extends ListWatchMetrics {
  /** An event without a change: a replay, an older state, or a write of this process. */
  ignored(): void;
  /** `read` supplies the gauges at each scrape, until the returned function is called. */
  watchState(read: () => InformerState): () => void;
}

export interface InformerState {
  readonly objects: number;
  readonly stalenessSeconds: number;
  readonly isSynced: boolean;
}

export interface InformerOptions {
  client: Pick<WatchClient, 'cluster' | 'list' | 'watch'>;
  resource: Resource;
  /** Absent: every namespace. Several are watched one by one, so that a Role in each is enough. */
  namespaces?: readonly string[] | undefined;
  labelSelector?: string | undefined;
  /** Caches `metadata` alone. */
  isMetadataOnly?: boolean;
  indexes?: IndexFunctions;
  /** Called with the malformed items of each complete list, which are left out of it; what the cache holds of them stays. Absent: one makes the
   * list fail, so that no object is taken for deleted. */
  onMalformed?: (items: readonly MalformedItem[]) => void;
  /** Returns the part of an object that is cached, such as without `managedFields`; it may change its argument. */
  transform?: (object: KubeObject) => KubeObject;
  clock: Clock;
  random: Random;
  logger: Logger;
  metrics: InformerMetrics;
  pageSize?: number;
  /** Shared by the informers of a cluster. */
  server?: ServerHistory;
  /** Shared by the informers of a caller. When it is exceeded, nothing more is read. Absent: everything is cached. */
  budget?: CacheBudget | undefined;
}

export interface ObservableInformer extends Informer {
  readonly condition: ListWatchCondition;
}

export class CachingInformer implements ObservableInformer {
  readonly resource: Resource;
  readonly #options: InformerOptions;
  readonly #cache: ObjectCache;
  /** At least one, by namespace; that of every namespace by `undefined`. */
  readonly #parts: ReadonlyMap<string | undefined, CachePart>;
  readonly #listWatches: readonly ListWatch[];
  readonly #handlers: ((event: CacheEvent) => void)[] = [];
  readonly #createdAtMs: number;
  readonly #isSelected: LabelPredicate;
  readonly #share: CacheShare | undefined;
  #synced = Promise.withResolvers<void>();
  #isSynced = false;

  constructor(options: InformerOptions) {
    const { namespaces = [], clock, budget, indexes = {}, labelSelector = '' } = options;
    this.resource = options.resource;
    this.#options = options;
    this.#share = budget?.share();
    this.#cache = new ObjectCache(indexes, clock, this.#share);
    this.#createdAtMs = clock.monotonicMs();
    this.#isSelected = parseLabelSelector(labelSelector);
    const owner = {
      cache: this.#cache,
      publish: (event: CacheEvent | undefined) => this.#publish(event),
      synced: () => this.#checkSynced(),
    };
    const places = namespaces.length === 0 ? [undefined] : namespaces;
    this.#parts = new Map(places.map((namespace) => [namespace, new CachePart(options, namespace, owner)]));
    this.#listWatches = Array.from(this.#parts.values(), ({ listWatch }) => listWatch);
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
    return newest(this.#listWatches.map(({ resourceVersion }) => resourceVersion));
  }

  get newestVersion(): string {
    return newest(this.#listWatches.map(({ newestVersion }) => newestVersion));
  }

  get stalenessMs(): number {
    const received = this.#listWatches.map(({ condition }) => condition.receivedAtMs ?? this.#createdAtMs);
    return this.#options.clock.monotonicMs() - Math.min(...received);
  }

  /** That of the namespace that is worst off. */
  get condition(): ListWatchCondition {
    const conditions = this.#listWatches.map(({ condition }) => condition);
    const worst = conditions.toSorted((a, b) => b.failures - a.failures)[0] as ListWatchCondition; // there is at least one
    return { ...worst, isRewound: conditions.some(({ isRewound }) => isRewound) };
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

  observeWrite(object: KubeObject, knownWhenSent?: string): void {
    const part = this.#partOf(object.metadata.namespace);
    if (part === undefined) return;
    part.listWatch.observe(object.metadata.resourceVersion, knownWhenSent);
    this.#store(object);
  }

  observeDelete(key: ObjectKey, uid: string): void {
    this.#cache.deleted(key, uid);
  }

  observeRead(object: KubeObject): void {
    const part = this.#partOf(object.metadata.namespace);
    if (part === undefined) return;
    part.listWatch.observe(object.metadata.resourceVersion);
    const event = this.#store(object);
    if (event !== undefined) part.publish(event);
  }

  observeAbsence(key: ObjectKey, uid: string): void {
    const part = this.#partOf(parseKey(key).namespace);
    const held = this.get(key);
    this.#cache.forget(key, uid);
    if (part === undefined || held?.metadata.uid !== uid) return;
    part.publish({ type: 'deleted', key, object: held, mayBeRestored: part.listWatch.mayBeRestored });
  }

  mayBeRestored(namespace: string): boolean {
    return this.#partOf(namespace)?.listWatch.mayBeRestored === true;
  }

  confirms(object: KubeObject): boolean {
    const held = this.get(objectKey(object));
    if (held === undefined || held.metadata.resourceVersion !== object.metadata.resourceVersion) return true;
    const isSame = jsonEquals(asJson(held), asJson(keptCopy(object, this.#options)));
    if (!isSame) this.#partOf(object.metadata.namespace)?.listWatch.contradicted(object);
    return isSame;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { budget, metrics } = this.#options;
    // As long as it runs: the next configuration may not need it.
    const endGauges = metrics.watchState(() => ({
      objects: this.size,
      stalenessSeconds: this.stalenessMs / 1000,
      isSynced: this.#isSynced,
    }));
    const ending = budget === undefined ? signal : AbortSignal.any([signal, budget.signal]);
    try {
      await Promise.all(this.#listWatches.map((listWatch) => listWatch.run(ending)));
    } finally {
      this.#share?.release();
      endGauges();
    }
  }

  #partOf(namespace: string | undefined): CachePart | undefined {
    return this.#parts.get(undefined) ?? this.#parts.get(namespace);
  }

  #checkSynced(): void {
    this.#isSynced = this.#parts.values().every(({ isSynced }) => isSynced);
    if (this.#isSynced) this.#synced.resolve();
  }

  #store(object: KubeObject): CacheEvent | undefined {
    // No watch event would ever remove an object that the selector leaves out.
    if (!this.#isSelected(object.metadata.labels ?? {})) return this.#cache.remove(object);
    return this.#cache.apply(keptCopy(object, this.#options));
  }

  #publish(event: CacheEvent | undefined): void {
    if (event === undefined) this.#options.metrics.ignored();
    else for (const handler of this.#handlers) this.#call(handler, event);
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
}

interface PartOwner {
  readonly cache: ObjectCache;
  publish(event: CacheEvent | undefined): void;
  synced(): void;
}

/** What a list-watch, of one namespace or of all, keeps current in the cache of an informer. */
class CachePart implements ListWatchSink {
  readonly listWatch: ListWatch;
  isSynced = false;
  readonly #options: InformerOptions;
  readonly #namespace: string | undefined;
  readonly #cache: ObjectCache;
  readonly #owner: PartOwner;
  /** Cached keys that the list in progress has not returned yet. */
  #unlisted = new Set<ObjectKey>();
  #list: ListInCache = { version: undefined, requestedAtMs: 0 };
  /** Of the list in progress, an empty page counted as one. */
  #listed = 0;
  /** Of the list in progress. */
  #malformed: MalformedItem[] = [];
  /** The list in progress shows an older state than the cache. */
  #isContradicted = false;
  #mayBeRestored = false;

  constructor(options: InformerOptions, namespace: string | undefined, owner: PartOwner) {
    this.#options = options;
    this.#namespace = namespace;
    this.#cache = owner.cache;
    this.#owner = owner;
    const leavesOutMalformed = options.onMalformed !== undefined;
    this.listWatch = new ListWatch({ ...options, namespace, leavesOutMalformed, sink: this });
  }

  publish(event: CacheEvent | undefined): void {
    this.#owner.publish(this.isSynced ? event : event && { ...event, isInitial: true });
  }

  listStarted({ resourceVersion, isRewound, isInterrupted, requestedAtMs }: StartedList): void {
    this.#mayBeRestored = isRewound || isInterrupted;
    this.#list = { version: isRewound ? undefined : resourceVersion, requestedAtMs };
    this.#isContradicted = false;
    this.#unlisted = new Set(this.#keys());
    this.#malformed = [];
    this.#listed = 0;
  }

  listPage(objects: readonly KubeObject[], malformed: readonly MalformedItem[]): void {
    const { budget } = this.#options;
    this.#listed += Math.max(1, objects.length + malformed.length);
    budget?.listed(this.#listed);
    for (const item of malformed) {
      if (item.key !== undefined) this.#unlisted.delete(item.key);
      this.#malformed.push(item);
    }
    for (const object of objects) {
      if (budget?.excess !== undefined) return;
      this.#unlisted.delete(objectKey(object));
      const { event, isContradiction } = this.#cache.applyListed(kept(object, this.#options), this.#list);
      this.#isContradicted ||= isContradiction;
      this.publish(event && { ...event, mayBeRestored: this.#mayBeRestored });
    }
  }

  listComplete(): boolean {
    if (this.#options.budget?.excess !== undefined) return false;
    const mayBeRestored = this.#mayBeRestored || this.#isContradicted;
    if (this.isSynced && (this.#list.version === undefined || this.#isContradicted)) this.#publishAll();
    for (const key of this.#unlisted) {
      const event = this.#cache.removeUnlisted(key, this.#list.version);
      if (event !== undefined) this.publish({ ...event, mayBeRestored });
    }
    this.#unlisted = new Set();
    this.#options.onMalformed?.(this.#malformed);
    this.isSynced = true;
    this.#owner.synced();
    return this.#isContradicted;
  }

  /** A cache of metadata does not show that the same version of an object has other data. */
  #publishAll(): void {
    for (const key of this.#keys()) {
      const object = this.#cache.indexer.get(key);
      if (object === undefined || this.#unlisted.has(key)) continue;
      this.publish({ type: 'updated', key, object, previous: object, mayBeRestored: true });
    }
  }

  event(type: Exclude<WatchEventType, 'BOOKMARK'>, object: KubeObject): void {
    if (this.#options.budget?.excess !== undefined) return;
    const cached = kept(object, this.#options);
    this.publish(type === 'DELETED' ? this.#cache.remove(cached) : this.#cache.apply(cached));
  }

  /** As {@link ObjectCache.apply} of a version that it holds, of which only the metadata has been read. */
  ignores({ uid, resourceVersion, ...name }: ObjectVersion): boolean {
    const held = this.#cache.indexer.get(keyOf(name))?.metadata;
    if (held?.uid !== uid || held.resourceVersion !== resourceVersion) return false;
    this.#options.metrics.ignored();
    return true;
  }

  #keys(): IteratorObject<ObjectKey> {
    const keys = this.#cache.indexer.keys();
    const prefix = `${this.#namespace}/`;
    return this.#namespace === undefined ? keys : keys.filter((key) => key.startsWith(prefix));
  }
}

function kept(object: KubeObject, { transform }: InformerOptions): KubeObject {
  return transform?.(object) ?? object;
}

/** Of an object that its caller may use later: a transform changes it in place. */
function keptCopy(object: KubeObject, options: InformerOptions): KubeObject {
  return kept({ ...object, metadata: { ...object.metadata } }, options);
}

/** All namespaces of a collection share its versions. */
function newest(versions: readonly string[]): string {
  return versions.reduce((a, b) => (a === '' || isOlder(a, b) ? b : a));
}
