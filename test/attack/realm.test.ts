/** Everything that an expression can reach: the remaining globals and their members, found by walking them from inside. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { GLOBAL_NAMES } from '../../src/syncer/sandbox/front-end/scope.ts';
import { ALLOWED, ALLOWED_HIDDEN } from '../../src/syncer/sandbox/guest/harden.ts';
import { compileUnchecked, TestSandbox, type Outcome } from '../syncer/sandbox/test-sandbox.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await TestSandbox.open({
    limits: { expressionTimeoutMs: 2000, batchTimeoutMs: 5000, memoryBytes: 2 ** 28, memoBytes: 0 },
  });
});
afterAll(() => sandbox[Symbol.asyncDispose]());

/** Runs inside, without the front end's checks. Syntax leads to objects that no global names: they are given as roots. */
const WALK = String.raw`(() => {
  const roots = {
    global: globalOf,
    generator: (function* () {})(), async: (async () => {})(), asyncGenerator: (async function* () {})(),
    generatorFunction: function* () {}, asyncFunction: async () => {}, asyncGeneratorFunction: async function* () {},
    array: [].values(), date: new Date(0), bytes: new Uint8Array(1), buffer: new ArrayBuffer(1), view: new DataView(new ArrayBuffer(1)), string: ""[Symbol.iterator](), map: new Map().keys(), set: new Set().keys(),
    matches: "a".matchAll(/a/g), helper: [].values().map((x) => x), error: new Error("x"), regexp: /a/, bigint: Object(1n),
    arguments: (function () { return arguments; })(), template: ((strings) => strings)${'`a`'},
    class: class { static #p = 1; }, symbol: Symbol.iterator, match: /(a)/d.exec("a"),
  };
  const seen = new Map();
  const found = [];
  const go = (value, path) => {
    if ((typeof value !== "object" && typeof value !== "function") || value === null) return;
    if (seen.has(value)) return;
    seen.set(value, path);
    const isRoot = !path.includes(".");
    if (!isRoot && !Object.isFrozen(value)) found.push("not frozen: " + path);
    if (typeof value === "function") {
      try { if (value("return 1") !== undefined && value("return 6 * 7")() === 42) found.push("compiles: " + path); } catch {}
    }
    for (const key of [...Object.getOwnPropertyNames(value), ...Object.getOwnPropertySymbols(value)]) {
      const descriptor = Object.getOwnPropertyDescriptor(value, key);
      const next = path + "." + String(key);
      found.push("has: " + next);
      if ("value" in descriptor) go(descriptor.value, next);
      else { go(descriptor.get, next + ":get"); go(descriptor.set, next + ":set"); }
    }
    go(Object.getPrototypeOf(value), path + ".[prototype]");
  };
  for (const [name, root] of Object.entries(roots)) go(root, name);
  return found;
})()`;

function compileInside(source: string): ReturnType<typeof compileUnchecked> {
  return compileUnchecked(source);
}

