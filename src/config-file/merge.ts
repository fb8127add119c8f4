/** Merges values, and leaves out empty keys. */

import { isJsonObject, ownValue, setOwn, type JsonObject, type JsonValue } from '../base/json.ts';

/**
 * `over` on top of `base`: mappings key by key, anything else replaced as a whole. Neither input is changed; the result shares the parts that
 * only one of them has.
 */
export function mergeConfig(base: JsonObject, over: JsonObject): JsonObject {
  const merged: JsonObject = {};
  for (const key of new Set([...Object.keys(base), ...Object.keys(over)])) {
    const [below, value] = [ownValue(base, key), ownValue(over, key)];
    const isMapping = isJsonObject(value) && isJsonObject(below);
    setOwn<JsonValue>(merged, key, isMapping ? mergeConfig(below, value) : (value ?? below ?? null));
  }
  return merged;
}

/**
 * `key:` without a value is null in YAML and means that the key is not set, so its default applies. List entries stay, because null is
 * an error there.
 */
export function withoutEmptyKeys(object: JsonObject): JsonObject {
  const copy: JsonObject = {};
  for (const key of Object.keys(object)) {
    const value = object[key] ?? null;
    if (value !== null) setOwn(copy, key, withoutEmpty(value));
  }
  return copy;
}

function withoutEmpty(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  return isJsonObject(value) ? withoutEmptyKeys(value) : value;
}
