/** Copies of JSON values with one change; inputs are not modified. */

import { setOwn, type JsonArray, type JsonObject, type JsonValue } from '../../../base/json.ts';

/**
 * `Object.assign` copies objects of any number of shapes at the same speed, spreading slows down threefold from the fifth shape on. But
 * it assigns, so an own `__proto__`, which is plain data here, would be lost.
 */
export function copyOf(object: JsonObject): JsonObject {
  return Object.hasOwn(object, '__proto__') ? { ...object } : Object.assign({}, object);
}

/** A copy with this member set, or without it. */
export function withMember(object: JsonObject, key: string, value: JsonValue | undefined): JsonObject {
  if (value === undefined) {
    const { [key]: _removed, ...rest } = object;
    return rest;
  }
  const copy = copyOf(object);
  setOwn(copy, key, value);
  return copy;
}

/** Maps every element; undefined removes it. Returns the same array if nothing changed. */
export function mapElements(
  array: JsonArray,
  map: (element: JsonValue, index: number) => JsonValue | undefined,
): JsonArray {
  let copy: JsonArray | undefined;
  let kept = 0;
  for (let index = 0; index < array.length; index++) {
    const element = array[index] ?? null;
    const mapped = map(element, index);
    if (copy === undefined && mapped !== element) copy = array.slice();
    if (mapped === undefined) continue;
    if (copy !== undefined) copy[kept] = mapped;
    kept++;
  }
  if (copy === undefined) return array;
  if (kept < copy.length) copy.length = kept;
  return copy;
}

/** Maps every member; undefined removes it. Returns the same object if nothing changed. */
export function mapMembers(
  object: JsonObject,
  map: (key: string, member: JsonValue) => JsonValue | undefined,
): JsonObject {
  let copy: JsonObject | undefined;
  for (const key of Object.keys(object)) {
    const member = object[key] ?? null;
    const mapped = map(key, member);
    if (mapped === member) continue;
    copy ??= copyOf(object);
    if (mapped === undefined) delete copy[key];
    else setOwn(copy, key, mapped);
  }
  return copy ?? object;
}