describe('the realm', () => {
  let found: readonly string[] = [];
  beforeAll(async () => {
    // Every global by name, since there is no way to the global object.
    const names = GLOBAL_NAMES.map((name) => `${JSON.stringify(name)}: ${name}`).join(', ');
    const outcome = await sandbox.run(compileInside(WALK.replace('globalOf', `{ ${names} }`)), null);
    if (!('value' in outcome)) throw new Error(JSON.stringify(outcome));
    found = outcome.value as string[];
  });

  test('no reachable object can be changed', () => {
    // Objects that the walk itself created do not count.
    const own =
      /^not frozen: (\w+\.(prototype|raw|groups|indices|\d|stack)|(generator|asyncGenerator)\.\[prototype\]$)/;
    expect(found.filter((line) => line.startsWith('not frozen') && !own.test(line))).toEqual([]);
  });

  test('no reachable function compiles text', () => {
    expect(found.filter((line) => line.startsWith('compiles'))).toEqual([]);
  });

  test('the globals and their members are equal to the allow list', () => {
    const left = found.flatMap(
      (line) => /^has: global\.(\w+)((?:\.prototype)?)\.([^.[]+)$/.exec(line)?.slice(1) ?? [],
    );
    const actual = new Set<string>();
    for (let i = 0; i < left.length; i += 3) actual.add(`${left[i]}${left[i + 1]} ${left[i + 2]}`);
    const everywhere = new Set(['length', 'name', 'prototype']);
    const allowed = new Set<string>();
    for (const [path, members] of Object.entries(ALLOWED)) {
      for (const member of members.split(' ')) {
        if (member !== '') allowed.add(`${path} ${member.startsWith('@@') ? `Symbol(Symbol` : member}`);
      }
    }
    const extra = [...actual].filter(
      (entry) => !allowed.has(entry) && !everywhere.has(entry.split(' ')[1] ?? ''),
    );
    expect(extra).toEqual([]);
  });

  test.each([
    'Intl',
    'Promise',
    'Proxy',
    'WebAssembly',
    'SharedArrayBuffer',
    'Atomics',
    'WeakRef',
    'FinalizationRegistry',
    'Function',
    'eval',
    'globalThis',
    'BigInt',
    'Iterator',
    'Temporal',
    'console',
    'escape',
    'unescape',
    'gc',
    'setTimeout',
    'queueMicrotask',
    'process',
    'require',
    'ivm',
    '$0',
    'installRealm',
    'BatchEvaluator',
    'evaluator',
    'settings',
    'hardenRealm',
    'DisposableStack',
    'AggregateError',
    'SuppressedError',
  ])('there is no %s', async (name) => {
    expect(await sandbox.run(compileInside(`typeof ${name}`), null)).toEqual({ value: 'undefined' });
  });

  test.each([
    'Math.random',
    'Symbol.for',
    'Symbol.keyFor',
    'Error.captureStackTrace',
    'RegExp.$1',
    'RegExp.lastMatch',
    'JSON.rawJSON',
    'Array.fromAsync',
    'Date.now',
    'new Date(0).getHours',
    'new Date(0).getTimezoneOffset',
    'new Date(0).getYear',
    '"".toLocaleUpperCase',
    '/a/.compile',
    '({}).__proto__',
    '({}).__defineGetter__',
    '({}).__lookupGetter__',
    '(() => {}).caller',
    '(() => {}).constructor',
    '(function* () {}).constructor',
    '(async () => {}).constructor',
    '(async function* () {}).constructor',
    '(async () => {})().then',
    '(async () => {})().constructor.resolve',
  ])('there is no %s', async (source) => {
    // Members whose access throws are ignored.
    const outcome: Outcome = await sandbox.run(compileInside(`typeof (${source})`), null);
    expect('error' in outcome ? 'undefined' : outcome).toEqual(
      'error' in outcome ? 'undefined' : { value: 'undefined' },
    );
  });

  test('the objects of the allow list that are not globals exist', async () => {
    expect(Object.keys(ALLOWED_HIDDEN).length).toBeGreaterThan(10);
    const left = found.filter((line) => /^has: (generator|array|helper)\.\[prototype\]/.test(line));
    expect(left).toContain('has: array.[prototype].next');
    expect(left).not.toContain('has: generator.[prototype].[prototype].constructor');
  });
});

describe('no state is shared between expressions', () => {
  test.each([
    ['a symbol registry', 'Symbol.for("a") && 1', 'Symbol.keyFor(Symbol.for("a"))'],
    ['a property of a function', '(Object.keys.a = 1)', 'typeof Object.keys.a'],
    ['the prototype of an array', '([].__proto__.a = 1)', 'typeof [].a'],
    ['a shared template', '((s) => { s.a = 1; })`x`', '((s) => typeof s.a)`x`'],
    ['the last match', '/(s)(e)cret/.exec("secret") && 1', 'typeof RegExp.$1'],
    ['lastIndex of a literal', '/s/g.test("s")', '(() => { const r = /s/g; return r.lastIndex; })()'],
    ['the vcluster', '(context.vcluster.config.a = 1)', 'typeof context.vcluster.config.a'],
    ['the error limit', '(Error.stackTraceLimit = 0)', 'Error.stackTraceLimit > 0'],
  ])('through %s', async (_what, first, then) => {
    await sandbox.run(compileInside(first), null);
    const fresh = await TestSandbox.open();
    const [used, unused] = [
      await sandbox.run(compileInside(then), null),
      await fresh.run(compileInside(then), null),
    ];
    await fresh[Symbol.asyncDispose]();
    expect(used).toEqual(unused);
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
    const outcome = await sandbox.run(compileInside(source), 'v');
    expect(outcome).toHaveProperty('value');
    expect(JSON.stringify(outcome)).not.toMatch(/program|realm|\d+:\d+|\bat \b/);
    // The number of the program differs in each run.
    expect(await sandbox.run(compileInside(source), 'v')).toEqual(outcome);
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
    const outcome = await sandbox.run(compileInside(source), 'v');
    expect('error' in outcome || outcome).toEqual('error' in outcome ? true : { value: 'Error: x' });
    expect(await sandbox.run(compileInside('new Error("y").stack'), 'v')).toEqual({ value: 'Error: y' });
  });
});
