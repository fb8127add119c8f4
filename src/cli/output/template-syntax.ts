/**
 * Reads kubectl's JSONPath templates, as k8s.io/client-go/util/jsonpath 0.36 does, oddities included: text, and actions in braces, which are a path,
 * a literal, `range PATH` or `end`. What that package takes and ignores, such as a range without an end, is an error here.
 */

import { TerminalError } from '../../base/errors.ts';

/** `at`: offset of the step in the template, for messages. */
export type Step = { readonly at: number } & (
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'literal'; readonly value: number | boolean }
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'wildcard' | 'recursive' }
  | ({ readonly kind: 'slice' } & Slice)
  | { readonly kind: 'union'; readonly members: readonly Steps[] }
  | { readonly kind: 'filter'; readonly left: Steps; readonly comparison?: Comparison }
);
export type Steps = readonly Step[];

export interface Slice {
  readonly from?: number;
  readonly to?: number;
  readonly step?: number;
  /** `[from]`, in which no colon is. */
  readonly isIndex: boolean;
}

export interface Comparison {
  readonly operator: Operator;
  readonly right: Steps;
}

const OPERATORS = ['==', '!=', '<', '<=', '>', '>='] as const;
export type Operator = (typeof OPERATORS)[number];

export type TemplatePart =
  | { readonly text: string }
  | { readonly steps: Steps }
  | { readonly over: Steps; readonly parts: readonly TemplatePart[] };

/** Throws `TerminalError` with the column. */
export function parseTemplate(template: string): readonly TemplatePart[] {
  const root: TemplatePart[] = [];
  const open: { readonly at: number; readonly parts: TemplatePart[] }[] = [];
  for (let at = 0; at < template.length;) {
    const parts = open.at(-1)?.parts ?? root;
    const brace = template.indexOf('{', at);
    if (brace !== at) parts.push({ text: template.slice(at, brace === -1 ? undefined : brace) });
    if (brace === -1) break;
    const action = new ActionReader(template, brace + 1).read('}');
    at = action.end + 1;
    if (action.word === 'range') {
      const inner: TemplatePart[] = [];
      parts.push({ over: action.steps, parts: inner });
      open.push({ at: brace, parts: inner });
    } else if (action.word !== 'end') parts.push({ steps: action.steps });
    else if (open.pop() === undefined || action.steps.length > 0)
      throw templateError(brace, 'there is no range to end, or the action has more than "end"');
  }
  const unended = open.at(-1);
  if (unended !== undefined) throw templateError(unended.at, 'this range has no {end}');
  return root;
}

export function templateError(at: number, problem: string): TerminalError {
  return new TerminalError(`the jsonpath template, column ${at + 1}: ${problem}`);
}

const UNQUOTED = /[^ \t\r\n.,[\]$@{}]*/uy;
const NUMBER = /[+-]?[.\d]*/y;
const FIELD = /(?:\\.|[^ \t\r\n.,[\]$@{}\\])*/suy;
const SLICE = /^(-?\d*)(:-?\d*)?(:-?\d*)?$/;
const COMPARISON = /^([^!<>=]+)([!<>=]+)(.+?)$/su;
const RANGE_WORDS = new Set(['range', 'end']);

interface Action {
  readonly steps: Steps;
  /** `range` or `end`, with which it begins. */
  readonly word?: string;
  /** Offset of what ends it. */
  readonly end: number;
}

/** Reads what is inside of braces. */
class ActionReader {
  readonly #text: string;
  /** What is added to a position in the text for that in the template. */
  readonly #offset: number;
  readonly #steps: Step[] = [];
  #word: string | undefined;
  #at: number;

  constructor(text: string, at: number, offset = 0) {
    this.#text = text;
    this.#at = at;
    this.#offset = offset;
  }

