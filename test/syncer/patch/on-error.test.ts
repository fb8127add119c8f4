/** Patches that fail, with `endpointSyncer.patches.onError`. */

import { describe, expect, test } from 'vitest';
import type { PatchError } from '../../../src/base/errors.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import type { PatchConfig } from '../../../src/syncer/patch/patch-schema.ts';
import { validateEndpoints } from '../../../src/syncer/kinds/endpoints.ts';
import type { Direction } from '../../../src/syncer/patch/types.ts';
import { build, context } from './build.ts';

const OBJECT: JsonObject = {
  metadata: {
    name: 'web',
    namespace: 'shop',
    annotations: { a: '1', b: '2', c: '((' },
    labels: { app: 'web' },
  },
  subsets: [{ addresses: [{ ip: '10.0.0.1', hostname: 'x' }], ports: [{ port: 80 }] }],
};
const FAILS = 'value.no.such';
const SUCCEEDS = {
  path: 'metadata.annotations.b',
  expression: 'value + "!"',
  reverseExpression: 'value + "!"',
};

async function applied(
  patches: readonly PatchConfig[],
  direction: Direction = 'toHost',
  onError: 'object' | 'path' = 'path',
) {
  const run = (answers: 'immediately' | 'later') =>
    build(patches, { onError, answers, validate: validateEndpoints }).pipeline.apply(
      direction,
      OBJECT,
      context(),
    );
  const result = await run('later');
  expect((await run('immediately')).object).toEqual(result.object);
  return result;
}

describe('onError: path leaves out a failing patch', () => {
  test.each<[string, PatchConfig]>([
    ['of an annotation', { path: 'metadata.annotations.a', expression: FAILS }],
    ['of all annotations', { path: 'metadata.annotations[*]', expression: FAILS }],
    ['of the map of labels', { path: 'metadata.labels', expression: FAILS }],
    ['of a member of elements', { path: 'subsets[*].addresses[*].hostname', expression: FAILS }],
    ['of labels in an annotation', { path: 'metadata.annotations.c', labels: {} }],
    ['whose filter fails', { path: 'subsets[*].ports[?(@.no.such)].port', expression: 'value' }],
    ['whose result is invalid', { path: 'subsets[*].ports[*].port', expression: '"http"' }],
    ['whose result is invalid metadata', { path: 'metadata.annotations.a', expression: '({})' }],
  ])('%s', async (_, patch) => {
    const { object, failed } = await applied([patch, SUCCEEDS]);
    expect(object['metadata']).toMatchObject({ annotations: { a: '1', b: '2!', c: '((' } });
    expect(object['subsets']).toEqual(OBJECT['subsets']);
    expect(failed?.errors.map(({ index }) => index)).toEqual([0]);
  });

  test('and another one, in the order of their failures', async () => {
    const one = { path: 'metadata.annotations.a', expression: FAILS };
    const other = { path: 'metadata.labels.app', expression: 'throw new Error("late"); 1' };
    const { failed, object } = await applied([one, SUCCEEDS, other]);
    expect(failed?.errors.map(({ index }) => index)).toEqual([0, 2]);
    expect(object['metadata']).toMatchObject({ annotations: { b: '2!' }, labels: { app: 'web' } });
    expect(failed?.kept.covers(['metadata', 'annotations', 'a'])).toBe(true);
    expect(failed?.kept.covers(['metadata', 'labels', 'app'])).toBe(true);
    expect(failed?.kept.covers(['metadata', 'annotations', 'b'])).toBe(false);
  });

  test('on the way back', async () => {
    const one = { path: 'metadata.annotations.a', expression: 'value', reverseExpression: FAILS };
    const { failed, object } = await applied([one, SUCCEEDS], 'toVirtual');
    expect(failed?.errors).toMatchObject([{ index: 0, kind: 'runtime' }]);
    expect(object['metadata']).toMatchObject({ annotations: { a: '1', b: '2!' } });
  });

  test('with the places of its path in the content', async () => {
    const patch = { path: 'subsets[*].addresses[*].hostname', expression: FAILS };
    const { failed } = await applied([patch]);
    expect(failed?.kept.locate(OBJECT)).toEqual([['subsets', 0, 'addresses', 0, 'hostname']]);
  });
});

