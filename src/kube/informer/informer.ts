/** A cache of one resource, kept current by a list-watch, that publishes its changes to subscribers. */

import { keyOf, objectKey, type KubeObject, type ObjectKey, type Resource, isOlder } from '../object.ts';
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

/** What an informer reports. */
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
  /** Absent: every namespace. Several are watched one by one. */
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
  silenceLimitMs?: number;
  /** Shared by the informers of a cluster. */
  server?: ServerHistory;
  /** Shared by the informers of a caller. When it is exceeded, nothing more is read. Absent: everything is cached. */
  budget?: CacheBudget | undefined;
}

/** An informer with its condition, for readiness. */
export interface ObservableInformer extends Informer {
  readonly condition: ListWatchCondition;
}

export function createInformer({ namespaces, ...options }: InformerOptions): ObservableInformer {
  const caching = (namespaces ?? []).map(
    (namespace) => [namespace, new CachingInformer({ ...options, namespace })] as const,
  );
  const [first, ...more] = caching;
  if (more.length > 0) return new NamespacesInformer(new Map(caching), options.metrics);
  return first?.[1] ?? new CachingInformer(options);
}

/** The gauges show an informer as long as it runs: the next configuration may not need it. */
async function whileMeasured(
  informer: ObservableInformer,
  metrics: InformerMetrics,
  run: () => Promise<unknown>,
): Promise<void> {
  const end = metrics.watchState(() => ({
    objects: informer.size,
    stalenessSeconds: informer.stalenessMs / 1000,
    isSynced: informer.isSynced,
  }));
  try {
    await run();
  } finally {
    end();
  }
}

interface CachingOptions extends Omit<InformerOptions, 'namespaces'> {
  /** Absent: every namespace. */
  namespace?: string;
}

class CachingInformer implements ObservableInformer, ListWatchSink {
  readonly resource: Resource;
  readonly #options: CachingOptions;
  readonly #cache: ObjectCache;
  readonly #listWatch: ListWatch;
  readonly #handlers: ((event: CacheEvent) => void)[] = [];
  readonly #createdAtMs: number;
  readonly #isSelected: LabelPredicate;
  readonly #share: CacheShare | undefined;
  #synced = Promise.withResolvers<void>();
  #isSynced = false;
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

