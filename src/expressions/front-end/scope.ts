/** What an expression may use, and what it may not, with reasons. A test compares the list in docs/reference.md with the refusals. */

import { editDistance } from '../../base/suggest.ts';
import { ALLOWED } from '../guest/harden.ts';

const INPUT_NAMES: readonly string[] = ['value', 'valueExists', 'context'];
export const GLOBAL_NAMES: readonly string[] = [
  ...Object.keys(ALLOWED).filter((path) => !path.includes('.')),
  'Infinity',
  'NaN',
  'atob',
  'btoa',
  'undefined',
  'virtualToHostDNS',
].toSorted();

export function isInScope(name: string): boolean {
  return INPUT_NAMES.includes(name) || GLOBAL_NAMES.includes(name);
}

const KNOWN_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  base64: ['encode', 'decode'],
  context: ['vcluster', 'hostObject', 'virtualObject', 'path'],
  'context.vcluster': ['name', 'namespace', 'config'],
};
/** Names that vCluster's own code uses for the same objects. */
const CONTEXT_ALIASES: Readonly<Record<string, string>> = {
  vObject: 'virtualObject',
  pObject: 'hostObject',
};

/** What to say about a member that `context`, `context.vcluster` or `base64` does not have; undefined: it has it, or is another object. */
export function memberProblem(receiver: readonly string[], key: string): string | undefined {
  const path = receiver.join('.');
  const known = Object.hasOwn(KNOWN_MEMBERS, path) ? KNOWN_MEMBERS[path] : undefined;
  if (known === undefined || known.includes(key) || Object.hasOwn(Object.prototype, key)) return undefined;
  const alias = Object.hasOwn(CONTEXT_ALIASES, key) ? CONTEXT_ALIASES[key] : undefined;
  const close = path === 'context' && alias !== undefined ? alias : closest(key, known);
  const hint = close === undefined ? `it has ${known.join(', ')}` : `did you mean \`${path}.${close}\`?`;
  return `\`${path}.${key}\` does not exist; ${hint}`;
}

export function suggestion(name: string): string {
  const close = closest(name, [...INPUT_NAMES, ...GLOBAL_NAMES]);
  return close === undefined
    ? '; in scope are value, valueExists and context, and text needs quotes inside the expression'
    : `; did you mean \`${close}\`?`;
}

function closest(name: string, names: readonly string[]): string | undefined {
  return names.find((known) => known.toLowerCase() === name.toLowerCase() || isOneEditAway(name, known));
}

function isOneEditAway(a: string, b: string): boolean {
  const isNear = Math.min(a.length, b.length) >= 3 && Math.abs(a.length - b.length) <= 1;
  return isNear && editDistance(a, b) === 1;
}

export interface Refusal {
  readonly name: string;
  readonly reason: string;
}

const NO_CLOCK = 'there is no clock: a result depends only on the inputs';
const LATER = 'expressions are synchronous';
const SCOPE = 'it gives access to code outside of the expression';

/** By node type. A type that is neither listed here nor allowed is rejected as well, so a newer parser cannot add syntax. */
export const REFUSED_SYNTAX: Readonly<Record<string, Refusal>> = {
  AwaitExpression: { name: '`await`', reason: LATER },
  DebuggerStatement: { name: '`debugger`', reason: 'there is no debugger' },
  ExportAllDeclaration: { name: '`export`', reason: 'an expression is not a module' },
  ExportDefaultDeclaration: { name: '`export`', reason: 'an expression is not a module' },
  ExportNamedDeclaration: { name: '`export`', reason: 'an expression is not a module' },
  ImportDeclaration: { name: '`import`', reason: 'there is nothing to import' },
  ImportExpression: { name: '`import`', reason: 'there is nothing to import' },
  MetaProperty: { name: '`new.target` and `import.meta`', reason: SCOPE },
  StaticBlock: { name: '`static {}`', reason: 'a static field does the same' },
  Super: { name: '`super`', reason: 'it gives access to prototypes' },
  WithStatement: { name: '`with`', reason: 'strict mode has none' },
};

export const REFUSED_FORMS = {
  async: { name: '`async`', reason: LATER },
  bigint: { name: 'BigInt', reason: 'its values are not JSON' },
  this: { name: '`this` outside of classes and methods', reason: SCOPE },
  dateWithoutInput: { name: '`new Date()`, `Date()` and `Date.now()`', reason: NO_CLOCK },
} as const satisfies Readonly<Record<string, Refusal>>;

/** Members, in any notation. */
export const REFUSED_KEYS = byReason(
  [
    ['it gives access to prototypes', '__proto__'],
    ['it changes objects without a check', '__defineGetter__ __defineSetter__'],
    ['it gives access to functions of prototypes', '__lookupGetter__ __lookupSetter__'],
    [SCOPE, 'arguments callee caller'],
    ['it gives access to prototypes and to functions that compile text', 'constructor'],
  ],
  (key) => `the member \`${key}\``,
);

