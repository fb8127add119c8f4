/** Keys by uid, name, credential and owner, and their number per subject, at one consistent state. */

import type { IndexedKey, KeyChange } from './key-record.ts';

const NO_KEYS: readonly IndexedKey[] = [];

export class KeyTable {
  readonly #byUid = new Map<string, IndexedKey>();
  readonly #byName = new Map<string, IndexedKey>();
  readonly #byCredential = new Map<string, readonly IndexedKey[]>();
  readonly #byOwner = new Map<string, Set<IndexedKey>>();
  readonly #countOf = new Map<string, number>();

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

  /** Number of keys of this subject. */
  countOf(user: string): number {
    return this.#countOf.get(user) ?? 0;
  }

  /** Undefined: the table has this state or a newer one. */
  put(key: IndexedKey): KeyChange | undefined {
    // An object that was recreated with the same name has another uid and replaces its predecessor.
    const known = this.#byName.get(key.name);
    if (known && known.revision >= key.revision) return undefined;
    if (known) this.#forget(known);
    this.#byUid.set(key.uid, key);
    this.#byName.set(key.name, key);
    this.#addCredentials(key);
    this.#countOf.set(key.user.name, this.countOf(key.user.name) + 1);
    for (const { uid } of key.owners) {
      const dependents = this.#byOwner.get(uid) ?? new Set();
      this.#byOwner.set(uid, dependents.add(key));
    }
    return { now: key, before: known };
  }

  /** `key`: its last state. */
  remove(key: IndexedKey): KeyChange | undefined {
    const known = this.#byUid.get(key.uid);
    if (!known) return undefined;
    this.#forget(known);
    return { now: undefined, before: known };
  }

  /** Replaces the content; returns the changes. */
  replaceAll(keys: readonly IndexedKey[]): KeyChange[] {
    const uids = new Set(keys.map(({ uid }) => uid));
    const gone = [...this.#byUid.values()].filter(({ uid }) => !uids.has(uid));
    const changes = [...gone.map((key) => this.remove(key)), ...keys.map((key) => this.put(key))];
    return changes.filter((change) => change !== undefined);
  }

  #forget(key: IndexedKey): void {
    this.#byUid.delete(key.uid);
    this.#byName.delete(key.name);
    this.#dropCredentials(key);
    const left = this.countOf(key.user.name) - 1;
    if (left > 0) this.#countOf.set(key.user.name, left);
    else this.#countOf.delete(key.user.name);
    for (const { uid } of key.owners) {
      const dependents = this.#byOwner.get(uid);
      if (dependents?.delete(key) && dependents.size === 0) this.#byOwner.delete(uid);
    }
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

function olderFirst(a: IndexedKey, b: IndexedKey): number {
  return a.createdMs - b.createdMs || (a.uid < b.uid ? -1 : 1);
}
