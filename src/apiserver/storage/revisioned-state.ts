/** Current entries, a window of history, projections and watches, in memory. */

import { orderedKey } from '../../kube/object.ts';
import type { Logger } from '../../base/logger.ts';
import { EventFeed, type HistoryLimits } from './event-feed.ts';
import {
  closed,
  compacted,
  future,
  type ListPage,
  type ListResult,
  type Projected,
  type Projection,
  type StoredEntry,
  type StoreEvent,
  type StoreKey,
  type StoreRange,
  type StoreWatch,
  type WatchObserver,
} from './store.ts';

/** An empty store is at revision 1, as etcd is: 0 means "any" to clients. */
export const FIRST_REVISION = 1;

export class RevisionedState {
  readonly #tables = new Map<string, OrderedEntries>();
  readonly #feed: EventFeed;
  /** By resource. */
  readonly #projections = new Map<string, Set<Projection>>();
  #revision = FIRST_REVISION;
  #isClosed = false;

  constructor(limits: HistoryLimits, logger: Logger) {
    this.#feed = new EventFeed(limits, logger);
  }

  get revision(): number {
    return this.#revision;
  }

  /** Events up to this revision are compacted. */
  get compacted(): number {
    return this.#feed.floor;
  }

  get objects(): number {
    return this.#tables.values().reduce((sum, table) => sum + table.size, 0);
  }

  get(key: StoreKey): StoredEntry | undefined {
    return this.#tables.get(key.resource)?.get(orderedKey(key));
  }

  list(range: StoreRange, page: ListPage): ListResult {
    const revision = page.atRevision ?? this.#revision;
    this.#checkRevision(revision);
    const table = this.#table(range.resource);
    const limit = page.limit ? page.limit : Number.POSITIVE_INFINITY;
    const others = this.#differencesAt(range.resource, revision);
    const [entries, remaining] =
      others.size === 0
        ? table.page(range, page.after, limit)
        : table.pageWith(others, range, { after: page.after, limit });
    return { entries, revision, remaining };
  }

  /** Applies one event, to the projections first, and sends it to the watchers; `bytes` is its size in the history. */
  apply(event: StoreEvent, bytes = 0): void {
    const { entry, revision } = event;
    const { key } = entry;
    const table = this.#table(key.resource);
    const isDeleted = event.type === 'deleted';
    if (isDeleted) table.delete(orderedKey(key));
    else table.set(orderedKey(key), entry);
    const projections = this.#projections.get(key.resource) ?? [];
    for (const projection of projections) projection.changed(key, isDeleted ? undefined : entry);
    this.#revision = revision;
    this.#feed.publish(event, bytes);
  }

  /** Adds an entry that is older than the history. */
  restore(entry: StoredEntry): void {
    this.#table(entry.key.resource).set(orderedKey(entry.key), entry);
  }

  /** Sets a counter that is ahead of the entries, and the revision up to which history is compacted. */
  restoreCounters(revision: number, compacted: number): void {
    this.#revision = Math.max(this.#revision, revision);
    this.#feed.compact(compacted);
  }

