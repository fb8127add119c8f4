/** The names that every expression has in scope. A test compares them with the realm's allow list. */

const INPUT_NAMES: readonly string[] = ['value', 'valueExists', 'context'];
export const GLOBAL_NAMES: readonly string[] = [
  'Array',
  'ArrayBuffer',
  'Boolean',
  'DataView',
  'Date',
  'Error',
  'EvalError',
  'Float32Array',
  'Float64Array',
  'Infinity',
  'Int16Array',
  'Int32Array',
  'Int8Array',
  'JSON',
  'Map',
  'Math',
  'NaN',
  'Number',
  'Object',
  'RangeError',
  'ReferenceError',
  'Reflect',
  'RegExp',
  'Set',
  'String',
  'Symbol',
  'SyntaxError',
  'TypeError',
  'URIError',
  'Uint16Array',
  'Uint32Array',
  'Uint8Array',
  'Uint8ClampedArray',
  'WeakMap',
  'WeakSet',
  'atob',
  'base64',
  'btoa',
  'decodeURI',
  'decodeURIComponent',
  'encodeURI',
  'encodeURIComponent',
  'isFinite',
  'isNaN',
  'parseFloat',
  'parseInt',
  'undefined',
  'virtualToHostDNS',
];

/** Whether an expression may use the name without declaring it. */
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

/** What to say about a name that is not in scope. */
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
  const [short, long] = a.length <= b.length ? [a, b] : [b, a];
  if (short.length < 3 || long.length - short.length > 1) return false;
  let i = 0;
  while (i < short.length && short[i] === long[i]) i += 1;
  if (short.length < long.length) return short.slice(i) === long.slice(i + 1);
  const isSwap =
    short[i] === long[i + 1] && short[i + 1] === long[i] && short.slice(i + 2) === long.slice(i + 2);
  return isSwap || short.slice(i + 1) === long.slice(i + 1);
}
