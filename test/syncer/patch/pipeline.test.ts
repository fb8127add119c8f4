/** The patch pipeline: order, context, results, failures and batching. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PatchConfig } from '../../../src/syncer/patch/patch-schema.ts';
import { PatchError } from '../../../src/base/errors.ts';
import { cloneJson, valueAt, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import type { Direction } from '../../../src/syncer/patch/types.ts';
import { build, context } from './build.ts';

const OBJECT = {
  apiVersion: 'v1',
  kind: 'Endpoints',
  metadata: { name: 'web', namespace: 'default', annotations: { a: '1', b: '2' } },
  subsets: [
    {
      addresses: [{ ip: '10.0.0.1', hostname: 'x' }, { ip: '10.0.0.2' }],
      ports: [{ name: 'http', port: 80 }],
    },
  ],
};

async function apply(patches: readonly PatchConfig[], object: JsonObject = OBJECT): Promise<JsonObject> {
  return (await build(patches).pipeline.apply('toHost', object, context())).object;
}

/** The same whether results are cached or the sandbox responds later. */
async function failure(patches: readonly PatchConfig[], object: JsonObject = OBJECT): Promise<PatchError> {
  const errors = ['later', 'immediately'].map(async (answers) => {
    try {
      await build(patches, { answers: answers as 'later' }).pipeline.apply('toHost', object, context());
    } catch (error) {
      if (error instanceof PatchError) return error;
      throw error;
    }
    throw new Error('it did not fail');
  });
  const [later, atOnce] = await Promise.all(errors);
  expect(atOnce).toEqual(later);
  if (later === undefined) throw new Error('unreachable');
  return later;
}

describe('order and direction', () => {
  test('each patch gets the result of the previous ones; the input is not changed', async () => {
    const before = cloneJson(OBJECT);
    const patches = [
      { path: 'metadata.annotations.a', expression: 'value + "1"' },
      { path: 'metadata.annotations[*]', expression: 'value + "2"' },
      { path: 'metadata.annotations', expression: 'value["c"] = value.a + value.b; value' },
    ];
    expect((await apply(patches))['metadata']).toMatchObject({
      annotations: { a: '112', b: '22', c: '11222' },
    });
    expect(OBJECT).toEqual(before);
  });

  test('in reverse direction the last entry runs first', async () => {
    const patches = [
      { path: 'a', expression: 'value + "1"', reverseExpression: 'value.slice(0, -1)' },
      { path: '*', expression: 'value + "2"', reverseExpression: 'value.replace("2", "")' },
    ];
    const { pipeline } = build(patches);
    const there = await pipeline.apply('toHost', { a: 'x' }, context());
    expect(there.object).toEqual({ a: 'x12' });
    const back = await pipeline.apply('toVirtual', there.object, context());
    expect(back.object).toEqual({ a: 'x' });
  });

  test('a whole object that is not synced in a direction is kept', async () => {
    const { pipeline } = build([{ path: '', reverseExpression: 'value' }]);
    const hostObject = { metadata: { name: 'other', uid: 'u', annotations: { x: 'host' } }, subsets: [] };
    expect((await pipeline.apply('toHost', OBJECT, context({ hostObject }))).object).toEqual({
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { name: 'web', namespace: 'default', annotations: { x: 'host' } },
      subsets: [],
    });
    expect((await pipeline.apply('toHost', OBJECT, context())).object).toEqual({
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { name: 'web', namespace: 'default' },
    });
  });

  test('the context of an expression', async () => {
    const { pipeline } = build([
      {
        path: 'a',
        expression: '[context.path, context.vcluster.name, context.hostObject, context.virtualObject.x]',
      },
    ]);
    const result = await pipeline.apply('toHost', { a: 1 }, context({ virtualObject: { x: 7 } }));
    expect(result.object).toEqual({ a: ['a', 'vc', null, 7] });
  });
});

