/** The finalizers by which a deletion waits for the garbage collector. An object has at most one of them. */

import type { JsonArray, JsonValue } from '../../base/json.ts';

/** Dependents stay, without their reference to the object. */
export const ORPHAN = 'orphan';
/** Dependents are deleted first. */
export const FOREGROUND = 'foregroundDeletion';

export function hasCollectorFinalizer(finalizers: readonly JsonValue[]): boolean {
  return finalizers.some(isOfCollector);
}

export function withoutCollectorFinalizers(finalizers: readonly JsonValue[]): JsonArray {
  return finalizers.filter((name) => !isOfCollector(name));
}

function isOfCollector(name: JsonValue): boolean {
  return name === ORPHAN || name === FOREGROUND;
}
