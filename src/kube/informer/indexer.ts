/** Objects by key, and keys by the values of named indexes. */

import type { KubeObject, ObjectKey } from '../object.ts';
import type { IndexFunctions } from '../types.ts';

export interface Indexer {
  get(key: ObjectKey): KubeObject | undefined;
  set(key: ObjectKey, object: KubeObject): void;
  delete(key: ObjectKey): void;
  list(): MapIterator<KubeObject>;
  keys(): MapIterator<ObjectKey>;
  /** May be a live view: copy it before anything else may change the index. Throws for an index that does not exist. */
  byIndex(index: string, value: string): ReadonlySet<ObjectKey>;
  readonly size: number;
}

const NOTHING: ReadonlySet<ObjectKey> = new Set();

/** Most values have one key, and a Set for each of them would take a quarter of a kilobyte. */
type KeysByValue = Map<string, ObjectKey | Set<ObjectKey>>;

/** Index functions must be pure: their values are computed again when an object is removed, instead of stored. */
export function createIndexer(functions: IndexFunctions): Indexer {
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
    get: (key) => objects.get(key),
    set(key, object) {
      const previous = objects.get(key);
      if (previous !== undefined) unlink(key, previous);
      objects.set(key, object);
      for (const { keys, valuesOf } of indexes)
        for (const value of valuesOf(object)) addKey(keys, value, key);
    },
    delete(key) {
      const previous = objects.get(key);
      if (previous === undefined) return;
      unlink(key, previous);
      objects.delete(key);
    },
    list: () => objects.values(),
    keys: () => objects.keys(),
    byIndex(index, value) {
      const found = indexes.find(({ name }) => name === index);
      if (found === undefined) throw new RangeError(`there is no index ${index}`);
      const keys = found.keys.get(value) ?? NOTHING;
      return typeof keys === 'string' ? new Set([keys]) : keys;
    },
    get size() {
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
