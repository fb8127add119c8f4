/**
 * What an expression may not use and why, in one table: the check reads it, and the list in docs/patches.md is compared with it by a test.
 */

export interface Refusal {
  /** As it is called in a message. */
  readonly name: string;
  readonly reason: string;
}

const NO_CLOCK = 'there is no clock: a result depends on nothing but the inputs';
const LATER = 'nothing happens after the expression has given its value';
const SCOPE = 'it leads out of the expression, to its caller';

/** By the syntax tree's node type. A type that is neither here nor allowed is refused, too: a newer parser cannot let anything in. */
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
  Super: { name: '`super`', reason: 'it leads to prototypes' },
  WithStatement: { name: '`with`', reason: 'strict mode has none' },
};

/** What only looks at a node's members can tell. */
export const REFUSED_FORMS = {
  async: { name: '`async`', reason: LATER },
  bigint: { name: 'BigInt', reason: 'its values are not JSON' },
  this: { name: '`this` outside of classes and methods', reason: SCOPE },
  dateWithoutInput: { name: '`new Date()`, `Date()` and `Date.now()`', reason: NO_CLOCK },
} as const satisfies Readonly<Record<string, Refusal>>;

/** Members, however they are reached in the text. */
export const REFUSED_KEYS: Readonly<Record<string, Refusal>> = Object.fromEntries(
  [
    ['__proto__', 'it leads to prototypes'],
    ['__defineGetter__', 'it changes objects behind the back of the check'],
    ['__defineSetter__', 'it changes objects behind the back of the check'],
    ['__lookupGetter__', 'it leads to functions of prototypes'],
    ['__lookupSetter__', 'it leads to functions of prototypes'],
    ['arguments', SCOPE],
    ['callee', SCOPE],
    ['caller', SCOPE],
    ['constructor', 'it leads to prototypes and to functions that compile text'],
  ].map(([key = '', reason = '']) => [key, { name: `the member \`${key}\``, reason }]),
);

/** Names that programs elsewhere have. Any other name that is not in scope is refused without a reason. */
export const REFUSED_NAMES: Readonly<Record<string, Refusal>> = Object.fromEntries(
  [
    ['arguments', SCOPE],
    ['eval', 'it compiles text that was not checked'],
    ['Function', 'it compiles text that was not checked'],
    ['globalThis', SCOPE],
    ['Atomics', 'there is one thread'],
    ['SharedArrayBuffer', 'there is one thread'],
    ['BigInt', 'its values are not JSON'],
    ['BigInt64Array', 'its values are not JSON'],
    ['BigUint64Array', 'its values are not JSON'],
    ['FinalizationRegistry', 'it shows when memory is collected'],
    ['WeakRef', 'it shows when memory is collected'],
    ['Intl', 'there is no locale data'],
    ['Temporal', 'there is no clock and no time zone; `Date` with input works'],
    ['Promise', LATER],
    ['queueMicrotask', LATER],
    ['setInterval', LATER],
    ['setTimeout', LATER],
    ['Proxy', 'a result must be data'],
    ['WebAssembly', 'it compiles code that was not checked'],
    ['console', 'there is no output but the value'],
    ['crypto', 'there is no randomness'],
    ['performance', NO_CLOCK],
    ['fetch', 'there is no network'],
    ['process', 'there is no process to look at'],
    ['require', 'there is nothing to import'],
  ].map(([name = '', reason = '']) => [name, { name: `\`${name}\``, reason }]),
);

/** Members that the realm does not have, refused when they are called. */
export const ABSENT_MEMBERS: readonly Refusal[] = [
  { name: '`Math.random`', reason: 'there is no randomness' },
  {
    name: '`toLocaleString`, `toLocaleUpperCase` and other methods of a locale',
    reason: 'there is no locale data',
  },
  {
    name: 'local time of a `Date`, such as `getHours`',
    reason: 'there is no time zone; `getUTCHours` works',
  },
  { name: '`Symbol.for`', reason: 'it would last beyond the expression' },
];

/** As rows of a Markdown table, each once. */
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
