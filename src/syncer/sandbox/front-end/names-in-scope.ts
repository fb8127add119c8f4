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

/** What to say about a name that is not in scope. */
export function suggestion(name: string): string {
  const close = [...INPUT_NAMES, ...GLOBAL_NAMES].find(
    (known) => known.toLowerCase() === name.toLowerCase() || isOneEditAway(name, known),
  );
  return close === undefined
    ? '; in scope are value, valueExists and context'
    : `; did you mean \`${close}\`?`;
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
