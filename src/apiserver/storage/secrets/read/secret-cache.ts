/** A cache of all objects of the store, kept by a list-watch; its changes become events. */

import type { ListWatchSink, StartedList } from '../../../../kube/informer/list-watch.ts';
import type { WatchEventType } from '../../../../kube/types.ts';
import type { KubeObject } from '../../../../kube/object.ts';
import type { Clock } from '../../../../base/clock.ts';
import type { StoredEntry, StoreEvent } from '../../store.ts';
import type { DamageReport } from '../codec/damage-report.ts';
import type { EventFeed } from '../../event-feed.ts';
import type { SecretProjections } from './secret-projections.ts';
import { decodeSecret, parseRevision, revisionOf, writeIdOf, type Held } from '../codec/secret-codec.ts';
import type { SecretNames } from '../codec/secret-names.ts';
import type { Change, WriteLedger } from '../write-ledger.ts';

export interface SecretCacheOptions {
  readonly names: SecretNames;
  readonly feed: EventFeed;
  readonly ledger: WriteLedger;
  readonly projections: SecretProjections;
  readonly damage: DamageReport;
  readonly clock: Clock;
  /** The newest revision of an event or a bookmark. */
  readonly bookmarked: () => number;
  /** Called when the server's revisions have restarted, and for the first list. */
  readonly restarted: () => void;
}

interface Waiter {
  readonly isMet: () => boolean;
  readonly wake: (isMet: boolean) => void;
}

export class SecretCache implements ListWatchSink {
  readonly #options: SecretCacheOptions;
  /** By the name of the Secret. */
  readonly #held = new Map<string, Held>();
  readonly #waiters = new Set<Waiter>();
  #listed: KubeObject[] = [];
  #isRewound = false;
  #requestedAtMs = 0;
  #isSynced = false;
  #revision = 0;

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

  /** Every event up to this revision was received, or would have been. */
  get #known(): number {
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
    const { projections } = this.#options;
    if (isNew) {
      this.#replace(listed, revision);
      projections.replaced(revision, this.#requestedAtMs, [...this.entries()]);
    } else {
      this.#catchUp(listed, revision);
      projections.listed(revision, this.#requestedAtMs, (name) => this.#held.get(name)?.entry);
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
    this.#options.ledger.blind();
    this.#options.restarted();
    this.#options.feed.restart(revision);
  }

  /** True when the list has another past than the cache: a backup was restored, and its revisions have passed the old ones since. */
  #isPast(listed: readonly KubeObject[], listRevision: number): boolean {
    const known = this.#known;
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
    const { feed, ledger } = this.#options;
    const known = this.#known;
    if (revision > known) feed.endBetween(known, revision);
    for (const change of this.#changesTo(listed, revision)) this.#apply(change);
    if (revision <= known) return;
    feed.forget(revision);
    ledger.blind((secretName) => !this.#held.has(secretName));
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
    this.#options.ledger.observe(change);
    const key = (after ?? before)?.entry.key;
    this.#options.projections.event(secretName, after?.entry, key, revision);
    const event = eventOf(before, after, revision);
    if (event !== undefined) this.#options.feed.publish(event, (after ?? before)?.bytes ?? 0);
  }

  #advance(revision: number): void {
    this.#revision = Math.max(this.#revision, revision);
    for (const { isMet, wake } of this.#waiters) if (isMet()) wake(true);
  }

  #decode(secret: KubeObject): Held | undefined {
    const decoded = decodeSecret(this.#options.names, secret);
    if (decoded.state === 'damaged') this.#options.damage.found(secret, decoded.why);
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
