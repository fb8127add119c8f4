/** vCluster's default values, and the merge of a user's file over them. */

import { readFileSync } from 'node:fs';
import { type JsonObject, type JsonValue, isJsonObject, ownValue, setOwn } from '../../base/json.ts';

/** Sections of this program. They may name secrets, so expressions cannot read them. */
export const OWN_SECTIONS: ReadonlySet<string> = new Set(['endpointSyncer', 'managementApi']);

/** The default values of a vCluster 0.37 configuration file, a new copy at each call. */
export function vclusterDefaults(): JsonObject {
  const text = readFileSync(new URL('./vcluster-defaults.json', import.meta.url), 'utf8');
  return JSON.parse(text) as JsonObject; // our own file
}

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

/** The user's configuration (without empty keys) as vCluster sees it: merged with the defaults, without the sections of this program. */
export function vclusterConfigOf(written: JsonObject, defaults: JsonObject): JsonObject {
  const theirs: JsonObject = {};
  for (const key of Object.keys(written)) {
    if (!OWN_SECTIONS.has(key)) setOwn(theirs, key, written[key] ?? null);
  }
  return mergeConfig(defaults, theirs);
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
