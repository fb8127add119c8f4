/** Where the parts of references are in a value: at each match of a wildcard, and in a JSON text. */

import { describe, expect, test } from 'vitest';
import type { ReferenceConfig } from '../../../src/syncer/patch/patch-schema.ts';
import type { JsonValue } from '../../../src/base/json.ts';
import type { Direction } from '../../../src/syncer/patch/types.ts';
import { hostNameShort } from '../../../src/syncer/translate/names.ts';
import { build, context } from './build.ts';
import { MAPPINGS, PARTS, SECRET, toHost, toVirtual, translate } from './reference-setup.ts';

describe('a wildcard in namePath', () => {
  const each: ReferenceConfig = {
    ...SECRET,
    namePath: 'items[*].ref.name',
    namespacePath: 'items[*].ref.ns',
    kindPath: 'items[*].kind',
  };

  test('is one reference for each match, with the other parts of the same match', async () => {
    const ref = {
      items: [
        { ref: { name: 'a', ns: 'team' } },
        { kind: 'ConfigMap', ref: { name: 'b' } },
        { ref: {} },
        { ref: { name: '' } },
      ],
    };
    const { object, references } = await translate(ref, { reference: each });
    expect(object['ref']).toEqual({
      items: [
        { ref: { name: hostNameShort('a', 'team', 'vc'), ns: 'ns' } },
        { kind: 'ConfigMap', ref: { name: hostNameShort('b', 'default', 'vc') } },
        ...ref.items.slice(2),
      ],
    });
    expect(references).toMatchObject([
      { kind: 'Secret', namespace: 'team', name: 'a', path: 'ref' },
      { kind: 'ConfigMap', namespace: 'default', name: 'b', path: 'ref' },
    ]);
    const virtualObject = { ref };
    expect(await toVirtual(object['ref'] ?? null, { reference: each, context: { virtualObject } })).toEqual(
      ref,
    );
  });

  test.each<[string, ReferenceConfig, JsonValue, (name: string) => JsonValue]>([
    ['of a list of names', { ...SECRET, namePath: '[*]' }, ['a', 'b'], (name) => name],
    [
      'of a map',
      { ...SECRET, namePath: '*.name' },
      { x: { name: 'a' }, y: { name: 'b' } },
      (name) => ({ name }),
    ],
    ['in a list', { ...SECRET, namePath: '[*].name' }, [{ name: 'a' }, { name: 'b' }], (name) => ({ name })],
    ['below a wildcard', { ...SECRET, namePath: '[*].*' }, [{ x: 'a' }, { x: 'b' }], (x) => ({ x })],
  ])('%s', async (_, reference, ref, element) => {
    const [a, b] = ['a', 'b'].map((name) => element(hostNameShort(name, 'default', 'vc')));
    expect(await toHost(ref, { reference })).toEqual(Array.isArray(ref) ? [a, b] : { x: a, y: b });
  });

  test('a namespace beside the list is that of all of them', async () => {
    const reference = { ...SECRET, namePath: 'items[*]', namespacePath: 'ns' };
    const ref = { ns: 'team', items: ['a', 'b'] };
    const host = { ns: 'ns', items: ['a', 'b'].map((name) => hostNameShort(name, 'team', 'vc')) };
    expect(await toHost(ref, { reference })).toEqual(host);
    expect(await toVirtual(host, { reference, context: { virtualObject: { ref } } })).toEqual(ref);
  });

  test('namespaces alone may be several, too', async () => {
    const reference = { ...SECRET, namespacePath: '[*].ns' };
    expect(await toHost([{ ns: 'team' }, {}, { ns: 'default' }], { ...MAPPINGS, reference })).toEqual([
      { ns: 'host-team' },
      {},
      { ns: 'host-default' },
    ]);
  });

  test('never matches bookkeeping', async () => {
    const annotations = { 'vcluster.loft.sh/object-name': 'a', b: 'b' };
    for (const [path, namePath] of [
      ['', 'metadata.annotations[*]'],
      ['metadata', 'annotations[*]'],
      ['metadata.annotations', '[*]'],
    ] as const) {
      const { pipeline } = build([{ path, reference: { ...SECRET, namePath } }]);
      const { object, references } = await pipeline.apply('toHost', { metadata: { annotations } }, context());
      expect(object).toEqual({
        metadata: { annotations: { ...annotations, b: hostNameShort('b', 'default', 'vc') } },
      });
      expect(references.map(({ name }) => name)).toEqual(['b']);
    }
  });

  test('at most 1000 references', async () => {
    const reference = { ...SECRET, namePath: '[*]' };
    const names = Array.from({ length: 1000 }, (_, at) => `n${at}`);
    expect((await translate(names, { reference })).references).toHaveLength(1000);
    await expect(toHost([...names, 'more'], { reference })).rejects.toThrow(
      'the value has 1001 references, at most 1000 are possible',
    );
  });
});

