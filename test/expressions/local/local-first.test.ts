/** What the daemon evaluates itself, what it declines, and what that may cost. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseJson, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import { compileExpression } from '../../../src/expressions/front-end/compile-expression.ts';
import { Budget } from '../../../src/expressions/local/budget.ts';
import {
  FUNCTIONS,
  LIST_METHODS,
  NUMBER_METHODS,
  TEXT_METHODS,
} from '../../../src/expressions/local/methods.ts';
import { memberOf } from '../../../src/expressions/local/values.ts';
import type { LocalValue } from '../../../src/expressions/local/types.ts';
import type { Program } from '../../../src/expressions/types.ts';
import { programOf, TestSandbox } from '../test-sandbox.ts';
import { localOutcome, openLocal, type Local } from './local.ts';

const vcluster = { name: 'vcluster', namespace: 'vcluster-ns', config: { a: { b: [1] } } };
const objects = {
  hostObject: { kind: 'H' },
  virtualObject: { metadata: { name: 'web', labels: { app: 'web', 'x/tier': 'db' } } },
};

function programFor(expression: string): Program {
  return programOf(compileExpression(expression, 0));
}

function open(expression: string): Local {
  return openLocal(programFor(expression), vcluster);
}

function here(expression: string, value?: JsonValue): unknown {
  return localOutcome(open(expression), value, objects, 'a.0');
}

function isDeclined(work: () => void): boolean {
  try {
    work();
    return false;
  } catch {
    return true;
  }
}

test.each<[expression: string, value: JsonValue, expected: JsonValue]>([
  ['"team-" + value', 'shop', 'team-shop'],
  ['`${context.vcluster.name}-${value}-${context.path}`', 'a', 'vcluster-a-a.0'],
  ['value.replace("team-", "").toUpperCase()', 'team-a', 'A'],
  ['value.split(",").map((x) => x.trim()).filter(Boolean).join(";")', 'a, b,', 'a;b'],
  ['value?.owner ?? context.virtualObject.metadata.name', {}, 'web'],
  ['context.virtualObject.metadata.labels["x/tier"]', 1, 'db'],
  ['value.split("-").reverse().join("-")', 'a-b-c', 'c-b-a'],
  [
    '[value ?? 1, value || 1, value && 1, value ? 1 : 2, value == false, value === false]',
    '',
    ['', 1, '', 2, true, false],
  ],
  [
    '[value ?? 1, value || 1, value && 1, value ? 1 : 2, value == "7", value < "10", value + "0"]',
    7,
    [7, 7, 1, 1, true, true, '70'],
  ],
  ['[value, null, undefined, "a"].join()', null, ',,,a'],
  [
    '[value.split("", 2), value.split(",", 0), value.indexOf("b"), value.at(-1)]',
    'ab',
    [['a', 'b'], [], 1, 'b'],
  ],
  [
    '[[10, 9].map(String).sort(), [value].flatMap((x) => [x, [x]])]',
    'a',
    [
      ['10', '9'],
      ['a', ['a']],
    ],
  ],
  ['({ ...value, [context.path]: value.a ? 1 : 0 })', { a: true }, { a: true, 'a.0': 1 }],
  ['Object.assign({}, value, { b: 2 })', { a: 1 }, { a: 1, b: 2 }],
  [
    'Object.fromEntries(Object.entries(value).filter(([k]) => k !== "a").map(([k, v]) => [`x-${k}`, v]))',
    { a: 1, constructor: 'c' },
    { 'x-constructor': 'c' },
  ],
  ['value.find(({ name }) => name === "https").port + 1', [{ name: 'https', port: 443 }], 444],
  ['base64.decode(base64.encode(value))', 'Grüße', 'Grüße'],
  ['virtualToHostDNS(value)', 'nginx.default.svc', 'nginx-x-default-x-vcluster.vcluster-ns.svc'],
  ['JSON.parse(value).a.length', '{"a":[1,2]}', 2],
  [
    '[/^te+am-/.test(value), value.replace(/^team-/, ""), value.replaceAll(/[a-z]/g, "x"), value.search(/-/)]',
    'team-a',
    [true, 'a', 'xxxx-x', 4],
  ],
  [
    '[value.match(/(t|x)(e)/), value.match(/[aeiou]/g), value.match(/z/), value.split(/-|m/)]',
    'team-a',
    [['te', 't', 'e'], ['e', 'a', 'a'], null, ['tea', '', 'a']],
  ],
  ['/a/g.test(value) && /a/g.test(value)', 'ba', true],
  ['[typeof value, typeof value?.[1], !value, -value]', '7', ['string', 'undefined', false, -7]],
])('%s is evaluated here', (expression, value, expected) => {
  expect(here(expression, value)).toEqual({ value: expected });
});

test.each<[expression: string, construct: string]>([
  ['value.x = 1', 'value.x = 1'],
  ['const a = value; a', 'const a = value;'],
  ['if (value) 1; else 2', 'if (value) 1; else 2'],
  ['/a/i.test(value)', '/a/i'],
  ['/a/y.test(value)', '/a/y'],
  ['/(?=a)/.test(value)', '/(?=a)/'],
  ['/(?<n>a)/.test(value)', '/(?<n>a)/'],
  ['/(a)\\1/.test(value)', '/(a)\\1/'],
  ['/a{2}/.test(value)', '/a{2}/'],
  ['/(a)+/.test(value)', '/(a)+/'],
  ['/a+b+/.test(value)', '/a+b+/'],
  ['/a?a?a?a?a?/.test(value)', '/a?a?a?a?a?/'],
  ['/(a|b)(a|b)(a|b)(a|b)(a|b)/.test(value)', '/(a|b)(a|b)(a|b)(a|b)(a|b)/'],
  ['/a/.exec(value)', '/a/'],
  ['value.replace(/a/, (x) => x)', '(x) => x'],
  ['value.replace("a", (x) => x)', '(x) => x'],
  ['((x) => x)(value)', '(x) => x'],
  ['value.map((x) => { return x; })', '(x) => { return x; }'],
  ['value.map(function (x) { return x; })', 'function (x) { return x; }'],
  ['value.sort()', 'value.sort'],
  ['value.reduce((a, b) => a + b)', 'value.reduce'],
  ['1 + ("a" in value)', '"a" in value'],
  ['value ** 2', 'value ** 2'],
  ['new Date(value)', 'new Date(value)'],
  ['context', 'context'],
  ['Object', 'Object'],
  ['value.toISOString()', 'value.toISOString'],
  ['value.trim', 'none'],
])('%s needs the sandbox: %s', (expression, construct) => {
  const { local } = programFor(expression);
  expect(local.kind === 'local' ? 'none' : expression.slice(local.start, local.end)).toBe(construct);
});

describe('declined', () => {
  test.each<[expression: string, value: JsonValue | undefined]>([
    ['value.trim', 'a'],
    ['value.map', []],
    ['value.toString', {}],
    ['value.hasOwnProperty', {}],
    ['value[value.a]', { a: 'constructor' }],
    ['value[value.a]', { a: '__proto__' }],
    ['value.a.b', {}],
    ['value.trim()', 1],
    ['value.a()', { a: 1 }],
    ['value + 1', {}],
    ['`${value}`', []],
    ['value.a === value.a', { a: {} }],
    ['[value].includes(value)', {}],
    ['value / 0', 1],
    ['value', parseJson('12345678901234567890')],
    ['value', parseJson('1e400')],
    ['value', 2 ** 53],
    ['value * value', 2 ** 30],
    ['value', '\ud800'],
    ['value + "\\ud800"', 'a'],
    ['value', JSON.parse('{"__proto__":1}') as JsonValue],
    ['value', { '4294967295': 1 }],
    ['({ [value]: 1 })', '__proto__'],
    ['[undefined]', 1],
    ['btoa(value)', '€'],
    ['atob(value)', '%'],
    ['JSON.parse(value)', '{'],
    ['JSON.parse(value)', '{"__proto__":1}'],
    ['JSON.parse(value).a', '{"a":1,"__proto__":1}'],
    ['Object.keys(value).length', JSON.parse('{"__proto__":1}') as JsonValue],
    ['value.a', { a: 1, '4294967295': 1 }],
    ['value.repeat(1e9)', 'a'],
    ['value.repeat(-1)', 'a'],
    ['value.padEnd(1e9)', 'a'],
    ['value.replaceAll("", "x".repeat(1000))', 'a'.repeat(1000)],
    // Long on the way to a short result.
    ['value.repeat(70000).length', 'a'],
    ['value.padStart(70000).length', 'a'],
    ['value.replaceAll("a", "x".repeat(100)).length', 'a'.repeat(1000)],
    ['(value + value).length', 'a'.repeat(40_000)],
    ['`${value}${value}`.length', 'a'.repeat(40_000)],
    ['[value, value].join().length', 'a'.repeat(40_000)],
    ['value.concat(value).length', 'a'.repeat(40_000)],
    [
      'value.map((x) => value.map((y) => value.some((z) => z > 9))).length',
      Array.from({ length: 60 }, () => 1),
    ],
    ['[...value, ...value].length', Array.from({ length: 6000 }, () => 1)],
    ['value.replace("a", "$&")', 'a'],
    ['value.replace(/a/, "$&")', 'a'],
    ['value.replaceAll(/a/, "b")', 'a'],
    ['value.match(/a/).index', 'a'],
    ['/a/.test(value)', 'a'.repeat(1025)],
    ['/a*b/.test(value)', 'a'.repeat(1000)],
    ['value.replaceAll(/(?:)/g, "x".repeat(1000)).length', 'a'.repeat(1000)],
    ['(1).toFixed(value)', 101],
    ['value', 'a'.repeat(70_000)],
    ['value', Array.from({ length: 10_001 }, () => 1)],
    ['value', parseJson('['.repeat(40) + ']'.repeat(40))],
    ['virtualToHostDNS(value)', 'not a name'],
  ])('%s of %j', (expression, value) => {
    expect(here(expression, value)).toBeUndefined();
  });
});

test('-0 is 0, as in JSON text, where an expression makes it', () => {
  expect(here('-0 * value', 1)).toEqual({ value: 0 });
  expect(here('value', -0)).toBeUndefined();
});

test('results are copies, frozen as those of the sandbox', () => {
  const value = { list: [{ a: 1 }] };
  const response = open('value').evaluate({
    context: { hostObject: null, virtualObject: null },
    values: [value],
    paths: undefined,
  });
  const [result] = (response?.values ?? []) as [JsonObject];
  expect(result).toEqual(value);
  expect(result).not.toBe(value);
  expect(result['list']).not.toBe(value.list);
  expect(Object.isFrozen(result) && Object.isFrozen(result['list'])).toBe(true);
});

/** Nothing that a member access returns has more reach than the data that it was given. */
test('no member is a function or inherited', () => {
  const names = [Object, Array, String, Number, Boolean, Function, Symbol].flatMap((type) =>
    Object.getOwnPropertyNames(type.prototype),
  );
  const keys: LocalValue[] = [
    ...new Set([...names, '__proto__', 'then', '0', '-1', '1.5', '01', '4294967295', ' 0']),
    0,
    -1,
    0.5,
    1e10,
    NaN,
    null,
    undefined,
    true,
    {},
    [],
  ];
  const holders: LocalValue[] = [{}, [], ['a'], '', 'ab', 0, true, null, undefined, { a: 1 }, [[]]];
  const returned = new Set<unknown>();
  for (const holder of holders) {
    for (const key of keys) {
      try {
        returned.add(memberOf(holder, key));
      } catch {
        continue; // declined
      }
    }
  }
  expect([...returned].filter((each) => typeof each === 'object' && each !== null)).toEqual([[]]);
  expect(new Set([...returned].map((each) => (Array.isArray(each) ? 'list' : typeof each)))).toEqual(
    new Set(['undefined', 'number', 'string', 'list']),
  );
});

