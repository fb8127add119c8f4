/** The in-memory driver. Every operation completes in one turn of the event loop, so it needs no locks. */

import type { JsonObject } from '../../base/json.ts';
import { decideWrite, type WriteRequest } from './decide-write.ts';
import { RevisionedState } from './revisioned-state.ts';
import {
  closed,
  StoreError,
  type HistoryOptions,
  type ListPage,
  type ListResult,
  type Notes,
  type Projected,
  type Projection,
  type Store,
  type StoredEntry,
  type StoreKey,
  type StoreRange,
  type StoreWatch,
  type WatchObserver,
} from './store.ts';

const HISTORY_LIMIT = 2048;

export class MemoryStore implements Store {
  readonly #state: RevisionedState;
  readonly #notes = new Map<string, Map<string, string>>();
  #isClosed = false;

  constructor(options: Pick<HistoryOptions, 'historyLimit'> = {}) {
    const eventsMax = options.historyLimit ?? HISTORY_LIMIT;
    this.#state = new RevisionedState({ eventsMax, bytesMax: Number.POSITIVE_INFINITY });
  }

  async revision(): Promise<number> {
    return this.#state.revision;
  }

  async get(key: StoreKey): Promise<StoredEntry | undefined> {
    return this.#state.get(key);
  }

  async list(range: StoreRange, page: ListPage = {}): Promise<ListResult> {
    return this.#state.list(range, page);
  }

  async create(key: StoreKey, value: JsonObject): Promise<StoredEntry> {
    return this.#write({ kind: 'create', key, value });
  }

  async update(key: StoreKey, value: JsonObject, expectedRevision: number): Promise<StoredEntry> {
    return this.#write({ kind: 'update', key, value, expectedRevision });
  }

  async delete(key: StoreKey, expectedRevision: number): Promise<StoredEntry> {
    return this.#write({ kind: 'delete', key, expectedRevision });
  }

  async watch(range: StoreRange, afterRevision: number, observer: WatchObserver): Promise<StoreWatch> {
    return this.#state.watch(range, afterRevision, observer);
  }

  project(resource: string, projection: Projection): Projected {
    return this.#state.project(resource, projection);
  }

  async compact(revision: number): Promise<void> {
    this.#state.compact(revision);
  }

  async checkWritable(): Promise<void> {
    if (this.#isClosed) throw closed();
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
    this.#state.close();
  }

  #write(write: WriteRequest): StoredEntry {
    if (this.#isClosed) throw closed();
    const decided = decideWrite(write, this.#state.get(write.key), this.#state.revision + 1);
    if (decided instanceof StoreError) throw decided;
    this.#state.apply(decided);
    return decided.entry;
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
