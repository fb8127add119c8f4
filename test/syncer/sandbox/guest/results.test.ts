/** What comes out of the isolate: results as JSON, and thrown values as messages with a place, and nothing of the stack. */

import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isJsonObject } from '../../../../src/base/json.ts';
import { compileUnchecked, LIMITS, TestSandbox, textOf, type Outcome } from '../test-sandbox.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await TestSandbox.open({
    limits: { ...LIMITS, expressionTimeoutMs: 2000, batchTimeoutMs: 5000 },
  });
});
afterAll(() => sandbox[Symbol.asyncDispose]());

describe('results', () => {
  test.each<[string, Outcome | RegExp]>([
    ['undefined', { undefined: true }],
    ['null', { value: null }],
    ['-0', { value: 0 }],
    ['[undefined, () => 1, null]', { value: [null, null, null] }],
    ['({ a: undefined, f() {}, s: Symbol.iterator })', { value: {} }],
    ['({ toJSON() { return { a: 1 }; } })', { value: { a: 1 } }],
    ['new Map([[1, 2]])', { value: {} }],
    ['Object.assign(() => 1, { a: 1 })', /^result: the result is a function/],
    ['Symbol.iterator', /^result: the result is a symbol/],
    ['0 / 0', /^result: the result is NaN/],
    ['({ a: [0 / 0] })', /^result: the result contains NaN/],
    [
      '({ toString: 1, valueOf: "x", hasOwnProperty: null })',
      { value: { toString: 1, valueOf: 'x', hasOwnProperty: null } },
    ],
    ['[[], {}, "", 0, false]', { value: [[], {}, '', 0, false] }],
    ['Object.create({ inherited: 1 })', { value: {} }],
    ['"\\u2028\\u2029\\u0000\\n\\t\\"\\\\"', { value: '\u2028\u2029\u0000\n\t"\\' }],
    ['"\\ud800"', /^result: .*surrogate/],
    ['({ "\\udfff": 1 })', /^result: .*surrogate/],
    ['[["a", ["\\ud800"]]]', /^result: .*surrogate/],
    ['"😀"', { value: '😀' }],
    ['JSON.parse("{\\"__proto__\\":1}")', /^result: .*__proto__/],
    ['"x".repeat(1024 * 1024 - 2)', { value: 'x'.repeat(1024 * 1024 - 2) }],
    ['"x".repeat(1024 * 1024 + 1)', /^result-size/],
    ['"é".repeat(600000)', /^result-size/],
    ['Array(200000).fill("xxxxxx")', /^result-size/],
    ['Array(4e9)', /^result-size/],
    ['(() => { let o = 1; for (let i = 0; i < 64; i++) o = [o]; return o; })().length', { value: 1 }],
    ['(() => { let o = 1; for (let i = 0; i < 65; i++) o = [o]; return o; })()', /^result: .*64 levels/],
  ])('%s', async (expression, expected) => {
    // Not a literal, so that it has to come back.
    const outcome = await sandbox.run(
      `(() => ${expression.includes(';') ? `{ return ${expression}; }` : `(${expression})`})()`,
      1,
    );
    const isExpected =
      expected instanceof RegExp ? expected.test(textOf(outcome)) : isDeepStrictEqual(outcome, expected);
    expect({ outcome, isExpected }).toEqual({ outcome, isExpected: true });
  });

  test('a quote in a result does not change the other results, whatever its encoding', async () => {
    const hostile = [
      'plain',
      'a","b',
      '"',
      '\\',
      'x",["y',
      'm',
      'w"],"q',
      '"],0,0],[["',
      '\t',
      '\n',
      '',
      '["a"]\t',
      'end',
    ];
    const program = sandbox.define('value');
    for (let round = 0; round < 2; round++) {
      const { values, errors } = await sandbox.ask(program, hostile);
      expect(errors).toBeUndefined();
      expect(values).toEqual(hostile);
    }
    const other = sandbox.define('value + ""');
    const both = await Promise.all([
      sandbox.ask(other, hostile),
      sandbox.ask(other, ['a', 'b']),
      sandbox.ask(program, ['c']),
    ]);
    expect(both.map(({ values }) => values)).toEqual([hostile, ['a', 'b'], ['c']]);
  });

  test('errors, deletions and values of many types are returned at their indices', async () => {
    const program = sandbox.define(
      'value === 1 ? undefined : value === 2 ? null.x : value === 3 ? () => 1 : value',
    );
    const response = await sandbox.ask(program, [0, 1, 2, 3, 'four', { five: 5 }]);
    expect(response.values).toEqual([0, undefined, undefined, undefined, 'four', { five: 5 }]);
    expect([...(response.errors ?? [])].map(([index, { kind }]) => [index, kind])).toEqual([
      [2, 'runtime'],
      [3, 'result'],
    ]);
    const strings = sandbox.define('value === 1 ? undefined : value === 2 ? null.x : "s" + value');
    const texts = await sandbox.ask(strings, [0, 1, 2, 3]);
    expect(texts.values).toEqual(['s0', undefined, undefined, 's3']);
    expect([...(texts.errors?.keys() ?? [])]).toEqual([2]);
  });

  test('results are frozen, because they are shared', async () => {
    const program = sandbox.define('({ a: [value] })');
    const [value] = (await sandbox.ask(program, [1])).values;
    expect(isJsonObject(value) && Object.isFrozen(value) && Object.isFrozen(value['a'])).toBe(true);
  });
});

