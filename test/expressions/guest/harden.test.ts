/** Everything that an expression can reach: the remaining globals and their members, found by walking them from inside. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { GLOBAL_NAMES } from '../../../src/expressions/front-end/scope.ts';
import { ALLOWED, ALLOWED_HIDDEN, INLINED } from '../../../src/expressions/guest/harden.ts';
import { isJsonObject } from '../../../src/base/json.ts';
import { compileUnchecked, TestSandbox, textOf, type Outcome } from '../test-sandbox.ts';

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

describe('an object has own members with the names of its prototypes', () => {
  const INSTANCES: Readonly<Record<string, string>> = {
    Object: '({})',
    Function: '(() => 1)',
    Number: 'new Number(1)',
    Boolean: 'new Boolean(true)',
    Symbol: 'Object(Symbol.iterator)',
    Date: 'new Date(0)',
    ArrayBuffer: 'new ArrayBuffer(1)',
    DataView: 'new DataView(new ArrayBuffer(1))',
  };
  const rows = Object.entries(ALLOWED).flatMap(([path, members]) => {
    const [name = '', prototype] = path.split('.');
    if (prototype === undefined || INLINED.includes(name)) return [];
    const instance = INSTANCES[name] ?? (name.endsWith('Array') ? `new ${name}(1)` : `new ${name}()`);
    const keys = members.split(' ').filter((member) => member !== '' && !member.startsWith('@@'));
    return [`["${name}", Object.getPrototypeOf(${instance}), () => ${instance}, "${keys.join(' ')}"]`];
  });

  test('whatever the prototype and the name', async () => {
    expect(rows.length).toBeGreaterThan(20);
    // An accessor of the language without a setter stays one.
    const source = `[${rows.join(',')}].flatMap(([name, prototype, make, keys]) => keys.split(" ").map((key) => {
      const is = Object.getOwnPropertyDescriptor(prototype, key);
      if (key === "BYTES_PER_ELEMENT") return ""; // read-only in the language
      if (is === undefined || (is.get !== undefined && is.set === undefined)) return "";
      const [own, before] = [make(), prototype[key]];
      own[key] = 42;
      if (own[key] !== 42 || !Object.keys(own).includes(key)) return "not own: " + name + " " + key;
      if (!Object.is(prototype[key], before)) return "changed: " + name + " " + key;
      try { prototype[key] = 42; return "written: " + name + " " + key; } catch { return "ok"; }
    })).reduce((sum, found) => found === "ok" ? { ...sum, ok: sum.ok + 1 } : { ...sum, [found]: 1 }, { ok: 0 })`;
    const outcome = await sandbox.run(compileUnchecked(source), null);
    expect(textOf(outcome)).toContain('{"value":{"ok":');
    const {
      ok = 0,
      '': _accessors,
      ...wrong
    } = 'value' in outcome && isJsonObject(outcome.value) ? outcome.value : {};
    expect(wrong).toEqual({});
    expect(ok).toBeGreaterThan(80);
  });

  test.each([
    ['Object.assign(new Error("x"), { name: "Mine" }).name', 'Mine'],
    ['`${Object.assign(new TypeError("x"), { name: "Mine", message: "y" })}`', 'Mine: y'],
    ['const list = [1, 2]; list.toString = () => "mine"; `${list}`', 'mine'],
    ['`${Object.assign([1], { toString() { return "mine"; } })}`', 'mine'],
    ['`${Object.assign(new Uint8Array(1), { toString: () => "mine" })}`', 'mine'],
    ['Object.assign(() => 1, { call: "mine" }).call', 'mine'],
    ['const error = new Error("x"); error.name = "Mine"; error.name', 'Mine'],
    ['Object.assign(new Map(), { get: () => "mine" }).get()', 'mine'],
  ])('%s', async (expression, value) => {
    expect(await sandbox.run(expression, null)).toEqual({ value });
  });

  test('and what is thrown is named so', async () => {
    const outcome = await sandbox.run('throw Object.assign(new Error("x"), { name: "Mine" }); 1', null);
    expect(outcome).toEqual({ error: 'runtime', message: 'Mine: x' });
  });
});
