/** The objects of an informer by key and by index. An older state never replaces a newer one, in any order of arrival, unless a list shows it. */

import {
  asJson,
  objectKey,
  type KubeObject,
  type ManagedFieldsEntry,
  type ObjectKey,
  compareVersions,
  isOlder,
} from '../object.ts';
import { jsonEquals } from '../../base/json.ts';
import type { Clock } from '../../base/clock.ts';
import type { CacheEvent, IndexFunctions } from '../types.ts';
import type { CacheShare } from './cache-budget.ts';

/** The deletion of an object, kept so that a late event does not restore the object. */
interface Deletion {
  readonly version: string | undefined;
  /** This process has deleted the object, but the event has not arrived yet. */
  readonly isOurs: boolean;
  /** Monotonic time. */
  readonly atMs: number;
}

export interface ListInCache {
  /** Undefined: the server's history has been reset, and no version is newer than the list. */
  readonly version: string | undefined;
  /** Monotonic time. */
  readonly requestedAtMs: number;
}

const DELETIONS_MAX = 10_000;
/** Longer than a watch lasts, and the list after it. */
const DELETION_LIFE_MS = 15 * 60_000;

export class ObjectCache {
  readonly indexer: Indexer;
  /** By uid, oldest first. */
  readonly #deletions = new Map<string, Deletion>();
  readonly #clock: Pick<Clock, 'monotonicMs'>;

  constructor(indexes: IndexFunctions, clock: Pick<Clock, 'monotonicMs'>, share?: CacheShare) {
    this.indexer = createIndexer(indexes, share);
    this.#clock = clock;
  }

  /** Stores a state from a watch, a read or a write; undefined when nothing changed. */
  apply(object: KubeObject): CacheEvent | undefined {
    const key = objectKey(object);
    const previous = this.indexer.get(key);
    if (this.#isDeleted(object) || (previous !== undefined && !isNewer(object, previous))) return undefined;
    return this.#put(key, object, previous);
  }

  /** Stores a state from a list, which is the truth about everything that is not newer than the list. `isContradiction`: it has an older state
   * of an object than was known, or one that was deleted. The same version with other content is stored, but proves nothing: a new release
   * of a server has other defaults. */
  applyListed(
    object: KubeObject,
    list: ListInCache,
  ): { readonly event: CacheEvent | undefined; readonly isContradiction: boolean } {
    const key = objectKey(object);
    const { uid = '' } = object.metadata;
    const previous = this.indexer.get(key);
    const deletion = this.#deletions.get(uid);
    const isNewerThanList = isOlder(list.version, previous?.metadata.resourceVersion);
    if (isNewerThanList || (deletion?.isOurs && deletion.atMs >= list.requestedAtMs))
      return { event: this.apply(object), isContradiction: false };
    const isContradiction =
      this.#isDeleted(object) || isOlder(object.metadata.resourceVersion, previous?.metadata.resourceVersion);
    this.#deletions.delete(uid);
    const isSame = previous !== undefined && jsonEquals(asJson(previous), asJson(object));
    return { event: isSame ? undefined : this.#put(key, object, previous), isContradiction };
  }

  /** A DELETED event; undefined when the cache holds nothing, or another object of that name. */
  remove(object: KubeObject): CacheEvent | undefined {
    const key = objectKey(object);
    const held = this.indexer.get(key);
    const { uid, resourceVersion } = object.metadata;
    this.#recordDeletion(object, resourceVersion, false);
    if (held === undefined || held.metadata.uid !== uid) return undefined;
    if (isOlder(resourceVersion, held.metadata.resourceVersion)) return undefined;
    this.indexer.delete(key);
    return { type: 'deleted', key, object };
  }

  /** A list as of `listVersion` does not hold this key. An object that is newer than the list stays; the watch reports its deletion. */
  removeUnlisted(key: ObjectKey, listVersion: string | undefined): CacheEvent | undefined {
    const held = this.indexer.get(key);
    if (held === undefined || isOlder(listVersion, held.metadata.resourceVersion)) return undefined;
    this.#recordDeletion(held, listVersion, false);
    this.indexer.delete(key);
    return { type: 'deleted', key, object: held };
  }

  /** Late events must not restore the object, unless it has finalizers: then it exists until the event of its deletion, whether the event that
   * marks it came before the response or comes after it. */
  deleted(key: ObjectKey, uid: string): void {
    const held = this.indexer.get(key);
    const isMarked = held?.metadata.uid === uid && held.metadata.deletionTimestamp !== undefined;
    if (!isMarked) this.forget(key, uid);
  }

  forget(key: ObjectKey, uid: string): void {
    const held = this.indexer.get(key);
    if (held?.metadata.uid === uid) this.indexer.delete(key);
    const version = held?.metadata.uid === uid ? held.metadata.resourceVersion : undefined;
    this.#remember(uid, { version, isOurs: true, atMs: this.#clock.monotonicMs() });
  }

  #put(key: ObjectKey, object: KubeObject, previous: KubeObject | undefined): CacheEvent {
    this.indexer.set(key, object);
    if (previous === undefined) return { type: 'added', key, object };
    const { uid, resourceVersion } = previous.metadata;
    // An older object, which a list shows, does not say that the newer one is deleted: the watch that begins at that list may send it again.
    if (uid !== object.metadata.uid && !isOlder(object.metadata.resourceVersion, resourceVersion))
      this.#recordDeletion(previous, resourceVersion, false);
    return { type: 'updated', key, object, previous };
  }

  /** A uid is never assigned twice. But a watch with a selector sends DELETED for an object that no longer matches, and it may match again. */
  #isDeleted({ metadata: { uid, resourceVersion, deletionTimestamp } }: KubeObject): boolean {
    const deletion = uid === undefined ? undefined : this.#deletions.get(uid);
    if (deletion === undefined) return false;
    const order = compareVersions(resourceVersion, deletion.version);
    const isLate = order !== undefined && order <= 0;
    return isLate || (deletion.isOurs && deletionTimestamp === undefined);
  }