describe('results', () => {
  test('null and undefined delete; elements are deleted after all matches', async () => {
    const patches = [{ path: 'list[*]', expression: 'value % 2 ? value * 10 : null' }];
    expect(await apply(patches, { list: [1, 2, 3, 4] })).toEqual({ list: [10, 30] });
    expect(await apply([{ path: 'a', expression: 'undefined' }], { a: 1, b: 2 })).toEqual({ b: 2 });
  });

  test('of the whole object are merged into it, and null deletes a field', async () => {
    const object = { a: 1, b: 2, gone: null };
    expect(await apply([{ path: '', expression: '({ a: null, c: 3, gone: value.gone })' }], object)).toEqual({
      b: 2,
      c: 3,
      gone: null,
    });
    expect(await failure([{ path: '', expression: 'null' }], object)).toMatchObject({
      kind: 'result',
      path: '',
    });
    expect(await failure([{ path: '$', expression: '[1]' }], object)).toMatchObject({ kind: 'result' });
  });

  test('identity and bookkeeping survive patches above them', async () => {
    const object = {
      metadata: {
        name: 'n',
        namespace: 's',
        uid: 'u',
        annotations: { 'vcluster.loft.sh/object-name': 'v', own: '1' },
        labels: { 'vcluster.loft.sh/managed-by': 'vc' },
      },
    };
    expect(await apply([{ path: 'metadata.annotations', expression: 'null' }], object)).toEqual({
      metadata: { ...object.metadata, annotations: { 'vcluster.loft.sh/object-name': 'v' } },
    });
    const shout = 'Object.fromEntries(Object.entries(value).map(([k, v]) => [k, v + "!"]))';
    expect(await apply([{ path: 'metadata.annotations', expression: shout }], object)).toEqual({
      metadata: { ...object.metadata, annotations: { 'vcluster.loft.sh/object-name': 'v', own: '1!' } },
    });
    const bare = {
      metadata: { ...object.metadata, annotations: { 'vcluster.loft.sh/object-name': 'v' } },
    };
    for (const expression of ['({})', '({ annotations: null, labels: null })'])
      expect(await apply([{ path: 'metadata', expression }], object)).toEqual(bare);
    const forged =
      '({ ...value, annotations: { ...value.annotations, "vcluster.loft.sh/object-uid": "forged" } })';
    expect(await apply([{ path: 'metadata', expression: forged }], object)).toEqual(object);
    const renamed = await failure(
      [{ path: 'metadata', expression: '({ ...value, name: "other" })' }],
      object,
    );
    expect(renamed).toMatchObject({ kind: 'result', path: 'metadata.name', index: 0 });
    expect(await failure([{ path: '', expression: '({ metadata: 1 })' }], object)).toMatchObject({
      path: 'metadata',
    });
  });

  test('unchanged parts are shared with the input', async () => {
    const result = (await apply([
      { path: 'subsets[0].addresses[1].ip', expression: '"1.2.3.4"' },
    ])) as typeof OBJECT;
    expect(result.metadata).toBe(OBJECT.metadata);
    expect(result.subsets[0]?.addresses[0]).toBe(OBJECT.subsets[0]?.addresses[0]);
    expect(await apply([{ path: 'nowhere[*]', expression: '1' }])).toBe(OBJECT);
  });

  test('a validation error names the patch that wrote the path', async () => {
    const patches = [
      { path: 'metadata.annotations.a', expression: '"x"' },
      { path: 'subsets[*].addresses[*].ip', expression: '"not an ip"' },
      { path: 'metadata.annotations.b', expression: '"y"' },
    ];
    const { pipeline } = build(patches, {
      validate: () => ({ path: ['subsets', 0, 'addresses', 1, 'ip'], message: 'must be an IP address' }),
    });
    await expect(pipeline.apply('toHost', OBJECT, context())).rejects.toMatchObject({
      index: 1,
      path: 'subsets.0.addresses.1.ip',
      kind: 'result',
    });
  });
});

