/** Selection of the object fields that are sent to the sandbox process. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { isJsonObject, ownValue, setOwn, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import { compileExpression } from '../../../src/syncer/sandbox/front-end/compile-expression.ts';
import { ProgramEntry } from '../../../src/syncer/sandbox/program-entry.ts';
import { programOf } from './test-sandbox.ts';

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
