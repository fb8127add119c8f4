/**
 * What the projections of the store show: the cache, and ahead of it the states that responses of the host have shown and whose events have not
 * arrived. So a write of this replica is shown when its response is, and no earlier event undoes it.
 */

import { orderedKey, type Projection, type StoredEntry, type StoreKey } from '../../store.ts';

/** A state that a response has shown. */
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

  /** The cache has been replaced by a list of a restored host. */
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
