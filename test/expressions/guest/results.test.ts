/** What comes out of the isolate: results as JSON, and thrown values as messages with a place, and nothing of the stack. */

import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isJsonObject, type JsonValue } from '../../../src/base/json.ts';
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
    ['[null]', { value: [null] }],
    ['({ a: undefined, b: null })', { value: { b: null } }],
    ['({ [Symbol("a")]: 1, b: 2 })', { value: { b: 2 } }],
    ['({ toJSON() { return { a: 1 }; } })', { value: { a: 1 } }],
    ['({ toJSON() { return null; } })', { value: null }],
    ['({ a: new Date(0) })', { value: { a: '1970-01-01T00:00:00.000Z' } }],
    ['[new String("a"), new Number(1), Object(false)]', { value: ['a', 1, false] }],
    ['"a1".match(/([a-z])\\d/)', { value: ['a1', 'a'] }],
    ['Object.groupBy(["a"], (x) => x)', { value: { a: ['a'] } }],
    ['({ ...new (class { a = 1; })() })', { value: { a: 1 } }],
    [
      '({ toString: 1, valueOf: "x", hasOwnProperty: null })',
      { value: { toString: 1, valueOf: 'x', hasOwnProperty: null } },
    ],
    ['[[], {}, "", 0, false]', { value: [[], {}, '', 0, false] }],
    ['"\\u2028\\u2029\\u0000\\n\\t\\"\\\\"', { value: '\u2028\u2029\u0000\n\t"\\' }],
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

/** Sources of values that JSON cannot hold, with what the error calls them. */
const UNHOLDABLE: readonly (readonly [source: string, what: string, hint?: string])[] = [
  ['() => 1', 'a function', ': call it'],
  ['Object.assign(() => 1, { a: 1 })', 'a function', ': call it'],
  ['class {}', 'a function'],
  ['parseInt', 'a function'],
  ['Symbol.iterator', 'a symbol'],
  ['Object(Symbol.iterator)', 'a Symbol'],
  ['0 / 0', 'NaN'],
  ['1 / 0', 'Infinity'],
  ['-1e400', '-Infinity'],
  ['new Number(0 / 0)', 'NaN'],
  ['new Date("2026-11-28 10:00")', 'an invalid Date', ': its input'],
  ['new Date(NaN)', 'an invalid Date'],
  ['new Map([[1, 2]])', 'a Map', ': write Object.fromEntries'],
  ['new (class extends Map {})()', 'a Map'],
  ['new Set(["a"])', 'a Set', ': write [...'],
  ['new WeakMap()', 'a WeakMap'],
  ['new WeakSet()', 'a WeakSet'],
  ['/a/', 'a RegExp', ': return its source'],
  ['new Error("x")', 'an Error', ': throw it'],
  ['new RangeError("x")', 'an Error'],
  ['new Uint8Array([1, 2])', 'a Uint8Array', ': write Array.from'],
  ['new Float64Array(1)', 'a Float64Array'],
  ['new ArrayBuffer(1)', 'an ArrayBuffer'],
  ['new DataView(new ArrayBuffer(1))', 'a DataView'],
  ['["a"].values()', 'an Array Iterator', ': write [...'],
  ['new Map().entries()', 'a Map Iterator'],
  ['["a"].values().map((x) => x)', 'an Iterator Helper'],
  ['(function* () {})()', 'a Generator'],
  ['new (class Port { port = 1; })()', 'an instance of Port', ': write {...'],
  ['new (class { get ip() { return 1; } })()', 'an instance of another object'],
  ['Object.create({ inherited: 1 })', 'an instance of another object'],
  ['({ toJSON() {} })', 'an object whose toJSON returns nothing'],
  ['({ toJSON() { return new Map(); } })', 'a Map'],
  ['({ toJSON() { return new Date(0); } })', 'a Date'],
  ['({ toJSON() { return () => 1; } })', 'a function'],
  ['Object.defineProperty({}, "a", { value: 1 })', 'a member that is not enumerable'],
  ['[undefined]', 'undefined in a list'],
  ['[() => 1]', 'a function'],
  ['[1, , 2]', 'a hole in a list'],
  ['Array(3)', 'a hole in a list'],
  ['"b".match(/(a)?b/)', 'undefined in a list'],
  ['Object.assign([], { key: 1 })', 'a member of a list'],
  ['(() => { const a = {}; a.a = a; return a; })()', 'a value that contains itself'],
  ['(() => { const a = []; a.push([a]); return a; })()', 'a value that contains itself'],
  ['"\\ud800"', 'half of a surrogate pair'],
  ['({ "\\udfff": 1 })', 'half of a surrogate pair in the key'],
];

