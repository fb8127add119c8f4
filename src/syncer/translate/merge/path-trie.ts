/** A set of concrete paths with prefix lookup. */

import type { ConcretePath } from '../types.ts';

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
