/** What a cache keeps of `metadata.managedFields`: who wrote, and when, but not the fields, which are half of a typical object's bytes. */

import type { KubeObject, ManagedFieldsEntry } from '../object.ts';

/** Lists of entries that objects share. With every object written in a second of its own, more would only be memory. */
const SHARED_MAX = 1024;

/**
 * Removes `fieldsV1`, which nothing here reads, from an object. Objects that the same managers wrote in the same second share one list of
 * entries. `managedFields` is replaced in the object, never changed itself.
 */
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