  constructor(options: CachingOptions) {
    this.resource = options.resource;
    this.#options = options;
    this.#share = options.budget?.share();
    this.#cache = new ObjectCache(options.indexes ?? {}, options.clock, this.#share);
    this.#createdAtMs = options.clock.monotonicMs();
    this.#isSelected = parseLabelSelector(options.labelSelector ?? '');
    const leavesOutMalformed = options.onMalformed !== undefined;
    this.#listWatch = new ListWatch({ ...options, leavesOutMalformed, sink: this });
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

  get newestVersion(): string {
    return this.#listWatch.newestVersion;
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

  observeWrite(object: KubeObject, knownWhenSent?: string): void {
    if (this.#isElsewhere(object)) return;
    this.#listWatch.observe(object.metadata.resourceVersion, knownWhenSent);
    this.#store(object);
  }

  observeDelete(key: ObjectKey, uid: string): void {
    this.#cache.deleted(key, uid);
  }

  observeRead(object: KubeObject): void {
    if (this.#isElsewhere(object)) return;
    this.#listWatch.observe(object.metadata.resourceVersion);
    const event = this.#store(object);
    if (event !== undefined) this.#publish(event);
  }

  observeAbsence(key: ObjectKey, uid: string): void {
    const held = this.get(key);
    this.#cache.forget(key, uid);
    const { mayBeRestored } = this.#listWatch;
    if (held?.metadata.uid === uid) this.#publish({ type: 'deleted', key, object: held, mayBeRestored });
  }

  async run(signal: AbortSignal): Promise<void> {
    await whileMeasured(this, this.#options.metrics, () => this.listWatch(signal));
  }

  /** Runs without gauges, as a part of another informer. */
  async listWatch(signal: AbortSignal): Promise<void> {
    const { budget } = this.#options;
    await this.#listWatch.run(budget === undefined ? signal : AbortSignal.any([signal, budget.signal]));
    this.#share?.release();
  }

  listStarted({ resourceVersion, isRewound, isInterrupted, requestedAtMs }: StartedList): void {
    this.#mayBeRestored = isRewound || isInterrupted;
    this.#list = { version: isRewound ? undefined : resourceVersion, requestedAtMs };
    this.#isContradicted = false;
    this.#unlisted = new Set(this.#cache.indexer.keys());
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
      const { event, isContradiction } = this.#cache.applyListed(this.#keep(object), this.#list);
      this.#isContradicted ||= isContradiction;
      this.#publish(event && { ...event, mayBeRestored: this.#mayBeRestored });
    }
  }

  listComplete(): boolean {
    if (this.#options.budget?.excess !== undefined) return false;
    const mayBeRestored = this.#mayBeRestored || this.#isContradicted;
    if (this.#isSynced && (this.#list.version === undefined || this.#isContradicted)) this.#publishAll();
    for (const key of this.#unlisted) {
      const event = this.#cache.removeUnlisted(key, this.#list.version);
      if (event !== undefined) this.#publish({ ...event, mayBeRestored });
    }
    this.#unlisted = new Set();
    this.#options.onMalformed?.(this.#malformed);
    this.#isSynced = true;
    this.#synced.resolve();
    return this.#isContradicted;
  }

  /** A cache of metadata does not show that the same version of an object has other data. */
  #publishAll(): void {
    for (const key of this.#cache.indexer.keys()) {
      const object = this.get(key);
      if (object === undefined || this.#unlisted.has(key)) continue;
      this.#publish({ type: 'updated', key, object, previous: object, mayBeRestored: true });
    }
  }

  event(type: Exclude<WatchEventType, 'BOOKMARK'>, object: KubeObject): void {
    if (this.#options.budget?.excess !== undefined) return;
    const kept = this.#keep(object);
    this.#publish(type === 'DELETED' ? this.#cache.remove(kept) : this.#cache.apply(kept));
  }

  /** As {@link ObjectCache.apply} of a version that it holds, of which only the metadata has been read. */
  ignores({ uid, resourceVersion, ...name }: ObjectVersion): boolean {
    const held = this.get(keyOf(name))?.metadata;
    if (held?.uid !== uid || held.resourceVersion !== resourceVersion) return false;
    this.#options.metrics.ignored();
    return true;
  }

  #store(object: KubeObject): CacheEvent | undefined {
    // No watch event would ever remove an object that the selector leaves out.
    if (!this.#isSelected(object.metadata.labels ?? {})) return this.#cache.remove(object);
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

/** Informers of one resource by namespace, at least one, so that a Role in each is enough. Objects of other namespaces are never in the cache. */
class NamespacesInformer implements ObservableInformer {
  readonly #byNamespace: ReadonlyMap<string, CachingInformer>;
  readonly #all: readonly CachingInformer[];
  readonly #metrics: InformerMetrics;

  constructor(informers: ReadonlyMap<string, CachingInformer>, metrics: InformerMetrics) {
    this.#byNamespace = informers;
    this.#all = [...informers.values()];
    this.#metrics = metrics;
  }

  get resource(): ObservableInformer['resource'] {
    return (this.#all[0] as ObservableInformer).resource; // there is at least one
  }

  get(key: ObjectKey): KubeObject | undefined {
    return this.#of(key)?.get(key);
  }

  *list(): Iterable<KubeObject> {
    for (const informer of this.#all) yield* informer.list();
  }

  byIndex(index: string, value: string): ReadonlySet<ObjectKey> {
    return new Set(this.#all.flatMap((informer) => [...informer.byIndex(index, value)]));
  }

  get size(): number {
    return this.#all.reduce((sum, { size }) => sum + size, 0);
  }

  get isSynced(): boolean {
    return this.#all.every(({ isSynced }) => isSynced);
  }

  async whenSynced(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#all.map((informer) => informer.whenSynced(signal)));
  }

  get resourceVersion(): string {
    return newest(this.#all.map(({ resourceVersion }) => resourceVersion));
  }

  get newestVersion(): string {
    return newest(this.#all.map(({ newestVersion }) => newestVersion));
  }

  get stalenessMs(): number {
    return Math.max(...this.#all.map(({ stalenessMs }) => stalenessMs));
  }

  /** That of the informer that is worst off. */
  get condition(): ListWatchCondition {
    const conditions = this.#all.map(({ condition }) => condition);
    const worst = conditions.toSorted((a, b) => b.failures - a.failures)[0] as ListWatchCondition; // there is at least one
    return { ...worst, isRewound: conditions.some(({ isRewound }) => isRewound) };
  }

  subscribe(handler: (event: CacheEvent) => void): void {
    for (const informer of this.#all) informer.subscribe(handler);
  }

  observeWrite(object: KubeObject, knownWhenSent?: string): void {
    this.#byNamespace.get(object.metadata.namespace ?? '')?.observeWrite(object, knownWhenSent);
  }

  observeDelete(key: ObjectKey, uid: string): void {
    this.#of(key)?.observeDelete(key, uid);
  }

  observeRead(object: KubeObject): void {
    this.#byNamespace.get(object.metadata.namespace ?? '')?.observeRead(object);
  }

  observeAbsence(key: ObjectKey, uid: string): void {
    this.#of(key)?.observeAbsence(key, uid);
  }

  async run(signal: AbortSignal): Promise<void> {
    await whileMeasured(this, this.#metrics, () =>
      Promise.all(this.#all.map((informer) => informer.listWatch(signal))),
    );
  }

  #of(key: ObjectKey): CachingInformer | undefined {
    return this.#byNamespace.get(key.slice(0, key.indexOf('/')));
  }
}

/** All namespaces of a collection share its versions. */
function newest(versions: readonly string[]): string {
  return versions.reduce((a, b) => (a === '' || isOlder(a, b) ? b : a));
}
