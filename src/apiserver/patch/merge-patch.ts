/** JSON Merge Patch (RFC 7396). */

import {
  cloneJson,
  isJsonObject,
  ownValue,
  setOwn,
  type JsonObject,
  type JsonValue,
} from '../../base/json.ts';

/** The merged value, which shares nothing with `patch`. Null removes a member, an object merges, any other value replaces. */
export function mergePatch(target: JsonValue | undefined, patch: JsonObject): JsonObject {
  const result: JsonObject = {};
  if (isJsonObject(target)) {
    for (const key of Object.keys(target)) {
      if (!Object.hasOwn(patch, key)) setOwn(result, key, target[key] ?? null);
    }
  }
  for (const key of Object.keys(patch)) {
    const value = patch[key] ?? null;
    if (value === null) continue;
    const before = isJsonObject(target) ? ownValue(target, key) : undefined;
    setOwn(result, key, isJsonObject(value) ? mergePatch(before, value) : cloneJson(value));
  }
  return result;
}
