/** Objects that were read once, with the indexes of an informer: the engine's observer reads them as it reads its caches. */

import { objectKey, type KubeObject, type ObjectKey, type Resource } from '../../kube/object.ts';
import type { IndexFunctions, Lister } from '../../kube/types.ts';

const NOTHING: ReadonlySet<ObjectKey> = new Set();

export function staticLister(
  resource: Resource,
  objects: readonly KubeObject[],
  functions: IndexFunctions = {},
): Lister {
  const byKey = new Map(objects.map((object) => [objectKey(object), object]));
  const indexes = new Map(
    Object.entries(functions).map(([name, valuesOf]) => {
      const index = new Map<string, Set<ObjectKey>>();
      for (const [key, object] of byKey) {
        for (const value of valuesOf(object)) index.set(value, (index.get(value) ?? new Set()).add(key));
      }
      return [name, index];
    }),
  );
  return {
    resource,
    get: (key) => byKey.get(key),
    list: () => byKey.values(),
    byIndex: (index, value) => indexes.get(index)?.get(value) ?? NOTHING,
    get size() {
      return byKey.size;
    },
  };
}
