/** The order of the items of a list after an apply. */

/**
 * The items of both lists, each once: those of `applied` in their order, the others of `live` next to their former neighbours. This is the
 * order of structured-merge-diff, which a kube-apiserver uses.
 */
export function mergedOrder(live: readonly string[], applied: readonly string[]): string[] {
  const isLive = new Set(live);
  const isApplied = new Set(applied);
  const shared = applied.filter((item) => isLive.has(item));
  /** Index in `shared` of the next item to add. */
  let nextShared = 0;
  const merged = new Set<string>();
  let at = 0;
  for (const next of applied) {
    // An item of both lists is skipped until it is the next shared one.
    for (; at < live.length && live[at] !== next; at++) {
      const item = live[at] ?? '';
      if (!isApplied.has(item)) merged.add(item);
      else if (nextShared === shared.length || shared[nextShared] === item) break;
    }
    if (nextShared === shared.length || live[at] === next) at++;
    merged.add(next);
    if (shared[nextShared] === next) nextShared++;
  }
  for (const item of live.slice(at)) merged.add(item);
  return [...merged];
}
