/** Patches of every mode on any JSON, in both directions: they do not throw, and the reverse direction restores the input. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PatchError } from '../../../src/base/errors.ts';
import { cloneJson, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import type { PatchConfig } from '../../../src/syncer/patch/patch-schema.ts';
import type { Direction, PatchedObject } from '../../../src/syncer/patch/types.ts';
import { build, context } from './build.ts';

const key = fc.oneof(
  fc.constantFrom(
    'a',
    'b',
    'metadata',
    'annotations',
    'labels',
    'subsets',
    '0',
    'x.y',
    'toString',
    '__proto__',
    'constructor',
    '',
  ),
  fc.string({ maxLength: 3 }),
);
const leaf = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  // JSON.stringify writes -0 as 0.
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => (number === 0 ? 0 : number)),
  fc.string({ maxLength: 5 }),
);
const { node, object } = fc.letrec<{ node: JsonValue; object: JsonObject }>((tie) => ({
  node: fc.oneof({ maxDepth: 4 }, leaf, fc.array(tie('node'), { maxLength: 3 }), tie('object')),
  object: fc.dictionary(key, tie('node'), { maxKeys: 4, noNullPrototype: true }),
}));

const PATHS = [
  '', 'a', 'a.b', 'a[*]', 'a.*', '*', '*.*', '*.*.*', 'a[0]', 'a.0', 'metadata', 'metadata.annotations', 'metadata.annotations.*',
  'metadata.labels["x.y"]', 'subsets[*].a', 'toString', '"x.y".b', 'a[?(@)]', '[?(@.a)].b', '*[?(@.length > 1)]', '[?(@)][?(@)]',
  'metadata.annotations[?(context.path.length > 22)]',
]; // prettier-ignore
const path = fc.constantFrom(...PATHS);
const expression = fc.constantFrom(
  'value',
  'null',
  '"x"',
  '[value]',
  '({ a: value })',
  'value.a.b',
  'context.path',
);
const patch: fc.Arbitrary<PatchConfig> = fc.oneof(
  fc.record({ path, expression }),
  fc.record({ path, reverseExpression: expression }),
  fc.record({ path, expression, reverseExpression: expression }),
  fc.record({ path, labels: fc.constant({}) }),
  fc.record({ path, reference: fc.constant({ apiVersion: 'v1', kind: 'Secret' }) }),
  fc.record({
    path,
    reference: fc.constant({ apiVersion: 'v1', kind: 'Secret', namePath: 'a', namespacePath: 'b' }),
  }),
);
const direction = fc.constantFrom<Direction>('toHost', 'toVirtual');

test('the result is an object or a PatchError, and the input is unchanged', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(patch, { maxLength: 4 }),
      object,
      object,
      direction,
      async (patches, input, other, way) => {
        const before = cloneJson(input);
        const given = { ...context(), hostObject: other, virtualObject: other };
        const outcome = await resultOrError(() => build(patches).pipeline.apply(way, input, given));
        expect(input).toEqual(before);
        expect(outcome instanceof PatchError || JSON.stringify(outcome).startsWith('{')).toBe(true);
      },
    ),
    { numRuns: 800 },
  );
});

async function resultOrError(apply: () => PatchedObject | Promise<PatchedObject>): Promise<unknown> {
  try {
    return (await apply()).object;
  } catch (error) {
    return error instanceof PatchError ? error : String(error);
  }
}

test('inverse expressions restore any JSON', async () => {
  const UNDONE = [
    ['({ wrapped: value })', 'value.wrapped'],
    ['[value, 1]', 'value[0]'],
    ['JSON.stringify(value)', 'JSON.parse(value)'],
  ] as const;
  const places = ['a', 'a.b', 'a.*', 'b[*]', 'b[0]', '*.b', 'a[?(context.path.length > 0)]', 'b[?(true)]'];
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...places),
      fc.constantFrom(...UNDONE),
      node,
      node,
      async (where, [there, back], a, b) => {
        const input = { a, b };
        const { pipeline } = build([{ path: where, expression: there, reverseExpression: back }]);
        const { object: host } = await pipeline.apply('toHost', input, context());
        const { object: virtual } = await pipeline.apply('toVirtual', host, {
          ...context(),
          virtualObject: input,
        });
        // A result of null deletes its place.
        expect(withoutNull(virtual)).toEqual(withoutNull(input));
      },
    ),
    { numRuns: 500 },
  );
});

function withoutNull(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutNull).filter((element) => element !== null);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, withoutNull(member)] as const);
  return Object.fromEntries(members.filter(([, member]) => member !== null));
}
