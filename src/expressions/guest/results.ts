/** What an expression returned or threw, as JSON data. A hostile result may have getters, contain the same part a billion times, or change
 * while it is read. Every step counts against a limit, so the copy always ends. Runs inside the isolate: only type imports. */

import type { ErrorMessage, ResultMessage } from '../protocol.ts';

type PlainJson = string | number | boolean | null | PlainJson[] | { [key: string]: PlainJson };

/** Why a result cannot be returned, as opposed to an error that the expression throws. */
export class ResultProblem {
  readonly kind: 'result' | 'result-size' | 'syntax';
  readonly message: string;

  constructor(kind: ResultProblem['kind'], message: string) {
    this.kind = kind;
    this.message = message;
  }
}

const RESULT_BYTES_MAX = 1024 * 1024;
const RESULT_DEPTH_MAX = 64;

export class ResultList {
  /** Approximate size in JSON. */
  bytes = 0;
  readonly #places: ErrorPlaces;
  /** null where there is none. */
  readonly #values: PlainJson[] = [];
  readonly #undefinedAt: number[] = [];
  readonly #errors: ErrorMessage[] = [];
  // Of the current result.
  #bytesLeft = 0;
  /** Keys and indices on the way to the current value, and the objects that have them. */
  readonly #place: (string | number)[] = [];
  readonly #holders: object[] = [];

  constructor(places: ErrorPlaces) {
    this.#places = places;
  }

  /** Throws, without adding it, if JSON cannot hold it or reading it throws. */
  accept(result: unknown): void {
    if (result === undefined) this.#undefinedAt.push(this.#values.length);
    this.#values.push(result === undefined ? null : this.#copy(result));
  }

  fail(thrown: unknown): void {
    const index = this.#values.push(null) - 1;
    const error =
      thrown instanceof ResultProblem
        ? { kind: thrown.kind, message: thrown.message, line: 0, column: 0 }
        : describeThrown(thrown, this.#places);
    this.#errors.push({ index, ...error });
  }

  toMessage(): ResultMessage {
    return {
      values: this.#values,
      undefinedAt: this.#undefinedAt.length > 0 ? this.#undefinedAt : undefined,
      errors: this.#errors.length > 0 ? this.#errors : undefined,
    };
  }

  #copy(result: unknown): PlainJson {
    this.#bytesLeft = RESULT_BYTES_MAX;
    this.#holders.length = 0;
    const plain = this.#visit(result, '', 0);
    this.bytes += RESULT_BYTES_MAX - this.#bytesLeft;
    return plain;
  }

