/** The in-memory driver: maps for the present, a bounded log for the past. Everything happens in one turn, so it needs no locks. */

import type { JsonObject } from '../lib/json.ts';
import {
  isInRange,
  orderedKey,
  StoreError,
  type ListPage,
  type ListResult,
  type Notes,
  type Store,
  type StoredEntry,
  type StoreEvent,
  type StoreKey,
  type StoreRange,
  type StoreWatch,
  type WatchObserver,
} from './types.ts';

export interface MemoryStoreOptions {
  /** Events kept for watches that resume and for lists of the past; default 2048. */
  historyLimit?: number;
}

const DEFAULT_HISTORY_LIMIT = 2048;

interface Table {
  readonly byKey: Map<string, StoredEntry>;
  /** Keys in list order; made again after a key came or went. */
  order: readonly string[] | undefined;
}

interface Watcher {
  readonly range: StoreRange;
  readonly observer: WatchObserver;
}

export class MemoryStore implements Store {
  readonly #tables = new Map<string, Table>();
  readonly #log: StoreEvent[] = [];
  readonly #watchers = new Set<Watcher>();
  readonly #notes = new Map<string, Map<string, string>>();
  readonly #historyLimit: number;
  /** An empty store is at revision 1, as etcd is: 0 means "any" to clients. */
  #revision = 1;
  /** Events up to this revision are gone. */
  #compacted = 0;
  #isClosed = false;

  constructor(options: MemoryStoreOptions = {}) {
    this.#historyLimit = Math.max(1, options.historyLimit ?? DEFAULT_HISTORY_LIMIT);
  }

  async revision(): Promise<number> {
    return this.#revision;
  }

  async get(key: StoreKey): Promise<StoredEntry | undefined> {
    return this.#tables.get(key.resource)?.byKey.get(orderedKey(key));
  }

  async list(range: StoreRange, page: ListPage = {}): Promise<ListResult> {
    const revision = page.atRevision ?? this.#revision;
    this.#checkRevision(revision);
    const table = this.#table(range.resource);
    const view = revision === this.#revision ? table.byKey : this.#entriesAt(range, revision);
    const order = view === table.byKey ? sortedKeys(table) : [...view.keys()].sort(byteOrder);
    const all = inRange(order, range, page.after);
    const limit = page.limit ? page.limit : all.length;
    const entries = all.slice(0, limit).flatMap((key) => view.get(key) ?? []);
    return { entries, revision, remaining: Math.max(0, all.length - limit) };
  }

