/** Everything that an expression can reach: the remaining globals and their members, found by walking them from inside. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { GLOBAL_NAMES } from '../../../../src/syncer/sandbox/front-end/scope.ts';
import { ALLOWED, ALLOWED_HIDDEN } from '../../../../src/syncer/sandbox/guest/harden.ts';
import { compileUnchecked, TestSandbox, type Outcome } from '../test-sandbox.ts';

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

describe('the realm', () => {
  let found: readonly string[] = [];
  beforeAll(async () => {
    // Every global by name, since there is no way to the global object.
    const names = GLOBAL_NAMES.map((name) => `${JSON.stringify(name)}: ${name}`).join(', ');
    const outcome = await sandbox.run(compileUnchecked(WALK.replace('globalOf', `{ ${names} }`)), null);
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

  const ABSENT =
    'Intl Promise Proxy WebAssembly SharedArrayBuffer Atomics WeakRef FinalizationRegistry Function eval globalThis BigInt Iterator Temporal console escape unescape gc setTimeout queueMicrotask process require ivm $0 installRealm BatchEvaluator evaluator settings hardenRealm DisposableStack AggregateError SuppressedError Float16Array AsyncDisposableStack Buffer structuredClone';

  test.each(ABSENT.split(' '))('there is no %s', async (name) => {
    expect(await sandbox.run(compileUnchecked(`typeof ${name}`), null)).toEqual({ value: 'undefined' });
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
    const outcome: Outcome = await sandbox.run(compileUnchecked(`typeof (${source})`), null);
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
    await sandbox.run(compileUnchecked(first), null);
    const fresh = await TestSandbox.open();
    const [used, unused] = [
      await sandbox.run(compileUnchecked(then), null),
      await fresh.run(compileUnchecked(then), null),
    ];
    await fresh[Symbol.asyncDispose]();
    expect(used).toEqual(unused);
  });
});
