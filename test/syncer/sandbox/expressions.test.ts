/** Expressions in the real sandbox: the cases of `test/cases`, the variables in scope, results and errors. */

import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import { loadCases, textAt } from '../../support/cases.ts';
import { LIMITS, outcomeOf, TestSandbox, textOf, type Outcome } from './test-sandbox.ts';

const worked = loadCases('patches').filter(({ id }) => id.startsWith('expr-'));

let sandbox: TestSandbox;
beforeAll(async () => {
  const vcluster = { name: 'vcluster', namespace: 'vcluster-ns', config: { a: { b: [1] } } };
  sandbox = await TestSandbox.open({ vcluster, limits: { ...LIMITS, expressionTimeoutMs: 1000 } });
});
afterAll(() => sandbox[Symbol.asyncDispose]());

describe('the expressions of test/cases', () => {
  test.each(worked)('$id', async ({ input, expected }) => {
    // YAML's `undefined` is a text, as it is in a configuration file.
    const outcome = await sandbox.run(textAt(input, 'expression'), input['value'] ?? null, {
      path: textAt(input, 'path'),
    });
    // Null and undefined both delete the member.
    expect('undefined' in outcome ? { value: null } : outcome).toEqual({ value: expected });
  });

  test('are complete', () => {
    expect(worked).toHaveLength(17);
  });
});

describe('what is in scope', () => {
  const objects = {
    hostObject: { kind: 'H' },
    virtualObject: { metadata: { name: 'web', labels: { a: 'b' } } },
    path: 'a.0',
  };

  test.each<[string, JsonValue]>([
    ['valueExists', true],
    ['context.path', 'a.0'],
    ['context.vcluster.name + "/" + context.vcluster.namespace', 'vcluster/vcluster-ns'],
    ['context.vcluster.config.a.b[0]', 1],
    ['context.virtualObject.metadata.name + context.hostObject.kind', 'webH'],
    ['context.virtualObject.metadata.labels', { a: 'b' }],
    ['context["virtualObject"].metadata', { name: 'web', labels: { a: 'b' } }],
    ['Object.keys(context).join()', 'vcluster,hostObject,virtualObject,path'],
    ['context.virtualObject.metadata.missing ?? "none"', 'none'],
    ['context.virtualObject.spec?.replicas ?? 3', 3],
    ['JSON.stringify(context.hostObject)', '{"kind":"H"}'],
    ['atob(btoa("\\xff\\0a"))', '\u00ff\u0000a'],
    ['base64.decode(base64.encode("Grüße 🌍"))', 'Grüße 🌍'],
    ['const { encode } = base64; ["é"].map(encode)', ['w6k=']],
    ['virtualToHostDNS("nginx.default.svc")', 'nginx-x-default-x-vcluster.vcluster-ns.svc'],
    [
      'virtualToHostDNS("http://nginx.default.svc:80/")',
      'http://nginx-x-default-x-vcluster.vcluster-ns.svc:80/',
    ],
    ['(() => { try { virtualToHostDNS(value) } catch (error) { return error.name } })()', 'RangeError'],
  ])('%s', async (expression, expected) => {
    expect(await sandbox.run(expression, 'v', objects)).toEqual({ value: expected });
  });

  test('objects that do not exist are null', async () => {
    const program = sandbox.define('[context.hostObject, context.virtualObject]');
    expect((await sandbox.ask(program, [1])).values).toEqual([[null, null]]);
    expect(textOf(await sandbox.run('context.hostObject.kind', 1))).toMatch(
      /^runtime: TypeError: Cannot read properties of null/,
    );
  });

  test('a value that does not exist is undefined', async () => {
    expect(await sandbox.run('[valueExists, typeof value]', undefined)).toEqual({
      value: [false, 'undefined'],
    });
    const program = sandbox.define('valueExists ? value : "none"');
    expect((await sandbox.ask(program, [1, undefined, null, undefined])).values).toEqual([
      1,
      'none',
      null,
      'none',
    ]);
  });

  test('the value is a mutable copy; the context is read-only', async () => {
    const value: JsonObject = { list: [3, 1, 2] };
    expect(await sandbox.run('value.list.sort(); value.done = true; value', value)).toEqual({
      value: { list: [1, 2, 3], done: true },
    });
    expect(value).toEqual({ list: [3, 1, 2] });
    const virtualObject = { list: [1] };
    expect(textOf(await sandbox.run('context.virtualObject.list.push(2)', 1, { virtualObject }))).toMatch(
      /^runtime: TypeError/,
    );
    expect(textOf(await sandbox.run('(context.virtualObject.x = 1)', 1, { virtualObject }))).toMatch(
      /^runtime: TypeError/,
    );
  });
});

