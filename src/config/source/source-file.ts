/** A text file and the places in it: offset to line and column, and caret excerpts. */

import { caretLine, type Position } from '../../base/excerpt.ts';

export interface SourceFile {
  readonly name: string;
  readonly text: string;
  /** Offset of the first character of each line. */
  readonly lineStarts: readonly number[];
}

export function createSourceFile(name: string, text: string): SourceFile {
  const lineStarts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lineStarts.push(at + 1);
  return { name, text, lineStarts };
}

/** The place of an offset; offsets beyond the text are its end. */
export function positionOf(source: SourceFile, offset: number): Position {
  const at = Math.max(0, Math.min(offset, source.text.length));
  let [low, high] = [0, source.lineStarts.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((source.lineStarts[middle] ?? 0) <= at) low = middle;
    else high = middle - 1;
  }
  return { line: low + 1, column: at - (source.lineStarts[low] ?? 0) + 1 };
}

/** The line of an offset with a caret below it, two lines without a final line break. */
export function excerptAt(source: SourceFile, offset: number): string {
  const { line, column } = positionOf(source, offset);
  const start = source.lineStarts[line - 1] ?? 0;
  const end = source.lineStarts[line] ?? source.text.length + 1;
  return caretLine(source.text.slice(start, end - 1).replace(/\r$/u, ''), column - 1);
}
