/** The results of patches on the whole object. */

import { isJsonObject, ownValue, setOwn, type JsonObject, type JsonValue } from '../../base/json.ts';

/** The object of the other side with `apiVersion` and `kind` of this side. */
export function withKind(object: JsonValue, own: JsonObject): JsonValue {
  if (!isJsonObject(object)) return object;
  const result: JsonObject = { ...object };
  for (const key of ['apiVersion', 'kind']) {
    const value = ownValue(own, key);
    if (value !== undefined) result[key] = value;
  }
  return result;
}

/** Merges the result of a patch into the object field by field, as vCluster does; null deletes a field. */
export function layOver(object: JsonObject, result: JsonObject): JsonObject {
  const merged: JsonObject = { ...object };
  for (const key of Object.keys(result)) {
    const member = result[key] ?? null;
    if (member === null && object[key] !== null) delete merged[key];
    else setOwn(merged, key, member);
  }
  return merged;
}
