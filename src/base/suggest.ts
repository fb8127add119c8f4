/** "Did you mean": the nearest of a few known words. */

const WORD_MAX = 64;

/** The known word with the smallest edit distance; undefined if none is near. Case is ignored. */
export function nearestWord(word: string, known: readonly string[]): string | undefined {
  if (word.length > WORD_MAX) return undefined;
  const asked = plain(word);
  let best: string | undefined;
  let bestDistance = Infinity;
  for (const candidate of known) {
    const distance = editDistance(asked, plain(candidate));
    const allowed = Math.max(1, Math.floor(Math.max(asked.length, candidate.length) / 3));
    if (distance <= allowed && distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** `, did you mean "x"?`, or nothing. */
export function didYouMean(word: string, known: readonly string[]): string {
  const nearest = nearestWord(word, known);
  return nearest === undefined ? '' : `, did you mean "${nearest}"?`;
}

/** `on-host-delete`, `on_host_delete` and `onHostDelete` are the same word. */
function plain(word: string): string {
  return word.toLowerCase().replaceAll(/[-_ ]/gu, '');
}

/** Insertions, deletions, replacements and swaps of neighbours, each at a cost of one. */
export function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let distance = Math.min(
        (previous[j] ?? 0) + 1,
        (current[j - 1] ?? 0) + 1,
        (previous[j - 1] ?? 0) + cost,
      );
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        distance = Math.min(distance, (beforePrevious[j - 2] ?? 0) + 1);
      }
      current.push(distance);
    }
    [beforePrevious, previous] = [previous, current];
  }
  return previous[b.length] ?? 0;
}
