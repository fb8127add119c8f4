/** Shrinks a history to a shorter one that is still violated. */

/** Drops ever smaller parts as long as `fails` holds. Bounded: a history is short, and each try costs a run. */
export async function shrinkHistory<O>(
  operations: readonly O[],
  fails: (shorter: readonly O[]) => Promise<boolean>,
  triesMax = 300,
): Promise<readonly O[]> {
  let best = operations;
  let tries = 0;
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < best.length && tries < triesMax;) {
      const shorter = [...best.slice(0, at), ...best.slice(at + size)];
      tries += 1;
      if (shorter.length < best.length && (await fails(shorter))) best = shorter;
      else at += size;
    }
  }
  return best;
}
