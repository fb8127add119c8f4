/**
 * Parses JSON of a client, with limits that allow the rest of the server to walk the value recursively and in bounded time, and finds
 * fields that are named twice. `JSON.parse` silently keeps the last of them; a kube-apiserver reports them.
 */

import { DEPTH_MAX, FIELD_PROBLEMS_MAX, JSON_TOKENS_MAX } from '../limits.ts';
import { shortened, entityTooLarge } from '../status.ts';
import { DecodeError, type ParsedBody } from './decode.ts';
import { parseJson } from '../../base/json.ts';

// Not imported from another file: the loops below read them for every character, and local constants are faster.
const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** JSON.parse with Go's error messages. Throws {@link DecodeError}, or a 413 `StatusError` for a text that is too complex. */
export function parseJsonText(text: string): ParsedBody {
  const scanner = new Scanner(text);
  const duplicates = scanner.duplicates();
  try {
    return { value: parseJson(text), duplicates, numbers: scanner.numbers };
  } catch (cause) {
    throw new DecodeError(isCutShort(text, cause) ? 'unexpected end of JSON input' : INVALID, { cause });
  }
}

const INVALID = 'invalid JSON syntax';

/** Numbers that JavaScript may write in another way: with a fraction, with an exponent, and long ones. */
const UNUSUAL_NUMBER = /^-?\d(?:\d*[.eE]|\d{15})/;

/** The error is at the end of the text: the parser expected more. */
function isCutShort(text: string, error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const position = /at position (\d+)/.exec(error.message)?.[1];
  return position === undefined
    ? /end of JSON/.test(error.message)
    : Number(position) >= text.trimEnd().length;
}

/**
 * One pass over the text, before the parser allocates memory: a few ns per character, while a member of an object costs a microsecond. It reads
 * no further than the parser: what follows an error does not matter.
 */
class Scanner {
  readonly #text: string;
  readonly #found: string[] = [];
  /** Their texts by path, of those that JavaScript writes in another way. */
  readonly numbers = new Map<string, string>();
  #at = 0;
  /** See {@link JSON_TOKENS_MAX}. */
  #tokens = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Throws a 413 `StatusError` above {@link JSON_TOKENS_MAX}, {@link DecodeError} below {@link DEPTH_MAX}. */
  duplicates(): readonly string[] {
    this.#value('', 0);
    return this.#found.map((path) => `duplicate field ${JSON.stringify(shortened(path))}`);
  }

  #value(path: string, depth: number): void {
    this.#space();
    const first = this.#text.charCodeAt(this.#at);
    if (first === OPEN_OBJECT) this.#object(path, depth + 1);
    else if (first === OPEN_LIST) this.#array(path, depth + 1);
    else if (first === QUOTE) this.#string();
    else this.#literal(path);
  }

  #object(path: string, depth: number): void {
    const seen = new Set<string>();
    this.#open(depth);
    for (;;) {
      this.#space();
      if (this.#ends(CLOSE_OBJECT)) return;
      const key = this.#key();
      const place = path === '' ? key : `${path}.${key}`;
      if (seen.has(key) && this.#found.length < FIELD_PROBLEMS_MAX) this.#found.push(place);
      seen.add(key);
      this.#space();
      this.#token(); // the colon
      this.#value(place, depth);
      this.#comma();
    }
  }

  #array(path: string, depth: number): void {
    this.#open(depth);
    for (let index = 0; ; index++) {
      this.#space();
      if (this.#ends(CLOSE_LIST)) return;
      this.#value(`${path}[${index}]`, depth);
      this.#comma();
    }
  }

  #open(depth: number): void {
    if (depth > DEPTH_MAX) throw new DecodeError('exceeded max depth');
    this.#token();
  }

  /** Consumes the closing bracket. True also at the end of the text, so that every loop ends. */
  #ends(bracket: number): boolean {
    if (this.#at >= this.#text.length) return true;
    if (this.#text.charCodeAt(this.#at) !== bracket) return false;
    this.#at++;
    return true;
  }

  #comma(): void {
    this.#space();
    if (this.#text.charCodeAt(this.#at) === COMMA) this.#token();
  }

  /** Consumes a comma, a colon or an opening bracket. */
  #token(): void {
    this.#at++;
    if (++this.#tokens <= JSON_TOKENS_MAX) return;
    const limit = `limit is ${JSON_TOKENS_MAX} commas, colons and opening brackets`;
    throw entityTooLarge(`too many fields and list items: ${limit}`);
  }

  #key(): string {
    const raw = this.#string();
    if (!raw.includes('\\')) return raw.slice(1, -1);
    try {
      return JSON.parse(raw) as string; // a JSON string
    } catch {
      return raw; // the parser rejects it
    }
  }

  /** A number, `true`, `false` or `null`. */
  #literal(path: string): void {
    const start = this.#at;
    for (; this.#at < this.#text.length; this.#at++) {
      const code = this.#text.charCodeAt(this.#at);
      if (code === COMMA || code === CLOSE_LIST || code === CLOSE_OBJECT || code <= SPACE) break;
    }
    // Without progress, a loop would not end.
    if (this.#at === start && start < this.#text.length) throw new DecodeError(INVALID);
    const literal = this.#text.slice(start, this.#at);
    if (UNUSUAL_NUMBER.test(literal)) this.#number(path, literal);
  }

  /** Throws for a number that would become infinite, which JSON has no text for. */
  #number(path: string, literal: string): void {
    const value = Number(literal);
    if (Math.abs(value) === Infinity) {
      const what = `number ${shortened(literal)}`;
      throw new DecodeError(`json: cannot unmarshal ${what} into Go value of type float64`);
    }
    if (String(value) !== literal && this.numbers.size < FIELD_PROBLEMS_MAX) this.numbers.set(path, literal);
  }

  #string(): string {
    const start = this.#at;
    this.#at = endOfString(this.#text, start) + 1;
    return this.#text.slice(start, this.#at);
  }

  #space(): void {
    while (this.#text.charCodeAt(this.#at) <= SPACE) this.#at++;
  }
}

/** The index of the quote that closes the string at `start`, or the end of the text. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at++;
  }
  return at;
}
