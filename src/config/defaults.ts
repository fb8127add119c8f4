/** vCluster's default values, and a user's file on top of them. */

import { readFileSync } from 'node:fs';
import { type JsonObject, type JsonValue, cloneJson, isJsonObject, ownValue, setOwn } from '../lib/json.ts';

/** Sections of this program, which may name secrets: no expression gets to see them. */
const OWN_SECTIONS: ReadonlySet<string> = new Set(['endpointSyncer', 'managementApi']);

/**
 * The default values of a vCluster 0.37 configuration file, fresh at each call. One differs: `endpointSlices` is off, as the host makes
 * slices from the synced Endpoints itself.
 */
export function vclusterDefaults(): JsonObject {
  const text = readFileSync(new URL('./vcluster-defaults.json', import.meta.url), 'utf8');
  const defaults = JSON.parse(text) as JsonObject; // our own file
  return mergeConfig(defaults, { sync: { toHost: { endpointSlices: { enabled: false } } } });
}

/**
 * `over` on top of `base`: mappings key by key, anything else replaced as a whole. A key without a value (null) is a key that is not set, so
 * a default stays. Neither input is changed or shared.
 */
export function mergeConfig(base: JsonObject, over: JsonObject): JsonObject {
  const merged = cloneJson(base);
  for (const key of Object.keys(over)) {
    const value = over[key] ?? null;
    const below = ownValue(merged, key);
    if (value === null && below !== undefined) continue;
    setOwn<JsonValue>(
      merged,
      key,
      isJsonObject(value) && isJsonObject(below) ? mergeConfig(below, value) : cloneJson(value),
    );
  }
  return merged;
}

/** The file as vCluster sees it: merged with the defaults, without the sections of this program. */
export function vclusterConfigOf(file: JsonObject, defaults: JsonObject): JsonObject {
  const theirs: JsonObject = {};
  for (const key of Object.keys(file)) {
    if (!OWN_SECTIONS.has(key)) setOwn(theirs, key, file[key] ?? null);
  }
  return mergeConfig(defaults, theirs);
}
