/** Concrete paths: setting the value at one (copy on write, own properties only), and sets of them. */

import { isJsonObject, ownValue, setOwn, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { ConcretePath } from './types.ts';

/** Undefined removes the member. The root itself comes back if the parent does not exist, or an element would be removed: lists keep their length. */
export function withValueAt(root: JsonValue, path: ConcretePath, value: JsonValue | undefined): JsonValue {
  const [segment, ...rest] = path;
  if (segment === undefined) return value ?? null;
  if (typeof segment === 'number') return withElement(root, [segment, ...rest], value);
  if (!isJsonObject(root)) return root;
  const member = ownValue(root, segment);
  if (rest.length === 0) return withMember(root, segment, value);
  if (member === undefined) return root;
  const changed = withValueAt(member, rest, value);
  return changed === member ? root : withMember(root, segment, changed);
}

function withElement(
  root: JsonValue,
  [index, ...rest]: readonly [number, ...ConcretePath],
  value: JsonValue | undefined,
): JsonValue {
  const element = Array.isArray(root) ? root[index] : undefined;
  if (!Array.isArray(root) || element === undefined) return root;
  if (rest.length === 0 && value === undefined) return root;
  const changed = withValueAt(element, rest, value);
  return changed === element ? root : root.with(index, changed);
}

export function withMember(object: JsonObject, key: string, value: JsonValue | undefined): JsonObject {
  if (value === undefined) {
    if (!Object.hasOwn(object, key)) return object;
    const { [key]: _removed, ...rest } = object;
    return rest;
  }
  const copy = shallowCopy(object);
  setOwn(copy, key, value);
  return copy;
}

/** `Object.assign` copies objects of any number of shapes at the same speed, spreading slows down threefold from the fifth shape on. But it assigns,
 * so an own `__proto__`, which is plain data here, would be lost. */
export function shallowCopy(object: JsonObject): JsonObject {
  return Object.hasOwn(object, '__proto__') ? { ...object } : Object.assign({}, object);
}

/** True for a path of the list, and for one below it. */
export function isWithin(path: ConcretePath, places: readonly ConcretePath[]): boolean {
  return places.some((place) => place.length <= path.length && place.every((step, at) => step === path[at]));
}

/** Paths that are not below another one of the list or of `others`, each once. */
export function outermost(
  paths: readonly ConcretePath[],
  others: readonly ConcretePath[],
): readonly ConcretePath[] {
  const trie = trieOf(others);
  return paths
    .toSorted((a, b) => a.length - b.length)
    .filter((path) => !isCovered(trie, path) && insert(trie, path));
}

/** Members and elements by segment; `undefined` below a segment: a path ends there. */
export type PathTrie = Map<string | number, PathTrie | undefined>;

export function trieOf(paths: readonly ConcretePath[]): PathTrie {
  const trie: PathTrie = new Map();
  for (const path of paths) insert(trie, path);
  return trie;
}

function insert(trie: PathTrie, path: ConcretePath): true {
  let node = trie;
  for (const [i, segment] of path.entries()) {
    if (i === path.length - 1) {
      node.set(segment, undefined);
      return true;
    }
    const next = node.get(segment) ?? new Map<string | number, PathTrie | undefined>();
    node.set(segment, next);
    node = next;
  }
  return true;
}

function isCovered(trie: PathTrie, path: ConcretePath): boolean {
  let node: PathTrie | undefined = trie;
  for (const segment of path) {
    if (!node.has(segment)) return false;
    node = node.get(segment);
    if (node === undefined) return true;
  }
  return false;
}