describe('failures', () => {
  test('the first match that fails, with its concrete path and a caret', async () => {
    const error = await failure([
      { path: 'metadata.annotations.a', expression: 'value' },
      { path: 'subsets[*].addresses[*].hostname', expression: 'value.nothing.there' },
    ]);
    expect(error).toMatchObject({ index: 1, path: 'subsets.0.addresses.0.hostname', kind: 'runtime' });
    expect(error.excerpt).toBe('value.nothing.there\n^');
  });

  test('of several in one batch, the first in the order of the patches', async () => {
    const patches = [
      { path: 'a', expression: 'value' },
      { path: 'b', expression: 'value.x.y' },
      { path: 'c', expression: 'value.x.y' },
    ];
    expect(await failure(patches, { a: 1, b: null, c: null })).toMatchObject({ index: 1, path: 'b' });
    const reversed = build(patches.map(({ path, expression }) => ({ path, reverseExpression: expression })));
    await expect(
      reversed.pipeline.apply('toVirtual', { a: 1, b: null, c: null }, context()),
    ).rejects.toMatchObject({
      index: 2,
      path: 'c',
    });
  });

  test('of the first patch, also if a later one fails before it', async () => {
    const patches = [
      { path: 'a', expression: 'value.x.y' },
      { path: 'b', labels: {} },
    ];
    expect(await failure(patches, { a: null, b: 5 })).toMatchObject({ index: 0, path: 'a' });
  });

  test('labels that are not a selector', async () => {
    expect(await failure([{ path: 'a', labels: {} }], { a: 5 })).toMatchObject({
      kind: 'runtime',
      path: 'a',
    });
  });
});

describe('requests to the sandbox', () => {
  test('one for each patch with a match, none without; independent patches share a batch', async () => {
    const { pipeline, evaluator } = build([
      { path: 'metadata.annotations.a', expression: 'value' },
      { path: 'subsets[*].addresses[*].ip', expression: 'value' },
      { path: 'subsets[*].ports[*].name', expression: 'value' },
      { path: 'nothing', expression: 'value' },
      { path: 'subsets[*]', expression: 'value' },
      { path: 'metadata.annotations.b', expression: 'value' },
    ]);
    await pipeline.apply('toHost', OBJECT, context());
    expect(evaluator.requests.map(({ values }) => values.length)).toEqual([1, 2, 1, 1, 1]);
    expect(evaluator.turns).toEqual([3, 2]);
  });

  test('paths are formatted only when they are read', async () => {
    const { pipeline, evaluator } = build([
      { path: 'metadata.annotations[*]', expression: 'context.path' },
      { path: 'subsets[*].addresses[*].ip', expression: 'value' },
    ]);
    const { object } = await pipeline.apply('toHost', OBJECT, context());
    expect(evaluator.requests.map(({ paths }) => paths)).toEqual([
      ['metadata.annotations.a', 'metadata.annotations.b'],
      undefined,
    ]);
    expect(object).toMatchObject({ metadata: { annotations: { a: 'metadata.annotations.a' } } });
  });

  test('an empty pipeline returns the object', async () => {
    const { pipeline } = build([]);
    expect(pipeline.isEmpty).toBe(true);
    expect(await pipeline.apply('toHost', OBJECT, context())).toMatchObject({ object: OBJECT });
  });
});