describe('a result that JSON cannot hold', () => {
  test.each(UNHOLDABLE)('%s is an error that names it and its place', async (source, what, hint = '') => {
    const alone = textOf(await sandbox.run(`void 0, (${source})`, 1));
    expect(alone).toMatch(/^result: the result (?:is|has) /);
    expect(alone).toContain(what);
    expect(alone).toContain(hint);
    const nested = textOf(await sandbox.run(`({ metadata: { "a/b": [1, (${source})] } })`, 1));
    expect(nested).toContain(`the result has ${what}`);
    expect(nested).toContain(' at metadata["a/b"][1]');
  });

  test('its name and its place are bounded, whatever they are', async () => {
    const long = '"x".repeat(1000)';
    const nested = await sandbox.run(
      `({ [${long}]: new (class { get [Symbol.toStringTag]() { return ${long}; } })() })`,
      1,
    );
    expect(textOf(nested).length).toBeLessThan(320);
    const tagged = await sandbox.run(
      'new (class { get [Symbol.toStringTag]() { return "toString"; } })()',
      1,
    );
    expect(textOf(tagged)).toBe('result: the result is a toString, which JSON cannot hold');
  });

  interface Sample {
    readonly source: string;
    readonly value: JsonValue | undefined;
    readonly bad: readonly string[];
  }
  const leaf = fc.oneof(
    {
      weight: 5,
      // An expression may not name it.
      arbitrary: fc
        .jsonValue({ maxDepth: 1 })
        .filter((value) => !JSON.stringify(value).includes('"__proto__"'))
        .map(sampleOf),
    },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom(...UNHOLDABLE)
        .map(([source, what]): Sample => ({ source: `(${source})`, value: undefined, bad: [what] })),
    },
  );
  function sampleOf(value: unknown): Sample {
    const source = JSON.stringify(value);
    return { source: `(${source})`, value: JSON.parse(source) as JsonValue, bad: [] };
  }
  const { result } = fc.letrec<{ result: Sample; list: Sample; object: Sample }>((tie) => ({
    result: fc.oneof({ maxDepth: 5 }, leaf, tie('list'), tie('object')),
    list: fc.array(tie('result'), { maxLength: 4 }).map((parts) => ({
      source: `[${parts.map(({ source }) => source).join(', ')}]`,
      value: parts.map(({ value }) => value ?? null),
      bad: parts.flatMap(({ bad }) => bad),
    })),
    object: fc
      .dictionary(
        fc.string({ maxLength: 6 }).filter((key) => key !== '__proto__'),
        tie('result'),
        { maxKeys: 4 },
      )
      .map((parts) => ({
        source: `({ ${Object.entries(parts)
          .map(([key, { source }]) => `[${JSON.stringify(key)}]: ${source}`)
          .join(', ')} })`,
        value: Object.fromEntries(Object.entries(parts).map(([key, { value }]) => [key, value ?? null])),
        bad: Object.values(parts).flatMap(({ bad }) => bad),
      })),
  }));

  test('wherever it is, nothing is lost: an error, or the exact value', async () => {
    await fc.assert(
      fc.asyncProperty(result, async ({ source, value, bad }) => {
        const outcome = await sandbox.run(`void 0, ${source}`, 1);
        const isExpected =
          bad.length === 0
            ? isDeepStrictEqual(outcome, { value })
            : bad.some((what) => textOf(outcome).includes(what));
        expect({ outcome, isExpected }).toEqual({ outcome, isExpected: true });
      }),
      { numRuns: 400 },
    );
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