test('every name of the realm that objects inherit is known here', async () => {
  await using sandbox = await TestSandbox.open();
  const expression = 'Object.getOwnPropertyNames(Object.prototype)';
  const outcome = await sandbox.run(expression, 1);
  const names = 'value' in outcome ? (outcome.value as string[]) : [];
  expect(names.length).toBeGreaterThan(3);
  expect(names.filter((name) => !(name in Object.prototype))).toEqual([]);
});

test('a method of the tables exists in the realm', async () => {
  await using sandbox = await TestSandbox.open();
  const missing: string[] = [];
  const probes = [
    ...[...TEXT_METHODS.keys()].map((name) => `typeof "".${name}`),
    ...[...LIST_METHODS.keys()].map((name) => `typeof [].${name}`),
    ...[...NUMBER_METHODS.keys()].map((name) => `typeof (1).${name}`),
    ...[...FUNCTIONS.keys()].map((name) => `typeof ${name}`),
  ];
  for (const probe of probes) {
    const outcome = await sandbox.run(probe, 1);
    if (!('value' in outcome) || outcome.value !== 'function') missing.push(probe);
  }
  expect(missing).toEqual([]);
});

describe('the budget', () => {
  test('of an object is shared by its requests', () => {
    const local = open('value + "x".repeat(10000)');
    const context = { hostObject: null, virtualObject: null };
    const budget = new Budget();
    const evaluate = (): boolean =>
      local.evaluate({ context, values: ['a'], paths: undefined, budget }) !== undefined;
    const done = Array.from({ length: 200 }, evaluate).filter(Boolean).length;
    expect(done).toBeGreaterThan(10);
    expect(done).toBeLessThan(100);
    expect(local.evaluate({ context, values: ['a'], paths: undefined })).toBeDefined();
  });

  test('is not increased by what is declined', () => {
    const budget = new Budget();
    budget.begin();
    expect(isDeclined(() => budget.read(Number.NaN))).toBe(true);
    expect(isDeclined(() => budget.read(1))).toBe(true);
  });

  const many = <T extends JsonValue>(element: T): T[] => Array.from({ length: 20_000 }, () => element);

  test.each<[string, JsonValue]>([
    ['numbers', many(1)],
    ['booleans', many(true)],
    ['empty lists', many([])],
    ['empty objects', many({})],
    ['empty texts', many('')],
    ['members', Object.fromEntries(many(0).map((_, at) => [`k${at}`, 1]))],
    ['lists in objects', { a: { b: many(1) } }],
    ['one text', 'a'.repeat(70_000)],
  ])('counts an input of many %s before it is read', (_, value) => {
    expect(here('valueExists && value !== 1', value)).toBeUndefined();
    const local = open('context.hostObject.a === 1');
    const context = { hostObject: { a: value }, virtualObject: null };
    expect(local.evaluate({ context, values: ['a'], paths: undefined })).toBeUndefined();
  });

  /** Each is near the limits of the front end, on the largest value that is accepted. */
  test.each<[string, string, JsonValue]>([
    [
      'nested iterations',
      'value.map((a) => value.map((b) => value.map((c) => a + b + c)))',
      Array.from({ length: 99 }, () => 'x'),
    ],
    [
      'searches',
      `[${Array.from({ length: 400 }, () => 'value.includes("aaaaaaaaaaaaaaab")').join()}]`,
      'a'.repeat(60_000),
    ],
    ['long sums', Array.from({ length: 400 }, () => 'value').join('+'), 'a'.repeat(30)],
    [
      'comparisons',
      `[${Array.from({ length: 600 }, () => '(value + "") === value').join()}]`,
      'a'.repeat(30_000),
    ],
    [
      'doubled lists',
      `[${Array.from({ length: 300 }, () => '...value').join()}]`,
      Array.from({ length: 5000 }, () => 1),
    ],
    [
      'shared parts',
      Array.from({ length: 40 }, () => 0).reduce<string>((inner) => `[${inner}].map((x) => [x, x])`, 'value'),
      'a',
    ],
    [
      'regular expressions',
      `[${Array.from({ length: 100 }, () => '/(a|a)(a|a)a?a?a*b/.test(value)').join()}]`,
      'a'.repeat(60),
    ],
    [
      'sorting',
      'Object.keys(value).sort().join()',
      Object.fromEntries(Array.from({ length: 3000 }, (_, at) => [`k${at % 7}${at}`, 1])),
    ],
  ])('bounds %s', (_, expression, value) => {
    const local = open(expression);
    const context = { hostObject: null, virtualObject: null };
    const budget = new Budget();
    for (let at = 0; at < 50; at++) local.evaluate({ context, values: [value], paths: undefined, budget });
    // The work is counted, not the time: after this many requests, nothing is left.
    expect(local.evaluate({ context, values: [value], paths: undefined, budget })).toBeUndefined();
  });
});

