/** Which inputs and results are the same here as in the sandbox, where they arrive as JSON text; and how members are read: own ones only. */

import { ownValue, type JsonArray, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { ReadSet } from '../types.ts';
import { decline, type Budget } from './budget.ts';
import type { LocalObject, LocalValue } from './types.ts';

/** Deeper values are declined: of inputs, the sandbox takes 1000 levels, of results 64. */
const DEPTH_MAX = 32;

/** Declines if the sandbox could see something else: numbers that JSON text does not hold as they are, keys that are ordered or set in another way. */
export function acceptInput(value: unknown, budget: Budget, depth = 0): void {
  switch (typeof value) {
    case 'string':
      budget.read(value.length);
      return;
    case 'number':
      if (!isExact(value)) decline();
      return;
    case 'boolean':
      return;
    case 'object':
      if (value !== null) acceptMembers(value, budget, depth);
      return;
    default:
      decline();
  }
}

function acceptMembers(holder: object, budget: Budget, depth: number): void {
  if (depth >= DEPTH_MAX) decline();
  if (Array.isArray(holder)) {
    budget.spend(1 + holder.length);
    for (let at = 0; at < holder.length; at++) acceptInput(holder[at], budget, depth + 1);
    return;
  }
  if (!isPlain(holder)) decline();
  const keys = Object.keys(holder);
  budget.spend(1 + keys.length);
  for (const key of keys) {
    budget.read(key.length);
    acceptKey(key);
    acceptInput((holder as JsonObject)[key], budget, depth + 1); // plain
  }
}

/** The parts at these paths, see `prune`: what is sent to the sandbox. */
export function acceptInputs(value: unknown, paths: ReadSet['hostObject'], budget: Budget): void {
  for (const path of paths) acceptAt(value, path, budget);
}

function acceptAt(value: unknown, path: readonly string[], budget: Budget): void {
  let part = value;
  for (const key of path) {
    if (typeof part !== 'object' || part === null || Array.isArray(part)) break;
    budget.spend(1);
    part = ownValue(part as JsonObject, key); // an object of the daemon
    if (part === undefined) return;
  }
  acceptInput(part, budget);
}

/** Negative zero has no sign in the sandbox, and integers beyond 2^53 have no exact number. */
function isExact(value: number): boolean {
  return Math.abs(value) <= Number.MAX_SAFE_INTEGER && !Object.is(value, -0);
}

function isPlain(object: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(object);
  return prototype === Object.prototype || prototype === null;
}

const LONG_INDEX = /^\d{10,}$/;

/** Engines order large numbers as keys in different ways, and `__proto__` is no key of every object. */
export function acceptKey(key: string): void {
  if (key === '__proto__' || (key.length >= 10 && LONG_INDEX.test(key))) decline();
}

const INDEX = /^(?:0|[1-9]\d{0,8})$/;

/** The only way to a member. Own members of plain objects, elements and `length` of arrays and strings; what would be inherited is declined. */
export function memberOf(holder: LocalValue, key: LocalValue): LocalValue {
  if (typeof holder === 'string' || isList(holder)) {
    if (key === 'length') return holder.length;
    const index = typeof key === 'string' && INDEX.test(key) ? Number(key) : key;
    if (typeof index !== 'number' || !Number.isSafeInteger(index) || index < 0) return decline();
    return index < holder.length ? holder[index] : undefined;
  }
  if (typeof holder !== 'object' || holder === null) return decline();
  const name = typeof key === 'number' ? `${key}` : key;
  if (typeof name !== 'string') return decline();
  if (Object.hasOwn(holder, name)) return holder[name];
  return name in Object.prototype ? decline() : undefined;
}

export function isList(value: LocalValue): value is readonly LocalValue[] {
  return Array.isArray(value);
}

export function isObject(value: LocalValue): value is LocalObject {
  return typeof value === 'object' && value !== null && !isList(value);
}

/** Copied, because the result must not change with the inputs, nor they with it; frozen, as the results of the sandbox are. */
export function toResult(value: LocalValue, budget: Budget, depth = 0): JsonValue | undefined {
  switch (typeof value) {
    case 'string':
      budget.read(value.length);
      return value.isWellFormed() ? value : decline();
    case 'number':
      // Not -0, which JSON text does not hold.
      return Math.abs(value) <= Number.MAX_SAFE_INTEGER ? value + 0 : decline();
    case 'object':
      return value === null ? null : copyOf(value, budget, depth);
    default:
      return value;
  }
}

function copyOf(value: readonly LocalValue[] | LocalObject, budget: Budget, depth: number): JsonValue {
  if (depth >= DEPTH_MAX) decline();
  if (isList(value)) {
    budget.spend(1 + value.length);
    const list: JsonArray = value.map((each) => {
      const element = toResult(each, budget, depth + 1);
      return element === undefined ? decline() : element;
    });
    Object.freeze(list);
    return list;
  }
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) {
    budget.spend(1);
    budget.read(key.length);
    acceptKey(key);
    if (!key.isWellFormed()) decline();
    const member = toResult(value[key], budget, depth + 1);
    if (member !== undefined) copy[key] = member;
  }
  return Object.freeze(copy);
}
