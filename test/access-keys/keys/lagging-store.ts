/** A store at a replica: it shows its own writes at once, and those of others when a test wants; it may not respond. */

import type { Clock } from '../../../src/base/clock.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import { silentLogger, type Logger } from '../../../src/base/logger.ts';
import { HostContact } from '../../../src/apiserver/storage/secrets/host-secrets.ts';
import {
  StoreError,
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
} from '../../../src/apiserver/storage/store.ts';
import { FakeClock } from '../../support/fake-clock.ts';

export class LaggingStore implements Store {
  readonly #store: Store;
  readonly #held: (() => void)[] = [];
  readonly #contact: HostContact;
  #isHeld = false;
  #isWriting = false;
  #released = Promise.withResolvers<void>();
  /** The store does not respond, as behind a network partition. */
  isUnreachable = false;
  revisionsAsked = 0;

  constructor(store: Store, clock: Clock = new FakeClock(), logger: Logger = silentLogger) {
    this.#store = store;
    this.#released.resolve();
    this.#contact = new HostContact({ ask: () => this.revision(), clock, logger });
  }

  /** Delays the writes of others until `release`. */
  hold(): void {
    this.#isHeld = true;
    this.#released = Promise.withResolvers<void>();
  }

  release(): void {
    this.#isHeld = false;
    for (const deliver of this.#held.splice(0)) deliver();
    this.#released.resolve();
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

  list(range: StoreRange, page?: ListPage): Promise<ListResult> {
    return this.#store.list(range, page);
  }

  create(key: StoreKey, value: JsonObject): Promise<StoredEntry> {
    return this.#write(() => this.#store.create(key, value));
  }

  update(key: StoreKey, value: JsonObject, expectedRevision: number): Promise<StoredEntry> {
    return this.#write(() => this.#store.update(key, value, expectedRevision));
  }

  delete(key: StoreKey, expectedRevision: number): Promise<StoredEntry> {
    return this.#write(() => this.#store.delete(key, expectedRevision));
  }

  watch(range: StoreRange, afterRevision: number, observer: WatchObserver): Promise<StoreWatch> {
    return this.#store.watch(range, afterRevision, observer);
  }

  project(resource: string, projection: Projection): Projected {
    const projected = this.#store.project(resource, {
      reset: (entries) => projection.reset(entries),
      changed: (key, entry) => {
        if (this.#isHeld && !this.#isWriting) this.#held.push(() => projection.changed(key, entry));
        else projection.changed(key, entry);
      },
    });
    const contact = this.#contact;
    return {
      confirmed: () => contact.confirmed(),
      catchUp: async () => {
        await this.revision();
        await this.#released.promise;
      },
      get unconfirmedMs() {
        return contact.silentMs;
      },
      close: () => projected.close(),
    };
  }

  notes(table: string): Notes {
    return this.#store.notes(table);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // The store belongs to the test.
  }

  /** The memory store writes in the turn of the call. */
  #write(write: () => Promise<StoredEntry>): Promise<StoredEntry> {
    this.#isWriting = true;
    try {
      return write();
    } finally {
      this.#isWriting = false;
    }
  }
}
