/** Reduces the realm to the allow list and freezes the rest. Runs inside the isolate, before any expression: only type imports. Allowed
 * members depend only on their inputs: no clock, no randomness, no locale, no access to source text, host objects or persistent state. */

type Holder = Record<PropertyKey, unknown>;

/** Any object has members, whatever its type says. */
function holderOf(object: unknown): Holder {
  return object as Holder;
}

export function hardenRealm(additions: Readonly<Record<string, unknown>>): void {
  const root = holderOf(globalThis);
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
  for (const [holder, members] of named) reduce(holder, members);
  for (const path of Object.keys(ALLOWED)) {
    const [name = '', prototype] = path.split('.');
    const holder = prototype === undefined ? undefined : (root[name] as Holder | undefined)?.[prototype];
    if (holder !== undefined && !INLINED.includes(name)) allowOwnMembers(holder as Holder, isAnyName);
  }
  for (const holder of [Array.prototype, Reflect.getPrototypeOf(Uint8Array.prototype)])
    allowOwnMembers(holderOf(holder), (key) => key === 'toString');
  // Otherwise functions would inherit Object as their constructor.
  Object.defineProperty(Function.prototype, 'constructor', { value: undefined });
  for (const key of Reflect.ownKeys(root)) {
    // It leaves `undefined`, `NaN` and `Infinity`, which no code can delete.
    if (!Object.hasOwn(ALLOWED, key)) Reflect.deleteProperty(root, key);
  }
  for (const [name, value] of Object.entries(additions)) {
    Object.defineProperty(root, name, { value });
  }
  const frozen = new Set<object>();
  for (const holder of [...named.map(([each]) => each), ...Object.values(additions), root]) {
    freezeAll(holder, frozen);
  }
}

function reduce(holder: Holder, members: string): void {
  const kept = new Set<PropertyKey>(typeof holder === 'function' ? ['length', 'name', 'prototype'] : []);
  for (const member of members.split(' ')) {
    kept.add(member.startsWith('@@') ? Symbol[member.slice(2) as 'iterator'] : member);
  }
  for (const key of Reflect.ownKeys(holder)) if (!kept.has(key)) Reflect.deleteProperty(holder, key);
}

/** V8 inlines the methods of lists and of texts, which as accessors take ten times as long. Of lists, `toString` may be an object's own. */
export const INLINED: readonly string[] = ['Array', 'String', 'RegExp'];

function isAnyName(): boolean {
  return true;
}

/** An object can have own members with the names of a frozen prototype's, such as an annotation `constructor`: an assignment would throw, because
 * the inherited member is not writable. As accessors, members of the prototype do not stand in its way. */
function allowOwnMembers(prototype: Holder, isOwnable: (key: string) => boolean): void {
  const { defineProperty } = Object;
  for (const key of Object.getOwnPropertyNames(prototype)) {
    if (!isOwnable(key)) continue;
    const descriptor = Object.getOwnPropertyDescriptor(prototype, key);
    if (descriptor?.configurable !== true || !('value' in descriptor)) continue;
    const value: unknown = descriptor.value;
    defineProperty(prototype, key, {
      get: () => value,
      set(this: object, own: unknown) {
        if (this === prototype) throw new TypeError(`Cannot assign to read only property '${key}' of object`);
        defineProperty(this, key, { value: own, writable: true, enumerable: true, configurable: true });
      },
      enumerable: false,
      configurable: false,
    });
  }
}

/** Freezes everything reachable from `start`: own members, getters and setters, prototypes. */
function freezeAll(start: unknown, frozen: Set<object>): void {
  const pending: unknown[] = [start];
  while (pending.length > 0) {
    const next = pending.pop();
    if ((typeof next !== 'object' && typeof next !== 'function') || next === null || frozen.has(next)) {
      continue;
    }
    frozen.add(next);
    for (const key of Reflect.ownKeys(next)) {
      const descriptor = Reflect.getOwnPropertyDescriptor(next, key);
      if (descriptor === undefined) continue;
      if ('value' in descriptor) pending.push(descriptor.value);
      else pending.push(descriptor.get, descriptor.set);
    }
    pending.push(Reflect.getPrototypeOf(next));
    Object.freeze(next);
  }
}