describe('a JSON text with references', () => {
  const NETWORKS: ReferenceConfig = { ...SECRET, namePath: '[*].name', namespacePath: '[*].namespace' };
  const host = (name: string, namespace = 'default'): string => hostNameShort(name, namespace, 'vc');

  test.each<[string, ReferenceConfig, string, string]>([
    [
      'a list, as Multus reads it',
      NETWORKS,
      '[ {"name":"net-a","namespace":"team"},\n  {"name" : "net-b", "ips":["10.0.0.1"]} ]',
      `[ {"name":"${host('net-a', 'team')}","namespace":"ns"},\n  {"name" : "${host('net-b')}", "ips":["10.0.0.1"]} ]`,
    ],
    [
      'an object',
      PARTS,
      '{"\\u006bind":"Secret","name":"a"}\n',
      `{"\\u006bind":"Secret","name":"${host('a')}"}\n`,
    ],
    ['one element', { ...SECRET, namePath: '[1].name' }, '[0,{"name":"a"}]', `[0,{"name":"${host('a')}"}]`],
    ['names', { ...SECRET, namePath: '[*]' }, '["a", "b"]', `["${host('a')}", "${host('b')}"]`],
    [
      'without references',
      NETWORKS,
      '[ {"other":1E400}, 5, {"name":""} ]',
      '[ {"other":1E400}, 5, {"name":""} ]',
    ],
    ['empty', NETWORKS, ' [] ', ' [] '],
  ])('%s', async (_, reference, ref, expected) => {
    expect(await toHost(ref, { reference })).toBe(expected);
    expect(await toVirtual(expected, { reference, context: { virtualObject: { ref } } })).toBe(ref);
  });

  test('a change on the host is translated back in the text that the host has', async () => {
    const lookup = (
      { name }: { name: string },
      direction: Direction,
    ): { namespace: string; name: string } | undefined =>
      direction === 'toVirtual' && name === 'v-c' ? { namespace: 'team', name: 'net-c' } : undefined;
    const job = {
      reference: NETWORKS,
      references: { lookup },
      context: { virtualObject: { ref: '[{"name":"\\u0061"}]' } },
    };
    const changed = `[{"name":"${host('a')}"},{ "namespace":"ns", "name":"v-c"}]`;
    expect(await toVirtual(changed, job)).toBe('[{"name":"\\u0061"},{ "namespace":"team", "name":"net-c"}]');
  });

  test('a name that no object has is unresolved in the whole text', async () => {
    const ref = '[{"name":"v-unknown"}]';
    const { object, unresolved } = await translate(ref, { reference: NETWORKS, direction: 'toVirtual' });
    expect(object).toEqual({ ref });
    expect(unresolved).toMatchObject([{ path: ['ref'], error: { index: 0, path: 'ref' } }]);
  });

  test('several entries for one text', async () => {
    const references = [
      { ...SECRET, namePath: 'secret', namespacePath: 'ns' },
      { ...SECRET, kind: 'ConfigMap', namePath: 'configs[*]', namespacePath: 'ns' },
    ];
    const { pipeline } = build(references.map((reference) => ({ path: 'ref', reference })));
    const ref = '{"ns":"team", "secret":"a", "configs":["b", "c"]}';
    const there = await pipeline.apply('toHost', { ref }, context());
    const [a, b, c] = ['a', 'b', 'c'].map((name) => host(name, 'team'));
    expect(there.object).toEqual({ ref: `{"ns":"ns", "secret":"${a}", "configs":["${b}", "${c}"]}` });
    const back = await pipeline.apply('toVirtual', there.object, context({ virtualObject: { ref } }));
    expect(back.object).toEqual({ ref });
  });

  test('without a namePath, the text is the name', async () => {
    expect(await toHost('["a"]')).toBe(host('["a"]'));
  });

  test.each<[string, JsonValue, ReferenceConfig, string]>([
    [
      'no JSON',
      '[{"name":"a"}',
      NETWORKS,
      'a reference with namePath is an object, this is the string "[{\\"name\\":\\"a\\"}"',
    ],
    [
      'the short form of Multus',
      'net-a,net-b',
      NETWORKS,
      'a reference with namePath is an object, this is the string "net-a,net-b"',
    ],
    ['JSON without members', '5', NETWORKS, 'a reference with namePath is an object, this is the string "5"'],
    ['empty', '', NETWORKS, 'a reference with namePath is an object, this is the string ""'],
    [
      'a list for a path into an object',
      '[]',
      PARTS,
      'a reference with namePath is an object, this is a list',
    ],
    [
      'no namespace',
      'x',
      { ...SECRET, namespacePath: 'ns' },
      'a reference with namespacePath is an object, this is the string "x"',
    ],
    [
      'a name that is no string',
      '[{"name":5}]',
      NETWORKS,
      'namePath leads to the number 5, which must be a string',
    ],
    [
      'a name that is there twice',
      '[{"name":"a","name":"b"}]',
      NETWORKS,
      'namePath leads to the key "name", which the JSON text has twice, so programs may read either value',
    ],
    [
      'a namespace that is there twice',
      '[{"name":"a","namespace":"x","namespace":"y"}]',
      NETWORKS,
      'namespacePath leads to the key "namespace", which the JSON text has twice, so programs may read either value',
    ],
    [
      'too deep',
      `[${'['.repeat(64)}${']'.repeat(64)}]`,
      NETWORKS,
      'the JSON text is nested deeper than 64 levels',
    ],
    ['too long', ` [${' '.repeat(1024 * 1024)}]`, NETWORKS, 'the JSON text has more than 1048576 characters'],
  ])('%s is an error', async (_, ref, reference, message) => {
    await expect(toHost(ref, { reference })).rejects.toMatchObject({
      name: 'PatchError',
      kind: 'runtime',
      index: 0,
      path: 'ref',
      message,
    });
  });
});
