/** Excerpts of a text for messages: a line with a caret below it, and untrusted text without characters that control a terminal. */

import { setOwn } from './json.ts';

/** 1-based; the column counts UTF-16 units, as editors do. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface Place extends Position {
  /** The line and a caret line, without a trailing line break. */
  readonly excerpt: string;
}

/** Longer lines are cut around the caret, so a one-line JSON file does not fill the terminal. */
const WIDTH_MAX = 120;
const LINE_END = /\r\n|[\n\r\u2028\u2029]/u;

export function placeOf(text: string, offset: number): Place {
  const before = text.slice(0, offset).split(LINE_END);
  const index = before.at(-1)?.length ?? 0;
  const line = text.split(LINE_END)[before.length - 1] ?? '';
  return { line: before.length, column: index + 1, excerpt: caretLine(line, index) };
}

/** The excerpt at a position; `''` where the position or its line is not known. */
export function excerptOf(text: string, line: number | undefined, column = 1): string {
  const found = line === undefined ? undefined : text.split(LINE_END)[line - 1];
  return found === undefined ? '' : caretLine(found, Math.min(Math.max(column - 1, 0), found.length));
}

/** One line of text with a caret below the character at `index`. */
export function caretLine(line: string, index: number): string {
  const from = line.length <= WIDTH_MAX ? 0 : Math.max(0, index - Math.floor(WIDTH_MAX / 2));
  const cut = line.slice(from, from + WIDTH_MAX);
  const head = from > 0 ? '…' : '';
  const tail = from + WIDTH_MAX < line.length ? '…' : '';
  // Tabs are kept in both lines, so that the caret is below its character.
  const before = withTabs(head + line.slice(from, index));
  return `${withTabs(head + cut + tail)}\n${before.replaceAll(/[^\t]/g, ' ')}^`;
}

/** Characters that would break a line, a log or a terminal: C0, C1, line and paragraph separators, bidirectional controls. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** The text with escapes such as `\u001b` instead of unprintable characters. */
export function plainText(text: string): string {
  return text.replace(UNPRINTABLE, escaped);
}

/** The same for a text of several lines. */
export function plainLines(text: string): string {
  return text.replace(UNPRINTABLE, (character) =>
    /[\n\t]/u.test(character) ? character : escaped(character),
  );
}

/** Control characters of terminals and of the direction of text, which JSON and YAML may hold as they are. */
const MISLEADING = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu;

/** JSON for a terminal: the same value, with escapes such as `\u202e` instead of characters that mislead its reader. `indent` 0: in one line. */
export function printableJson(value: unknown, indent = 2): string {
  return JSON.stringify(value, null, indent).replace(
    MISLEADING,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const DEPTH_MAX = 8;

/** {@link plainLines} of all texts in a value. Errors, and what is nested too deep to be shown, stay as they are; what has a form for JSON has that. */
export function withPlainTexts<T>(value: T): T {
  return plainValue(value, 0) as T; // the same shape
}

function plainValue(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return plainLines(value);
  if (typeof value !== 'object' || value === null || value instanceof Error || depth > DEPTH_MAX)
    return value;
  if (hasJsonForm(value)) return plainValue(value.toJSON(), depth);
  if (Array.isArray(value)) return value.map((one) => plainValue(one, depth + 1));
  const plain: Record<string, unknown> = {};
  for (const [key, one] of Object.entries(value)) setOwn(plain, plainText(key), plainValue(one, depth + 1));
  return plain;
}

function hasJsonForm(value: object): value is { toJSON(): unknown } {
  return 'toJSON' in value && typeof value.toJSON === 'function';
}

export function isPlain(text: string): boolean {
  return plainText(text) === text;
}

function withTabs(text: string): string {
  return text.replace(UNPRINTABLE, (character) => (character === '\t' ? character : escaped(character)));
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`;
}

/** One line of at most `lengthMax` characters that shows an untrusted text. */
export function oneLine(text: string, lengthMax: number): string {
  const plain = plainText(text.slice(0, lengthMax + 1));
  return plain.length > lengthMax ? `${plain.slice(0, lengthMax - 1)}…` : plain;
}
