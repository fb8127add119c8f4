/** Comparing `subsets` of two objects as an API server sees them, leaving out some paths. */

import { isJsonObject, ownValue, type JsonObject, type JsonValue } from '../lib/json.ts';
import type { PathTrie } from './path-trie.ts';

const SUBSETS = 'subsets';

/** Equal but for values at the paths of the trie. Empty lists, null and nothing are the same, a port without a protocol is TCP. */
export function equalsExcept(a: JsonValue | undefined, b: JsonValue | undefined, except: PathTrie): boolean {
  if (except.size === 0) return storedEquals(a, b);
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((element, i) => sameBut(element, b[i], [except, i]));
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return storedEquals(a, b);
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  // Only subsets are compared of whole objects: the trie of a root holds nothing else.
  const compared = except.has(SUBSETS) ? [SUBSETS] : keys;
  for (const key of compared) {
    if (!sameBut(ownValue(a, key), ownValue(b, key), [except, key])) return false;
  }
  return true;
}

function sameBut(
  a: JsonValue | undefined,
  b: JsonValue | undefined,
  [except, segment]: readonly [PathTrie, string | number],
): boolean {
  if (!except.has(segment)) return storedEquals(a, b);
  const below = except.get(segment);
  return below === undefined || equalsExcept(a, b, below);
}

function storedEquals(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (isNothing(a) || isNothing(b)) return isNothing(a) && isNothing(b);
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((element, i) => storedEquals(element, b[i]));
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return a === b;
  const isPort = Object.hasOwn(a, 'port') && Object.hasOwn(b, 'port');
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => {
    const [x, y] = [ownValue(a, key), ownValue(b, key)];
    return isPort && key === 'protocol' ? (x ?? 'TCP') === (y ?? 'TCP') : storedEquals(x, y);
  });
}

function isNothing(value: JsonValue | undefined): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
}

/** The same number of subsets, and in each of addresses and ports. */
export function haveSameShape(a: JsonObject | undefined, b: JsonObject | undefined): boolean {
  if (a === undefined || b === undefined) return false;
  const [ours, theirs] = [listAt(a, SUBSETS), listAt(b, SUBSETS)];
  return (
    ours.length === theirs.length &&
    ours.every((subset, i) =>
      ['addresses', 'notReadyAddresses', 'ports'].every(
        (list) => listAt(subset, list).length === listAt(theirs[i], list).length,
      ),
    )
  );
}

function listAt(value: JsonValue | undefined, key: string): readonly JsonValue[] {
  const list = isJsonObject(value) ? ownValue(value, key) : undefined;
  return Array.isArray(list) ? list : [];
}
