/** What hostile authors of expressions write: tables that the tests of the sandbox and those of the whole daemon read. */

import type { JsonValue } from '../../src/base/json.ts';

/** A date from given input, and what it becomes. */
export const DATES: readonly [expression: string, value: JsonValue][] = [
  ['new Date("2026-01-01T00:00:00Z").toISOString()', '2026-01-01T00:00:00.000Z'],
  ['new Date("2026-01-01")', '2026-01-01T00:00:00.000Z'],
  ['new Date("2026-01-01T10:00")', '2026-01-01T10:00:00.000Z'],
  ['new Date("2026-01-01T10:00+02:00")', '2026-01-01T08:00:00.000Z'],
  ['new Date(2026, 0, 1)', '2026-01-01T00:00:00.000Z'],
  ['`${new Date(0)}`', '1970-01-01T00:00:00.000Z'],
  ['Date.UTC(2026, 0, 1)', 1_767_225_600_000],
  ['Date.parse("Jan 1 2026") === Date.parse("Jan 1 2026")', false],
  ['new Date(new Date(5)) - 0', 5],
  ['new Date(0) instanceof Date', true],
  [
    'Object.getPrototypeOf(new (class extends Date { year() { return this.getUTCFullYear(); } })(0)) === Date.prototype',
    false,
  ],
];

/** Refused before they run: there is no clock. */
export const CLOCKS: readonly string[] = [
  'new Date()',
  'new Date',
  'Date()',
  'Date(0)',
  'Date.now()',
  'Date["now"]()',
  'Date.now',
];

/** There is none when they run either, whether they are refused or not. */
export const HIDDEN_CLOCKS: readonly string[] = [
  'new Date(...[])',
  'Reflect.construct(Date, [])',
  '(() => { const D = Date; return new D(); })()',
  '(() => { const D = Date; return D(); })()',
  'Date["n" + "ow"]()',
  'new (class extends Date {})()',
  'new (Object.getPrototypeOf(new Date(0))["const" + "ructor"])()',
  '[0].map(Date)',
  'Date.call(new Date(0))',
];

/** Refused before they run. */
export const REFUSED: readonly string[] = [
  '(class { static f() { return (function () { return typeof this; })(); } }).f()',
  '({ f() { return [1].map(function () { return typeof this; }); } }).f()',
  '(() => this)()',
  '({ [this]: 1 })',
  'class A { [this] = 1 } new A()',
  'class A { constructor() { this.a = super.x; } } 1',
  'new (class { "__proto__" = 1 })()',
  'class A { static caller() {} } A',
];

/** Each leaves no state behind, and reaches no object of the host. */
export const STATELESS: readonly [what: string, expression: string, value: JsonValue][] = [
  ['a static field', '(class { static x = 1; }).x', 1],
  [
    'a class of an intrinsic',
    '(class extends Object {}).getPrototypeOf(Object) === Object.getPrototypeOf(Array)',
    true,
  ],
  [
    'a generator that is not finished',
    '(() => { const g = (function* () { yield 1; })(); g.next(); return g.next().done; })()',
    true,
  ],
  [
    'the constructor of generators',
    'typeof Object.getPrototypeOf(function* () {})["const" + "ructor"]',
    'undefined',
  ],
  [
    'Reflect on a frozen prototype',
    'Reflect.set(Array.prototype, "x", 1) || Reflect.defineProperty(Object.prototype, "x", { value: 1 })',
    false,
  ],
  ['Reflect with another receiver', 'Reflect.set({}, "x", 1, Object.prototype)', false],
  [
    'Reflect on the global object',
    '(() => { try { return Reflect.ownKeys(undefined); } catch { return "none"; } })()',
    'none',
  ],
  [
    'the prototype of typed arrays',
    'Reflect.set(Object.getPrototypeOf(Uint8Array.prototype), "x", 1)',
    false,
  ],
  ['a buffer of a typed array', 'new Uint8Array([1, 300]).buffer.byteLength', 2],
  ['memory that was not cleared', 'new Uint8Array(1e6).some((byte) => byte !== 0)', false],
  ['localeCompare of astral characters', '"\\uffee".localeCompare("\\ud83c\\udf88")', -1],
  [
    'localeCompare of equal texts',
    '"a".localeCompare("a") + "b".localeCompare("a") + "a".localeCompare("ab")',
    0,
  ],
];

/** Time or memory ends them. */
export const ENDLESS: readonly string[] = [
  '[...(function* () { for (;;) yield 1; })()]',
  'Array.from({ length: 1e5 }, () => new Uint8Array(1e7)).length',
  'new Uint8Array(2 ** 31).fill(1).sort((a, b) => a - b).length',
  '(class { static x = (() => { for (;;) {} })(); }).x',
  'for (;;) { value }',
];

/** Only the end of their process ends them. */
export const WEDGES: readonly string[] = [
  '(() => { while (true) {} })()',
  '[].indexOf.call({ length: 2 ** 53 - 1 }, 1)',
];

/** Matched in linear time, although an engine that backtracks takes exponential time for the text. */
export const REGEXPS: readonly [regexp: string, text: string][] = [
  ['/^(a+)+$/', `${'a'.repeat(40)}b`],
  ['/(x+x+)+y/', 'x'.repeat(40)],
  ['/^(a|aa)+$/', `${'a'.repeat(60)}b`],
  ['/^(?<name>a+)+$/', `${'a'.repeat(40)}b`],
  ['/^(a+?)+?$/m', `${'a'.repeat(40)}b`],
  ['/(?:a*)*b/s', 'a'.repeat(40)],
  ['/^(?=x)?(a+)+$/', `${'a'.repeat(40)}b`],
];
