/** A cache of all objects of the store, kept by a list-watch; its changes become events. */

import type { ListWatchSink, StartedList } from '../../../kube/informer/list-watch.ts';
import type { WatchEventType } from '../../../kube/types.ts';
import { type KubeObject, orderedKey } from '../../../kube/object.ts';
import type { Clock } from '../../../base/clock.ts';
import { type StoredEntry, type StoreEvent, type Projection, type StoreKey } from '../store.ts';
import { revisionOf, writeIdOf, type Held, type SecretDecoder } from './secret-codec.ts';
import { parseRevision } from './host-secrets.ts';
import type { EventFeed } from '../event-feed.ts';

export interface SecretCacheOptions {
  readonly decoder: SecretDecoder;
  readonly feed: EventFeed;
  readonly clock: Clock;
  /** The newest revision of an event or a bookmark. */
  readonly bookmarked: () => number;
}

interface Waiter {
  readonly isMet: () => boolean;
  readonly wake: (isMet: boolean) => void;
}

export class SecretCache implements ListWatchSink {
  readonly ledger = new WriteLedger();
  readonly projections = new SecretProjections();
  readonly #options: SecretCacheOptions;
  /** By the name of the Secret. */
  readonly #held = new Map<string, Held>();
  readonly #waiters = new Set<Waiter>();
  #listed: KubeObject[] = [];
  #isRewound = false;
  #requestedAtMs = 0;
  #isSynced = false;
  #revision = 0;
  #restarts = 0;

