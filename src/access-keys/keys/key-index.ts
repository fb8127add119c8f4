/** All keys in memory, indexed for authentication, tokens and the collector; kept current by list and watch of the store. */

import { isDeepStrictEqual } from 'node:util';
import { sleep, type Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { backoffDelayMs } from '../../base/retry.ts';
import type { CommittedWrite } from '../../apiserver/objects/admission.ts';
import { StoreError, type Store, type StoreEvent, type StoreWatch } from '../../apiserver/storage/store.ts';
import type { KeyIndex as KeyIndexContract, KeyRecord } from '../types.ts';
import { indexedKey, type IndexedKey, type KeyChange } from './key-record.ts';
import { endOf } from './key-expiry.ts';
import { KEY_STORAGE } from './key-kind.ts';

const RETRY_BASE_MS = 100;
const RETRY_MAX_MS = 10_000;
/** Interval of the check whether the watch has reached a revision. */
const CATCH_UP_POLL_MS = 10;
/** After this time the watch is closed and the keys are listed again. */
const CATCH_UP_RELIST_AFTER_MS = 2_000;
const CATCH_UP_MAX_MS = 5_000;

interface KeyIndexOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The last use of a key that is recorded outside the object. Epoch milliseconds. */
  lastActivityMs(key: IndexedKey): number | undefined;
}

const NO_KEYS: readonly IndexedKey[] = [];

/** Keys by uid, name, credential, owner and subject, at one consistent state. */
class KeyTable {
  readonly #byUid = new Map<string, IndexedKey>();
  readonly #byName = new Map<string, IndexedKey>();
  readonly #byCredential = new Map<string, readonly IndexedKey[]>();
  readonly #byOwner = new Map<string, Set<IndexedKey>>();
  readonly #byUser = new Map<string, Set<IndexedKey>>();

  get size(): number {
    return this.#byUid.size;
  }

  all(): Iterable<IndexedKey> {
    return this.#byUid.values();
  }

  byUid(uid: string): IndexedKey | undefined {
    return this.#byUid.get(uid);
  }

  byName(name: string): IndexedKey | undefined {
    return this.#byName.get(name);
  }

  /** Keys with this credential id: one, unless two replicas accepted the same supplied key at the same time. */
  byCredential(id: string): readonly IndexedKey[] {
    return this.#byCredential.get(id) ?? NO_KEYS;
  }

  /** Keys with this uid among their owners. */
  dependentsOf(uid: string): Iterable<IndexedKey> {
    return this.#byOwner.get(uid) ?? NO_KEYS;
  }

  /** The keys of this subject, see `subjectOf`. */
  ofUser(user: string): ReadonlySet<IndexedKey> {
    return this.#byUser.get(user) ?? new Set();
  }

  /** Undefined: the table has this state or a newer one. */
  protected put(key: IndexedKey): KeyChange | undefined {
    const known = this.#byName.get(key.name);
    return known && known.revision >= key.revision ? undefined : this.#set(key, known);
  }

