/** Maps of strings, as labels and annotations are. */

import { setOwn } from '../base/json.ts';
import type { StringMap } from './object.ts';

/** The string members of what should be a map of strings; anything else is left out. The map itself where it is one, as nearly always. */
export function stringMapOf(value: unknown): Readonly<StringMap> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {};
  const members = value as Readonly<Record<string, unknown>>; // raw JSON from either cluster
  // No list of keys: a dozen maps are looked at for each object.
  for (const key in members)
    if (typeof members[key] !== 'string')
      return pick(members as StringMap, (one) => typeof members[one] === 'string');
  return members as StringMap;
}

export function pick(map: StringMap, isWanted: (key: string, value: string) => boolean): StringMap {
  return rekeyed(map, (key, value) => (isWanted(key, value) ? key : undefined));
}

/** Entries without a new key are left out. */
export function rekeyed(
  map: StringMap,
  newKey: (key: string, value: string) => string | undefined,
): StringMap {
  const result: StringMap = {};
  for (const key in map) {
    const value = map[key] ?? '';
    const renamed = newKey(key, value);
    if (renamed !== undefined) setOwn(result, renamed, value);
  }
  return result;
}
