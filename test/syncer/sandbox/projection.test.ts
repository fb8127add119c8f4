/** Selection of the object fields that are sent to the sandbox process. */

import fc from 'fast-check';
import { runInThisContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../../src/base/json.ts';
import { Projection } from '../../../src/syncer/sandbox/projection.ts';

const OBJECT: JsonObject = {
  metadata: { name: 'web', labels: { a: 'b' }, empty: null },
  subsets: [{ addresses: [] }],
};

function project(virtualObject: readonly (readonly string[])[]): Projection {
  return new Projection({ value: false, path: false, hostObject: [], virtualObject });
}

describe('what is sent to the child', () => {
  test.each<[string[][], JsonValue[] | undefined, JsonValue]>([
    [[], undefined, null],
    [[[]], undefined, OBJECT],
    [[['metadata', 'name']], ['web'], null],
    [[['metadata', 'name'], ['subsets']], ['web', [{ addresses: [] }]], null],
    [[['metadata', 'empty']], [null], null],
    [[['metadata', 'none']], undefined, { metadata: {} }],
    [[['metadata', 'empty', 'x']], undefined, { metadata: { empty: null } }],
    [
      [
        ['spec', 'x'],
        ['metadata', 'name'],
      ],
      undefined,
      { metadata: { name: 'web' } },
    ],
    [[['subsets', '0']], undefined, { subsets: [{ addresses: [] }] }],
    [[['toString']], undefined, {}],
  ])('of %j', (paths, leaves, virtualObject) => {
    const cut = project(paths).cut({ hostObject: null, virtualObject: OBJECT });
    expect(cut).toEqual({ leaves, hostObject: null, virtualObject });
  });

  test('no object is null', () => {
    expect(project([['a']]).cut({ hostObject: null, virtualObject: null })).toEqual({
      leaves: undefined,
      hostObject: null,
      virtualObject: null,
    });
  });

  test('objects that an expression can reference are detected', () => {
    const escapes = (paths: string[][]): boolean => {
      const projection = project(paths);
      return projection.escapes(projection.cut({ hostObject: null, virtualObject: OBJECT }));
    };
    expect(escapes([['metadata', 'name']])).toBe(false);
    expect(escapes([['metadata', 'none']])).toBe(false);
    expect(escapes([['metadata', 'labels']])).toBe(true);
    expect(escapes([['metadata', 'none'], ['subsets']])).toBe(true);
    expect(escapes([[]])).toBe(true);
  });
});

test('an object that is built from leaves has every value at its place', () => {
  const key = fc.constantFrom('a', 'b', 'c', '__proto__', 'x.y', '0');
  const paths = fc.uniqueArray(fc.array(key, { minLength: 1, maxLength: 3 }), {
    maxLength: 4,
    comparator: (a, b) => a.every((each, i) => each === b[i]) || b.every((each, i) => each === a[i]),
  });
  fc.assert(
    fc.property(paths, (each) => {
      const projection = project(each);
      const leaves = each.map((_, i) => `leaf ${i}`);
      const { virtualObject } = projection.pruned({ leaves, hostObject: null, virtualObject: null });
      const { virtual } = projection.builders ?? { virtual: null };
      const columns = leaves.map((leaf) => ['other', leaf]);
      const build =
        virtual === null
          ? () => null
          : (runInThisContext(`(${virtual})`) as (...inputs: unknown[]) => unknown);
      expect(JSON.stringify(build(columns, 1))).toBe(JSON.stringify(virtualObject));
    }),
  );
  expect.hasAssertions();
});
