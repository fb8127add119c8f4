/** Keys that a path names and an object does not have, with `endpointSyncer.patches.missingPaths`. */

import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import type { PatchConfig } from '../../../src/syncer/patch/patch-schema.ts';
import { build, context } from './build.ts';

const OBJECT: JsonObject = {
  metadata: { name: 'web', annotations: { a: '1' } },
  subsets: [{ addresses: [{ ip: '10.0.0.1', hostname: 'x' }, { ip: '10.0.0.2' }] }],
};
const DEFAULT = 'valueExists ? value : "new"';

async function patched(patch: PatchConfig, missingPaths?: 'skip' | 'create', direction?: 'toVirtual') {
  const { pipeline } = build([patch], missingPaths === undefined ? {} : { missingPaths });
  const given = structuredClone(OBJECT);
  const { object } = await pipeline.apply(direction ?? 'toHost', given, context());
  expect(given).toEqual(OBJECT);
  return object;
}

describe('missingPaths: create', () => {
  test.each<[string, string, string, unknown]>([
    ['a missing key', 'metadata.annotations.b', DEFAULT, { annotations: { a: '1', b: 'new' } }],
    [
      'one with other characters',
      'metadata.annotations["x/y"]',
      DEFAULT,
      { annotations: { a: '1', 'x/y': 'new' } },
    ],
    [
      'a number, which is a key of a map',
      'metadata.annotations.0',
      DEFAULT,
      { annotations: { a: '1', 0: 'new' } },
    ],
    [
      'an inherited name',
      'metadata.annotations.toString',
      DEFAULT,
      { annotations: { a: '1', toString: 'new' } },
    ],
    [
      'a whole map',
      'metadata.labels',
      '({ app: "web" })',
      { labels: { app: 'web' }, annotations: { a: '1' } },
    ],
    ['an existing key is as before', 'metadata.annotations.a', DEFAULT, { annotations: { a: '1' } }],
    ['undefined creates nothing', 'metadata.annotations.b', 'value', { annotations: { a: '1' } }],
    ['null creates nothing', 'metadata.annotations.b', 'null', { annotations: { a: '1' } }],
    ['a missing map is not created', 'metadata.labels.b', DEFAULT, { annotations: { a: '1' } }],
    ['a wildcard matches what is there', 'metadata.labels.*', DEFAULT, { annotations: { a: '1' } }],
  ])('%s', async (_, path, expression, metadata) => {
    const { metadata: result } = await patched({ path, expression }, 'create');
    expect(result).toEqual({ name: 'web', ...(metadata as JsonObject) });
  });

  test('of every element that a wildcard before the key matches, with its path', async () => {
    const patch = {
      path: 'subsets[*].addresses[*].hostname',
      expression: 'valueExists ? value : context.path',
    };
    expect((await patched(patch, 'create'))['subsets']).toEqual([
      {
        addresses: [
          { ip: '10.0.0.1', hostname: 'x' },
          { ip: '10.0.0.2', hostname: 'subsets.0.addresses.1.hostname' },
        ],
      },
    ]);
  });

  test.each([
    ['an index', { path: 'subsets[1]', expression: '({})' }],
    ['a key of a list', { path: 'subsets.hostname', expression: '"x"' }],
    ['a reference', { path: 'metadata.annotations.b', reference: { apiVersion: 'v1', kind: 'Secret' } }],
    ['labels', { path: 'metadata.annotations.b', labels: {} }],
  ])('%s creates nothing', async (_, patch) => {
    expect(await patched(patch, 'create')).toEqual(OBJECT);
  });

  test('a reverseExpression creates nothing on the way back', async () => {
    const patch = { path: 'metadata.annotations.b', expression: DEFAULT, reverseExpression: '"back"' };
    expect(await patched(patch, 'create', 'toVirtual')).toEqual(OBJECT);
  });
});

test('missingPaths: skip, the default, does not run the expression', async () => {
  const patch = { path: 'metadata.annotations.b', expression: DEFAULT };
  expect(await patched(patch)).toEqual(OBJECT);
  expect(await patched(patch, 'skip')).toEqual(OBJECT);
});
