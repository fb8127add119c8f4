/**
 * Integers in JSON text that no number holds. A reviver finds them too, for five to a hundred times the work of the parser. Here, a text without them takes
 * little longer than the parser alone, and one with them half as long again for its other values (`npm run bench -- json`).
 */

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const CLOSE_OBJECT = 0x7d;
const SPACE = 0x20;

/** API servers know integers of 64 bits; the time to read digits grows with the square of their number. */
const DIGITS = /(?:^|[-:,[\s])([1-9]\d{15,19})(?=[\s,\]}]|$)/g;
const LARGEST_SAFE = String(Number.MAX_SAFE_INTEGER);

/** Parses JSON text, with a BigInt for each long integer. Throws a `SyntaxError`. */
export function parseWithLongIntegers(text: string): unknown {
  // A string that begins with it is one of ours: the sender of the text cannot know it.
  const mark = crypto.randomUUID().slice(0, 13);
  const parts: string[] = [];
  let end = 0;
  for (const { index, source } of longIntegers(text)) {
    parts.push(text.slice(end, index), `"${mark}${source}"`);
    end = index + source.length;
  }
  if (end === 0) return JSON.parse(text);
  parts.push(text.slice(end));
  const root = [parsed(parts.join(''), text)];
  restore(root, mark);
  return root[0];
}

/** `original`: for an error with the positions there. */
function parsed(text: string, original: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    JSON.parse(original);
    throw error;
  }
}

/** Without recursion: values may be nested as deep as the text is long. */
function restore(root: unknown[], mark: string): void {
  const pending: object[] = [root];
  for (let holder = pending.pop(); holder !== undefined; holder = pending.pop()) {
    // A list and an object each have a loop of their own, which takes half as long as one for both.
    if (Array.isArray(holder)) restoreList(holder, mark, pending);
    else restoreObject(holder as Record<string, unknown>, mark, pending); // parsed JSON: all properties are its own
  }
}

function restoreList(list: unknown[], mark: string, pending: object[]): void {
  for (let at = 0; at < list.length; at++) {
    const value = list[at];
    if (typeof value === 'number') continue;
    if (typeof value === 'object' && value !== null) pending.push(value);
    else if (typeof value === 'string' && value.startsWith(mark)) list[at] = BigInt(value.slice(mark.length));
  }
}

function restoreObject(members: Record<string, unknown>, mark: string, pending: object[]): void {
  for (const key in members) {
    const value = members[key];
    if (typeof value === 'object' && value !== null) pending.push(value);
    else if (typeof value === 'string' && value.startsWith(mark))
      members[key] = BigInt(value.slice(mark.length));
  }
}

interface LongInteger {
  readonly index: number;
  /** Its digits, with the sign. */
  readonly source: string;
}

/** Those that are values of the text, if it is JSON, and not in a string. */
function longIntegers(text: string): LongInteger[] {
  const found: LongInteger[] = [];
  const strings = new Strings(text);
  for (let match = DIGITS.exec(text); match !== null; match = DIGITS.exec(text)) {
    const [all, digits = ''] = match;
    const end = match.index + all.length;
    const index = all.startsWith('-') ? match.index : end - digits.length;
    const isSafe = digits.length === LARGEST_SAFE.length && digits <= LARGEST_SAFE;
    if (!isSafe && isValue(text, index, end) && !strings.contain(index))
      found.push({ index, source: text.slice(index, end) });
  }
  return found;
}

/** By what stands around it. What is neither number nor key after the other replaces it is none of a text that is no JSON either. */
function isValue(text: string, start: number, end: number): boolean {
  let before = start - 1;
  while (text.charCodeAt(before) <= SPACE) before -= 1;
  const opening = text.charCodeAt(before);
  if (before >= 0 && opening !== COMMA && opening !== COLON && opening !== OPEN_LIST) return false;
  let after = end;
  while (text.charCodeAt(after) <= SPACE) after += 1;
  const closing = text.charCodeAt(after);
  return after === text.length || closing === COMMA || closing === CLOSE_LIST || closing === CLOSE_OBJECT;
}

/** Whether places of a text, one after the other, are in strings. */
class Strings {
  readonly #text: string;
  #codes: Uint8Array | Uint16Array | undefined;
  #at = 0;
  #isInside = false;
  #nextQuote = -1;

  constructor(text: string) {
    this.#text = text;
  }

  contain(place: number): boolean {
    if (this.#nextQuote < this.#at) {
      const next = this.#text.indexOf('"', this.#at);
      this.#nextQuote = next < 0 ? this.#text.length : next;
    }
    if (this.#isInside || this.#nextQuote < place) this.#advance(place);
    return this.#isInside;
  }

  #advance(place: number): void {
    // Reading an array takes half as long as reading a string.
    const codes = (this.#codes ??= codesOf(this.#text));
    let isInside = this.#isInside;
    let at = isInside ? this.#at : this.#nextQuote;
    for (; at < place; at++) {
      const code = codes[at];
      if (code === QUOTE) isInside = !isInside;
      else if (code === BACKSLASH) at += 1;
    }
    this.#at = at;
    this.#isInside = isInside;
  }
}

function codesOf(text: string): Uint8Array | Uint16Array {
  if (Buffer.byteLength(text) === text.length) return Buffer.from(text, 'latin1');
  const { buffer, byteOffset } = Buffer.from(text, 'utf16le');
  return new Uint16Array(buffer, byteOffset, text.length);
}
