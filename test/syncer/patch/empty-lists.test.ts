/** Lists that are stored as null are empty lists for patches, at any place and in both directions. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cloneJson, isJsonObject, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import { isListPath, withEmptyLists } from '../../../src/syncer/patch/empty-lists.ts';
import { parsePath } from '../../../src/syncer/patch/path-syntax.ts';
import { build, context } from './build.ts';

const METADATA = { name: 'web', namespace: 'shop' };
const NULLS: readonly (readonly [path: string, object: JsonObject])[] = [
  ['subsets', { subsets: null }],
  ['subsets[*].ports', { subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: null }] }],
  ['subsets[0].addresses', { subsets: [{ addresses: null, notReadyAddresses: [{ ip: '10.0.0.1' }] }] }],
  ['subsets[*].notReadyAddresses', { subsets: [{ addresses: [], notReadyAddresses: null }] }],
  ['endpoints', { endpoints: null }],
  ['ports', { ports: null }],
  ['endpoints[*].addresses', { endpoints: [{ addresses: null }] }],
  ['endpoints[?(@.hints)].hints.forZones', { endpoints: [{ addresses: ['a'], hints: { forZones: null } }] }],
  ['spec.ports', { spec: { ports: null } }],
  ['spec.externalIPs', { spec: { externalIPs: null } }],
  ['spec.loadBalancerSourceRanges', { spec: { loadBalancerSourceRanges: null } }],
  ['status.loadBalancer.ingress', { status: { loadBalancer: { ingress: null } } }],
];

describe.each(NULLS)('%s', (path, content) => {
  const object = { ...content, metadata: METADATA };

  test.each(['toHost', 'toVirtual'] as const)('%s', async (direction) => {
    const expression = 'value.map((each) => each)';
    const { pipeline } = build([{ path, expression, reverseExpression: expression }]);
    const { object: patched } = await pipeline.apply(direction, object, context());
    expect(JSON.stringify(patched)).toBe(JSON.stringify(object).replace('null', '[]'));
  });

  test('in context, and as a part of a larger value', async () => {
    const read = (name: string): string =>
      `JSON.stringify(context.${name}).includes(":null") || JSON.stringify(value).includes(":null") ? "null" : "[]"`;
    for (const name of ['hostObject', 'virtualObject']) {
      const { pipeline } = build([{ path: '', expression: `({ ...value, found: ${read(name)} })` }]);
      const patched = await pipeline.apply('toHost', object, context({ [name]: object }));
      expect(patched.object['found']).toBe('[]');
    }
  });

  test('validate tries an empty list there', () => {
    const parsed = parsePath(path);
    expect(parsed.ok && isListPath(parsed.segments)).toBe(true);
    expect(parsed.ok && isListPath(parsed.segments.slice(0, -1))).toBe(false);
  });
});

test.each([
  'metadata',
  'metadata.annotations',
  'subsets[*]',
  'subsets.ports',
  'other',
  'spec',
  'spec.type',
  '',
])('%j is no list', (path) => {
  const parsed = parsePath(path);
  expect(parsed.ok && isListPath(parsed.segments)).toBe(false);
});

test('nothing else changes, and an object without such a null is not copied', () => {
  const withoutNull = (value: JsonValue): boolean =>
    Array.isArray(value)
      ? value.every(withoutNull)
      : isJsonObject(value)
        ? Object.values(value).every((each) => withoutNull(each ?? ''))
        : value !== null;
  fc.assert(
    fc.property(fc.jsonValue(), (json) => {
      const value = json as JsonValue;
      const object: JsonObject = {
        subsets: [{ ports: [value] }],
        endpoints: [value],
        other: value,
        spec: value,
      };
      const before = cloneJson(object);
      const filled = withEmptyLists(object);
      expect(object).toEqual(before);
      expect(filled['other']).toBe(value);
      expect(filled === object || !withoutNull(value)).toBe(true);
    }),
  );
  const other = {
    metadata: { ...METADATA, annotations: null },
    subsets: [{ addresses: [{ ip: null }] }, null],
  };
  expect(withEmptyLists(other)).toBe(other);
});
