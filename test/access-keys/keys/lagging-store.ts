/** A store whose watches lag behind, end or fail on demand, as between replicas and during failures of the host. */

import type { JsonObject } from '../../../src/base/json.ts';
import {
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
} from '../../../src/apiserver/storage/store.ts';

export class LaggingStore implements Store {
  readonly #store: Store;
  readonly #held: (() => void)[] = [];
  readonly #observers = new Set<WatchObserver>();
  #isHeld = false;
  #listGate: Promise<void> | undefined;
  /** Number of lists that fail. */
  failingLists = 0;
  /** The store was restored and has not been read again. */
  isOutdated = false;
  /** The store does not respond, as behind a network partition. */
  isUnreachable = false;
  revisionsAsked = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Delays events until `release`. */
  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
    for (const deliver of this.#held.splice(0)) deliver();
  }

  /** As `release`, but the delayed events are lost: a restore of the store has undone their writes. */
  lose(): void {
    this.#held.splice(0);
    this.release();
  }

  /** Ends all watches; delayed events are lost. */
  endWatches(): void {
    this.#held.splice(0);
    const observers = [...this.#observers];
    this.#observers.clear();
    for (const observer of observers) observer.end();
  }

  revision(): Promise<number> {
    this.revisionsAsked++;
    if (this.isUnreachable) return Promise.reject(new StoreError('unavailable', 'no response'));
    return this.#store.revision();
  }

  checkWritable(): Promise<void> {
    return this.#store.checkWritable();
  }

  get(key: StoreKey): Promise<StoredEntry | undefined> {
    return this.#store.get(key);
  }

  async list(range: StoreRange, page?: ListPage): Promise<ListResult> {
    if (this.failingLists > 0) {
      this.failingLists--;
      throw new StoreError('unavailable', 'the test says so');
    }
    const result = await this.#store.list(range, page);
    await this.#listGate;
    return result;
  }

  /** Delays the responses to lists until `release`. */
  holdList(): { release(): void } {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#listGate = promise;
    return { release: resolve };
  }

  create(key: StoreKey, value: JsonObject): Promise<StoredEntry> {
    return this.#store.create(key, value);
  }

  update(key: StoreKey, value: JsonObject, expectedRevision: number): Promise<StoredEntry> {
    return this.#store.update(key, value, expectedRevision);
  }

  delete(key: StoreKey, expectedRevision: number): Promise<StoredEntry> {
    return this.#store.delete(key, expectedRevision);
  }

  async watch(range: StoreRange, afterRevision: number, observer: WatchObserver): Promise<StoreWatch> {
    if (this.isOutdated) throw new StoreError('unavailable', 'the test says so');
    const isOutdated = (): boolean => this.isOutdated;
    const deliver = (event: StoreEvent): void => {
      if (this.#observers.has(observer)) observer.event(event);
    };
    this.#observers.add(observer);
    let heldRevision = 0;
    const watch = await this.#store.watch(range, afterRevision, {
      event: (event) => {
        if (!this.#isHeld) return deliver(event);
        heldRevision ||= event.revision - 1;
        this.#held.push(() => deliver(event));
      },
      end: () => observer.end(),
    });
    const held = (): number => (this.#isHeld && heldRevision > 0 ? heldRevision : watch.revision);
    return {
      get revision() {
        return held();
      },
      get isOutdated() {
        return isOutdated();
      },
      close: () => {
        this.#observers.delete(observer);
        watch.close();
      },
    };
  }

  compact(revision: number): Promise<void> {
    return this.#store.compact(revision);
  }

  notes(table: string): Notes {
    return this.#store.notes(table);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // The store belongs to the test.
  }
}
