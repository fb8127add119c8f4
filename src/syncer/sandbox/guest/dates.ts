/** `Date` without clock and time zone: everything is UTC and depends only on the input. Runs inside the isolate: only type imports.
 */

/** ISO 8601: a date alone, or a date and a time with an optional offset. */
const ISO_TEXT =
  /^(?:[+-]\d{6}|\d{4})(?:-\d\d(?:-\d\d)?)?(T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/;

export function createDate(): unknown {
  const Native = Date;
  const { construct } = Reflect;

  const parse = (text: unknown): number => {
    const input = `${text as string}`;
    const match = ISO_TEXT.exec(input);
    if (match === null) return NaN;
    return Native.parse(match[1] !== undefined && match[2] === undefined ? `${input}Z` : input);
  };
  const timeOf = (input: unknown): number => {
    if (typeof input === 'string') return parse(input);
    return input instanceof Native ? input.getTime() : Number(input);
  };
  const SafeDate = function (...parts: number[]): unknown {
    if (new.target === undefined || parts.length === 0)
      throw new TypeError('there is no clock: Date needs an input');
    const [first = NaN, ...rest] = parts;
    const time = rest.length === 0 ? timeOf(first) : Native.UTC(first, ...rest);
    return construct(Native, [time], new.target) as unknown;
  };
  Object.defineProperty(SafeDate, 'name', { value: 'Date' });
  Object.defineProperty(SafeDate, 'prototype', { value: Native.prototype });
  Object.defineProperty(SafeDate, 'parse', { value: parse });
  Object.defineProperty(SafeDate, 'UTC', { value: Native.UTC });
  const shown = {
    toString(this: Date): string {
      return Native.prototype.toISOString.call(this);
    },
  };
  Object.defineProperty(Native.prototype, 'constructor', { value: SafeDate });
  addMethods(Native.prototype, shown);
  return SafeDate;
}

/** Adds methods to a prototype, non-enumerable as built-in methods are. */
export function addMethods(prototype: object, methods: object): void {
  for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(methods))) {
    Object.defineProperty(prototype, name, { ...(descriptor as PropertyDescriptor), enumerable: false });
  }
}

/** Compares by code point: there is no locale data. */
export const byCodePoint = {
  localeCompare(this: string, other: unknown): number {
    const [a, b] = [`${this}`, `${other as string}`];
    if (a === b) return 0;
    let at = 0;
    while (at < a.length && a.charCodeAt(at) === b.charCodeAt(at)) at++;
    return (a.codePointAt(at) ?? -1) < (b.codePointAt(at) ?? -1) ? -1 : 1;
  },
};
