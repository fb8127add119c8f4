/** Patches without a path: what they make of the whole object. */

import { isJsonObject, ownValue, setOwn, type JsonObject, type JsonValue } from '../../base/json.ts';

/** The object as the other side has it, with `apiVersion` and `kind` of this side. */
export function withKind(object: JsonValue, own: JsonObject): JsonValue {
  if (!isJsonObject(object)) return object;
  const result: JsonObject = { ...object };
  for (const key of ['apiVersion', 'kind']) {
    const value = ownValue(own, key);
    if (value !== undefined) result[key] = value;
  }
  return result;
}

/** The result of a patch on the whole object is laid over it member by member, as vCluster does; null deletes a member. */
export function layOver(object: JsonObject, result: JsonObject): JsonObject {
  const merged: JsonObject = { ...object };
  for (const key of Object.keys(result)) {
    const member = result[key] ?? null;
    if (member === null && object[key] !== null) delete merged[key];
    else setOwn(merged, key, member);
  }
  return merged;
}