describe('keys that prototypes have too', () => {
  const OWN = ['constructor', 'prototype', 'toString', 'valueOf', 'hasOwnProperty', 'isPrototypeOf'];
  const value = Object.fromEntries(OWN.map((key) => [key, key]));
  const masked = Object.fromEntries(OWN.map((key) => [key, '***']));

  test.each([
    'Object.keys(value).reduce((copy, key) => { copy[key] = "***"; return copy }, {})',
    'Object.assign({}, value, Object.fromEntries(Object.keys(value).map((key) => [key, "***"])))',
    'const copy = {}; for (const key in value) copy[key] = "***"; copy',
    'for (const key of Object.keys(value)) value[key] = "***"; value',
  ])('are those of data: %s', async (expression) => {
    expect(await sandbox.run(expression, value)).toEqual({ value: masked });
  });

  test('are not changed in prototypes', async () => {
    const attempt = (code: string) =>
      sandbox.run(`(() => { try { ${code} } catch (e) { return e.name } })()`, 1);
    const prototype = 'Object.getPrototypeOf({})';
    expect(await attempt(`${prototype}.toString = () => "x"; return "set"`)).toEqual({ value: 'TypeError' });
    const setter = `Object.getOwnPropertyDescriptor(${prototype}, "toString").set`;
    expect(await attempt(`${setter}.call(${prototype}, 1); return "set"`)).toEqual({ value: 'TypeError' });
    expect(await attempt(`${setter}.call(Math, 1); return "set"`)).toEqual({ value: 'TypeError' });
    expect(await sandbox.run('String({}) + ({}).valueOf.name', 1)).toEqual({
      value: '[object Object]valueOf',
    });
  });
});

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

describe('many requests', () => {
  test('of several programs, with and without objects, return to their callers', async () => {
    const programs = [
      sandbox.define('value + 1'),
      sandbox.define('context.virtualObject.metadata.name + value'),
      sandbox.define('context.path'),
      sandbox.define('context.virtualObject.metadata?.labels?.a ?? value'),
    ];
    const asked = Array.from({ length: 3000 }, (_, i) => {
      const program = programs[i % programs.length];
      if (program === undefined) throw new Error('no program');
      const virtualObject = {
        metadata: { name: `n${i}`, ...(i % 8 === 3 ? { labels: { a: `l${i}` } } : {}) },
      };
      const count = 1 + (i % 3);
      const values = Array.from({ length: count }, (_value, m) => i * 10 + m);
      return sandbox.ask(program, values, { virtualObject, paths: values.map((value) => `p${value}`) });
    });
    const responses = await Promise.all(asked);
    for (const [i, response] of responses.entries()) {
      const values = Array.from({ length: 1 + (i % 3) }, (_value, m) => i * 10 + m);
      const expected = values.map((value) =>
        [value + 1, `n${i}${value}`, `p${value}`, i % 8 === 3 ? `l${i}` : value].at(i % 4),
      );
      expect(response).toEqual({ values: expected, errors: undefined });
    }
  });

  test('large values and results are transferred in chunks', async () => {
    const program = sandbox.define('value + "!"');
    const values = Array.from({ length: 20 }, (_, i) => String(i).repeat(400_000));
    const { values: results } = await sandbox.ask(program, values);
    expect(results).toEqual(values.map((value) => `${value}!`));
  });

  test('a value that is too deep to be sent fails only for its match', async () => {
    let deep: JsonValue = 1;
    for (let i = 0; i < 1001; i++) deep = [deep];
    const program = sandbox.define('value === 7 ? 2 : 1');
    const [first, second] = await Promise.all([sandbox.ask(program, [deep]), sandbox.ask(program, [7])]);
    expect(textOf(outcomeOf(first, 0))).toMatch(/^runtime: .*1000 levels/);
    expect(second?.values).toEqual([2]);
  });
});