  /** `depth`: of the value in the result, whose keys are in `#place`. */
  #visit(value: unknown, key: string, depth: number): PlainJson {
    const plain = typeof value === 'object' && value !== null ? this.#converted(value, key, depth) : value;
    switch (typeof plain) {
      case 'string':
        this.#spend(textBytes(plain));
        if (!plain.isWellFormed()) this.#refuse('half of a surrogate pair', depth, NOT_UTF8);
        return plain;
      case 'number':
        if (plain - plain !== 0) this.#refuse(`${plain}`, depth);
        this.#spend(1);
        return plain;
      case 'boolean':
        this.#spend(4);
        return plain;
      case 'object':
        if (plain !== null) return this.#visitMembers(plain, depth);
        this.#spend(4);
        return null;
      default:
        return this.#refuse(withArticle(typeof plain), depth, hintFor(typeof plain));
    }
  }

  #visitMembers(object: object, depth: number): PlainJson {
    if (this.#holders.includes(object)) this.#refuse('a value that contains itself', depth);
    if (depth >= RESULT_DEPTH_MAX)
      throw new ResultProblem('result', `the result is nested deeper than ${RESULT_DEPTH_MAX} levels`);
    this.#holders[depth] = object;
    const copy = Array.isArray(object)
      ? this.#visitArray(object, depth + 1)
      : this.#visitObject(object, depth + 1);
    this.#holders.length = depth;
    return copy;
  }

  #visitArray(array: readonly unknown[], depth: number): PlainJson {
    const { length } = array;
    this.#spend(2 + length);
    const copy: PlainJson[] = [];
    for (let i = 0; i < length; i++) {
      const element = array[i];
      this.#place[depth - 1] = i;
      if (element === undefined && !Object.hasOwn(array, i)) this.#refuse('a hole in a list', depth, IN_LIST);
      if (element === undefined) this.#refuse('undefined in a list', depth, IN_LIST);
      copy[i] = this.#visit(element, `${i}`, depth);
    }
    const names = Object.keys(array);
    if (names.length === length) return copy;
    const extra = names.find((name, at) => at >= length && !MATCH_MEMBERS.includes(name));
    if (extra === undefined) return copy;
    this.#place[depth - 1] = extra;
    return this.#refuse('a member of a list', depth, NO_LIST);
  }

  #visitObject(object: object, depth: number): PlainJson {
    const names = Object.keys(object);
    this.#spend(2);
    const copy: { [key: string]: PlainJson } = {};
    for (let i = 0; i < names.length; i++) {
      const name = names[i] ?? '';
      this.#place[depth - 1] = name;
      if (name === '__proto__')
        throw new ResultProblem('result', 'the result has a member named `__proto__`');
      const member: unknown = (object as Record<string, unknown>)[name];
      if (member === undefined) continue;
      if (!name.isWellFormed()) this.#refuse('half of a surrogate pair in the key', depth, NOT_UTF8);
      const value = this.#visit(member, name, depth);
      this.#spend(textBytes(name) + 2);
      // An assignment fails for names that exist on the frozen prototype.
      if (name in copy) Object.defineProperty(copy, name, { value, enumerable: true });
      else copy[name] = value;
    }
    const all = Object.getOwnPropertyNames(object);
    if (all.length !== names.length) this.#refuseHidden(all, object, depth);
    return copy;
  }

  /** JSON.stringify does not see such a member. Getters may have added others since the names were read. */
  #refuseHidden(all: readonly string[], object: object, depth: number): void {
    const hidden = all.find((name) => !Object.prototype.propertyIsEnumerable.call(object, name));
    if (hidden === undefined) return;
    this.#place[depth - 1] = hidden;
    this.#refuse('a member that is not enumerable', depth);
  }

  /** Applies `toJSON` and unboxes primitives, as JSON.stringify does before it reads members. What is left has to be a list or a plain object: of
   * everything else, JSON would hold an empty object. */
  #converted(value: object, key: string, depth: number): unknown {
    const { toJSON } = value as { toJSON?: unknown };
    let plain: unknown = value;
    if (typeof toJSON === 'function') {
      plain = toJSON.call(value, key);
      if (plain === undefined) this.#refuse('an object whose toJSON returns nothing', depth);
      if (plain === null && toJSON === Date.prototype.toJSON)
        this.#refuse('an invalid Date', depth, hintFor('Date'));
    }
    if (typeof plain !== 'object' || plain === null || Array.isArray(plain)) return plain;
    const prototype: unknown = Object.getPrototypeOf(plain);
    if (prototype === Object.prototype || prototype === null) return plain;
    // These throw for an object that only inherits from a box, as JSON does.
    if (prototype === String.prototype) return String.prototype.valueOf.call(plain);
    if (prototype === Number.prototype) return Number.prototype.valueOf.call(plain);
    if (prototype === Boolean.prototype) return Boolean.prototype.valueOf.call(plain);
    const type = typeName(plain);
    return this.#refuse(withArticle(type), depth, hintFor(type));
  }

  #refuse(what: string, depth: number, hint = CANNOT_HOLD): never {
    const place = printPlace(this.#place.slice(0, depth));
    throw new ResultProblem(
      'result',
      place === '' ? `the result is ${what}${hint}` : `the result has ${what} at ${place}${hint}`,
    );
  }

  #spend(bytes: number): void {
    this.#bytesLeft -= bytes;
    if (this.#bytesLeft < 0)
      throw new ResultProblem('result-size', `the result is larger than ${RESULT_BYTES_MAX} bytes`);
  }
}

/** What to write instead, by type. */
const HINTS: Readonly<Record<string, string>> = {
  Date: ': its input has to be ISO 8601, such as 2026-11-28T10:00:00Z, or the form of HTTP, such as Sat, 28 Nov 2026 10:00:00 GMT',
  Error: ': throw it, or return its message',
  Map: ': write Object.fromEntries(…) around it',
  RegExp: ': return its source',
  Set: ': write [...…] around it',
  function: ': call it, or return its result',
};
const CANNOT_HOLD = ', which JSON cannot hold';
const IN_LIST = `${CANNOT_HOLD}: filter the list, or write null`;
const NOT_UTF8 = ', which cannot be encoded as UTF-8: a lone surrogate is no character';
const NO_LIST = ': a list ([]) has elements only, an object ({}) has members';
const INSTANCE = ': write {...…} around it, or give its class a method toJSON';
/** Members of the list that `match` and `exec` return. */
const MATCH_MEMBERS: readonly string[] = ['index', 'input', 'groups', 'indices'];
const TYPE_CHARS_MAX = 60;

function hintFor(type: string): string {
  if (type.startsWith('instance')) return INSTANCE;
  if (/Iterator|Generator/.test(type)) return HINTS['Set'] ?? CANNOT_HOLD;
  if (type.endsWith('Array')) return ': write Array.from(…) around it';
  return Object.hasOwn(HINTS, type) ? (HINTS[type] ?? CANNOT_HOLD) : CANNOT_HOLD;
}

/** Such as `Map`, or `instance of Port`. The author's code may choose it. */
function typeName(object: object): string {
  const tag = Object.prototype.toString.call(object).slice('[object '.length, -1);
  if (tag !== 'Object') return tag.slice(0, TYPE_CHARS_MAX);
  const { constructor } = object as { constructor?: unknown };
  const name: unknown = typeof constructor === 'function' ? constructor.name : '';
  const isOwn = typeof name === 'string' && name !== '' && name !== 'Object';
  return isOwn ? `instance of ${name.slice(0, TYPE_CHARS_MAX)}` : 'instance of another object';
}

