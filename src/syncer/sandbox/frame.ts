/** Where in a text something is: line, column and the line with a caret below it. */

export interface Place {
  /** 1-based. */
  readonly line: number;
  readonly column: number;
  /** The line and a caret line, without a trailing newline. */
  readonly frame: string;
}

/** Longer lines are cut around the place, so that the caret stays on the screen. */
const WIDTH_MAX = 100;
const LINE_END = /\r\n|[\n\r\u2028\u2029]/u;

export function placeOf(text: string, offset: number): Place {
  const before = text.slice(0, offset).split(LINE_END);
  const line = text.split(LINE_END)[before.length - 1] ?? '';
  const column = before.at(-1)?.length ?? 0;
  const from = Math.max(0, column - WIDTH_MAX / 2);
  const shown = plainText(line.slice(from, from + WIDTH_MAX));
  const indent = plainText(line.slice(from, column)).length;
  return { line: before.length, column: column + 1, frame: `${shown}\n${' '.repeat(indent)}^` };
}

/** Characters that would break a line, a log or a terminal, as escapes: C0, C1, line and paragraph separators, bidirectional controls. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

export function plainText(text: string): string {
  return text.replace(UNPRINTABLE, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

/** One line of at most `lengthMax` characters that shows an untrusted text. */
export function oneLine(text: string, lengthMax: number): string {
  const plain = plainText(text.slice(0, lengthMax + 1));
  return plain.length > lengthMax ? `${plain.slice(0, lengthMax - 1)}…` : plain;
}
