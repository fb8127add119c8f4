/** A program's record: selection of the object fields that are sent to the sandbox process, and the cache of results. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { isJsonObject, ownValue, setOwn, type JsonObject, type JsonValue } from '../../src/base/json.ts';
import { compileExpression } from '../../src/expressions/front-end/compile-expression.ts';
import { Memo, ProgramEntry } from '../../src/expressions/program-entry.ts';
import { MIB, programOf } from './test-sandbox.ts';

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
const VALUE = { value: true, path: false, hostObject: [], virtualObject: [], vcluster: [] };
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