/** Well-known globals. Any other name that is not in scope is rejected without a reason. */
export const REFUSED_NAMES = byReason(
  [
    [SCOPE, 'arguments global globalThis'],
    ['it compiles text that was not checked', 'eval Function'],
    ['there is one thread', 'Atomics SharedArrayBuffer'],
    ['its values are not JSON', 'BigInt BigInt64Array BigUint64Array'],
    ['it makes garbage collection observable', 'FinalizationRegistry WeakRef'],
    ['there is no locale data', 'Intl'],
    ['there is no clock and no time zone; `Date` with input works', 'Temporal'],
    [LATER, 'AsyncDisposableStack Promise queueMicrotask setImmediate setInterval setTimeout'],
    ['a result must be data', 'Proxy'],
    ['it compiles code that was not checked', 'WebAssembly'],
    ['nothing has to be disposed', 'DisposableStack SuppressedError'],
    ['`new Error` does the same', 'AggregateError'],
    ['`Float32Array` works', 'Float16Array'],
    ['the methods of an iterator work: `value.values().map(…)`', 'Iterator'],
    ['`encodeURIComponent` and `decodeURIComponent` work', 'escape unescape'],
    ['`base64`, `atob` and `btoa` work', 'Buffer TextDecoder TextEncoder'],
    ['the methods of a string work', 'URL URLSearchParams'],
    ['`JSON.parse(JSON.stringify(value))` does the same', 'structuredClone'],
    ['there is no output besides the value', 'console'],
    ['there is no randomness', 'crypto'],
    [NO_CLOCK, 'performance'],
    ['there is no network', 'fetch'],
    ['there is no access to the process', 'process'],
    ['there is nothing to import', 'require'],
  ],
  (name) => `\`${name}\``,
);

function byReason(
  rows: readonly (readonly [reason: string, words: string])[],
  shown: (word: string) => string,
): Readonly<Record<string, Refusal>> {
  const refusals = rows.flatMap(([reason, words]) =>
    words.split(' ').map((word): [string, Refusal] => [word, { name: shown(word), reason }]),
  );
  return Object.fromEntries(refusals);
}

interface AbsentMembers extends Refusal {
  /** Separated by spaces: members of a global (`Math.random`), and methods of any object (`.getHours`). */
  readonly members: string;
}

/** Members that the realm lacks. A test compares them with the members of Node.js that are not on the realm's allow list. */
export const ABSENT_MEMBERS: readonly AbsentMembers[] = [
  { name: '`Math.random`', reason: 'there is no randomness', members: 'Math.random' },
  {
    name: '`toLocaleString`, `toLocaleUpperCase` and other methods of a locale',
    reason: 'there is no locale data',
    members: '.toLocaleString .toLocaleLowerCase .toLocaleUpperCase .toLocaleDateString .toLocaleTimeString',
  },
  {
    name: 'local time of a `Date`, such as `getHours`',
    reason: 'there is no time zone; `getUTCHours` works',
    members:
      '.getDate .getDay .getFullYear .getHours .getMilliseconds .getMinutes .getMonth .getSeconds .getTimezoneOffset .getYear ' +
      '.setDate .setFullYear .setHours .setMilliseconds .setMinutes .setMonth .setSeconds .setYear',
  },
  {
    name: '`toUTCString` and other texts of a `Date`',
    reason: '`toISOString` works',
    members: '.toDateString .toTimeString .toUTCString .toGMTString .toTemporalInstant',
  },
  { ...REFUSED_FORMS.dateWithoutInput, members: 'Date.now' },
  {
    name: '`Symbol.for` and `Symbol.keyFor`',
    reason: 'it would last beyond the expression',
    members: 'Symbol.for Symbol.keyFor',
  },
  {
    name: 'the last match, such as `RegExp.$1`',
    reason: 'it would last beyond the expression; `exec` returns the match',
    members:
      "RegExp.input RegExp.lastMatch RegExp.lastParen RegExp.leftContext RegExp.rightContext RegExp.$_ RegExp.$& RegExp.$+ RegExp.$` RegExp.$' " +
      'RegExp.$1 RegExp.$2 RegExp.$3 RegExp.$4 RegExp.$5 RegExp.$6 RegExp.$7 RegExp.$8 RegExp.$9',
  },
  { name: '`Array.fromAsync`', reason: LATER, members: 'Array.fromAsync' },
  { name: '`Error.captureStackTrace`', reason: 'there are no stacks', members: 'Error.captureStackTrace' },
  {
    name: '`JSON.rawJSON` and `JSON.isRawJSON`',
    reason: 'a result must be data',
    members: 'JSON.rawJSON JSON.isRawJSON',
  },
  {
    name: '`link` and other methods of a string that write HTML',
    reason: 'a template literal does the same',
    members: '.anchor .big .blink .bold .fixed .fontcolor .fontsize .italics .link .small .strike .sub .sup',
  },
  { name: '`compile` of a regular expression', reason: '`new RegExp` does the same', members: '.compile' },
  {
    name: '`toBase64`, `Uint8Array.fromHex` and other conversions of bytes',
    reason: '`base64`, `atob` and `btoa` work',
    members: 'Uint8Array.fromBase64 Uint8Array.fromHex .setFromBase64 .setFromHex .toBase64 .toHex',
  },
  {
    name: '64-bit and 16-bit numbers of a `DataView`',
    reason: '`getInt32`, `getFloat32` and others work',
    members: '.getBigInt64 .getBigUint64 .getFloat16 .setBigInt64 .setBigUint64 .setFloat16',
  },
  {
    name: '`resize` and `transfer` of an `ArrayBuffer`',
    reason: '`slice` copies it',
    members: '.resize .transfer .transferToFixedLength',
  },
  {
    name: '`getOrInsert` of a `Map`',
    reason: '`get` and `set` work',
    members: '.getOrInsert .getOrInsertComputed',
  },
];

export function refusalRows(): readonly string[] {
  const all = [
    ...Object.values(REFUSED_SYNTAX),
    ...Object.values(REFUSED_FORMS),
    ...Object.values(REFUSED_KEYS),
    ...Object.values(REFUSED_NAMES),
    ...ABSENT_MEMBERS,
  ];
  return [...new Set(all.map(({ name, reason }) => `| ${name} | ${reason} |`))];
}
