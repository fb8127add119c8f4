/** Current entries, a window of history, and watches, in memory. Shared by the memory and the SQLite driver. */

import { OrderedEntries } from './ordered-entries.ts';
import {
  closed,
  compacted,
  future,
  isInRange,
  orderedKey,
  type ListPage,
  type ListResult,
  type StoredEntry,
  type StoreEvent,
  type StoreKey,
  type StoreRange,
  type StoreWatch,
  type WatchObserver,
} from './store.ts';

/** How much of the past is kept; whichever limit is reached first counts. */
export interface HistoryLimits {
  readonly eventsMax: number;
  /** Of the texts of the states, where the driver knows their sizes. */
  readonly bytesMax: number;
}

interface Watcher {
  readonly range: StoreRange;
  readonly observer: WatchObserver;
  /** Events up to this revision have been sent to it. */
  sentRevision: number;
}

/** An empty store is at revision 1, as etcd is: 0 means "any" to clients. */
export const FIRST_REVISION = 1;

export class RevisionedState {
  readonly #tables = new Map<string, OrderedEntries>();
  readonly #log: StoreEvent[] = [];
  /** Bytes of the events in the log, index by index. */
  readonly #sizes: number[] = [];
  #logBytes = 0;
  /** By resource: an event concerns only those who watch its kind. */
  readonly #watchers = new Map<string, Set<Watcher>>();
  readonly #limits: HistoryLimits;
  #revision = FIRST_REVISION;
  #compacted = 0;
  #isClosed = false;

  constructor(limits: HistoryLimits) {
    this.#limits = { ...limits, eventsMax: Math.max(1, limits.eventsMax) };
  }

  get revision(): number {
    return this.#revision;
  }

  /** Events up to this revision are compacted. */
  get compacted(): number {
    return this.#compacted;
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

  /** Applies one event and sends it to the watchers; `bytes` is its size in the history. */
  apply(event: StoreEvent, bytes = 0): void {
    const { entry, revision } = event;
    const table = this.#table(entry.key.resource);
    if (event.type === 'deleted') table.delete(orderedKey(entry.key));
    else table.set(orderedKey(entry.key), entry);
    this.#revision = revision;
    this.#log.push(event);
    this.#sizes.push(bytes);
    this.#logBytes += bytes;
    this.#trim();
    this.#notify(event);
  }

  /** Adds an entry that is older than the history. */
  restore(entry: StoredEntry): void {
    this.#table(entry.key.resource).set(orderedKey(entry.key), entry);
  }

  /** Sets a counter that is ahead of the entries, and the revision up to which history is compacted. */
  restoreCounters(revision: number, compacted: number): void {
    this.#revision = Math.max(this.#revision, revision);
    this.#compacted = Math.max(this.#compacted, compacted);
  }

  watch(range: StoreRange, afterRevision: number, observer: WatchObserver): StoreWatch {
    if (this.#isClosed) throw closed();
    this.#checkRevision(afterRevision);
    const watcher: Watcher = { range, observer, sentRevision: afterRevision };
    for (let i = this.#firstAfter(afterRevision); i < this.#log.length; i++) {
      const event = this.#log[i];
      if (event) notify(watcher, event);
    }
    const watchers = this.#watchersOf(range.resource);
    watchers.add(watcher);
    const current = (): number => this.#revision;
    return {
      // `apply` sends events to the watchers, so every event up to the revision has been sent.
      get revision() {
        return current();
      },
      close: () => void watchers.delete(watcher),
    };
  }

  compact(revision: number): void {
    if (revision > this.#revision) throw future(revision);
    this.#forget(this.#firstAfter(revision));
    this.#compacted = Math.max(this.#compacted, revision);
  }

  /** Ends every watch; new watches fail. */
  close(): void {
    this.#isClosed = true;
    const ended = [...this.#watchers.values()].flatMap((watchers) => [...watchers]);
    this.#watchers.clear();
    for (const { observer } of ended) observer.end();
  }

  #table(resource: string): OrderedEntries {
    let table = this.#tables.get(resource);
    if (!table) {
      table = new OrderedEntries();
      this.#tables.set(resource, table);
    }
    return table;
  }

  #watchersOf(resource: string): Set<Watcher> {
    let watchers = this.#watchers.get(resource);
    if (!watchers) {
      watchers = new Set();
      this.#watchers.set(resource, watchers);
    }
    return watchers;
  }

  #notify(event: StoreEvent): void {
    for (const watcher of this.#watchers.get(event.entry.key.resource) ?? []) notify(watcher, event);
  }

  #trim(): void {
    const { eventsMax, bytesMax } = this.#limits;
    // Dropped in blocks: a shift per write would move the whole log each time.
    const slack = eventsMax < 64 ? 0 : eventsMax / 4;
    let surplus = this.#log.length - eventsMax > slack ? this.#log.length - eventsMax : 0;
    if (this.#logBytes > bytesMax) {
      let bytes = this.#logBytes;
      let i = 0;
      // The newest event stays, however large it is: a watch that is up to date must be able to go on.
      for (; i < this.#log.length - 1 && bytes > bytesMax - bytesMax / 4; i++) bytes -= this.#sizes[i] ?? 0;
      surplus = Math.max(surplus, i);
    }
    if (surplus > 0) this.#compacted = this.#forget(surplus)?.revision ?? this.#compacted;
  }

  #forget(events: number): StoreEvent | undefined {
    for (const bytes of this.#sizes.splice(0, events)) this.#logBytes -= bytes;
    return this.#log.splice(0, events).at(-1);
  }

  /** Index of the first event after a revision. */
  #firstAfter(revision: number): number {
    let low = 0;
    let high = this.#log.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#log[middle]?.revision ?? 0) <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The entries that were different at a revision: for each key the state before its first event since. */
  #differencesAt(resource: string, revision: number): Map<string, StoredEntry | undefined> {
    const others = new Map<string, StoredEntry | undefined>();
    for (let i = this.#firstAfter(revision); i < this.#log.length; i++) {
      const event = this.#log[i];
      if (event?.entry.key.resource !== resource) continue;
      const id = orderedKey(event.entry.key);
      if (!others.has(id)) others.set(id, event.previous);
    }
    return others;
  }

  #checkRevision(revision: number): void {
    if (revision > this.#revision) throw future(revision);
    if (revision < this.#compacted) throw compacted(revision, this.#compacted);
  }
}

/** A watcher that subscribed while an event was being sent has received it from the history already. */
function notify(watcher: Watcher, event: StoreEvent): void {
  if (event.revision <= watcher.sentRevision) return;
  watcher.sentRevision = event.revision;
  if (isInRange(event.entry.key, watcher.range)) watcher.observer.event(event);
}
