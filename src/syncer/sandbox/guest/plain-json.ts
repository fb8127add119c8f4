/** Copies an expression's result to plain JSON data. A hostile result may have getters, contain the same part a billion times, or change
 * while it is read. Every step counts against a limit, so the copy always ends. Runs inside the isolate: only type imports.
 */

export type PlainJson = string | number | boolean | null | PlainJson[] | { [key: string]: PlainJson };

/** An invalid result, as opposed to an error that it throws while it is read. */
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

export class PlainJsonCopier {
  readonly #tooLarge = new ResultProblem(
    'result-size',
    `the result is larger than ${RESULT_BYTES_MAX} bytes`,
  );
  readonly #tooDeep = new ResultProblem(
    'result',
    `the result is nested deeper than ${RESULT_DEPTH_MAX} levels, or contains itself`,
  );
  #bytesLeft = 0;

  /** Returns the copy or the problem. Throws if reading the result throws. */
  copy(result: object): PlainJson | ResultProblem {
    this.#bytesLeft = RESULT_BYTES_MAX;
    try {
      const plain = this.#visit(result, '', 0);
      return plain === undefined ? new ResultProblem('result', 'the result is not a JSON value') : plain;
    } catch (thrown) {
      if (thrown instanceof ResultProblem) return thrown;
      throw thrown;
    }
  }

  /** Approximate JSON size of the last copy, bytes. */
  get lastBytes(): number {
    return RESULT_BYTES_MAX - this.#bytesLeft;
  }

  /** Undefined when this string is small enough. */
  checkText(text: string): ResultProblem | undefined {
    return textBytes(text) > RESULT_BYTES_MAX ? this.#tooLarge : undefined;
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
        if (depth >= RESULT_DEPTH_MAX) throw this.#tooDeep;
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
    if (this.#bytesLeft < 0) throw this.#tooLarge;
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
