/** The difference between two texts in unified format, as `diff -u` prints it. */

/** Unchanged lines around a change. */
const CONTEXT = 3;
/** Texts that differ in more lines than this are shown as replaced as a whole: the search is quadratic in this number. */
const EDITS_MAX = 2000;

interface Edit {
  readonly kind: ' ' | '-' | '+';
  readonly line: string;
}

/** Hunks without the two lines that name the files; '' where the texts are equal. */
export function unifiedHunks(before: string, after: string): string {
  if (before === after) return '';
  const edits = editsBetween(linesOf(before), linesOf(after));
  return hunksOf(edits)
    .map((hunk) => formatHunk(edits, hunk))
    .join('');
}

/** What stands below the last line of a text, if no line break ends it. */
const UNENDED = '\n\\ No newline at end of file';

function linesOf(text: string): string[] {
  const lines = text.split('\n');
  const last = lines.pop() ?? '';
  return last === '' ? lines : [...lines, last + UNENDED];
}

function editsBetween(a: readonly string[], b: readonly string[]): Edit[] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const same = (lines: readonly string[]): Edit[] => lines.map((line) => ({ kind: ' ', line }));
  return [
    ...same(a.slice(0, start)),
    ...shortestEdits(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...same(a.slice(a.length - end)),
  ];
}

/** Myers' greedy algorithm: the furthest place on every diagonal for one edit more, until both ends are reached. */
function shortestEdits(a: readonly string[], b: readonly string[]): Edit[] {
  const trace: Map<number, number>[] = [];
  let furthest = new Map<number, number>([[1, 0]]);
  for (let edits = 0; edits <= Math.min(a.length + b.length, EDITS_MAX); edits++) {
    const next = new Map(furthest);
    trace.push(furthest);
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      let x = isInsertion(furthest, diagonal, edits)
        ? (furthest.get(diagonal + 1) ?? 0)
        : (furthest.get(diagonal - 1) ?? 0) + 1;
      while (x < a.length && x - diagonal < b.length && a[x] === b[x - diagonal]) x++;
      next.set(diagonal, x);
      if (x >= a.length && x - diagonal >= b.length) return walkBack(trace, a, b);
    }
    furthest = next;
  }
  return [...a.map((line): Edit => ({ kind: '-', line })), ...b.map((line): Edit => ({ kind: '+', line }))];
}

function isInsertion(furthest: ReadonlyMap<number, number>, diagonal: number, edits: number): boolean {
  if (diagonal === -edits) return true;
  return diagonal !== edits && (furthest.get(diagonal - 1) ?? -1) < (furthest.get(diagonal + 1) ?? -1);
}

function walkBack(trace: readonly Map<number, number>[], a: readonly string[], b: readonly string[]): Edit[] {
  const edits: Edit[] = [];
  let [x, y] = [a.length, b.length];
  for (let at = trace.length - 1; at >= 0; at--) {
    const furthest = trace[at] ?? new Map<number, number>();
    const diagonal = x - y;
    const previous = isInsertion(furthest, diagonal, at) ? diagonal + 1 : diagonal - 1;
    const previousX = furthest.get(previous) ?? 0;
    const previousY = previousX - previous;
    while (x > previousX && y > previousY) {
      x--;
      y--;
      edits.push({ kind: ' ', line: a[x] ?? '' });
    }
    if (at === 0) break;
    if (x === previousX) edits.push({ kind: '+', line: b[--y] ?? '' });
    else edits.push({ kind: '-', line: a[--x] ?? '' });
  }
  return edits.reverse();
}

/** Ranges of edits that are shown together: changes whose contexts touch. */
function hunksOf(edits: readonly Edit[]): readonly (readonly [from: number, to: number])[] {
  const hunks: [number, number][] = [];
  for (const [at, { kind }] of edits.entries()) {
    if (kind === ' ') continue;
    const last = hunks.at(-1);
    if (last !== undefined && at - CONTEXT <= last[1]) last[1] = at + 1 + CONTEXT;
    else hunks.push([Math.max(0, at - CONTEXT), at + 1 + CONTEXT]);
  }
  return hunks;
}

function formatHunk(edits: readonly Edit[], [from, to]: readonly [from: number, to: number]): string {
  const shown = edits.slice(from, to);
  const count = (list: readonly Edit[], other: Edit['kind']): number =>
    list.filter(({ kind }) => kind !== other).length;
  const range = (other: Edit['kind']): string => {
    const lines = count(shown, other);
    const before = count(edits.slice(0, from), other);
    const first = lines === 0 ? before : before + 1;
    return lines === 1 ? String(first) : `${first},${lines}`;
  };
  const body = shown.map(({ kind, line }) => `${kind}${line}\n`).join('');
  return `@@ -${range('+')} +${range('-')} @@\n${body}`;
}