  #recordDeletion({ metadata: { uid } }: KubeObject, version: string | undefined, isOurs: boolean): void {
    if (uid !== undefined) this.#remember(uid, { version, isOurs, atMs: this.#clock.monotonicMs() });
  }

  #remember(uid: string, deletion: Deletion): void {
    const known = this.#deletions.get(uid);
    if (known !== undefined && !known.isOurs && isOlder(deletion.version, known.version)) return;
    this.#deletions.delete(uid);
    this.#deletions.set(uid, deletion);
    for (const [oldest, { atMs }] of this.#deletions) {
      if (this.#deletions.size <= DELETIONS_MAX && deletion.atMs - atMs < DELETION_LIFE_MS) return;
      this.#deletions.delete(oldest);
    }
  }
}

/** False for the same or an older version. Versions of a server grow across objects, so an older version with another uid belongs to an earlier
 * object of the same name. If versions cannot be compared, another uid counts as newer. */
function isNewer(object: KubeObject, held: KubeObject): boolean {
  const order = compareVersions(object.metadata.resourceVersion, held.metadata.resourceVersion);
  if (object.metadata.uid !== held.metadata.uid) return order === undefined || order >= 0;
  return order === undefined || order > 0;
}

// Objects by key, and keys by the values of named indexes.

type Indexer = ReturnType<typeof createIndexer>;

const NOTHING: ReadonlySet<ObjectKey> = new Set();

/** Most values have one key, and a Set for each of them would take a quarter of a kilobyte. */
type KeysByValue = Map<string, ObjectKey | Set<ObjectKey>>;

/** Index functions must be pure: their values are computed again when an object is removed, instead of stored. */
function createIndexer(functions: IndexFunctions, share: CacheShare | undefined) {
  const objects = new Map<ObjectKey, KubeObject>();
  const indexes = Object.entries(functions).map(([name, valuesOf]) => ({
    name,
    valuesOf,
    keys: new Map() as KeysByValue,
  }));
  const unlink = (key: ObjectKey, object: KubeObject): void => {
    for (const { keys, valuesOf } of indexes) for (const value of valuesOf(object)) dropKey(keys, value, key);
  };
  return {
    get: (key: ObjectKey): KubeObject | undefined => objects.get(key),
    set(key: ObjectKey, object: KubeObject): void {
      const previous = objects.get(key);
      if (previous !== undefined) unlink(key, previous);
      objects.set(key, object);
      share?.replaced(previous, object);
      for (const { keys, valuesOf } of indexes)
        for (const value of valuesOf(object)) addKey(keys, value, key);
    },
    delete(key: ObjectKey): void {
      const previous = objects.get(key);
      if (previous === undefined) return;
      unlink(key, previous);
      objects.delete(key);
      share?.replaced(previous, undefined);
    },
    list: (): MapIterator<KubeObject> => objects.values(),
    keys: (): MapIterator<ObjectKey> => objects.keys(),
    /** May be a live view: copy it before anything else may change the index. Throws for an index that does not exist. */
    byIndex(index: string, value: string): ReadonlySet<ObjectKey> {
      const found = indexes.find(({ name }) => name === index);
      if (found === undefined) throw new RangeError(`there is no index ${index}`);
      const keys = found.keys.get(value) ?? NOTHING;
      return typeof keys === 'string' ? new Set([keys]) : keys;
    },
    get size(): number {
      return objects.size;
    },
  };
}

function addKey(keysByValue: KeysByValue, value: string, key: ObjectKey): void {
  const keys = keysByValue.get(value);
  if (keys === undefined) keysByValue.set(value, key);
  else if (typeof keys !== 'string') keys.add(key);
  else if (keys !== key) keysByValue.set(value, new Set([keys, key]));
}

function dropKey(keysByValue: KeysByValue, value: string, key: ObjectKey): void {
  const keys = keysByValue.get(value);
  if (keys === key) keysByValue.delete(value);
  if (keys === undefined || typeof keys === 'string') return;
  keys.delete(key);
  if (keys.size === 0) keysByValue.delete(value);
}

// What a cache keeps of `metadata.managedFields`: who wrote, and when, but not the fields, which are half of a typical object's bytes.

/** Lists of entries that objects share. With every object written in a second of its own, more would only be memory. */
const SHARED_MAX = 1024;

/** Nothing here reads `fieldsV1`. Objects that the same managers wrote in the same second share one list of entries. `managedFields` is replaced in
 * the object, never changed itself. */
export function createOwnedFieldsStripper(): (object: KubeObject) => KubeObject {
  const shared = new Map<string, ManagedFieldsEntry[]>();
  return (object) => {
    const { managedFields } = object.metadata;
    if (managedFields === undefined) return object;
    const stripped = managedFields.map(withoutFields);
    const text = JSON.stringify(stripped);
    const known = shared.get(text);
    object.metadata.managedFields = known ?? stripped;
    if (known !== undefined) return object;
    if (shared.size >= SHARED_MAX) shared.clear();
    shared.set(text, stripped);
    return object;
  };
}

function withoutFields({ fieldsV1: _fields, ...entry }: ManagedFieldsEntry): ManagedFieldsEntry {
  return entry;
}