function hiddenIntrinsics(): Record<string, Holder | undefined> {
  const prototypeOf = (value: object | undefined): Holder | undefined =>
    value && holderOf(Reflect.getPrototypeOf(value) ?? undefined);
  const arrayIterator = prototypeOf([][Symbol.iterator]());
  const generatorFunction = prototypeOf(function* () {});
  const asyncGeneratorFunction = prototypeOf(async function* () {});
  const asyncGenerator = asyncGeneratorFunction?.['prototype'] as Holder | undefined;
  return {
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
    '%Promise%': holderOf(Promise),
    '%TypedArray%': prototypeOf(Uint8Array),
    '%TypedArrayPrototype%': prototypeOf(Uint8Array.prototype),
    '%BigIntPrototype%': holderOf(BigInt.prototype),
  };
}

/** `@@name` stands for `Symbol.name`. `length`, `name` and `prototype` of functions stay everywhere. */
export const ALLOWED: Readonly<Record<string, string>> = {
  Object:
    'assign create defineProperties defineProperty entries freeze fromEntries getOwnPropertyDescriptor getOwnPropertyDescriptors ' +
    'getOwnPropertyNames getOwnPropertySymbols getPrototypeOf groupBy hasOwn is isExtensible isFrozen isSealed keys ' +
    'preventExtensions seal setPrototypeOf values',
  'Object.prototype': 'constructor hasOwnProperty isPrototypeOf propertyIsEnumerable toString valueOf',
  'Function.prototype': 'apply bind call toString @@hasInstance',
  Array: 'from isArray of @@species',
  'Array.prototype':
    'constructor at concat copyWithin entries every fill filter find findIndex findLast findLastIndex flat flatMap forEach includes ' +
    'indexOf join keys lastIndexOf map pop push reduce reduceRight reverse shift slice some sort splice toReversed toSorted ' +
    'toSpliced toString unshift values with @@iterator @@unscopables',
  String: 'fromCharCode fromCodePoint raw',
  'String.prototype':
    'constructor at charAt charCodeAt codePointAt concat endsWith includes indexOf isWellFormed lastIndexOf localeCompare match matchAll normalize ' +
    'padEnd padStart repeat replace replaceAll search slice split startsWith substr substring toLowerCase toString toUpperCase ' +
    'toWellFormed trim trimEnd trimLeft trimRight trimStart valueOf @@iterator',
  Number:
    'EPSILON MAX_SAFE_INTEGER MAX_VALUE MIN_SAFE_INTEGER MIN_VALUE NEGATIVE_INFINITY NaN POSITIVE_INFINITY isFinite isInteger isNaN ' +
    'isSafeInteger parseFloat parseInt',
  'Number.prototype': 'constructor toExponential toFixed toPrecision toString valueOf',
  Boolean: '',
  'Boolean.prototype': 'constructor toString valueOf',
  // V8 does not allow these to be deleted.
  Symbol:
    'asyncDispose asyncIterator dispose hasInstance isConcatSpreadable iterator match matchAll replace search species split toPrimitive toStringTag unscopables',
  'Symbol.prototype': 'constructor description toString valueOf @@toPrimitive @@toStringTag',
  RegExp: 'escape @@species',
  'RegExp.prototype':
    'constructor dotAll exec flags global hasIndices ignoreCase multiline source sticky test toString unicode unicodeSets @@match ' +
    '@@matchAll @@replace @@search @@split',
  Map: 'groupBy @@species',
  'Map.prototype':
    'constructor clear delete entries forEach get has keys set size values @@iterator @@toStringTag',
  Set: '@@species',
  'Set.prototype':
    'constructor add clear delete difference entries forEach has intersection isDisjointFrom isSubsetOf isSupersetOf keys size ' +
    'symmetricDifference union values @@iterator @@toStringTag',
  WeakMap: '',
  'WeakMap.prototype': 'constructor delete get has set @@toStringTag',
  WeakSet: '',
  'WeakSet.prototype': 'constructor add delete has @@toStringTag',
  Error: 'isError prepareStackTrace stackTraceLimit',
  'Error.prototype': 'constructor message name toString',
  ...alike('EvalError RangeError ReferenceError SyntaxError TypeError URIError', '', 'message name'),
  JSON: 'parse stringify @@toStringTag',
  Math:
    'E LN10 LN2 LOG10E LOG2E PI SQRT1_2 SQRT2 abs acos acosh asin asinh atan atan2 atanh cbrt ceil clz32 cos cosh exp expm1 f16round ' +
    'floor fround hypot imul log log10 log1p log2 max min pow round sign sin sinh sqrt tan tanh trunc @@toStringTag',
  Reflect:
    'apply construct defineProperty deleteProperty get getOwnPropertyDescriptor getPrototypeOf has isExtensible ownKeys ' +
    'preventExtensions set setPrototypeOf @@toStringTag',
  Date: 'UTC parse',
  // Without members that depend on the time zone or a locale.
  'Date.prototype':
    'constructor getTime getUTCDate getUTCDay getUTCFullYear getUTCHours getUTCMilliseconds getUTCMinutes getUTCMonth getUTCSeconds ' +
    'setTime setUTCDate setUTCFullYear setUTCHours setUTCMilliseconds setUTCMinutes setUTCMonth setUTCSeconds toISOString toJSON ' +
    'toString valueOf @@toPrimitive',
  ArrayBuffer: 'isView @@species',
  'ArrayBuffer.prototype': 'constructor byteLength slice @@toStringTag',
  DataView: '',
  'DataView.prototype':
    'constructor buffer byteLength byteOffset getFloat32 getFloat64 getInt16 getInt32 getInt8 getUint16 getUint32 getUint8 setFloat32 ' +
    'setFloat64 setInt16 setInt32 setInt8 setUint16 setUint32 setUint8 @@toStringTag',
  ...alike(
    'Float32Array Float64Array Int16Array Int32Array Int8Array Uint16Array Uint32Array Uint8Array Uint8ClampedArray',
    'BYTES_PER_ELEMENT',
    'BYTES_PER_ELEMENT',
  ),
  base64: 'decode encode',
  ...functions(
    'decodeURI decodeURIComponent encodeURI encodeURIComponent isFinite isNaN parseFloat parseInt',
  ),
};

