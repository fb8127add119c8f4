/** Random hostile JavaScript from a grammar, with the outcomes that a sandbox may have. */

import type { EvaluateError } from '../../src/expressions/types.ts';
import type { Random } from '../../src/base/random.ts';

type ErrorKind = EvaluateError['kind'];

export interface HostileExpression {
  readonly text: string;
  /** What the front end must do; undefined: the text was mutated, so every outcome is possible. */
  readonly frontEnd: 'accepts' | 'forbids' | undefined;
  /** The kinds of errors that an evaluation may end in; a value is always possible. */
  readonly errors: readonly ErrorKind[];
}

const ORDINARY: readonly ErrorKind[] = ['runtime', 'result', 'result-size'];
const STOPPED: readonly ErrorKind[] = ['timeout', 'killed', 'memory'];

const DATA = [
  'value', 'context.path', 'context.vcluster.name', 'context.virtualObject', 'context', 'valueExists', '"text"', '"\\ud800"', '""',
  '0', '-0', 'NaN', '1e309', '(2 ** 53)', 'null', 'undefined', 'true', '[]', '[, 1]', '({})', '[value, [value]]', '/a+/g', '/(?<n>b)|/y',
  '`t${value}`', 'Symbol.iterator', 'Symbol("s")', 'new Map([[1, value]])', 'new Set("abc")', 'new Date(0)', 'new Error("e")',
  'new Uint8Array(8)', 'Object', 'Math', 'JSON', 'Reflect', 'Array.prototype', 'Object.create(null)', 'Infinity',
  'Object.prototype', 'Error.prototype', 'RegExp.prototype', 'Reflect.ownKeys(Math)', 'Object.freeze([1])', 'new String("boxed")',
]; // prettier-ignore
/** Refused by the front end, harmless in the realm. */
const FORBIDDEN = [
  'eval("1")', 'globalThis', 'Function("return 1")()', 'value.constructor', '[].constructor.constructor', '({}).__proto__', 'process',
  'require("fs")', 'import("fs")', 'async () => 1', '(async function* () {})', '10n ** 3n', 'new Date()', 'Date.now()',
  'new Proxy({}, {})', 'new WeakRef({})', 'WebAssembly', 'Promise.resolve(1)', 'setTimeout(() => 1)', 'Intl',
  '(function () { return new.target; })()', '({}).__defineGetter__("a", () => 1)', 'Atomics', 'fetch("/")', 'console.log(1)',
  'Math.random()', 'Symbol.for("a")', 'new Date(0).getHours()', 'RegExp.$1', 'context.vObject',
]; // prettier-ignore
/** Expressions that do not end. */
const ENDLESS = [
  '(() => { for (;;) {} })()', '(() => { while (true) { value; } })()', '(function f() { for (;;) try { f(); } catch {} })()',
  '[].indexOf.call({ length: 2 ** 53 - 1 }, 1)', '[...(function* () { for (;;) yield 1; })()]', 'Array.from({ length: 2 ** 32 }, () => {})',
  '(() => { const all = []; for (;;) all.push("x".repeat(1e6) + all.length); })()', '[].lastIndexOf.call({ length: 2 ** 53 - 1 }, 1)',
  '/^(a+)+$/i.test("a".repeat(64) + "b")', '({ toJSON() { for (;;) {} } })', '({ get a() { for (;;) {} } })',
  '(() => { throw { get message() { for (;;) {} } }; })()', '({ [Symbol.toPrimitive]() { for (;;) {} } }) + ""',
]; // prettier-ignore

type Production = (inner: () => string, random: Random) => string;