describe('errors', () => {
  test.each([
    ['value.a.b', 1, 9, /^TypeError: Cannot read properties of undefined/],
    ['value\n  .map((x) =>\n    x.y.z)', 3, 9, /^TypeError/],
    ['null.x +\n context.path', 1, 6, /^TypeError/],
    ['context.virtualObject.foo()', 1, 23, /^TypeError: context.virtualObject.foo is not a function/],
  ])('%j is placed', async (expression, line, column, message) => {
    const program = sandbox.define(expression);
    const response = await sandbox.ask(program, [[{}]], { virtualObject: {} });
    const error = response.errors?.get(0);
    expect(error?.message).toMatch(message);
    expect(error?.line).toBe(line);
    expect(error?.column).toBe(column);
  });

  test.each([
    ['(() => { throw "boo"; })()', 'threw boo'],
    ['(() => { throw undefined; })()', 'threw undefined'],
    ['(() => { throw Symbol("s"); })()', 'threw a symbol'],
    ['(() => { throw { get message() { throw 1; } }; })()', 'threw a value that cannot be described'],
    [
      '(() => { throw new Error("a\\nlevel=error \\u001b[31m\\u202e"); })()',
      'Error: a\\u000alevel=error \\u001b[31m\\u202e',
    ],
  ])('%s reports what was thrown, on one line', async (expression, message) => {
    const outcome = await sandbox.run(expression, 1);
    expect(outcome).toEqual({ error: 'runtime', message });
  });

  test('a message is bounded', async () => {
    const outcome = await sandbox.run('(() => { throw new Error("x".repeat(5e6)); })()', 1);
    expect(textOf(outcome).length).toBeLessThan(400);
  });
});

describe('stacks of errors are visible only to the host', () => {
  test.each([
    'new Error("boom").stack',
    '(() => { try { null.x; } catch (e) { return e.stack; } })()',
    '(() => { try { btoa("\u20ac"); } catch (e) { return e.stack; } })()',
    '(() => { try { [1].map(() => { throw new TypeError("deep"); }); } catch (e) { return e.stack; } })()',
    '(() => { const f = () => f(); try { f(); } catch (e) { return e.stack; } })()',
    '(() => { try { decodeURIComponent("%"); } catch (e) { return e.stack; } })()',
    '(() => { try { new RegExp("("); } catch (e) { return e.stack; } })()',
    'Error.prepareStackTrace(new Error("x"), [{ getFileName: () => "program-1", getLineNumber: () => 1, getColumnNumber: () => 1 }])',
  ])('%s', async (source) => {
    const outcome = await sandbox.run(compileUnchecked(source), 'v');
    expect(outcome).toHaveProperty('value');
    expect(JSON.stringify(outcome)).not.toMatch(/program|realm|\d+:\d+|\bat \b/);
    // The number of the program differs in each run.
    expect(await sandbox.run(compileUnchecked(source), 'v')).toEqual(outcome);
  });

  test.each([
    ['is replaced', '(Error.prepareStackTrace = (e, sites) => sites)'],
    ['is removed', '(delete Error.prepareStackTrace)'],
    ['is redefined', 'Object.defineProperty(Error, "prepareStackTrace", { value: (e, sites) => sites })'],
    [
      'is inherited',
      '(() => { class E extends Error { static prepareStackTrace(e, sites) { return sites; } } return new E("x").stack; })()',
    ],
  ])('also when prepareStackTrace %s', async (_how, source) => {
    const outcome = await sandbox.run(compileUnchecked(source), 'v');
    expect('error' in outcome || outcome).toEqual('error' in outcome ? true : { value: 'Error: x' });
    expect(await sandbox.run(compileUnchecked('new Error("y").stack'), 'v')).toEqual({ value: 'Error: y' });
  });
});
