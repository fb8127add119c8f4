/** A program's record: selection of the object fields that are sent to the sandbox process, and the cache of results. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { isJsonObject, ownValue, setOwn, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import { compileExpression } from '../../../src/syncer/sandbox/front-end/compile-expression.ts';
import { Memo, ProgramEntry } from '../../../src/syncer/sandbox/program-entry.ts';
import { LIMITS, MIB, outcomeOf, programOf, TestSandbox } from './test-sandbox.ts';

const OBJECT: JsonObject = {
  metadata: { name: 'web', labels: { a: 'b' }, empty: null },
  subsets: [{ addresses: [] }],
};

/** The part of the virtual object that a program with these paths reads. */
function readPart(paths: readonly (readonly string[])[], virtualObject: JsonObject | null): JsonValue {
  const program = programOf(compileExpression('value', 1));
  const reads = { ...program.reads, virtualObject: paths };
  const entry = new ProgramEntry({ ...program, reads }, undefined, systemClock);
  const part = entry.readObjects({ hostObject: OBJECT, virtualObject });
  expect(part.hostObject).toBeNull();
  return part.virtualObject;
}

describe('what is sent to the child', () => {
  test.each<[string[][], JsonValue]>([
    [[], null],
    [[[]], OBJECT],
    [[['metadata', 'name']], { metadata: { name: 'web' } }],
    [[['metadata', 'name'], ['subsets']], { metadata: { name: 'web' }, subsets: [{ addresses: [] }] }],
    [[['metadata', 'empty']], { metadata: { empty: null } }],
    [[['metadata', 'none']], { metadata: {} }],
    [[['metadata', 'empty', 'x']], { metadata: { empty: null } }],
    [
      [
        ['spec', 'x'],
        ['metadata', 'name'],
      ],
      { metadata: { name: 'web' } },
    ],
    [[['subsets', '0']], { subsets: [{ addresses: [] }] }],
    [[['toString']], {}],
  ])('of %j', (paths, part) => {
    expect(readPart(paths, OBJECT)).toEqual(part);
  });

  test('no object is null', () => {
    expect(readPart([['a']], null)).toBeNull();
  });

  test('has every value that is read at its place, and no other', () => {
    const key = fc.constantFrom('a', 'b', 'c', '__proto__', 'x.y', '0');
    const paths = fc.uniqueArray(fc.array(key, { minLength: 1, maxLength: 3 }), {
      minLength: 1,
      maxLength: 4,
      comparator: (a, b) => a.every((each, i) => each === b[i]) || b.every((each, i) => each === a[i]),
    });
    fc.assert(
      fc.property(paths, (each) => {
        const part: JsonObject = {};
        const whole: JsonObject = { other: 1 };
        for (const [i, path] of each.entries()) {
          setAt(part, path, `leaf ${i}`);
          setAt(whole, path, `leaf ${i}`);
          setAt(whole, [...path.slice(0, -1), 'other'], 1);
        }
        expect(JSON.stringify(readPart(each, whole))).toBe(JSON.stringify(part));
      }),
    );
  });
});

function setAt(root: JsonObject, path: readonly string[], value: JsonValue): void {
  let at = root;
  for (const key of path.slice(0, -1)) {
    const known = ownValue(at, key);
    const next: JsonObject = isJsonObject(known) ? known : {};
    setOwn(at, key, next);
    at = next;
  }
  setOwn(at, path.at(-1) ?? '', value);
}

const of = (value: JsonValue | undefined) => ({ value, error: undefined });
const VALUE = { value: true, path: false, hostObject: [], virtualObject: [] };
const json = fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.parse(JSON.stringify(value)) as JsonValue);

describe('keys', () => {
  test('are the same for equal inputs only', () => {
    const memos = [VALUE, { ...VALUE, path: true }, { ...VALUE, hostObject: [['a']] }].map((reads) =>
      new Memo(MIB).open(reads),
    );
    const inputs = fc.record({ value: fc.option(json, { nil: undefined }), path: fc.string(), leaf: json });
    fc.assert(
      fc.property(inputs, inputs, fc.nat(2), (a, b, which) => {
        const memo = memos[which];
        const keys = [a, b].map(({ value, path, leaf }) =>
          memo?.keyOf(memo.objectsKey({ hostObject: { leaf }, virtualObject: null }), value, path),
        );
        const read = ({ value, path, leaf }: typeof a): string =>
          JSON.stringify([[value === undefined, value], which === 1 ? path : 0, which === 2 ? leaf : 0]);
        expect(keys[0] === keys[1]).toBe(read(a) === read(b));
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ['\0{"a":1}', { a: 1 }],
    ['\0"\\u0000"', '\0'],
    ['\0undefined', undefined],
    ['1', 1],
    ['null', null],
  ])('of %j and %j differ', (a, b) => {
    const memo = new Memo(MIB).open(VALUE);
    expect(memo.keyOf('', a, '')).not.toBe(memo.keyOf('', b, ''));
  });
});

describe('the budget', () => {
  test('applies to the sum of all programs, and the largest one is evicted first', () => {
    const memo = new Memo(20_000);
    const [greedy, modest] = [memo.open(VALUE), memo.open(VALUE)];
    modest.set('kept', of('x'));
    for (let i = 0; i < 1000; i++) {
      greedy.set(`key${i}`, of('x'.repeat(i % 50)));
      expect(memo.bytes).toBeLessThanOrEqual(20_000);
    }
    expect(modest.get('kept')).toEqual(of('x'));
    expect(greedy.get('key999')).toBeDefined();
    expect(greedy.get('key0')).toBeUndefined();
  });

  test('is freed when a program is removed', () => {
    const memo = new Memo(MIB);
    const program = memo.open(VALUE);
    program.set('a', of(null));
    program.set('b', of(undefined));
    expect(memo.bytes).toBeGreaterThan(0);
    memo.close(program);
    expect(memo.bytes).toBe(0);
  });
});

describe('a sandbox with a result cache', () => {
  const limits = { ...LIMITS, memoBytes: MIB };

  test('returns cached values and errors without an evaluation', async () => {
    const seen: [hits: number, misses: number][] = [];
    const metrics = {
      memo: (hits: number, misses: number) => void seen.push([hits, misses]),
      batched() {},
      sandboxKilled() {},
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
    const metrics = { memo() {}, batched: () => void batches++, sandboxKilled() {} };
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
