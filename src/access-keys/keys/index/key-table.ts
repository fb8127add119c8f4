/** Keys by uid, name, credential, owner and subject, at one consistent state. */

import { isDeepStrictEqual } from 'node:util';
import type { IndexedKey, KeyChange } from './key-record.ts';

const NO_KEYS: readonly IndexedKey[] = [];

export class KeyTable {
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

  byCredential(id: string): readonly IndexedKey[] {
    return this.#byCredential.get(id) ?? NO_KEYS;
  }

  dependentsOf(uid: string): Iterable<IndexedKey> {
    return this.#byOwner.get(uid) ?? NO_KEYS;
  }

  ofUser(user: string): ReadonlySet<IndexedKey> {
    return this.#byUser.get(user) ?? new Set();
  }

  /** Undefined: the table has this state or a newer one. */
  put(key: IndexedKey): KeyChange | undefined {
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
  remove(key: IndexedKey): KeyChange | undefined {
    const known = this.#byUid.get(key.uid);
    if (!known) return undefined;
    this.#forget(known);
    return { now: undefined, before: known };
  }

  /** Replaces the content, also by older states: the store may have been restored from a backup. Returns the changes. */
  replaceAll(keys: readonly IndexedKey[]): KeyChange[] {
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