  constructor(options: SecretCacheOptions) {
    this.#options = options;
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** Every event up to this revision has been published. */
  get revision(): number {
    return this.#revision;
  }

  /** How often the revisions of the server have restarted; the first list counts too. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Every event up to this revision was received, or would have been: bookmarks advance the list-watch without events. */
  get reached(): number {
    return Math.max(this.#revision, this.#options.bookmarked());
  }

  held(secretName: string): Held | undefined {
    return this.#held.get(secretName);
  }

  *entries(): Generator<StoredEntry, void> {
    for (const { entry } of this.#held.values()) yield entry;
  }

  /** Resolves with true as soon as the condition holds, with false after the timeout or `wakeAll`. */
  until(isMet: () => boolean, timeoutMs: number): Promise<boolean> {
    if (isMet()) return Promise.resolve(true);
    return new Promise((resolve) => {
      const wake = (result: boolean): void => {
        timer.cancel();
        this.#waiters.delete(waiter);
        resolve(result);
      };
      const waiter: Waiter = { isMet, wake };
      const timer = this.#options.clock.schedule(timeoutMs, () => wake(false));
      this.#waiters.add(waiter);
    });
  }

  wakeAll(): void {
    for (const { wake } of this.#waiters) wake(false);
  }

  listStarted({ isRewound, requestedAtMs }: StartedList): void {
    this.#isRewound = isRewound;
    this.#requestedAtMs = requestedAtMs;
    this.#listed = [];
  }

  listPage(objects: readonly KubeObject[]): void {
    this.#listed.push(...objects);
  }

  listComplete(resourceVersion: string): boolean {
    const revision = parseRevision(resourceVersion);
    const listed = this.#listed;
    this.#listed = [];
    const isPast = this.#isPast(listed, revision);
    const isNew = this.#isRewound || !this.#isSynced || isPast;
    if (isNew) {
      this.#replace(listed, revision);
      this.projections.replaced(revision, this.#requestedAtMs, [...this.entries()]);
    } else {
      this.#catchUp(listed, revision);
      this.projections.listed(revision, this.#requestedAtMs, (name) => this.#held.get(name)?.entry);
    }
    this.#isRewound = false;
    this.#isSynced = true;
    this.#advance(revision);
    return isPast;
  }

  event(type: Exclude<WatchEventType, 'BOOKMARK'>, secret: KubeObject): void {
    const revision = revisionOf(secret);
    const { name } = secret.metadata;
    const before = this.#held.get(name);
    // A list has shown this state or a newer one before.
    if (before !== undefined && revision <= before.entry.revision) return;
    const after = type === 'DELETED' ? undefined : this.#decode(secret);
    this.#apply({ secretName: name, before, after, revision, isExact: true });
    this.#advance(revision);
  }

  /** The first list, or the list of a restored server: replaces everything that was known before. */
  #replace(listed: readonly KubeObject[], revision: number): void {
    this.#held.clear();
    for (const secret of listed) {
      const held = this.#decode(secret);
      if (held !== undefined) this.#held.set(secret.metadata.name, held);
    }
    this.#revision = 0;
    this.ledger.blind();
    this.#restarts++;
    this.#options.feed.restart(revision);
  }

  /** True when the list has another past than the cache: a backup was restored, and its revisions have passed the old ones since. */
  #isPast(listed: readonly KubeObject[], listRevision: number): boolean {
    const known = this.reached;
    const names = new Set(listed.map(({ metadata: { name } }) => name));
    if (listRevision <= known && [...this.#held.keys()].some((name) => !names.has(name))) return true;
    return listed.some((secret) => {
      const held = this.#held.get(secret.metadata.name);
      const revision = revisionOf(secret);
      // An object that was deleted exists again.
      if (held === undefined) return revision <= known && this.#decode(secret) !== undefined;
      const { entry, writeId } = held;
      return revision < entry.revision || (revision === entry.revision && writeIdOf(secret) !== writeId);
    });
  }

  /**
   * Applies the changes during an interruption of the watch, as far as a list shows them: it shows neither objects that were created and
   * deleted meanwhile, nor the revision of a deletion. A watch that began in this time may have seen more, so it ends.
   */
  #catchUp(listed: readonly KubeObject[], revision: number): void {
    const { feed } = this.#options;
    const known = this.reached;
    if (revision > known) feed.endBetween(known, revision);
    for (const change of this.#changesTo(listed, revision)) this.#apply(change);
    if (revision <= known) return;
    feed.compact(revision);
    this.ledger.blind((secretName) => !this.#held.has(secretName));
  }

  /** In the order of their revisions; deletions have the revision of the list. */
  #changesTo(listed: readonly KubeObject[], revision: number): readonly Change[] {
    const gone = new Set(this.#held.keys());
    const changes: Change[] = [];
    for (const secret of listed) {
      const { name } = secret.metadata;
      gone.delete(name);
      const before = this.#held.get(name);
      const at = revisionOf(secret);
      if (before !== undefined && at <= before.entry.revision) continue;
      changes.push({
        secretName: name,
        before,
        after: this.#decode(secret),
        revision: at,
        isExact: false,
      });
    }
    changes.sort((a, b) => a.revision - b.revision);
    for (const secretName of gone) {
      const before = this.#held.get(secretName);
      changes.push({ secretName, before, after: undefined, revision, isExact: false });
    }
    return changes;
  }

  #apply(change: Change): void {
    const { secretName, before, after, revision } = change;
    if (after === undefined) this.#held.delete(secretName);
    else this.#held.set(secretName, after);
    this.ledger.observe(change);
    const key = (after ?? before)?.entry.key;
    this.projections.event(secretName, after?.entry, key, revision);
    const event = eventOf(before, after, revision);
    if (event !== undefined) this.#options.feed.publish(event, (after ?? before)?.bytes ?? 0);
  }

  #advance(revision: number): void {
    this.#revision = Math.max(this.#revision, revision);
    for (const { isMet, wake } of this.#waiters) if (isMet()) wake(true);
  }

  #decode(secret: KubeObject): Held | undefined {
    const decoded = this.#options.decoder.decode(secret);
    return decoded.state === 'held' ? decoded : undefined;
  }
}

function eventOf(
  before: Held | undefined,
  after: Held | undefined,
  revision: number,
): StoreEvent | undefined {
  if (after === undefined) {
    if (before === undefined) return undefined;
    return { type: 'deleted', revision, entry: { ...before.entry, revision }, previous: before.entry };
  }
  if (before === undefined) return { type: 'created', revision, entry: after.entry };
  return { type: 'updated', revision, entry: after.entry, previous: before.entry };
}

// What the projections of the store show: the cache, and ahead of it the states that responses of the host have shown and whose events have not
// arrived. So a write of this replica is shown when its response is, and no earlier event undoes it.

export interface ShownState {
  readonly key: StoreKey;
  /** Undefined: the object is deleted. */
  readonly entry: StoredEntry | undefined;
  /** Events of the object below this revision are older. */
  readonly revision: number;
  /** For a deletion: the revision of the state that it removed. */
  readonly removed?: number;
}

interface Ahead extends ShownState {
  /** Monotonic. */
  readonly atMs: number;
}

/** The entry that the cache holds of a Secret. */
type HeldEntry = (secretName: string) => StoredEntry | undefined;

export class SecretProjections {
  /** By resource. */
  readonly #projections = new Map<string, Set<Projection>>();
  /** By the name of the Secret. */
  readonly #ahead = new Map<string, Ahead>();

  /** Returns a function that ends it. */
  add(resource: string, projection: Projection, held: Iterable<StoredEntry>): () => void {
    const projections = this.#projections.get(resource) ?? new Set();
    this.#projections.set(resource, projections.add(projection));
    projection.reset([...this.shown(resource, held).values()]);
    return () => void projections.delete(projection);
  }

  /** What is shown, by {@link orderedKey}. `held`: everything in the cache. */
  shown(resource: string, held: Iterable<StoredEntry>): Map<string, StoredEntry> {
    const shown = new Map<string, StoredEntry>();
    for (const entry of held) if (entry.key.resource === resource) shown.set(orderedKey(entry.key), entry);
    for (const { key, entry } of this.#ahead.values()) {
      if (key.resource !== resource) continue;
      if (entry === undefined) shown.delete(orderedKey(key));
      else shown.set(orderedKey(key), entry);
    }
    return shown;
  }

  /** The events up to the revision of `state` have not arrived, or the revisions of the host have restarted. */
  show(secretName: string, state: Ahead): void {
    this.#ahead.set(secretName, state);
    this.#changed(state.key, state.entry);
  }

  isShown(secretName: string, revision: number): boolean {
    const ahead = this.#ahead.get(secretName);
    return ahead !== undefined && ahead.revision >= revision;
  }

  /** The cache has received an event; `entry` undefined: the Secret holds no object any more. */
  event(
    secretName: string,
    entry: StoredEntry | undefined,
    key: StoreKey | undefined,
    revision: number,
  ): void {
    const ahead = this.#ahead.get(secretName);
    if (ahead !== undefined && revision < ahead.revision) return;
    this.#ahead.delete(secretName);
    this.#settle(ahead, entry, key);
  }

  /** The cache has been completed from a list, which shows all that a response had shown when it was requested, and all up to its revision. */
  listed(revision: number, requestedAtMs: number, held: HeldEntry): void {
    for (const [secretName, ahead] of this.#ahead) {
      if (ahead.revision > revision && ahead.atMs >= requestedAtMs) continue;
      this.#ahead.delete(secretName);
      this.#settle(ahead, held(secretName), ahead.key);
    }
  }

  replaced(revision: number, requestedAtMs: number, held: readonly StoredEntry[]): void {
    for (const [secretName, ahead] of this.#ahead)
      if (ahead.revision <= revision || ahead.atMs < requestedAtMs) this.#ahead.delete(secretName);
    for (const [resource, projections] of this.#projections)
      for (const projection of projections) projection.reset([...this.shown(resource, held).values()]);
  }

  /** True if the watch has passed a state without its event: a restore of the host has undone the write. */
  isUndone(passed: number, held: HeldEntry): boolean {
    for (const [secretName, ahead] of this.#ahead) {
      if (ahead.revision > passed) continue;
      const entry = held(secretName);
      if (ahead.removed === undefined || (entry !== undefined && entry.revision <= ahead.removed))
        return true;
      // The revision of a deletion may be a later one than that of its event.
      this.#ahead.delete(secretName);
      this.#settle(ahead, entry, ahead.key);
    }
    return false;
  }

  /** The projections showed `ahead`, and show the cache from now on. */
  #settle(ahead: Ahead | undefined, entry: StoredEntry | undefined, key: StoreKey | undefined): void {
    if (ahead !== undefined && ahead.entry?.revision === entry?.revision) return;
    const changed = key ?? ahead?.key;
    if (changed !== undefined) this.#changed(changed, entry);
  }

  #changed(key: StoreKey, entry: StoredEntry | undefined): void {
    for (const projection of this.#projections.get(key.resource) ?? []) projection.changed(key, entry);
  }
}

// Pending writes and their events: the response to a write may be lost, its event is not.

/** One Secret went from one state to another. Undefined: there was, or is, no readable object. */
interface Change {
  readonly secretName: string;
  readonly before: Held | undefined;
  readonly after: Held | undefined;
  readonly revision: number;
  /** False when a list showed the change: there may have been other states in between. */
  readonly isExact: boolean;
}

export interface PendingWrite extends Disposable {
  readonly secretName: string;
  readonly sought: Sought;
  /** The state that this write created, once its event was received; for a deletion the last state, at the revision of the deletion. */
  seen: StoredEntry | undefined;
  /** Events of this Secret were missed, so a missing event proves nothing. */
  isBlind: boolean;
}

/** Identifies a write by its id, or a deletion by the revision that it removes. */
export type Sought = { readonly writeId: string } | { readonly deletedRevision: number };

export class WriteLedger {
  readonly #pending = new Set<PendingWrite>();

  /** Must be opened before the request is sent. */
  open(secretName: string, sought: Sought): PendingWrite {
    const pending: PendingWrite = {
      secretName,
      sought,
      seen: undefined,
      isBlind: false,
      [Symbol.dispose]: () => void this.#pending.delete(pending),
    };
    this.#pending.add(pending);
    return pending;
  }

  observe(change: Change): void {
    for (const pending of this.#pending) {
      if (pending.secretName !== change.secretName || pending.seen !== undefined) continue;
      pending.seen = outcomeOf(pending.sought, change);
      if (pending.seen === undefined && !change.isExact) pending.isBlind = true;
    }
  }

  /** Events of these Secrets were missed; by default those of all. */
  blind(isMissed: (secretName: string) => boolean = () => true): void {
    for (const pending of this.#pending) if (isMissed(pending.secretName)) pending.isBlind = true;
  }
}

function outcomeOf(sought: Sought, { before, after, revision, isExact }: Change): StoredEntry | undefined {
  if ('writeId' in sought) return after?.writeId === sought.writeId ? after.entry : undefined;
  // When a list shows the deletion, another client may have changed and deleted the object in between.
  const isOurs = isExact && after === undefined && before?.entry.revision === sought.deletedRevision;
  return isOurs ? { ...before.entry, revision } : undefined;
}