describe('what is read twice of a value that may be read once is declined, before the work is done', () => {
  const TEXTS = ['0', ' ', '1x', 'a', '€'].map((character) => character.repeat(40_000));
  const NUMBERS = Array.from({ length: 6000 }, () => 1);
  /** They look at the type alone. */
  const TYPES = [
    'Array.isArray',
    'Boolean',
    ...['Finite', 'Integer', 'NaN', 'SafeInteger'].map((is) => `Number.is${is}`),
  ];
  const twice = (part: string): string => `[${part}, ${part}].length`;

  test.each(['+', ...FUNCTIONS.keys()].filter((name) => !TYPES.includes(name)))('%s of a text', (name) => {
    const call = name === '+' ? '+value' : `${name}(value)`;
    for (const value of TEXTS) expect(here(twice(call), value)).toBeUndefined();
  });

  const callbacks = ['String', 'Number', 'Boolean', '(x) => x === 2'];
  const iterations = ['map', 'filter', 'flatMap'].flatMap((method) =>
    callbacks.map((callback) => `value.${method}(${callback})`),
  );
  test.each(iterations)('%s of a list', (call) => {
    expect(here(twice(call), NUMBERS)).toBeUndefined();
  });

  test.each(['({ [value]: 1 })', 'Object.fromEntries([[value, 1]])'])('%s of a long key', (made) => {
    for (const value of TEXTS) expect(here(twice(made), value)).toBeUndefined();
  });

  test.each(['10', '"          "', '1e9'])('JSON.stringify with an indent of %s', (space) => {
    const nested = `${'['.repeat(200)}value${']'.repeat(200)}`;
    expect(here(`JSON.stringify(${nested}, null, ${space}).length`, NUMBERS.slice(0, 40))).toBeUndefined();
  });
});

