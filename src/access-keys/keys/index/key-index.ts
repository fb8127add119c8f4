/** All keys in memory, indexed for authentication, tokens and the collector; kept current by list and watch of the store. */

import { isDeepStrictEqual } from 'node:util';
import { sleep, type Clock } from '../../../base/clock.ts';
import type { Logger } from '../../../base/logger.ts';
import { backoffDelayMs } from '../../../base/backoff.ts';
import type { CommittedWrite } from '../../../apiserver/objects/admission.ts';
import {
  StoreError,
  type Store,
  type StoreEvent,
  type StoreWatch,
} from '../../../apiserver/storage/store.ts';
import type { KeyIndex as KeyIndexContract, KeyRecord } from '../../types.ts';
import { endOf } from '../lifecycle/key-expiry.ts';
import { KEY_STORAGE } from '../resource/key-kind.ts';
import { indexedKey, type IndexedKey, type KeyChange } from './key-record.ts';
import { KeyTable } from './key-table.ts';
import { StoreConfirmation } from './store-confirmation.ts';

const RETRY_BASE_MS = 100;
const RETRY_MAX_MS = 10_000;
/** Interval of the check whether the watch has reached a revision. */
const CATCH_UP_POLL_MS = 10;
/** After this time the watch is closed and the keys are listed again. */
const CATCH_UP_RELIST_AFTER_MS = 2_000;
const CATCH_UP_MAX_MS = 5_000;

export interface KeyIndexOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The last use of a key that is recorded outside the object. Epoch milliseconds. */
  lastActivityMs(key: IndexedKey): number | undefined;
}

interface AcknowledgedKey {
  readonly key: IndexedKey;
  readonly isDeleted: boolean;
}

export class KeyIndex implements KeyIndexContract {
  readonly #options: KeyIndexOptions;
  readonly #table = new KeyTable();
  readonly #listeners: ((change: KeyChange) => void)[] = [];
  readonly #stopping = new AbortController();
  #watch: StoreWatch | undefined;
  /** Incremented with every list: events of an older watch are ignored. */
  #round = 0;
  #following: Promise<void> | undefined;
  /** Since the end of a watch: the last attempt to list the keys again. */
  #reading: Promise<void> | undefined;
  /** Writes of this process whose events have not arrived, by uid. */
  #acknowledged = new Map<string, AcknowledgedKey>();
  readonly #confirmation: StoreConfirmation;

  constructor(options: KeyIndexOptions) {
    this.#options = options;
    this.#confirmation = new StoreConfirmation(options);
  }

  /** Lists all keys and watches from then on. Rejects with `StoreError` if the first list fails. */
  async start(): Promise<void> {
    await this.#read();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#round++;
    this.#watch?.close();
    this.#watch = undefined;
    await this.#following;
  }

  /** Called after every change, in the order of the store. Must not throw. */
  onChange(listener: (change: KeyChange) => void): void {
    this.#listeners.push(listener);
  }

  get size(): number {
    return this.#table.size;
  }

  all(): Iterable<IndexedKey> {
    return this.#table.all();
  }

  byUid(uid: string): IndexedKey | undefined {
    return this.#table.byUid(uid);
  }

  byName(name: string): IndexedKey | undefined {
    return this.#table.byName(name);
  }

  /** Keys with this credential id: one, unless two replicas accepted the same supplied key at the same time. */
  byCredential(id: string): readonly IndexedKey[] {
    return this.#table.byCredential(id);
  }

  /** The keys of this subject, see `subjectOf`. */
  ofUser(user: string): ReadonlySet<IndexedKey> {
    return this.#table.ofUser(user);
  }

  /** Keys with this uid among their owners. */
  dependentsOf(uid: string): Iterable<IndexedKey> {
    return this.#table.dependentsOf(uid);
  }

  /** A deleted key has expired; a key that is being deleted expires with its grace period at the latest. */
  expiresAtMs(record: KeyRecord): number | undefined {
    const key = this.#table.byUid(record.uid);
    if (!key) return 0;
    const endMs = endOf(key, this.activityMs(key));
    return key.deletion ? Math.min(key.deletion.dueMs, endMs ?? Number.POSITIVE_INFINITY) : endMs;
  }

  /** The last use, recorded in the object or outside of it, whichever is later. */
  activityMs(key: IndexedKey): number | undefined {
    const beside = this.#options.lastActivityMs(key);
    const { writtenActivityMs: written } = key;
    return beside === undefined || written === undefined ? (beside ?? written) : Math.max(beside, written);
  }

