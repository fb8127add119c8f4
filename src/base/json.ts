/** Raw JSON values, unknown fields included. No function here throws for a JSON value. */

import { parseWithLongIntegers } from './long-integers.ts';

export type JsonPrimitive = string | number | boolean | null;
export type JsonArray = JsonValue[];
export interface JsonObject {
  [key: string]: JsonValue;
}
export type JsonValue = JsonPrimitive | JsonArray | JsonObject;

/**
 * Parses JSON text. An integer beyond 2^53, which no number holds, becomes a BigInt, which everything else passes on as any other primitive value and
 * `JSON.stringify` writes with all its digits (see `writeLongIntegers`): counters and identifiers of custom resources must not be rounded. Throws a
 * `SyntaxError`.
 */
export function parseJson(text: string): JsonValue {
  const parsed: unknown = LONG_INTEGER.test(text) ? parseWithLongIntegers(text) : JSON.parse(text);
  return parsed as JsonValue; // JSON text is a JSON value
}

/** Anywhere in the text, also in a string. From the start of the digits: every other start would read them again. */
const LONG_INTEGER = /(?:^|\D)\d{16}/;

/** `source`: the text of the number. */
export function exactInteger(value: number, source: string): number {
  if (Number.isSafeInteger(value) || !/^-?\d{16,20}$/.test(source)) return value;
  return BigInt(source) as unknown as number; // a primitive value: what asks for its type takes it for none that it knows
}

declare global {
  /** Of ES2026, later than the types. */
  interface JSON {
    rawJSON(text: string): unknown;
  }
}

/** The only global that this program changes, once for each thread, when it starts: `JSON.stringify` throws for a BigInt without it. */
export function writeLongIntegers(): void {
  Object.defineProperty(BigInt.prototype, 'toJSON', {
    value(this: bigint): unknown {
      return JSON.rawJSON(String(this));
    },
    configurable: true,
  });
}

/** True for a JSON object: neither null nor an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Own property or undefined: a key such as `constructor` never reaches a prototype. */
export function ownValue(object: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** A text member; `''` where there is none. The others likewise: a member that is missing or of another type is empty. */
export function text(object: JsonObject, field: string): string {
  const value = ownValue(object, field);
  return typeof value === 'string' ? value : '';
}

/** NaN for a member that is not a number: `Number` would call the `toString` or `valueOf` that an object of JSON may have, and throw. */
export function numberField(object: JsonObject, field: string, otherwise = 0): number {
  const value = ownValue(object, field) ?? otherwise;
  return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : NaN;
}

export function objectField(object: JsonObject, field: string): JsonObject {
  const value = ownValue(object, field);
  return isJsonObject(value) ? value : {};
}

export function listField(object: JsonObject, field: string): JsonArray {
  const value = ownValue(object, field);
  return Array.isArray(value) ? value : [];
}

export function objectList(object: JsonObject, field: string): JsonObject[] {
  return listField(object, field).filter(isJsonObject);
}

/** The value at a path of member names and list indexes, own properties only; undefined where the path does not exist. */
export function valueAt(
  root: JsonValue | undefined,
  path: readonly (string | number)[],
): JsonValue | undefined {
  let value = root;
  for (const step of path) {
    if (Array.isArray(value)) value = typeof step === 'number' ? value[step] : undefined;
    else value = isJsonObject(value) && typeof step === 'string' ? ownValue(value, step) : undefined;
  }
  return value;
}

/** The string at a path; '' where there is none. */
export function textAt(root: JsonValue | undefined, ...path: readonly (string | number)[]): string {
  const value = valueAt(root, path);
  return typeof value === 'string' ? value : '';
}

/** Assigns an own property whatever the key is, `__proto__` included. */
export function setOwn<T>(object: Record<string, T>, key: string, value: T): void {
  if (key === '__proto__') {
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    object[key] = value;
  }
}

/** Objects and arrays are nested in each other on more levels than these, where recursion ends. */
export function isDeeperThan(value: JsonValue | undefined, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeperThan(member, levels - 1));
}

/** The length of its JSON text, or less; counting ends where it is more than `max`. Not recursive: the value may be nested as deeply as its author wants. */
export function textLengthOf(value: JsonValue, max: number): number {
  let length = 0;
  const pending: (JsonValue | undefined)[] = [value];
  while (pending.length > 0 && length <= max) {
    const next = pending.pop();
    if (typeof next === 'string') length += next.length + 2;
    else if (typeof next !== 'object' || next === null) length += 1;
    else if (Array.isArray(next)) {
      length += next.length + 1;
      for (const element of next) pending.push(element);
    } else {
      for (const key in next) {
        length += key.length + 4;
        pending.push(next[key]);
        if (length > max) break;
      }
    }
  }
  return length;
}

/** Structural equality; the order of an object's keys does not matter, the order of an array does. */
export function jsonEquals(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!jsonEquals(a[i], b[i])) return false;
    return true;
  }
  let count = 0;
  // No list of keys and no function for each value: this compares most of what the syncer reads.
  for (const key in a) {
    if (!Object.hasOwn(b, key) || !jsonEquals(a[key], b[key])) return false;
    count += 1;
  }
  for (const _key in b) count -= 1;
  return count === 0;
}

/** A deep copy that shares nothing with the original and keeps own `__proto__` keys as plain data; without members that are undefined, which JSON text has none of. */
export function cloneJson<T extends JsonValue>(value: T): T {
  return cloneValue(value) as T; // the copy has the shape of the original
}

function cloneValue(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(cloneValue);
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) {
    const member = value[key];
    if (member !== undefined) setOwn(copy, key, cloneValue(member));
  }
  return copy;
}

/** JSON text with sorted keys: equal values give equal text. */
export function canonicalJson(value: JsonValue): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`);
  return `{${members.join(',')}}`;
}

/** JSON Merge Patch (RFC 7396): the merged value, in the order of the target, which shares nothing with `patch`. Null removes a member, an object merges, any other value replaces. */
export function mergePatch(target: JsonValue | undefined, patch: JsonObject): JsonObject {
  const before: JsonObject = isJsonObject(target) ? target : {};
  const result: JsonObject = {};
  for (const key of new Set([...Object.keys(before), ...Object.keys(patch)])) {
    if (!Object.hasOwn(patch, key)) {
      setOwn(result, key, before[key] ?? null);
      continue;
    }
    const value = patch[key] ?? null;
    if (value === null) continue;
    setOwn(result, key, isJsonObject(value) ? mergePatch(ownValue(before, key), value) : cloneJson(value));
  }
  return result;
}
