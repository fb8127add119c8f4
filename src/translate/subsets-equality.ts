/** `subsets` as an API server stores them, and comparing them so. */

import { isJsonObject, jsonEquals, ownValue, setOwn, type JsonObject, type JsonValue } from '../lib/json.ts';
import type { PathTrie } from './path-trie.ts';

const SUBSETS = 'subsets';

export function subsetsEqual(a: JsonValue, b: JsonValue): boolean {
  return jsonEquals(a, b) || jsonEquals(asStored(a), asStored(b));
}

/** An object with nothing but its `subsets`, as stored; they are missing where there are none. */
export function storedSubsetsOf(object: JsonObject): JsonObject {
  return storedObject({ [SUBSETS]: ownValue(object, SUBSETS) ?? null });
}

function asStored(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(asStored);
  return isJsonObject(value) ? storedObject(value) : value;
}

/**
 * Null, empty text and empty lists are left out, a port without a protocol is TCP. Every text that Endpoints may have empty is left out
 * so: kube-apiserver refuses an empty ip, nodeName or appProtocol.
 */
function storedObject(object: JsonObject): JsonObject {
  const stored: JsonObject = {};
  for (const [member, content] of Object.entries(object)) {
    if (content === null || content === '' || (Array.isArray(content) && content.length === 0)) continue;
    setOwn(stored, member, asStored(content));
  }
  const isPort = Object.hasOwn(stored, 'port') && !Object.hasOwn(stored, 'protocol');
  return isPort ? { ...stored, protocol: 'TCP' } : stored;
}

/** Equal but for values at the paths of the trie. */
export function equalsExcept(a: JsonValue | undefined, b: JsonValue | undefined, except: PathTrie): boolean {
  if (except.size === 0) return jsonEquals(a, b);
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((element, i) => sameBut(element, b[i], [except, i]));
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return jsonEquals(a, b);
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => sameBut(ownValue(a, key), ownValue(b, key), [except, key]));
}

function sameBut(
  a: JsonValue | undefined,
  b: JsonValue | undefined,
  [except, segment]: readonly [PathTrie, string | number],
): boolean {
  if (!except.has(segment)) return jsonEquals(a, b);
  const below = except.get(segment);
  return below === undefined || equalsExcept(a, b, below);
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
