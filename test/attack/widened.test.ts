/** Language features that are allowed although they could be a way out of the sandbox, each with the attacks that it might enable. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compileExpression } from '../../src/syncer/sandbox/front-end/compile-expression.ts';
import { compileUnchecked, LIMITS, TestSandbox, textOf } from '../syncer/sandbox/test-sandbox.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await TestSandbox.open({ limits: { ...LIMITS, expressionTimeoutMs: 200 } });
});
afterAll(() => sandbox[Symbol.asyncDispose]());

describe('Date', () => {
  test.each([
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
  ])('%s', async (expression, value) => {
    expect(await sandbox.run(expression, 'v')).toEqual({ value });
  });

  test.each([
    'new Date(...[])',
    'Reflect.construct(Date, [])',
    '(() => { const D = Date; return new D(); })()',
    '(() => { const D = Date; return D(); })()',
    'Date["n" + "ow"]()',
    'new (class extends Date {})()',
    'new (Object.getPrototypeOf(new Date(0))["const" + "ructor"])()',
    '[0].map(Date)',
    'Date.call(new Date(0))',
  ])('no clock by %s', async (expression) => {
    expect(textOf(await sandbox.run(compileUnchecked(expression), 'v'))).toMatch(/^runtime: /);
  });

  test.each(['new Date()', 'new Date', 'Date()', 'Date(0)', 'Date.now()', 'Date["now"]()', 'Date.now'])(
    '%s is refused before it runs',
    (expression) => {
      const outcome = compileExpression(expression, 0);
      expect(outcome.ok || outcome.problem.message).toMatch(/there is no clock/);
    },
  );
});

test.each([
  '(class { static f() { return (function () { return typeof this; })(); } }).f()',
  '({ f() { return [1].map(function () { return typeof this; }); } }).f()',
  '(() => this)()',
  '({ [this]: 1 })',
  'class A { [this] = 1 } new A()',
  'class A { constructor() { this.a = super.x; } } 1',
  'new (class { "__proto__" = 1 })()',
  'class A { static caller() {} } A',
])('%s is refused', (expression) => {
  expect(compileExpression(expression, 0)).toMatchObject({ ok: false });
});

describe('no state persists in, and no host object is reachable through', () => {
  test.each([
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
  ])('%s', async (_what, expression, value) => {
    const outcome = compileExpression(expression, 0);
    expect(await sandbox.run(outcome, 'v')).toEqual({ value });
  });

  test.each([
    '[...(function* () { for (;;) yield 1; })()]',
    'Array.from({ length: 1e5 }, () => new Uint8Array(1e7)).length',
    'new Uint8Array(2 ** 31).fill(1).sort((a, b) => a - b).length',
    '(class { static x = (() => { for (;;) {} })(); }).x',
    'for (;;) { value }',
  ])('%s is stopped, and the next expression runs', async (expression) => {
    await using own = await TestSandbox.open();
    const outcome = await own.run(expression, 'v', {});
    expect(textOf(outcome)).toMatch(/^(timeout|memory|killed|runtime): /);
    expect(await own.run('value + "!"', 'v')).toEqual({ value: 'v!' });
  });
});