/** Constructors with the same members. */
function alike(names: string, members: string, ofPrototype: string): Record<string, string> {
  const entries = names.split(' ').flatMap((name) => [
    [name, members],
    [`${name}.prototype`, `constructor ${ofPrototype}`],
  ]);
  return Object.fromEntries(entries) as Record<string, string>; // of pairs
}

function functions(names: string): Record<string, string> {
  return Object.fromEntries(names.split(' ').map((name) => [name, '']));
}

/** Intrinsics without a global name that are reachable by syntax or methods. */
export const ALLOWED_HIDDEN: Readonly<Record<string, string>> = {
  '%IteratorPrototype%':
    'drop every filter find flatMap forEach map reduce some take toArray @@iterator @@toStringTag',
  '%ArrayIteratorPrototype%': 'next @@toStringTag',
  '%StringIteratorPrototype%': 'next @@toStringTag',
  '%MapIteratorPrototype%': 'next @@toStringTag',
  '%SetIteratorPrototype%': 'next @@toStringTag',
  '%RegExpStringIteratorPrototype%': 'next @@toStringTag',
  '%IteratorHelperPrototype%': 'next return @@toStringTag',
  '%GeneratorFunction.prototype%': 'prototype @@toStringTag',
  '%GeneratorPrototype%': 'next return throw @@toStringTag',
  '%AsyncFunction.prototype%': '@@toStringTag',
  '%AsyncGeneratorFunction.prototype%': 'prototype @@toStringTag',
  '%AsyncGeneratorPrototype%': '@@toStringTag',
  '%AsyncIteratorPrototype%': '',
  '%AsyncFromSyncIteratorPrototype%': '',
  '%PromisePrototype%': '',
  '%Promise%': '',
  '%TypedArray%': 'from of @@species',
  '%TypedArrayPrototype%':
    'constructor at buffer byteLength byteOffset copyWithin entries every fill filter find findIndex findLast findLastIndex forEach ' +
    'includes indexOf join keys lastIndexOf length map reduce reduceRight reverse set slice some sort subarray toReversed toSorted ' +
    'toString values with @@iterator @@toStringTag',
  '%BigIntPrototype%': 'toString valueOf @@toStringTag',
};
