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
  /** Of the current result. */
  #bytesLeft = 0;

  constructor(places: ErrorPlaces) {
    this.#places = places;
  }

  /** Throws, without adding it, if it is not JSON or reading it throws. */
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
    const isPlain = typeof result === 'string' || typeof result === 'boolean' || typeof result === 'object';
    if (!isPlain && (typeof result !== 'number' || result - result !== 0)) {
      const what = typeof result === 'number' ? `${result}` : `a ${typeof result}`;
      throw new ResultProblem('result', `the result is ${what}, which JSON does not know`);
    }
    this.#bytesLeft = RESULT_BYTES_MAX;
    const plain = this.#visit(result, '', 0);
    if (plain === undefined) throw new ResultProblem('result', 'the result is not a JSON value');
    this.bytes += RESULT_BYTES_MAX - this.#bytesLeft;
    return plain;
  }

  /** Undefined: JSON omits it. */
  #visit(value: unknown, key: string, depth: number): PlainJson | undefined {
    const plain = typeof value === 'object' && value !== null ? converted(value, key) : value;
    switch (typeof plain) {
      case 'string':
        this.#spend(textBytes(plain));
        return plain;
      case 'number':
        if (plain - plain !== 0)
          throw new ResultProblem('result', `the result contains ${plain}, which JSON does not know`);
        this.#spend(1);
        return plain;
      case 'boolean':
        this.#spend(4);
        return plain;
      case 'bigint':
        throw new ResultProblem('result', 'the result contains a BigInt, which JSON does not know');
      case 'object':
        if (plain === null) {
          this.#spend(4);
          return null;
        }
        if (depth >= RESULT_DEPTH_MAX)
          throw new ResultProblem(
            'result',
            `the result is nested deeper than ${RESULT_DEPTH_MAX} levels, or contains itself`,
          );
        return Array.isArray(plain)
          ? this.#visitArray(plain, depth + 1)
          : this.#visitObject(plain, depth + 1);
      default:
        return undefined;
    }
  }

  #visitArray(array: readonly unknown[], depth: number): PlainJson {
    const { length } = array;
    this.#spend(2 + length);
    const copy: PlainJson[] = [];
    for (let i = 0; i < length; i++) copy[i] = this.#visit(array[i], `${i}`, depth) ?? null;
    return copy;
  }

  #visitObject(object: object, depth: number): PlainJson {
    const names = Object.keys(object);
    this.#spend(2);
    const copy: { [key: string]: PlainJson } = {};
    for (let i = 0; i < names.length; i++) {
      const name = names[i] ?? '';
      if (name === '__proto__')
        throw new ResultProblem('result', 'the result has a member named `__proto__`');
      const value = this.#visit((object as Record<string, unknown>)[name], name, depth);
      if (value === undefined) continue;
      this.#spend(textBytes(name) + 2);
      // An assignment fails for names that exist on the frozen prototype.
      if (name in copy) Object.defineProperty(copy, name, { value, enumerable: true });
      else copy[name] = value;
    }
    return copy;
  }

  #spend(bytes: number): void {
    this.#bytesLeft -= bytes;
    if (this.#bytesLeft < 0)
      throw new ResultProblem('result-size', `the result is larger than ${RESULT_BYTES_MAX} bytes`);
  }
}

/** Applies `toJSON` and unboxes primitives, as JSON.stringify does before it reads members. */
function converted(value: object, key: string): unknown {
  const { toJSON } = value as { toJSON?: unknown };
  const plain: unknown = typeof toJSON === 'function' ? toJSON.call(value, key) : value;
  if (typeof plain !== 'object' || plain === null) return plain;
  const prototype: unknown = Object.getPrototypeOf(plain);
  // These throw for an object that only inherits from a box, as JSON does.
  if (prototype === String.prototype) return String.prototype.valueOf.call(plain);
  if (prototype === Number.prototype) return Number.prototype.valueOf.call(plain);
  if (prototype === Boolean.prototype) return Boolean.prototype.valueOf.call(plain);
  return plain;
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
      const place = placeOf(sites as readonly CallSite[]);
      if (place !== undefined) places.set(error, place);
    }
    return Error.prototype.toString.call(error);
  };
  Object.defineProperty(Error, 'prepareStackTrace', { value: prepareStackTrace });
  return places;
}

function placeOf(sites: readonly CallSite[]): ErrorPlace | undefined {
  for (let i = 0; i < sites.length; i++) {
    const site = sites[i];
    // An expression can call this function with other objects.
    if (typeof site?.getFileName !== 'function' || !site.getFileName()?.startsWith(PROGRAM)) continue;
    return [site.getLineNumber() ?? 0, site.getColumnNumber() ?? 0];
  }
  return undefined;
}