  #set(key: IndexedKey, known: IndexedKey | undefined): KeyChange {
    // An object that was recreated with the same name has another uid and replaces its predecessor.
    if (known) this.#forget(known);
    this.#byUid.set(key.uid, key);
    this.#byName.set(key.name, key);
    this.#addCredentials(key);
    addTo(this.#byUser, key.user.name, key);
    for (const { uid } of key.owners) addTo(this.#byOwner, uid, key);
    return { now: key, before: known };
  }

  /** `key`: its last state. */
  protected remove(key: IndexedKey): KeyChange | undefined {
    const known = this.#byUid.get(key.uid);
    if (!known) return undefined;
    this.#forget(known);
    return { now: undefined, before: known };
  }

  /** Replaces the content, also by older states: the store may have been restored from a backup. Returns the changes. */
  protected replaceAll(keys: readonly IndexedKey[]): KeyChange[] {
    const uids = new Set(keys.map(({ uid }) => uid));
    const gone = [...this.#byUid.values()].filter(({ uid }) => !uids.has(uid));
    const changes = gone.map((key) => this.remove(key)).filter((change) => change !== undefined);
    for (const key of keys) {
      const known = this.#byName.get(key.name);
      if (!isDeepStrictEqual(known, key)) changes.push(this.#set(key, known));
    }
    return changes;
  }

  #forget(key: IndexedKey): void {
    this.#byUid.delete(key.uid);
    this.#byName.delete(key.name);
    this.#dropCredentials(key);
    removeFrom(this.#byUser, key.user.name, key);
    for (const { uid } of key.owners) removeFrom(this.#byOwner, uid, key);
  }

  /** Oldest first, so that all replicas choose the same key for an id that two keys have. */
  #addCredentials(key: IndexedKey): void {
    for (const { id } of key.credentials) {
      const known = this.#byCredential.get(id) ?? NO_KEYS;
      this.#byCredential.set(id, known.length === 0 ? [key] : [...known, key].sort(olderFirst));
    }
  }

  #dropCredentials(key: IndexedKey): void {
    for (const { id } of key.credentials) {
      const left = this.byCredential(id).filter((other) => other !== key);
      if (left.length === 0) this.#byCredential.delete(id);
      else this.#byCredential.set(id, left);
    }
  }
}

type KeySets = Map<string, Set<IndexedKey>>;

function addTo(sets: KeySets, name: string, key: IndexedKey): void {
  sets.set(name, (sets.get(name) ?? new Set()).add(key));
}

function removeFrom(sets: KeySets, name: string, key: IndexedKey): void {
  const keys = sets.get(name);
  if (keys?.delete(key) && keys.size === 0) sets.delete(name);
}

function olderFirst(a: IndexedKey, b: IndexedKey): number {
  return a.createdMs - b.createdMs || (a.uid < b.uid ? -1 : 1);
}

interface AcknowledgedKey {
  readonly key: IndexedKey;
  readonly isDeleted: boolean;
}

export class KeyIndex extends KeyTable implements KeyIndexContract {
  readonly #options: KeyIndexOptions;
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
    super();
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

  /** A deleted key has expired; a key that is being deleted expires with its grace period at the latest. */
  expiresAtMs(record: KeyRecord): number | undefined {
    const key = this.byUid(record.uid);
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
    const known = this.byName(key.name);
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
    for (const change of this.replaceAll(entries.map(indexedKey))) this.#notify(change);
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
    const change = type === 'deleted' ? this.remove(key) : this.put(key);
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

/** The store is asked again after this time, in the background. */
const CONFIRM_AFTER_MS = 10_000;
/** While the store fails, the index is used for this long: an upgrade of the host cluster must not lock out all users. */
const UNCONFIRMED_MS_MAX = 10 * 60_000;

interface StoreConfirmationOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
}

type Phase = 'responding' | 'failing' | 'refusing';

/** Knows whether the store still responds: while it does not, another replica may have revoked any key. */
class StoreConfirmation {
  readonly #options: StoreConfirmationOptions;
  /** Monotonic time of the last request to which the store responded. */
  #confirmedMs = Number.NEGATIVE_INFINITY;
  #confirming: Promise<void> | undefined;
  #phase: Phase = 'responding';

  constructor(options: StoreConfirmationOptions) {
    this.#options = options;
  }

  /** Since the last response; 0 while the store responds. */
  get unconfirmedMs(): number {
    return this.#phase === 'responding' ? 0 : this.#options.clock.monotonicMs() - this.#confirmedMs;
  }

  /** The store responded to a request of this monotonic time. */
  responded(startedMs: number): void {
    this.#confirmedMs = startedMs;
    if (this.#phase !== 'responding') {
      this.#options.logger.info({}, 'the store of the access keys responds again');
    }
    this.#phase = 'responding';
  }

  /** See `KeyIndex.confirmed`. */
  confirmed(): Promise<void> | undefined {
    const ageMs = this.#options.clock.monotonicMs() - this.#confirmedMs;
    if (ageMs < CONFIRM_AFTER_MS) return undefined;
    this.#confirming ??= this.#confirm().finally(() => {
      this.#confirming = undefined;
    });
    if (ageMs >= UNCONFIRMED_MS_MAX) return this.#confirming;
    // Rejected later, when the index is too old.
    this.#confirming.catch(() => undefined);
    return undefined;
  }

  async #confirm(): Promise<void> {
    const startedMs = this.#options.clock.monotonicMs();
    try {
      await this.#options.store.revision();
    } catch (error) {
      this.#failed(error, startedMs);
      throw error;
    }
    this.responded(startedMs);
  }

  /** One line when the store stops responding, and one when keys are no longer accepted. */
  #failed(error: unknown, nowMs: number): void {
    const leftMs = this.#confirmedMs + UNCONFIRMED_MS_MAX - nowMs;
    const phase: Phase = leftMs > 0 ? 'failing' : 'refusing';
    if (phase === this.#phase) return;
    this.#phase = phase;
    const { logger } = this.#options;
    if (phase === 'refusing') {
      logger.error(
        { err: error },
        'the store of the access keys has not responded for ten minutes: requests get 503',
      );
      return;
    }
    const secondsLeft = Math.ceil(leftMs / 1000);
    logger.warn(
      { err: error, secondsLeft },
      'the store of the access keys does not respond: keys are accepted as last read, also revoked ones, then requests get 503',
    );
  }
}
