/** In which order the items of a list stand after an apply. */

/**
 * The items of both lists, each once: those of `applied` in its order, and the others of `live` beside those that they stood beside. It is
 * the order of structured-merge-diff, with which a kube-apiserver merges.
 */
export function mergedOrder(live: readonly string[], applied: readonly string[]): string[] {
  const isLive = new Set(live);
  const isApplied = new Set(applied);
  const shared = applied.filter((item) => isLive.has(item));
  /** Of `shared`, the first item that is still to come. */
  let turn = 0;
  const merged = new Set<string>();
  let at = 0;
  for (const next of applied) {
    // What is in both is passed over until its turn has come.
    for (; at < live.length && live[at] !== next; at++) {
      const item = live[at] ?? '';
      if (!isApplied.has(item)) merged.add(item);
      else if (turn === shared.length || shared[turn] === item) break;
    }
    if (turn === shared.length || live[at] === next) at++;
    merged.add(next);
    if (shared[turn] === next) turn++;
  }
  for (const item of live.slice(at)) merged.add(item);
  return [...merged];
}
