/** Reduces the realm to the allow list and freezes the rest. Runs inside the isolate, before any expression: only type imports.
 */

import { ALLOWED, ALLOWED_HIDDEN } from './allow-list.ts';

type Holder = Record<PropertyKey, unknown>;
/** Functions that are deleted from the realm but needed until the end of the hardening. */
type Tools = typeof Reflect;

/** Deletes all globals and members that are not allowed, adds `additions` as globals, and freezes everything. */
export function hardenRealm(additions: Readonly<Record<string, unknown>>): void {
  const root = globalThis as unknown as Holder;
  const tools: Tools = Reflect;
  const hidden = hiddenIntrinsics();
  const named: [holder: Holder, members: string][] = [];
  for (const [path, members] of Object.entries(ALLOWED)) {
    const [name = '', prototype] = path.split('.');
    const holder = prototype === undefined ? root[name] : (root[name] as Holder | undefined)?.[prototype];
    if (holder !== undefined && holder !== null) named.push([holder as Holder, members]);
  }
  for (const [name, members] of Object.entries(ALLOWED_HIDDEN)) {
    const holder = hidden[name];
    if (holder !== undefined) named.push([holder, members]);
  }
  // Enough for the position of an error, and not writable.
  Object.defineProperty(Error, 'stackTraceLimit', { value: 10 });
  for (const [holder, members] of named) reduce(holder, members, tools);
  const functionPrototype = Function.prototype as unknown as Holder;
  for (const key of tools.ownKeys(root)) {
    const isKept = typeof key === 'string' && (Object.hasOwn(ALLOWED, key) || isPlainConstant(key));
    if (!isKept) tools.deleteProperty(root, key);
  }
  // Otherwise functions would inherit Object as their constructor.
  Object.defineProperty(functionPrototype, 'constructor', { value: undefined });
  for (const [name, value] of Object.entries(additions)) {
    Object.defineProperty(root, name, { value });
  }
  const frozen = new Set<object>();
  for (const holder of [...named.map(([each]) => each), ...Object.values(additions), root]) {
    freezeAll(holder, frozen, tools);
  }
}

function isPlainConstant(key: string): boolean {
  return key === 'undefined' || key === 'NaN' || key === 'Infinity';
}

function reduce(holder: Holder, members: string, tools: Tools): void {
  const kept = new Set<PropertyKey>(['length', 'name', 'prototype']);
  for (const member of members.split(' ')) {
    kept.add(member.startsWith('@@') ? Symbol[member.slice(2) as 'iterator'] : member);
  }
  const isFunction = typeof holder === 'function';
  for (const key of tools.ownKeys(holder)) {
    const isWanted =
      kept.has(key) && (isFunction || typeof key === 'symbol' || members.split(' ').includes(key));
    if (!isWanted && !(Array.isArray(holder) && key === 'length')) tools.deleteProperty(holder, key);
  }
}

/** Freezes everything reachable from `start`: own members, getters and setters, prototypes. */
function freezeAll(start: unknown, frozen: Set<object>, tools: Tools): void {
  const pending: unknown[] = [start];
  while (pending.length > 0) {
    const next = pending.pop();
    if ((typeof next !== 'object' && typeof next !== 'function') || next === null || frozen.has(next)) {
      continue;
    }
    frozen.add(next);
    for (const key of tools.ownKeys(next)) {
      const descriptor = tools.getOwnPropertyDescriptor(next, key);
      if (descriptor === undefined) continue;
      if ('value' in descriptor) pending.push(descriptor.value);
      else pending.push(descriptor.get, descriptor.set);
    }
    pending.push(tools.getPrototypeOf(next));
    Object.freeze(next);
  }
}

function hiddenIntrinsics(): Record<string, Holder | undefined> {
  const prototypeOf = (value: unknown): Holder | undefined =>
    value === undefined || value === null
      ? undefined
      : ((Reflect.getPrototypeOf(value as object) ?? undefined) as Holder | undefined);
  const arrayIterator = prototypeOf([][Symbol.iterator]());
  const generatorFunction = prototypeOf(function* () {});
  const asyncGeneratorFunction = prototypeOf(async function* () {});
  const asyncGenerator = asyncGeneratorFunction?.['prototype'] as Holder | undefined;
  const hidden: Record<string, Holder | undefined> = {
    '%IteratorPrototype%': prototypeOf(arrayIterator),
    '%ArrayIteratorPrototype%': arrayIterator,
    '%StringIteratorPrototype%': prototypeOf(''[Symbol.iterator]()),
    '%MapIteratorPrototype%': prototypeOf(new Map().entries()),
    '%SetIteratorPrototype%': prototypeOf(new Set().values()),
    '%RegExpStringIteratorPrototype%': prototypeOf('a'.matchAll(/a/g)),
    '%IteratorHelperPrototype%': prototypeOf([].values().map((each) => each)),
    '%GeneratorFunction.prototype%': generatorFunction,
    '%GeneratorPrototype%': generatorFunction?.['prototype'] as Holder | undefined,
    '%AsyncFunction.prototype%': prototypeOf(async () => {}),
    '%AsyncGeneratorFunction.prototype%': asyncGeneratorFunction,
    '%AsyncGeneratorPrototype%': asyncGenerator,
    '%AsyncIteratorPrototype%': prototypeOf(asyncGenerator),
    '%PromisePrototype%': prototypeOf((async () => {})()),
    '%Promise%': Promise as unknown as Holder,
    '%TypedArray%': prototypeOf(Uint8Array),
    '%TypedArrayPrototype%': prototypeOf(Uint8Array.prototype),
    '%BigIntPrototype%': BigInt.prototype as unknown as Holder,
  };
  return hidden;
}