  async create(key: StoreKey, value: JsonObject): Promise<StoredEntry> {
    this.#checkOpen();
    const table = this.#table(key.resource);
    const id = orderedKey(key);
    const current = table.byKey.get(id);
    if (current) throw new StoreError('exists', `${key.resource} ${id} exists`, current);
    const entry: StoredEntry = { key, value, revision: ++this.#revision };
    table.byKey.set(id, entry);
    table.order = undefined;
    this.#commit({ type: 'created', revision: entry.revision, entry });
    return entry;
  }

  async update(key: StoreKey, value: JsonObject, expectedRevision: number): Promise<StoredEntry> {
    this.#checkOpen();
    const previous = this.#expect(key, expectedRevision);
    const entry: StoredEntry = { key, value, revision: ++this.#revision };
    this.#table(key.resource).byKey.set(orderedKey(key), entry);
    this.#commit({ type: 'updated', revision: entry.revision, entry, previous });
    return entry;
  }

  async delete(key: StoreKey, expectedRevision: number): Promise<StoredEntry> {
    this.#checkOpen();
    const previous = this.#expect(key, expectedRevision);
    const table = this.#table(key.resource);
    table.byKey.delete(orderedKey(key));
    table.order = undefined;
    const entry: StoredEntry = { key, value: previous.value, revision: ++this.#revision };
    this.#commit({ type: 'deleted', revision: entry.revision, entry, previous });
    return entry;
  }

  async watch(range: StoreRange, afterRevision: number, observer: WatchObserver): Promise<StoreWatch> {
    this.#checkOpen();
    this.#checkRevision(afterRevision);
    for (const event of this.#log) {
      if (event.revision > afterRevision && isInRange(event.entry.key, range)) observer.event(event);
    }
    const watcher: Watcher = { range, observer };
    this.#watchers.add(watcher);
    // Events are handed out inside the write, so what is committed has been handed out.
    const current = (): number => this.#revision;
    const watchers = this.#watchers;
    return {
      get revision() {
        return current();
      },
      close: () => void watchers.delete(watcher),
    };
  }

  async compact(revision: number): Promise<void> {
    if (revision > this.#revision)
      throw new StoreError('future', `revision ${revision} has not happened yet`);
    const kept = this.#log.findIndex((event) => event.revision > revision);
    this.#log.splice(0, kept < 0 ? this.#log.length : kept);
    this.#compacted = Math.max(this.#compacted, revision);
  }

  notes(table: string): Notes {
    let notes = this.#notes.get(table);
    if (!notes) {
      notes = new Map();
      this.#notes.set(table, notes);
    }
    return new MemoryNotes(notes);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const { observer } of this.#watchers) observer.end();
    this.#watchers.clear();
  }

  #table(resource: string): Table {
    let table = this.#tables.get(resource);
    if (!table) {
      table = { byKey: new Map(), order: undefined };
      this.#tables.set(resource, table);
    }
    return table;
  }

  #expect(key: StoreKey, expectedRevision: number): StoredEntry {
    const id = orderedKey(key);
    const current = this.#tables.get(key.resource)?.byKey.get(id);
    if (!current) throw new StoreError('missing', `${key.resource} ${id} does not exist`);
    if (current.revision !== expectedRevision) {
      const message = `${key.resource} ${id} is at revision ${current.revision}, not ${expectedRevision}`;
      throw new StoreError('conflict', message, current);
    }
    return current;
  }

  #commit(event: StoreEvent): void {
    this.#log.push(event);
    // Dropped in blocks: a shift per write would move the whole log each time.
    const surplus = this.#log.length - this.#historyLimit;
    if (surplus > this.#historyLimit / 4 || (surplus > 0 && this.#historyLimit < 64)) {
      const dropped = this.#log.splice(0, surplus);
      this.#compacted = dropped.at(-1)?.revision ?? this.#compacted;
    }
    for (const { range, observer } of this.#watchers) {
      if (isInRange(event.entry.key, range)) observer.event(event);
    }
  }

  /** The entries of a range as they were, found by walking the log back from now. */
  #entriesAt(range: StoreRange, revision: number): Map<string, StoredEntry> {
    const entries = new Map(this.#tables.get(range.resource)?.byKey);
    for (let i = this.#log.length - 1; i >= 0; i--) {
      const event = this.#log[i];
      if (!event || event.revision <= revision) break;
      if (event.entry.key.resource !== range.resource) continue;
      const id = orderedKey(event.entry.key);
      if (event.previous) entries.set(id, event.previous);
      else entries.delete(id);
    }
    return entries;
  }

  #checkRevision(revision: number): void {
    if (revision > this.#revision)
      throw new StoreError('future', `revision ${revision} has not happened yet`);
    if (revision < this.#compacted) {
      throw new StoreError(
        'compacted',
        `revision ${revision} is older than the history, which starts after ${this.#compacted}`,
      );
    }
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new StoreError('closed', 'the store is closed');
  }
}

class MemoryNotes implements Notes {
  readonly #notes: Map<string, string>;

  constructor(notes: Map<string, string>) {
    this.#notes = notes;
  }

  async read(): Promise<ReadonlyMap<string, string>> {
    return new Map(this.#notes);
  }

  async write(changes: ReadonlyMap<string, string | undefined>): Promise<void> {
    for (const [key, value] of changes) {
      if (value === undefined) this.#notes.delete(key);
      else this.#notes.set(key, value);
    }
  }
}

function sortedKeys(table: Table): readonly string[] {
  table.order ??= [...table.byKey.keys()].sort(byteOrder);
  return table.order;
}

function inRange(keys: readonly string[], range: StoreRange, after: string | undefined): readonly string[] {
  const prefix = range.namespace === undefined ? undefined : `${range.namespace}/`;
  if (prefix === undefined && after === undefined) return keys;
  return keys.filter(
    (key) => (prefix === undefined || key.startsWith(prefix)) && (after === undefined || key > after),
  );
}

/** Names and namespaces are ASCII, where the order of code units is the order of bytes. */
function byteOrder(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
