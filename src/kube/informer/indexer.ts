/** Objects by key, and keys by the values of named indexes. */

import type { KubeObject, ObjectKey } from '../object.ts';
import type { IndexFunctions } from '../types.ts';

export interface Indexer {
  get(key: ObjectKey): KubeObject | undefined;
  set(key: ObjectKey, object: KubeObject): void;
  delete(key: ObjectKey): void;
  list(): MapIterator<KubeObject>;
  keys(): MapIterator<ObjectKey>;
  /** A live view: copy it before anything else may change the index. Throws for an index that does not exist. */
  byIndex(index: string, value: string): ReadonlySet<ObjectKey>;
  readonly size: number;
}

const NOTHING: ReadonlySet<ObjectKey> = new Set();

/** Index functions must be pure: their values are computed again when an object is removed, instead of stored. */
export function createIndexer(functions: IndexFunctions): Indexer {
  const objects = new Map<ObjectKey, KubeObject>();
  const indexes = Object.entries(functions).map(([name, valuesOf]) => ({
    name,
    valuesOf,
    sets: new Map<string, Set<ObjectKey>>(),
  }));
  const unlink = (key: ObjectKey, object: KubeObject): void => {
    for (const { sets, valuesOf } of indexes) for (const value of valuesOf(object)) dropKey(sets, value, key);
  };
  return {
    get: (key) => objects.get(key),
    set(key, object) {
      const previous = objects.get(key);
      if (previous !== undefined) unlink(key, previous);
      objects.set(key, object);
      for (const { sets, valuesOf } of indexes)
        for (const value of valuesOf(object)) addKey(sets, value, key);
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
      return found.sets.get(value) ?? NOTHING;
    },
    get size() {
      return objects.size;
    },
  };
}

function addKey(sets: Map<string, Set<ObjectKey>>, value: string, key: ObjectKey): void {
  const keys = sets.get(value);
  if (keys === undefined) sets.set(value, new Set([key]));
  else keys.add(key);
}

function dropKey(sets: Map<string, Set<ObjectKey>>, value: string, key: ObjectKey): void {
  const keys = sets.get(value);
  keys?.delete(key);
  if (keys?.size === 0) sets.delete(value);
}