/** `inner` returns another expression. All of them end by themselves. */
const PRODUCTIONS: readonly Production[] = [
  (e) => `(${e()}, ${e()})`,
  (e) => `(${e()} ?? ${e()})`,
  (e) => `(${e()} ? ${e()} : ${e()})`,
  (e) => `[${e()}, ${e()}]`,
  (e) => `[...[${e()}], ...${e()}]`,
  (e) => `({ a: ${e()}, ["b"]: ${e()}, ...${e()} })`,
  (e) => `({ get a() { return ${e()}; }, set a(x) { ${e()}; } })`,
  (e) => `({ toJSON() { return ${e()}; }, valueOf() { return ${e()}; } })`,
  (e) => `({ [Symbol.toPrimitive]: () => ${e()}, [Symbol.toStringTag]: ${e()} })`,
  (e) => `({ [Symbol.iterator]: function* () { yield ${e()}; } })`,
  (e) => `(${e()} + ${e()})`,
  (e) => `(${e()} === ${e()})`,
  (e) => `(${e()} in Object(${e()}))`,
  (e) => `(typeof (0, ${e()}))`,
  (e) => `\`\${${e()}}\``,
  (e) => `((x) => ${e()})(${e()})`,
  (e) =>
    `((...x) => { try { throw ${e()}; } catch (y) { return [x, y, ${e()}]; } finally { ${e()}; } })(${e()})`,
  (e) => `(() => { throw ${e()}; })()`,
  (e) => `(() => { throw { name: ${e()}, message: ${e()} }; })()`,
  (e) => `(() => { throw Object.assign(new TypeError("\\n\\u202e"), { stack: ${e()} }); })()`,
  (e) => `(() => { const { a = ${e()}, ...rest } = Object(${e()}); return [a, rest]; })()`,
  (e) =>
    `(() => { let n = 0; for (const x of [${e()}, ${e()}]) { if (n++ > 3) break; value; } return n; })()`,
  (e) =>
    `(() => { label: for (const k in Object(${e()})) { switch (k) { case "a": continue label; default: return ${e()}; } } })()`,
  (e) => `new (class { #p = ${e()}; static s = ${e()}; get p() { return this.#p; } })()`,
  (e) =>
    `(class A extends Array { static get [Symbol.species]() { return Object(${e()}); } }).from([${e()}]).map(() => ${e()})`,
  (e) => `((strings, ...parts) => { strings.raw.x = ${e()}; return parts; })\`a\${${e()}}b\``,
  (e) => `Object.defineProperty(Object(${e()}), "x", { get: () => ${e()}, configurable: true })`,
  (e) => `Object.setPrototypeOf(Object(${e()}), Object(${e()}))`,
  (e) => `Object.assign(Object(${e()}), ${e()})`,
  (e) => `Object.freeze(${e()})`,
  (e) => `Object.entries(Object(${e()}))`,
  (e) => `Reflect.set(Object(${e()}), "polluted", ${e()})`,
  (e) => `Reflect.apply(() => ${e()}, ${e()}, [])`,
  (e) => `Reflect.construct(Error, [${e()}], Map)`,
  (e) => `JSON.parse(JSON.stringify(${e()}) ?? "null", (k, v) => v)`,
  (e) => `JSON.stringify([${e()}], (k, v) => v)`,
  (e) => `[3, 1, 2].sort(() => { value; return ${e()}; })`,
  (e) => `[1, 2].map((x) => ${e()})`,
  (e) => `[1, 2].reduce((x) => ${e()}, ${e()})`,
  (e) => `[1, 2, 3].flatMap((x, i, all) => { if (i < 1) all.push(${e()}); return x; })`,
  (e) => `String(${e()}).slice(0, 20).replace(/[a-z]/g, () => ${e()})`, // nested without a limit, it takes seconds
  (e) => `String(${e()}).split(${e()}, 5)`,
  (e) => `String(${e()}).repeat(3)`,
  (e) => `[...String(${e()}).matchAll(/./g)].length`,
  (e) => `new Map([[${e()}, ${e()}]]).get(${e()})`,
  (e) => `new Set([${e()}]).union(new Set([${e()}]))`,
  (e) => `(() => { const a = [${e()}]; a.push(a); return a; })()`,
  (e) => `(() => { let v = ${e()}; for (let i = 0; i < 80; i++) v = [v]; return v; })()`,
  (e) =>
    `(() => { const g = (function* () { try { yield ${e()}; } finally { ${e()}; } })(); g.next(); return g.return(1); })()`,
  (e) => `(() => { Object.prototype.polluted = ${e()}; return ({}).polluted; })()`,
  (e) => `(() => { try { Array.prototype.map = () => ${e()}; } catch { return [1].map(() => 2); } })()`,
  (e) => `(() => { const f = (n) => (n > 0 ? f(n - 1) : ${e()}); return f(50); })()`,
  (e) => `(() => { const f = () => f() + ${e()}; return f(); })()`,
  (e) => `({ [${e()}]: ${e()} })`,
  (_, random) => `"x".repeat(${Math.floor(random() * 20_000)})`,
  (_, random) =>
    JSON.stringify(String.fromCharCode(...Array.from({ length: 5 }, () => Math.floor(random() * 0xffff)))),
];

const DEPTH_MAX = 3;
const FORBIDDEN_SHARE = 0.08;
const MUTATED_SHARE = 0.1;
const LARGE_SHARE = 0.003;

/** An expression that ends by itself. */
export function hostileExpression(random: Random): HostileExpression {
  let isForbidden = false;
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T; // random is below 1
  const expression = (depth: number): string => {
    if (depth >= DEPTH_MAX || random() < 0.3) {
      if (random() >= FORBIDDEN_SHARE) return pick(DATA);
      isForbidden = true;
      return `(${pick(FORBIDDEN)})`;
    }
    return pick(PRODUCTIONS)(() => expression(depth + 1), random);
  };
  const text = random() < LARGE_SHARE ? large(random) : expression(0);
  if (random() < MUTATED_SHARE)
    return { text: mutated(text, random), frontEnd: undefined, errors: [...ORDINARY, ...STOPPED] };
  return { text, frontEnd: isForbidden ? 'forbids' : 'accepts', errors: ORDINARY };
}

/** An expression that does not end, in a place where it is evaluated. */
export function endlessExpression(random: Random): HostileExpression {
  const endless = ENDLESS[Math.floor(random() * ENDLESS.length)] ?? '';
  return { text: endless, frontEnd: 'accepts', errors: [...STOPPED, 'runtime'] };
}

/** A result of about the largest size. */
function large(random: Random): string {
  const length = 1024 * 1024 - 1000 + Math.floor(random() * 2000);
  return random() < 0.5 ? `"x".repeat(${length})` : `["x".repeat(${length})]`;
}

/** One part removed, doubled or exchanged. */
function mutated(text: string, random: Random): string {
  const from = Math.floor(random() * text.length);
  const to = Math.min(text.length, from + 1 + Math.floor(random() * 4));
  const part = text.slice(from, to);
  const replaced = random() < 0.4 ? '' : random() < 0.5 ? part + part : part.split('').toReversed().join('');
  return text.slice(0, from) + replaced + text.slice(to);
}