function withArticle(noun: string): string {
  return `${/^[AEIOaeio]/.test(noun) ? 'an' : 'a'} ${noun}`;
}

const PLACE_CHARS_MAX = 120;

/** As in JavaScript: `metadata.annotations["a/b"][0]`. */
function printPlace(place: readonly (string | number)[]): string {
  let text = '';
  for (let i = 0; i < place.length; i++) {
    const step = place[i] ?? '';
    if (typeof step === 'string' && /^[a-zA-Z_$][\w$]*$/.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
    if (text.length > PLACE_CHARS_MAX) return `${text.slice(0, PLACE_CHARS_MAX)}…`;
  }
  return text;
}

/** Lower bound for the JSON size of a string: UTF-8 bytes and quotes, without escapes. Stops counting at the limit. */
function textBytes(text: string): number {
  const { length } = text;
  if (length > RESULT_BYTES_MAX || length * 3 <= RESULT_BYTES_MAX) return length + 2;
  let bytes = 2;
  for (let i = 0; i < length && bytes <= RESULT_BYTES_MAX; i++) {
    const unit = text.charCodeAt(i);
    // Each half of a surrogate pair counts two bytes of four.
    bytes += unit < 0x80 ? 1 : unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 2 : 3;
  }
  return bytes;
}

const MESSAGE_CHARS_MAX = 300;
const STACK_CHARS_MAX = 4000;

/** The positions of errors, for the host only. */
export type ErrorPlaces = WeakMap<object, ErrorPlace>;

/** Reading a thrown value may run code of the expression, so this happens inside the timed call. */
function describeThrown(thrown: unknown, places: ErrorPlaces): ThrownError {
  try {
    if (typeof thrown !== 'object' || thrown === null) {
      return runtimeError(`threw ${describePrimitive(thrown)}`);
    }
    const { name, message } = thrown as { name?: unknown; message?: unknown };
    const title = textOf(name, MESSAGE_CHARS_MAX) || 'an object';
    const text = textOf(message, MESSAGE_CHARS_MAX);
    const [line, column] = errorPlace(thrown, message, places) ?? [0, 0];
    return { ...runtimeError(text === '' ? `threw ${title}` : `${title}: ${text}`), line, column };
  } catch {
    return runtimeError('threw a value that cannot be described');
  }
}

type ThrownError = Omit<ErrorMessage, 'index'>;

function runtimeError(message: string): ThrownError {
  return { kind: 'runtime', message, line: 0, column: 0 };
}

function describePrimitive(thrown: unknown): string {
  if (typeof thrown === 'string') return textOf(thrown, MESSAGE_CHARS_MAX);
  if (typeof thrown === 'symbol' || typeof thrown === 'function') return `a ${typeof thrown}`;
  return String(thrown as number);
}

/** Reading `stack` records the position. Skipped for long messages, because it would copy them. */
function errorPlace(thrown: object, message: unknown, places: ErrorPlaces): ErrorPlace | undefined {
  if (typeof message === 'string' && message.length > STACK_CHARS_MAX) return undefined;
  void (thrown as { stack?: unknown }).stack;
  return places.get(thrown);
}

function textOf(value: unknown, lengthMax: number): string {
  return typeof value === 'string' ? value.slice(0, lengthMax) : '';
}

interface CallSite {
  getFileName(): string | null;
  getLineNumber(): number | null;
  getColumnNumber(): number | null;
}

/** A place in a program's source, 1-based. */
type ErrorPlace = readonly [line: number, column: number];

const PROGRAM = 'program-';

/** Frames would reveal code of the host and numbers that differ between processes. V8 calls `prepareStackTrace` when `stack` is first read.
 * Expressions can see it but not replace it. */
export function hideStacks(): ErrorPlaces {
  const places = new WeakMap<object, ErrorPlace>();
  const prepareStackTrace = (error: unknown, sites: unknown): string => {
    if (Array.isArray(sites) && typeof error === 'object' && error !== null) {
      const place = placeAt(sites as readonly CallSite[]);
      if (place !== undefined) places.set(error, place);
    }
    return Error.prototype.toString.call(error);
  };
  Object.defineProperty(Error, 'prepareStackTrace', { value: prepareStackTrace });
  return places;
}

function placeAt(sites: readonly CallSite[]): ErrorPlace | undefined {
  for (let i = 0; i < sites.length; i++) {
    const site = sites[i];
    // An expression can call this function with other objects.
    if (typeof site?.getFileName !== 'function' || !site.getFileName()?.startsWith(PROGRAM)) continue;
    return [site.getLineNumber() ?? 0, site.getColumnNumber() ?? 0];
  }
  return undefined;
}