describe('compared with one patch after the other', () => {
  const paths = ['a', 'b', '*', 'a.b', 'a.*', 'a[*]', 'a[0]', 'a[1]', 'a.0.b', 'b[*].a', 'b.*.*', ''];
  const expressions = [
    'value',
    'null',
    '"x"',
    '[value]',
    '({ a: value, b: 1 })',
    'Array.isArray(value) ? value.slice(1) : { b: [value, 2] }',
    'typeof value === "number" ? undefined : value',
    'context.path',
  ];
  const leaf = fc.oneof(fc.constant(null), fc.nat(3), fc.constantFrom('s', 't'));
  const tree = fc.letrec<{ node: JsonValue }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 3 },
      leaf,
      fc.array(tie('node'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('a', 'b', '0'), tie('node'), { maxKeys: 2 }),
    ),
  })).node;
  const entry = fc.record({ path: fc.constantFrom(...paths), expression: fc.constantFrom(...expressions) });

  async function outcome(
    patches: readonly PatchConfig[],
    object: JsonObject,
    direction: Direction,
  ): Promise<unknown> {
    try {
      return (await build(patches).pipeline.apply(direction, object, context())).object;
    } catch (error) {
      return error instanceof PatchError ? error.kind : error;
    }
  }

  test('batching changes nothing', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { maxLength: 5 }), tree, tree, async (patches, a, b) => {
        const object = { a, b };
        let expected: unknown = object;
        for (const patch of patches) {
          if (typeof expected === 'object')
            expected = await outcome([patch], expected as JsonObject, 'toHost');
        }
        expect(await outcome(patches, object, 'toHost')).toEqual(expected);
        const reversed = patches
          .map(({ path, expression }) => ({ path, reverseExpression: expression }))
          .toReversed();
        expect(await outcome(reversed, object, 'toVirtual')).toEqual(expected);
      }),
      { numRuns: 300 },
    );
  });
});

describe('labels on texts', () => {
  const renamed = 'vcluster.loft.sh/label-vc-x-a4d451ec23';
  const patches = [{ path: 'metadata.annotations.s', labels: {} }];
  const apply = async (direction: 'toHost' | 'toVirtual', text: string): Promise<unknown> => {
    const { object } = await build(patches).pipeline.apply(
      direction,
      { metadata: { annotations: { s: text } } },
      context(),
    );
    return valueAt(object, ['metadata', 'annotations', 's']);
  };

  test.each([
    ['{ "matchLabels": {"release": "web"} }', `{ "matchLabels": {"${renamed}": "web"} }`],
    ['{"release":"web", "app" : "x"}', `{"${renamed}":"web", "app" : "x"}`],
    [
      '{"matchExpressions":[{"key":"release","operator":"Exists"}]}',
      `{"matchExpressions":[{"key":"${renamed}","operator":"Exists"}]}`,
    ],
    ['release=web,app', `${renamed}=web,app`],
    ['{"app":"x"}', '{"app":"x"}'],
    ['{}', '{}'],
  ])('%s', async (virtual, host) => {
    expect(await apply('toHost', virtual)).toBe(host);
    expect(await apply('toVirtual', host)).toBe(virtual);
  });

  test.each([
    ['release:web', /"release:web" is not a label key: .*; write release=web/],
    ['{"matchLabels"', /is not a label/],
    ['[]', /this is a list/],
    ['{"matchExpressions":[{"key":"a b"}]}', /matchExpressions\.0\.key: name part .* not "a b"/u],
  ])('%s is no selector', async (text, message) => {
    await expect(apply('toHost', text)).rejects.toThrow(message);
  });
});