  watch(range: StoreRange, afterRevision: number, observer: WatchObserver): StoreWatch {
    if (this.#isClosed) throw closed();
    this.#checkRevision(afterRevision);
    const close = this.#feed.subscribe(range, afterRevision, observer);
    const current = (): number => this.#revision;
    return {
      // `apply` publishes events, so every event up to the revision has been sent.
      get revision() {
        return current();
      },
      close,
    };
  }

  /** Every commit of this process is the only one there is, so a projection is always current. */
  project(resource: string, projection: Projection): Projected {
    projection.reset([...this.#table(resource).values()]);
    const projections = this.#projections.get(resource) ?? new Set();
    this.#projections.set(resource, projections.add(projection));
    return {
      confirmed: () => undefined,
      catchUp: () => Promise.resolve(),
      unconfirmedMs: 0,
      close: () => void projections.delete(projection),
    };
  }

  compact(revision: number): void {
    if (revision > this.#revision) throw future(revision);
    this.#feed.compact(revision);
  }

  /** Ends every watch; new watches fail. */
  close(): void {
    this.#isClosed = true;
    this.#feed.endAll();
  }

  #table(resource: string): OrderedEntries {
    let table = this.#tables.get(resource);
    if (!table) {
      table = new OrderedEntries();
      this.#tables.set(resource, table);
    }
    return table;
  }

  /** The entries that were different at a revision: for each key the state before its first event since. */
  #differencesAt(resource: string, revision: number): Map<string, StoredEntry | undefined> {
    const others = new Map<string, StoredEntry | undefined>();
    for (const event of this.#feed.after(revision)) {
      if (event.entry.key.resource !== resource) continue;
      const id = orderedKey(event.entry.key);
      if (!others.has(id)) others.set(id, event.previous);
    }
    return others;
  }

  #checkRevision(revision: number): void {
    if (revision > this.#revision) throw future(revision);
    if (revision < this.compacted) throw compacted(revision, this.compacted);
  }
}

interface Row {
  readonly id: string;
  readonly entry: StoredEntry;
}

/** A range of the order: from `start` up to, but not including, `end`. */
interface Span {
  readonly start: number;
  readonly end: number;
}

export class OrderedEntries {
  readonly #byId = new Map<string, StoredEntry>();
  /** Sorted by the first list and kept in order from then on: filling a store is cheaper without it. */
  #order: Row[] | undefined;

  get size(): number {
    return this.#byId.size;
  }

  get(id: string): StoredEntry | undefined {
    return this.#byId.get(id);
  }

  values(): Iterable<StoredEntry> {
    return this.#byId.values();
  }

  set(id: string, entry: StoredEntry): void {
    const isNew = !this.#byId.has(id);
    this.#byId.set(id, entry);
    if (this.#order) this.#order.splice(firstFrom(this.#order, id), isNew ? 0 : 1, { id, entry });
  }

  delete(id: string): void {
    if (this.#byId.delete(id)) this.#order?.splice(firstFrom(this.#order, id), 1);
  }

  /** One page, and the number of entries after it. */
  page(range: StoreRange, after: string | undefined, limit: number): [StoredEntry[], number] {
    const { start, end } = this.#span(range, after);
    const stop = Math.min(end, start + limit);
    return [this.#sorted().slice(start, stop).map(entryOf), end - stop];
  }

  /**
   * The same page at another revision: `others` are the entries that were different then, undefined for those that did not exist.
   */
  pageWith(
    others: ReadonlyMap<string, StoredEntry | undefined>,
    range: StoreRange,
    page: { readonly after: string | undefined; readonly limit: number },
  ): [StoredEntry[], number] {
    const { start, end } = this.#span(range, page.after);
    const rows = this.#sorted()
      .slice(start, end)
      .filter(({ id }) => !others.has(id));
    const { first, beyond } = boundsOf(range, page.after);
    for (const [id, entry] of others) {
      if (entry && id >= first && (beyond === undefined || id < beyond)) rows.push({ id, entry });
    }
    rows.sort(byId);
    return [rows.slice(0, page.limit).map(entryOf), Math.max(0, rows.length - page.limit)];
  }

  #span(range: StoreRange, after: string | undefined): Span {
    const order = this.#sorted();
    const { first, beyond } = boundsOf(range, after);
    const start = first === '' ? 0 : firstFrom(order, first);
    return { start, end: beyond === undefined ? order.length : Math.max(start, firstFrom(order, beyond)) };
  }

  #sorted(): readonly Row[] {
    this.#order ??= Array.from(this.#byId, ([id, entry]) => ({ id, entry })).sort(byId);
    return this.#order;
  }
}

/** Ids from `first` on, below `beyond`. The character after `/` ends a namespace; the one after any text is that text and U+0000. */
function boundsOf(
  range: StoreRange,
  after: string | undefined,
): { first: string; beyond: string | undefined } {
  const { namespace } = range;
  const next = after === undefined ? '' : `${after}\u0000`;
  if (namespace === undefined) return { first: next, beyond: undefined };
  const prefix = orderedKey({ namespace, name: '' });
  return { first: next > prefix ? next : prefix, beyond: `${namespace}0` };
}

/** Index of the first row whose id is not below `id`. */
function firstFrom(rows: readonly Row[], id: string): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const row = rows[middle];
    if (row !== undefined && row.id < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Names and namespaces are ASCII, where the order of code units is the order of bytes. */
function byId(a: Row, b: Row): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

function entryOf(row: Row): StoredEntry {
  return row.entry;
}