  confirmed(): Promise<void> | undefined {
    // The store ends a watch when its events are not the whole truth, such as after a restore: no key is accepted before all are listed again.
    if (this.#watch?.isOutdated === true || this.#isUnreported()) void this.#follow();
    return this.#reading ?? this.#confirmation.confirmed();
  }

  /**
   * A write of this process is durable: applies it without waiting for its event, which arrives later, or never after a restore of the store. Never
   * rejects: if the store cannot be read, no key is accepted until it can.
   */
  async acknowledge({ type, entry }: CommittedWrite): Promise<void> {
    const key = indexedKey(entry);
    if (!this.#isAt(key.revision)) this.#acknowledged.set(key.uid, { key, isDeleted: type === 'deleted' });
    const known = this.#table.byName(key.name);
    this.#apply(type, key);
    // Another write of the key came later, or the store was restored and counts from an older revision.
    const isLater = known !== undefined && known.revision >= key.revision && !isDeepStrictEqual(known, key);
    if (isLater) await this.#follow();
  }

  /** Since the store last responded; 0 while it responds. */
  get unconfirmedMs(): number {
    return this.#confirmation.unconfirmedMs;
  }

  /** Rejects with `StoreError` if the store fails or the watch does not catch up within 5 seconds. */
  async catchUp(): Promise<void> {
    const { store, clock } = this.#options;
    const wanted = await store.revision();
    const { signal } = this.#stopping;
    const startMs = clock.monotonicMs();
    let isReadAgain = false;
    while (!signal.aborted && !this.#isAt(wanted)) {
      const waitedMs = clock.monotonicMs() - startMs;
      if (waitedMs >= CATCH_UP_MAX_MS)
        throw new StoreError('unavailable', 'the watch of the access keys did not catch up in time');
      if (waitedMs >= CATCH_UP_RELIST_AFTER_MS && !isReadAgain) {
        isReadAgain = true;
        void this.#follow();
      }
      await sleep(clock, CATCH_UP_POLL_MS, signal);
    }
  }

  /** The watch has passed an acknowledged write without its event: a restore of the store has undone the write. */
  #isUnreported(): boolean {
    for (const { key } of this.#acknowledged.values()) if (this.#isAt(key.revision)) return true;
    return false;
  }

  #isAt(revision: number): boolean {
    return this.#watch !== undefined && this.#watch.revision >= revision;
  }

  async #read(): Promise<void> {
    const { store, clock } = this.#options;
    const round = ++this.#round;
    this.#watch?.close();
    this.#watch = undefined;
    const range = { resource: KEY_STORAGE };
    const startedMs = clock.monotonicMs();
    // The list shows every write that was acknowledged before it is requested, and later ones up to its revision.
    this.#acknowledged = new Map();
    const { entries, revision } = await store.list(range);
    this.#confirmation.responded(startedMs);
    if (round !== this.#round) return;
    for (const change of this.#table.replaceAll(entries.map(indexedKey))) this.#notify(change);
    for (const { key, isDeleted } of this.#acknowledged.values())
      if (key.revision > revision) this.#apply(isDeleted ? 'deleted' : 'updated', key);
    const watch = await store.watch(range, revision, {
      event: (event) => {
        if (round === this.#round) this.#take(event);
      },
      end: () => {
        if (round === this.#round) void this.#follow();
      },
    });
    if (round === this.#round) this.#watch = watch;
    else watch.close();
  }

  #take({ type, entry }: StoreEvent): void {
    const key = indexedKey(entry);
    const acknowledged = this.#acknowledged.get(key.uid);
    if (acknowledged && acknowledged.key.revision <= key.revision) this.#acknowledged.delete(key.uid);
    // An event from before the deletion that this process has acknowledged.
    else if (acknowledged?.isDeleted === true) return;
    this.#apply(type, key);
  }

  #apply(type: StoreEvent['type'], key: IndexedKey): void {
    const change = type === 'deleted' ? this.#table.remove(key) : this.#table.put(key);
    if (change) this.#notify(change);
  }

  #notify(change: KeyChange): void {
    for (const listener of this.#listeners) listener(change);
  }

  /** After the end of a watch: lists and watches again until it succeeds. Resolves after the first attempt, and never rejects. */
  async #follow(): Promise<void> {
    this.#watch?.close();
    this.#watch = undefined;
    this.#following ??= this.#retry().finally(() => {
      this.#following = undefined;
    });
    await this.#reading?.catch(() => undefined);
  }

  async #retry(): Promise<void> {
    const { clock, logger } = this.#options;
    const { signal } = this.#stopping;
    for (let failures = 0; !signal.aborted; failures++) {
      this.#reading = this.#read();
      try {
        await this.#reading;
        if (this.#watch) {
          this.#reading = undefined;
          return;
        }
      } catch (error) {
        if (error instanceof StoreError && error.code === 'closed') return;
        logger.warn({ err: error, failures }, 'cannot list the access keys, retrying');
      }
      await sleep(clock, backoffDelayMs(failures, RETRY_BASE_MS, RETRY_MAX_MS), signal);
    }
  }
}
