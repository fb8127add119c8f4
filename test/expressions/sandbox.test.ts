/** Expressions in the real sandbox: the variables in scope, and results that are known already. The cases of `test/cases` run in `patch/sandboxed.test.ts`. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import { LIMITS, MIB, outcomeOf, TestSandbox, textOf } from './test-sandbox.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  const vcluster = { name: 'vcluster', namespace: 'vcluster-ns', config: { a: { b: [1] } } };
  sandbox = await TestSandbox.open({ vcluster, limits: { ...LIMITS, expressionTimeoutMs: 1000 } });
});
afterAll(() => sandbox[Symbol.asyncDispose]());

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

test('a value that is too deep to be sent fails only for its match', async () => {
  let deep: JsonValue = 1;
  for (let i = 0; i < 1001; i++) deep = [deep];
  const program = sandbox.define('value === 7 ? 2 : 1');
  const [first, second] = await Promise.all([sandbox.ask(program, [deep]), sandbox.ask(program, [7])]);
  expect(textOf(outcomeOf(first, 0))).toMatch(/^runtime: .*1000 levels/);
  expect(second?.values).toEqual([2]);
});

describe('a sandbox with a result cache', () => {
  const limits = { ...LIMITS, memoBytes: MIB };

  test('returns cached values and errors without an evaluation', async () => {
    const seen: [hits: number, misses: number][] = [];
    const metrics = {
      memo: (hits: number, misses: number) => void seen.push([hits, misses]),
      batched() {},
      sandboxKilled() {},
      evaluated() {},
    };
    await using sandbox = await TestSandbox.open({ limits, metrics });
    const program = sandbox.define(
      'value === 1 ? undefined : value === 2 ? null.x : value === 3 ? null : [value]',
    );
    const first = await sandbox.ask(program, [1, 2, 3, 4, 'a', { b: 1 }]);
    const request = {
      program: program.id,
      object: { namespace: 'ns', name: 'web' },
      context: { hostObject: null, virtualObject: null },
      paths: undefined,
    };
    const again = sandbox.evaluateNow({ ...request, values: [1, 2, 3, 4, 'a', { b: 1 }] });
    expect(again).toEqual(first);
    const partly = await sandbox.ask(program, [5, 4, 6]);
    expect(partly.values).toEqual([[5], [4], [6]]);
    expect(seen).toEqual([
      [0, 6],
      [6, 0],
      [1, 2],
    ]);
  });

  test('uses only the inputs that the result depends on as key', async () => {
    await using sandbox = await TestSandbox.open({ limits });
    const program = sandbox.define('context.virtualObject.metadata.name + context.path + value');
    const ask = async (name: string, path: string, value: string): Promise<unknown> => {
      const virtualObject = { metadata: { name, other: Math.random() } };
      return outcomeOf(await sandbox.ask(program, [value], { virtualObject, paths: [path] }), 0);
    };
    for (const name of ['a', 'aa']) {
      for (const path of ['a', 'aa']) {
        for (const value of ['a', 'aa']) {
          expect(await ask(name, path, value)).toEqual({ value: name + path + value });
          expect(await ask(name, path, value)).toEqual({ value: name + path + value });
        }
      }
    }
  });

  test('does not cache timeouts and kills', async () => {
    await using sandbox = await TestSandbox.open({ limits: { ...limits, expressionTimeoutMs: 30 } });
    const program = sandbox.define('value === "slow" ? (() => { for (;;) {} })() : value');
    const object = { namespace: 'ns', name: 'web' };
    expect(outcomeOf(await sandbox.ask(program, ['slow'], { object }), 0)).toMatchObject({
      error: 'timeout',
    });
    // It waits now; that it was not remembered shows in the message.
    expect(JSON.stringify(outcomeOf(await sandbox.ask(program, ['slow'], { object }), 0))).toContain(
      'quarantined',
    );
  });

  test('evaluates a constant expression once, with any budget', async () => {
    let batches = 0;
    const metrics = { memo() {}, batched: () => void batches++, sandboxKilled() {}, evaluated() {} };
    await using sandbox = await TestSandbox.open({ metrics });
    const program = sandbox.define('context.vcluster.name + "-" + [1, 2].join()');
    for (let i = 0; i < 3; i++)
      expect((await sandbox.ask(program, [1, 2])).values).toEqual(['vc-1,2', 'vc-1,2']);
    expect(batches).toBe(1);
  });

  test('starts no process for a literal', async () => {
    await using sandbox = await TestSandbox.open();
    const program = sandbox.define('"constant"');
    expect((await sandbox.ask(program, [1, 2])).values).toEqual(['constant', 'constant']);
    expect(sandbox.pids).toEqual([]);
  });
});