  /** `end`: '' for the end of the text. */
  read(end: '}' | ''): Action {
    while (end === '' ? this.#at < this.#text.length : this.#text[this.#at] !== end) this.#readStep();
    return {
      steps: this.#steps,
      end: this.#at,
      ...(this.#word === undefined ? {} : { word: this.#word }),
    };
  }

  #readStep(): void {
    const rest = this.#text.slice(this.#at);
    if (rest === '' || /^[\r\n]/u.test(rest)) throw this.#error('the action has no closing brace');
    if (rest.startsWith('[?(')) return this.#readFilter();
    if (rest.startsWith('..')) return this.#readRecursive();
    if (/^[ @$]/u.test(rest)) this.#at += 1;
    else if (rest.startsWith('[')) this.#readBrackets();
    else if (/^["']/u.test(rest)) this.#readQuoted();
    else if (rest.startsWith('.')) {
      this.#at += 1;
      this.#readField();
    } else if (/^[+\-\d]/u.test(rest)) this.#readNumber();
    else if (/^[_\p{L}]/u.test(rest)) this.#readWord();
    else throw this.#error(`${JSON.stringify(String.fromCodePoint(rest.codePointAt(0) ?? 0))} is unexpected`);
  }

  #readRecursive(): void {
    if (this.#steps.at(-1)?.kind === 'recursive') throw this.#error('".." is there twice');
    this.#add({ kind: 'recursive' });
    this.#at += 2;
    if (/[_\p{L}\p{Nd}]/u.test(this.#text[this.#at] ?? '')) this.#readField();
  }

  #readField(): void {
    const at = this.#at;
    const name = this.#take(FIELD);
    if (name === '*') this.#add({ kind: 'wildcard' }, at);
    else this.#add({ kind: 'field', name: name.replaceAll('\\', '') }, at);
  }

  #readNumber(): void {
    const at = this.#at;
    const number = this.#take(NUMBER);
    const value = Number(number);
    if (!/\d/u.test(number) || Number.isNaN(value)) throw this.#error(`${number} is not a number`, at);
    this.#add({ kind: 'literal', value }, at);
  }

  #readWord(): void {
    const at = this.#at;
    const word = this.#take(UNQUOTED);
    if (word === 'true' || word === 'false') this.#add({ kind: 'literal', value: word === 'true' }, at);
    else if (RANGE_WORDS.has(word) && this.#steps.length === 0 && this.#word === undefined) this.#word = word;
    else if (RANGE_WORDS.has(word)) throw this.#error(`"${word}" has to begin its action`, at);
    else throw this.#error(`"${word}" is unknown: a path begins with ".", and text is quoted`, at);
  }

  #readQuoted(): void {
    const at = this.#at;
    const quote = this.#text[at] ?? '';
    let end = at;
    do end = this.#text.indexOf(quote, end + 1);
    while (end !== -1 && this.#text[end - 1] === '\\');
    if (end === -1 || this.#text.slice(at, end).includes('\n'))
      throw this.#error('the quoted text has no end');
    this.#at = end + 1;
    const text = unquoted(this.#text.slice(at + 1, end), quote);
    if (text === undefined)
      throw this.#error('the quoted text has an escape that Go does not know, or is not UTF-8', at);
    this.#add({ kind: 'text', text }, at);
  }

  #readBrackets(): void {
    const at = this.#at;
    const end = this.#text.indexOf(']', at);
    if (end === -1 || this.#text.slice(at, end).includes('\n')) throw this.#error('"[" has no "]"');
    const inside = this.#text.slice(at + 1, end);
    this.#at = end + 1;
    if (inside.includes(',')) {
      let offset = at;
      const members = inside.split(',').map((member) => {
        offset += member.length + 1;
        const { trimmed, blanksAfter } = withoutSpaces(member);
        return this.#inner(`[${trimmed}]`, offset - blanksAfter - trimmed.length - 1);
      });
      this.#add({ kind: 'union', members }, at);
      return;
    }
    const key = /^'([^']*)'$/u.exec(inside)?.[1];
    if (key !== undefined) this.#steps.push(...this.#inner(`.${key}`, at + 1));
    else this.#add({ kind: 'slice', ...this.#slice(inside === '*' ? ':' : inside, at) }, at);
  }

  #slice(inside: string, at: number): Slice {
    const parts = SLICE.exec(inside);
    if (parts === null)
      throw this.#error(
        `[${inside}] is not an index; keys are written .name or ['name'], with \\. for a dot in it`,
        at,
      );
    const [, first, second, third] = parts;
    const number = (digits = ''): number | undefined => {
      if (digits === '') return undefined;
      const value = Number(digits);
      if (!Number.isSafeInteger(value)) throw this.#error(`${digits} is not an index`, at);
      return value;
    };
    const [from, to, step] = [number(first), number(second?.slice(1)), number(third?.slice(1))];
    return {
      ...(from === undefined ? {} : { from }),
      ...(to === undefined ? {} : { to }),
      ...(step === undefined ? {} : { step }),
      isIndex: second === undefined,
    };
  }

  #readFilter(): void {
    const at = this.#at;
    const from = at + '[?('.length;
    const end = this.#endOfFilter(from);
    if (this.#text[end + 1] !== ']')
      throw this.#error('the filter has no ")]" where its parenthesis ends', end);
    const inside = this.#text.slice(from, end);
    this.#at = end + 2;
    const [, left = inside, operator, right = ''] = COMPARISON.exec(inside) ?? [];
    if (operator === undefined) {
      this.#add({ kind: 'filter', left: this.#inner(left, from) }, at);
      return;
    }
    const known = OPERATORS.find((one) => one === operator);
    if (known === undefined)
      throw this.#error(`"${operator}" is no operator; there are ${OPERATORS.join(' ')}`, from + left.length);
    const comparison = { operator: known, right: this.#inner(right, from + left.length + operator.length) };
    this.#add({ kind: 'filter', left: this.#inner(left, from), comparison }, at);
  }

  /** Offset of the parenthesis; those in quotes do not count. */
  #endOfFilter(from: number): number {
    let quote: string | undefined;
    let isClosed = false;
    for (let at = from; at < this.#text.length && this.#text[at] !== '\n'; at++) {
      const character = this.#text[at] ?? '';
      if (character === ')' && (quote === undefined || isClosed)) return at;
      if (character !== '"' && character !== "'") continue;
      if (quote === undefined) quote = character;
      else if (character === quote && this.#text[at - 1] !== '\\') isClosed = true;
    }
    throw this.#error('the filter has no ")]"');
  }

  #inner(text: string, at: number): Steps {
    const { steps, word } = new ActionReader(text, 0, this.#offset + at).read('');
    if (word !== undefined) throw this.#error(`"${word}" has to begin its action`, at);
    return steps;
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const taken = pattern.exec(this.#text)?.[0] ?? '';
    this.#at += taken.length;
    return taken;
  }

  #add(step: StepWithoutPlace, at = this.#at): void {
    this.#steps.push({ ...step, at: this.#offset + at });
  }

  #error(problem: string, at = this.#at): TerminalError {
    return templateError(this.#offset + at, problem);
  }
}

/** At its ends; of spaces alone. A pattern for this would take quadratic time. */
function withoutSpaces(text: string): { readonly trimmed: string; readonly blanksAfter: number } {
  let [start, end] = [0, text.length];
  while (end > 0 && text[end - 1] === ' ') end--;
  while (start < end && text[start] === ' ') start++;
  return { trimmed: text.slice(start, end), blanksAfter: text.length - end };
}

type StepWithoutPlace = Step extends infer S ? (S extends Step ? Omit<S, 'at'> : never) : never;

const ESCAPE = /\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([0-7]{3})|([abfnrtv\\"']))/gu;
const SINGLE: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

/** What is between quotes of Go: escapes may be bytes, too. Undefined if it is no such text. */
function unquoted(text: string, quote: string): string | undefined {
  const bytes: Uint8Array[] = [];
  const unknown = text.replaceAll(ESCAPE, '').includes('\\');
  if (unknown) return undefined;
  let last = 0;
  for (const match of text.matchAll(ESCAPE)) {
    const [all, hex, short, long, octal, single = ''] = match;
    bytes.push(Buffer.from(text.slice(last, match.index)));
    last = match.index + all.length;
    const byte = hex === undefined ? octal && Number.parseInt(octal, 8) : Number.parseInt(hex, 16);
    const point = Number.parseInt(short ?? long ?? '', 16);
    if (typeof byte === 'number') {
      if (byte > 255) return undefined;
      bytes.push(Uint8Array.of(byte));
    } else if (Number.isNaN(point)) {
      if (/["']/u.test(single) && single !== quote) return undefined;
      bytes.push(Buffer.from(SINGLE[single] ?? single));
    } else if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return undefined;
    else bytes.push(Buffer.from(String.fromCodePoint(point)));
  }
  bytes.push(Buffer.from(text.slice(last)));
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(bytes));
  } catch {
    return undefined;
  }
}
