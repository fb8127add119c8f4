/** Where in the text the n-th character of a YAML scalar's value stands: quotes, escapes, folding and indentation undone. */

import { Scalar } from 'yaml';

/** Offset in `text` of `value[index]`; the end of the scalar when the index is beyond it. */
export function offsetInScalar(text: string, scalar: Scalar.Parsed, index: number): number {
  const { type, value, range } = scalar;
  const source = text.slice(range[0], range[1]);
  const isBlock = type === Scalar.BLOCK_LITERAL || type === Scalar.BLOCK_FOLDED;
  const read = typeof value === 'string' ? value : scalar.source;
  return range[0] + (isBlock ? offsetInBlock(source, read, index) : offsetInFlow(source, type, index));
}

/** A line break in the source is one blank in the value, n breaks are n-1. Without a break, a run of blanks is one part, so that it is read once. */
const FOLD = String.raw`[ \t]*(?:\r?\n[ \t]*)+|[ \t]+`;
const CONTINUATION = String.raw`\\\r?\n[ \t]*`;
const ESCAPE = String.raw`\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)`;

/** What stands for characters of the value: in quotes, some stand for another one. */
const PLAIN = new RegExp(`${FOLD}|[^]`, 'gy');
const QUOTED = new Map<Scalar.Type | undefined, RegExp>([
  [Scalar.QUOTE_DOUBLE, new RegExp(`${FOLD}|${CONTINUATION}|${ESCAPE}|[^]`, 'gy')],
  [Scalar.QUOTE_SINGLE, new RegExp(`${FOLD}|''|[^]`, 'gy')],
]);

function offsetInFlow(source: string, type: Scalar.Type | undefined, index: number): number {
  const quoted = QUOTED.get(type);
  const start = quoted === undefined ? 0 : 1;
  const content = source.slice(start, source.length - start);
  let produced = 0;
  for (const { 0: part, index: at } of content.matchAll(quoted ?? PLAIN)) {
    const length = lengthOf(part);
    // A continued line before the character belongs to what is left of it.
    if (produced + length > index) return start + at + (isBlank(part) ? index - produced : 0);
    produced += length;
  }
  return start + content.length;
}

function isBlank(part: string): boolean {
  return /^[ \t]+$/.test(part);
}

/** Of the value. */
function lengthOf(part: string): number {
  if (isBlank(part)) return part.length;
  const breaks = part.split('\n').length - 1;
  if (part.startsWith('\\') && breaks > 0) return 0;
  const isAstral = part.startsWith('\\U') && Number.parseInt(part.slice(2), 16) > 0xffff;
  return isAstral ? 2 : Math.max(1, breaks - 1);
}

/** The visible characters after the header are those of the value, whatever the indentation and the folding. A blank stands after the one before it. */
function offsetInBlock(source: string, value: string, index: number): number {
  const header = source.indexOf('\n') + 1;
  const visible = [...source.slice(header).matchAll(/\S/g)].map(({ index: at }) => header + at);
  const before = value.slice(0, index).replaceAll(/\s/g, '').length;
  const isVisible = /\S/.test(value.charAt(index));
  return isVisible || before === 0 ? (visible[before] ?? header) : (visible[before - 1] ?? header) + 1;
}
