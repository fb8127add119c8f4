/** Reads the path of a patch, with the character offset of an error, and prints concrete paths in vCluster's form. */

import { createRequire } from 'node:module';
import type * as JsonPathPlus from 'jsonpath-plus';
import { filterEnd } from '../../expressions/front-end/compile-expression.ts';
import type { ConcretePath } from '../translate/types.ts';
import { inOwnDialect } from './path-dialects.ts';

/** One step of a path. A key that is a plain number is also an index: printed paths hold indices as plain segments. */
export type Segment =
  | { readonly kind: 'key'; readonly key: string; readonly index: number | undefined }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'wildcard' }
  /** The elements or members for which an expression over `@` is true; `offset`: of the expression in the path. */
  | { readonly kind: 'filter'; readonly expression: string; readonly offset: number };

interface PathProblem {
  readonly message: string;
  /** 0-based character in the text as it was given. */
  readonly offset: number;
}

type ParsedPath =
  | { readonly ok: true; readonly segments: readonly Segment[] }
  | { readonly ok: false; readonly problem: PathProblem };

const LENGTH_MAX = 4096;
const SEGMENTS_MAX = 64;
/** The key that sets prototypes in JavaScript: segments may not contain it, and wildcards do not match it. All others are keys of data. */
export function isForbiddenKey(key: string): boolean {
  return key === '__proto__';
}

/** Parses `name`, `"any key"`, `["any key"]`, `['any key']`, `[any key]`, `[0]`, `[*]`, `.*` and `[?(filter)]`, joined by dots; a leading `.` or
 * `$.` is allowed, blanks around it are not part of it, and a trailing dot is tolerated as vCluster does. No segment at all is the whole object.
 * jsonpath-plus splits the path, after what vCluster writes differently has been brought into its notation. */
export function parsePath(text: string): ParsedPath {
  const parsed = parseOwnPath(text);
  if (parsed.ok) return parsed;
  const { message, offset } = parsed.problem;
  const own = inOwnDialect(text.slice(0, LENGTH_MAX));
  if (own === undefined || !parseOwnPath(own).ok) return parsed;
  return { ok: false, problem: { message: `${message}; did you mean ${own}?`, offset } };
}

function parseOwnPath(text: string): ParsedPath {
  try {
    const parts = new PathScanner(text).scan();
    const tokens = parts.length === 0 ? [] : tokensOf(parts.map(({ notation }) => notation).join(''));
    const differing = parts.find(({ token }, at) => token !== tokens[at]);
    if (differing !== undefined || tokens.length !== parts.length)
      throw new PathSyntaxError(
        'jsonpath-plus reads this path differently; quote its names',
        differing?.offset ?? 0,
      );
    return { ok: true, segments: parts.map(({ segment }) => segment) };
  } catch (error) {
    if (error instanceof PathSyntaxError) return { ok: false, problem: error.problem };
    throw error;
  }
}

class PathSyntaxError extends Error {
  readonly problem: PathProblem;

  constructor(message: string, offset: number) {
    super(message);
    this.problem = { message, offset };
  }
}

/** jsonpath-plus is loaded with the first path, because it takes 5 MiB. */
function tokensOf(path: string): readonly string[] {
  const require = createRequire(import.meta.url);
  const { JSONPath } = require('jsonpath-plus') as typeof JsonPathPlus; // the package that its type was taken from
  return JSONPath.toPathArray(`$${path}`).slice(1);
}

/** A part of the text that is one segment, if jsonpath-plus agrees. */
interface Part {
  readonly notation: string;
  /** What jsonpath-plus has to read it as. */
  readonly token: string;
  readonly offset: number;
  readonly segment: Segment;
}

class PathScanner {
  readonly #text: string;
  readonly #end: number;
  readonly #parts: Part[] = [];
  #at: number;

  constructor(text: string) {
    this.#text = text;
    this.#at = text.length - text.trimStart().length;
    this.#end = Math.max(this.#at, text.trimEnd().length);
  }