describe('onError: path fails the object where it cannot keep its place', () => {
  test.each<[string, PatchConfig]>([
    ['of the whole object', { path: '', expression: FAILS }],
    ['of the metadata', { path: 'metadata', expression: FAILS }],
    ['of any metadata', { path: 'metadata.*.a', expression: FAILS }],
    ['of the whole content', { path: 'subsets', expression: FAILS }],
    ['of an element', { path: 'subsets[*].addresses[*]', expression: FAILS }],
    ['of an element, by a number', { path: 'subsets.0', expression: FAILS }],
    ['of another member', { path: 'other.a', expression: FAILS }],
    ['that is a reference', { path: 'metadata.labels', reference: { apiVersion: 'v1', kind: 'Secret' } }],
  ])('%s', async (_, patch) => {
    const object = { ...OBJECT, other: { a: 1 } };
    const { pipeline } = build([patch, SUCCEEDS], { onError: 'path' });
    const run = async () => pipeline.apply('toHost', object, context());
    await expect(run()).rejects.toMatchObject({ name: 'PatchError', index: 0 });
  });
});

test('onError: object fails the object', async () => {
  const patch = { path: 'metadata.annotations.a', expression: FAILS };
  await expect(applied([patch], 'toHost', 'object')).rejects.toMatchObject({ index: 0 });
});

describe('an invalid result is the fault of the patch that wrote it', () => {
  const WRONG: PatchConfig = { path: 'metadata.annotations.a', expression: '({ no: "text" })' };

  test.each<[string, PatchConfig, string]>([
    ['a wildcard', { path: 'metadata.annotations[*]', expression: 'value.toUpperCase()' }, '2'],
    ['a filter', { path: 'metadata.annotations[?(@.startsWith("2"))]', expression: 'value + "!"' }, '2!'],
    ['a wildcard above', { path: '*.annotations.*', expression: 'value.trim()' }, '2'],
    [
      'the map',
      {
        path: 'metadata.annotations',
        expression: 'Object.fromEntries(Object.entries(value).map(([k, v]) => [k, v.trim()]))',
      },
      '2',
    ],
  ])('of an earlier one, where %s fails on it', async (_, later, b) => {
    const { object, failed } = await applied([WRONG, later]);
    expect(failed?.errors).toMatchObject([
      {
        index: 0,
        path: 'metadata.annotations.a',
        message: 'must be a string, not an object',
        kind: 'result',
      },
    ]);
    expect(object['metadata']).toMatchObject({ annotations: { a: '1', b } });
  });

  test('and not of an earlier one elsewhere', async () => {
    const { failed } = await applied([WRONG, { path: 'metadata.labels[*]', expression: FAILS }]);
    expect(new Set(failed?.errors.map(({ index }) => index))).toEqual(new Set([0, 1]));
  });

  test('nor of one whose result is completed later', async () => {
    const split = { path: 'metadata.annotations.a', expression: 'value.split(",")' };
    const each = { path: 'metadata.annotations.a[*]', expression: 'value + "!"' };
    const join = { path: 'metadata.annotations[?(Array.isArray(@))]', expression: 'value.join(",")' };
    const { object, failed } = await applied([split, each, join]);
    expect(failed).toBeUndefined();
    expect(object['metadata']).toMatchObject({ annotations: { a: '1!' } });
  });
});

describe('each patch that fails is reported', () => {
  const patches: readonly PatchConfig[] = [
    { path: 'metadata.annotations.a', expression: FAILS },
    SUCCEEDS,
    { path: 'subsets[*].ports[*].port', expression: '"http"' },
    { path: 'metadata.labels.app', expression: FAILS },
  ];

  test.each(['object', 'path'] as const)('onError: %s', async (onError) => {
    const outcome = applied([...patches, { path: 'other', expression: FAILS }], 'toHost', onError);
    const all = await outcome.then(
      ({ failed }) => failed?.errors ?? [],
      (error: PatchError) => [error, ...error.others],
    );
    expect(new Set(all.map(({ index }) => index))).toEqual(new Set([0, 2, 3]));
  });

  test('also where one of them stops the object', async () => {
    const stop = { path: 'subsets', expression: FAILS };
    await expect(applied([...patches.slice(0, 2), stop])).rejects.toMatchObject({
      index: 2,
      others: [{ index: 0 }],
    });
  });
});
