/** Where in the text the n-th character of a YAML scalar's value stands: quotes, escapes, folding and indentation undone. */

import { Scalar } from 'yaml';

/** Offset in `text` of `value[index]`; the end of the scalar when the index is beyond it. */
export function offsetInScalar(text: string, scalar: Scalar.Parsed, index: number): number {
  const [start, end] = scalar.range;
  const value = typeof scalar.value === 'string' ? scalar.value : scalar.source;
  if (scalar.type === Scalar.BLOCK_LITERAL || scalar.type === Scalar.BLOCK_FOLDED) {
    return offsetInBlock(text.slice(start, end), value, index) + start;
  }
  const quote = scalar.type === Scalar.QUOTE_DOUBLE ? '"' : scalar.type === Scalar.QUOTE_SINGLE ? "'" : '';
  return offsetInFlow(text.slice(start, end), quote, index) + start;
}

const FOLD = /[ \t]*(?:\r?\n[ \t]*)+/uy;
const CONTINUATION = /\\\r?\n[ \t]*/uy;
const ESCAPE = /\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)/uy;

/** Plain and quoted scalars: reads the source and counts what it stands for. */
function offsetInFlow(source: string, quote: '' | '"' | "'", index: number): number {
  const end = source.length - quote.length;
  let at = quote.length;
  let produced = 0;
  while (at < end && produced < index) {
    const step = foldAt(source, at) ?? (quote === '"' ? escapeAt(source, at) : quoteAt(source, quote, at));
    produced += step.produces;
    at += step.length;
  }
  // A continuation or a fold before the character belongs to what is left of it.
  const skipped = quote === '"' ? matchAt(CONTINUATION, source, at) : undefined;
  return Math.min(at + (skipped?.length ?? 0), Math.max(end, 0));
}

interface Step {
  readonly length: number;
  readonly produces: number;
}

/** A line break in the source is one blank in the value, n breaks are n-1. */
function foldAt(source: string, at: number): Step | undefined {
  const fold = matchAt(FOLD, source, at);
  if (fold === undefined) return undefined;
  const breaks = fold.split('\n').length - 1;
  return { length: fold.length, produces: Math.max(1, breaks - 1) };
}

function quoteAt(source: string, quote: string, at: number): Step {
  return { length: quote !== '' && source.startsWith("''", at) ? 2 : 1, produces: 1 };
}

function escapeAt(source: string, at: number): Step {
  const continuation = matchAt(CONTINUATION, source, at);
  if (continuation !== undefined) return { length: continuation.length, produces: 0 };
  const escape = matchAt(ESCAPE, source, at);
  if (escape === undefined) return { length: 1, produces: 1 };
  const isAstral = escape[1] === 'U' && Number.parseInt(escape.slice(2), 16) > 0xffff;
  return { length: escape.length, produces: isAstral ? 2 : 1 };
}

function matchAt(pattern: RegExp, source: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(source)?.[0];
}

/**
 * Block scalars: the lines of the source, indentation taken off, appear in the value in order with nothing but line breaks and blanks
 * between them, whether folded or not.
 */
function offsetInBlock(source: string, value: string, index: number): number {
  const lines = contentLines(source);
  const firstLine = lines.find((line) => line.text.trim() !== '');
  if (firstLine === undefined) return 0;
  const valueLine = value.split('\n').find((line) => line.trim() !== '') ?? '';
  const indent = leadingBlanks(firstLine.text) - leadingBlanks(valueLine);
  let cursor = 0;
  let result = firstLine.start + indent;
  for (const line of lines) {
    const content = line.text.slice(indent);
    if (content.trim() === '') continue;
    const found = value.indexOf(content, cursor);
    if (found === -1 || found > index) return result;
    result = line.start + indent + Math.min(index - found, content.length);
    cursor = found + content.length;
    if (index < cursor) return result;
  }
  return result;
}

/** The lines after the header. */
function contentLines(source: string): { start: number; text: string }[] {
  const lines: { start: number; text: string }[] = [];
  let start = source.indexOf('\n') + 1;
  while (start > 0 && start < source.length) {
    const end = source.indexOf('\n', start);
    const stop = end === -1 ? source.length : end;
    lines.push({ start, text: source.slice(start, stop).replace(/\r$/u, '') });
    start = end === -1 ? 0 : end + 1;
  }
  return lines;
}

function leadingBlanks(line: string): number {
  return line.length - line.trimStart().length;
}
