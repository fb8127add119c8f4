/** Compares the output of a command with its page, except for parts that differ in every run. */

const CHANGING: readonly (readonly [RegExp, string])[] = [
  [/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/gu, '<uid>'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/gu, '<time>'],
  [/\b\d\d:\d\d:\d\d\b/gu, '<time>'],
  [/\b\d+(\.\d+)? ?ms\b/gu, '<duration>'],
  // The last column of a table, or the one before: an age.
  [/ \d+(m\d+)?s(?= |$)/gmu, ' <age>'],
  // Columns are as wide as what they contain.
  [/ {2,}/gu, '  '],
  [/[ ]+$/gmu, ''],
];

/** The text without what differs in every run. */
export function settled(text: string): string {
  return CHANGING.reduce((result, [pattern, name]) => result.replaceAll(pattern, name), text).trim();
}

/** `…` on a page stands for any text; alone on a line, for any number of lines. */
export function isAsDocumented(printed: string, documented: string): boolean {
  const lines = settled(printed).split('\n');
  // Which numbers of printed lines the documented lines so far can stand for.
  let ends = new Set([0]);
  for (const line of settled(documented).split('\n')) {
    if (line === '…') {
      const first = Math.min(...ends);
      ends = new Set(Array.from({ length: lines.length + 1 - first }, (_, index) => first + index));
    } else {
      const pattern = linePattern(line);
      ends = new Set([...ends].filter((end) => pattern.test(lines[end] ?? '\n')).map((end) => end + 1));
    }
    if (ends.size === 0) return false;
  }
  return ends.has(lines.length);
}

function linePattern(line: string): RegExp {
  return new RegExp(`^${line.split('…').map(escapeRegExp).join('.*')}$`, 'u');
}

function escapeRegExp(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/gu, '\\$&');
}
