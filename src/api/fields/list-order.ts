/** In which order the items of a list stand after an apply. */

/**
 * The items of both lists, each once: those of `applied` in its order, and the others of `live` beside those that they stood beside. It is
 * the order of structured-merge-diff, with which a kube-apiserver merges.
 */
export function mergedOrder(live: readonly string[], applied: readonly string[]): string[] {
  const isLive = new Set(live);
  const isApplied = new Set(applied);
  /** The items of both that are still to come. */
  const shared = applied.filter((item) => isLive.has(item));
  const merged = new Set<string>();
  let at = 0;
  for (const next of applied) {
    // What is in both is passed over until its turn has come.
    for (; at < live.length && live[at] !== next; at++) {
      const item = live[at] ?? '';
      if (!isApplied.has(item)) merged.add(item);
      else if (shared.length === 0 || shared[0] === item) break;
    }
    if (shared.length === 0 || live[at] === next) at++;
    merged.add(next);
    if (shared[0] === next) shared.shift();
  }
  for (const item of live.slice(at)) merged.add(item);
  return [...merged];
}