describe('no patch changes metadata other than annotations and labels', () => {
  const OWN = {
    name: 'x',
    uid: 'x',
    generateName: 'x-',
    selfLink: '/x',
    resourceVersion: '2',
    generation: 2,
    creationTimestamp: '2026-01-01T00:00:00Z',
    deletionTimestamp: '2026-01-01T00:00:00Z',
    deletionGracePeriodSeconds: 1,
    finalizers: ['example.com/x'],
    ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' }],
    managedFields: [],
  };
  const object = { ...OBJECT, metadata: { ...OBJECT.metadata, ownerReferences: [{ uid: 'owner' }] } };

  test.each(Object.entries(OWN))('%s', async (field, value) => {
    const json = JSON.stringify(value);
    for (const patch of [
      { path: '', expression: `value.metadata[${JSON.stringify(field)}] = ${json}; value` },
      { path: 'metadata', expression: `({ ...value, ${field}: ${json} })` },
      { path: `*.${field}`, expression: json },
      { path: `[?(@.annotations)].${field}`, expression: json },
    ]) {
      const { pipeline } = build([patch], { missingPaths: 'create' });
      const run = async () => pipeline.apply('toHost', object, context());
      await expect(run()).rejects.toMatchObject({
        message: `a patch may not change metadata.${field}`,
        path: `metadata.${field}`,
      });
    }
  });

  test('what a result leaves out is kept, and wildcards do not match it', async () => {
    const left = await apply([{ path: 'metadata', expression: '({ labels: { a: "b" } })' }], object);
    expect(left['metadata']).toEqual({
      name: 'web',
      namespace: 'default',
      labels: { a: 'b' },
      ownerReferences: [{ uid: 'owner' }],
    });
    const each = await apply([{ path: 'metadata.*', expression: '({ ...value, c: "d" })' }], object);
    expect(each['metadata']).toEqual({ ...object.metadata, annotations: { a: '1', b: '2', c: 'd' } });
    const below = await apply([{ path: '*.*[0].uid', expression: '"x"' }], object);
    expect(below).toEqual(object);
  });

  test.each([
    ['*.ownerReferences[0].uid', 'metadata.ownerReferences'],
    ['*.annotations["vcluster.loft.sh/object-name"]', undefined],
  ])('nor through a wildcard above: %s', async (path, refused) => {
    const annotated = {
      ...object,
      metadata: { ...object.metadata, annotations: { 'vcluster.loft.sh/object-name': 'web' } },
    };
    const { pipeline } = build([{ path, expression: '"x"' }]);
    const outcome = Promise.resolve(pipeline.apply('toHost', annotated, context()));
    const result = await outcome.then(
      (patched) => patched.object,
      (error: PatchError) => error.path,
    );
    expect(result).toEqual(refused ?? annotated);
  });
});

test('of more failed matches than a call takes as arguments, the first one is named', async () => {
  const { pipeline } = build([{ path: 'subsets[*]', expression: 'value.a.b' }], { answers: 'immediately' });
  const object = { ...OBJECT, subsets: Array.from({ length: 150_000 }, () => ({})) };
  await expect(pipeline.apply('toHost', object, context())).rejects.toMatchObject({ path: 'subsets.0' });
});

describe('paths that match nothing', () => {
  const PATCHES: readonly PatchConfig[] = [
    { path: 'metadata.annotations.a', expression: 'value' },
    { path: 'metadata.labels.mistyped', expression: 'value' },
    { path: 'metadata.annotations.made', expression: 'value' },
    { path: 'metadata.annotations', expression: 'value["made"] = "1"; value' },
    { path: 'metadata.annotations.made', expression: 'value' },
    { path: 'subsets[*].addresses[?(@.ip == "10.0.0.9")].ip', expression: 'value' },
    { path: 'metadata.annotations.fromHost', reverseExpression: 'value' },
  ];

  test('are those without a match in any object, at the turn of the patch', async () => {
    const { pipeline } = build(PATCHES);
    expect(pipeline.neverMatched()).toEqual([]);
    await pipeline.apply('toHost', OBJECT, context());
    expect(pipeline.neverMatched()).toEqual([
      'patches[1], path metadata.labels.mistyped',
      'patches[2], path metadata.annotations.made',
      'patches[5], path subsets[*].addresses[?(@.ip == "10.0.0.9")].ip',
      'patches[6], path metadata.annotations.fromHost',
    ]);
    const other = { ...OBJECT, subsets: [{ addresses: [{ ip: '10.0.0.9' }] }] };
    await pipeline.apply('toHost', other, context());
    const host = { ...OBJECT, metadata: { ...OBJECT.metadata, annotations: { fromHost: 'x' } } };
    await pipeline.apply('toVirtual', host, context());
    expect(pipeline.neverMatched()).toEqual([
      'patches[1], path metadata.labels.mistyped',
      'patches[2], path metadata.annotations.made',
    ]);
  });
});