  scan(): readonly Part[] {
    if (this.#text.length > LENGTH_MAX)
      this.#fail(`a path may have at most ${LENGTH_MAX} characters`, LENGTH_MAX);
    if (this.#peek() === '$' && ['', '.', '['].includes(this.#peek(1))) this.#at++;
    if (this.#peek() === '.') this.#dot();
    while (this.#at < this.#end) {
      if (this.#parts.length === SEGMENTS_MAX) this.#fail(`a path may have at most ${SEGMENTS_MAX} segments`);
      if (this.#peek() === '[') this.#bracket();
      else if (this.#peek() === '"') this.#key(this.#at, this.#quoted());
      else this.#name();
      this.#separator();
    }
    return this.#parts;
  }

  #separator(): void {
    const next = this.#peek();
    if (next === '' || next === '[') return;
    if (next === '.') this.#dot();
    else if (next === ']') this.#fail('unexpected "]": no bracket is open');
    else this.#fail(`expected "." or "[" before ${show(this.#rest())}`);
  }

  #dot(): void {
    this.#at++;
    if (this.#peek() === '.') this.#fail('recursive descent ".." is not supported', this.#at - 1);
  }

  #name(): void {
    const start = this.#at;
    while (this.#at < this.#end && !'.[]'.includes(this.#peek())) this.#at++;
    const name = this.#text.slice(start, this.#at);
    if (name === '' && this.#peek() === ']') this.#fail('unexpected "]": no bracket is open');
    const problem = name === '*' ? undefined : plainNameProblem(name);
    if (problem !== undefined) this.#fail(problem, start);
    if (READ_DIFFERENTLY.test(name)) {
      this.#key(start, name);
      return;
    }
    const index = isIndex(name) ? Number(name) : undefined;
    const segment: Segment = name === '*' ? { kind: 'wildcard' } : keySegment(name, index);
    this.#push({ notation: `.${name}`, token: name, offset: start, segment });
  }

  #bracket(): void {
    const open = this.#at;
    this.#at++;
    this.#blanks();
    const start = this.#at;
    const first = this.#peek();
    if (first === '"' || first === "'") this.#key(start, this.#quoted());
    else if (first === '?') this.#filter(open);
    else this.#bare(open);
    this.#blanks();
    if (this.#peek() === '') this.#fail('unclosed bracket: "]" is missing', open);
    if (this.#peek() === ',') this.#fail('unions of several keys or indices are not supported', start);
    if (this.#peek() !== ']') this.#fail(`expected "]" before ${show(this.#rest())}`);
    this.#at++;
  }

  #filter(open: number): void {
    this.#at++;
    this.#blanks();
    if (this.#peek() !== '(') {
      const expression = this.#rest().split(']', 1)[0]?.trim() ?? '';
      const example = expression.startsWith('@') ? expression : '@.name === "http"';
      this.#fail(`a filter has its expression in parentheses: [?(${example})]`);
    }
    const start = this.#at;
    const length = filterEnd(this.#rest());
    if (length === undefined) return this.#fail('unclosed filter: ")]" is missing', open);
    const expression = this.#text.slice(start + 1, start + length - 1);
    this.#at = start + length;
    const segment: Segment = { kind: 'filter', expression, offset: start + 1 };
    this.#push({ notation: '[?(0)]', token: '?(0)', offset: start, segment });
  }

  #bare(open: number): void {
    const start = this.#at;
    const text = this.#untilClosing(open).trim();
    if (text === '') this.#fail('unexpected empty segment: a bracket needs an index, * or a key', start);
    const problem = problemIn(REFUSED_IN_BRACKETS, text);
    if (problem !== undefined) this.#fail(problem, start);
    if (text !== '*' && !isIndex(text)) {
      this.#key(start, text);
      return;
    }
    const segment: Segment = text === '*' ? { kind: 'wildcard' } : { kind: 'index', index: Number(text) };
    this.#push({ notation: `[${text}]`, token: text, offset: start, segment });
  }

  /** Up to the matching bracket, so that an error contains nested brackets completely. */
  #untilClosing(open: number): string {
    const start = this.#at;
    let depth = 1;
    for (; this.#at < this.#end; this.#at++) {
      if (this.#peek() === '[') depth++;
      if (this.#peek() === ']' && --depth === 0) return this.#text.slice(start, this.#at);
    }
    const nested = this.#text.indexOf('[', start);
    if (nested >= 0) this.#fail('unexpected bracket in bracket', nested);
    return this.#fail('unclosed bracket: "]" is missing', open);
  }

  #quoted(): string {
    const start = this.#at;
    const quote = this.#peek();
    let key = '';
    for (this.#at++; this.#at < this.#end; this.#at++) {
      const character = this.#peek();
      if (character === quote) {
        this.#at++;
        return key;
      }
      const next = this.#peek(1);
      if (character === '\\' && (next === quote || next === '\\')) {
        key += next;
        this.#at++;
      } else {
        key += character;
      }
    }
    return this.#fail(`unclosed quote: ${quote} is missing`, start);
  }

  #key(offset: number, key: string): void {
    this.#push({ notation: "['k']", token: 'k', offset, segment: keySegment(key) });
  }

  #push(part: Part): void {
    const { segment, offset } = part;
    if (segment.kind === 'key' && isForbiddenKey(segment.key))
      this.#fail(`${show(segment.key)} cannot be a segment`, offset);
    this.#parts.push(part);
  }

  #blanks(): void {
    while (this.#at < this.#end && this.#peek().trim() === '') this.#at++;
  }

  #peek(beyond = 0): string {
    const at = this.#at + beyond;
    return at < this.#end ? (this.#text[at] ?? '') : '';
  }

  #rest(): string {
    return this.#text.slice(this.#at, this.#end);
  }

  #fail(message: string, offset = this.#at): never {
    throw new PathSyntaxError(message, offset);
  }
}

/** With a text that V8 has as the name of a property. A part of the path, though equal, makes each read and write of a property several times slower. */
function keySegment(name: string, index?: number): Segment {
  const [key = name] = Object.keys({ [name]: null });
  return { kind: 'key', key, index };
}

/** A list index: no leading zeros, at most ten digits. */
function isIndex(text: string): boolean {
  return /^(?:0|[1-9]\d{0,9})$/.test(text);
}

type Refusals = readonly (readonly [form: RegExp, problem: (text: string) => string])[];

function problemIn(refusals: Refusals, text: string): string | undefined {
  return refusals.find(([form]) => form.test(text))?.[1](text);
}

function plainNameProblem(name: string): string | undefined {
  return problemIn(REFUSED_NAMES, name);
}

const QUOTE_KEY = 'are not supported; quote it if it is a key';

const REFUSED_NAMES: Refusals = [
  [/^$/, () => 'an empty name needs quotes: ""'],
  [/^\?/, () => 'a filter stands in brackets: [?(@.name === "http")]'],
  [/^\(/, (name) => `scripts such as ${show(name)} are not supported`],
  [/^\s|\s$/, () => 'a name with blanks at its edge needs quotes'],
  [/[.[\]]/, () => 'a name that holds ".", "[" or "]" needs quotes'],
  [/"|^'/, () => 'a name that holds a quote needs quotes around all of it'],
  [/^@/, (name) => `type selectors such as ${show(name)} ${QUOTE_KEY}`],
  [/\(\)$/, (name) => `functions such as ${show(name)} ${QUOTE_KEY}`],
  [/,/, (name) => `unions such as ${show(name)} are not supported; quote it if the comma is part of the key`],
  [/\*/, (name) => `a wildcard stands alone; quote ${show(name)} if the * is part of the key`],
  [/^-?\d*:-?\d*(?::-?\d*)?$/, (name) => `slices such as ${show(name)} are not supported`],
  [/^-\d+$/, (name) => `negative indices such as ${show(name)} ${QUOTE_KEY}`],
  [
    /[\^~]$/,
    (name) => `the operator at the end of ${show(name)} is not supported; quote it if it is part of the key`,
  ],
  [/^\$$/, () => '"$" may only stand at the start'],
];

/** In a name: what jsonpath-plus splits at, or uses itself while it splits. */
const READ_DIFFERENTLY = /[;^~']|#\d|%@%|@[\w$-]+\(/;

/** Text that is not allowed in a bracket without quotes: neither an index, `*`, nor a key as vCluster reads it. */
const REFUSED_IN_BRACKETS: Refusals = [
  [/^\(/, (text) => `scripts such as ${show(`[${text}]`)} are not supported`],
  [/^-?\d*\s*:/, (text) => `slices such as ${show(`[${text}]`)} are not supported`],
  [/^-\d+$/, (text) => `negative indices such as ${show(`[${text}]`)} are not supported`],
  [/\[/, (text) => `unexpected bracket in bracket: ${show(`[${text}]`)}`],
  [/,/, (text) => `unions such as ${show(`[${text}]`)} are not supported`],
  [/^(?:0\d+|\d{11,})$/, (text) => `${show(text)} is not an index: no leading zeros, at most ten digits`],
  [/["']/, () => 'a key that holds a quote needs quotes around all of it'],
];

function show(part: string): string {
  return JSON.stringify(part.length > 40 ? `${part.slice(0, 40)}…` : part);
}

/** The result parses to the same path: `subsets.0.addresses.1.ip`, `metadata.annotations."example.com/key"`. */
export function printPath(path: ConcretePath): string {
  let text = '';
  for (const step of path) text = joinStep(text, step);
  return text;
}

function joinStep(prefix: string, step: string | number): string {
  const printed = typeof step === 'number' ? String(step) : printKey(step);
  return prefix === '' ? printed : `${prefix}.${printed}`;
}

/** `"` and `\` are escaped inside quotes; a key that needs no quotes is printed as it is. */
function printKey(key: string): string {
  if (PLAIN.test(key)) return key;
  return plainNameProblem(key) === undefined ? key : `"${key.replace(/["\\]/g, '\\$&')}"`;
}

const PLAIN = /^[A-Za-z0-9_/][A-Za-z0-9_/-]*$/;
