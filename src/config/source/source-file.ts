/** A text file and the places in it: offset to line and column, and caret excerpts. */

export interface SourceFile {
  readonly name: string;
  readonly text: string;
  /** Offset of the first character of each line. */
  readonly lineStarts: readonly number[];
}

/** 1-based; the column counts UTF-16 units, as editors do. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Longer lines are cut around the caret, so a one-line JSON file does not fill the terminal. */
const FRAME_WIDTH = 120;

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
export function caretFrame(source: SourceFile, offset: number): string {
  const { line, column } = positionOf(source, offset);
  const start = source.lineStarts[line - 1] ?? 0;
  const end = source.lineStarts[line] ?? source.text.length + 1;
  return caretLine(source.text.slice(start, end - 1).replace(/\r$/u, ''), column - 1);
}

/** One line of text with a caret below the character at `index`. */
export function caretLine(line: string, index: number): string {
  const from = line.length <= FRAME_WIDTH ? 0 : Math.max(0, index - Math.floor(FRAME_WIDTH / 2));
  const cut = line.slice(from, from + FRAME_WIDTH);
  const head = from > 0 ? '…' : '';
  const tail = from + FRAME_WIDTH < line.length ? '…' : '';
  const before = printable(head + line.slice(from, index));
  return `${printable(head + cut + tail)}\n${before.replaceAll(/[^\t]/gu, ' ')}^`;
}

/**
 * Control, format and line separating characters must not reach a terminal: shown as their pictures or as U+FFFD. Tabs are kept so that the
 * caret lines up.
 */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    if (character === '\t') return character;
    return character < ' ' ? String.fromCodePoint(0x2400 + character.charCodeAt(0)) : '\u{fffd}';
  });
}