describe('with a sandbox behind it', () => {
  let sandbox: TestSandbox;
  const places: string[] = [];
  beforeAll(async () => {
    const metrics = {
      memo() {},
      batched() {},
      sandboxKilled() {},
      evaluated: (place: string, matches: number) => void places.push(`${place} ${matches}`),
    };
    sandbox = await TestSandbox.open({ localEvaluation: true, vcluster, metrics });
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  test('a process is started for the first request that is declined', async () => {
    const program = sandbox.define('"team-" + value.trim()');
    expect((await sandbox.ask(program, ['a ', 'b'])).values).toEqual(['team-a', 'team-b']);
    expect(sandbox.pids).toEqual([]);
    const { values, errors } = await sandbox.ask(program, ['a', 1]);
    expect(values).toEqual(['team-a', undefined]);
    expect(errors?.get(1)?.message).toMatch(/^TypeError: value\.trim is not a function/);
    expect(sandbox.pids).not.toEqual([]);
    expect(places).toEqual(['daemon 2', 'sandbox 2']);
  });

  test('a program that was forgotten is not evaluated', async () => {
    const program = sandbox.define('value + 1');
    sandbox.forget(program);
    expect((await sandbox.ask(program, [1])).errors?.get(0)?.message).toBe('unknown program');
  });
});

test('after it is closed, every match fails', async () => {
  const sandbox = await TestSandbox.open({ localEvaluation: true });
  const program = sandbox.define('value + 1');
  await sandbox[Symbol.asyncDispose]();
  expect((await sandbox.ask(program, [1])).errors?.get(0)?.kind).toBe('killed');
});
