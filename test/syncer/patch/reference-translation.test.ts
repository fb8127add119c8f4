/** Translation of references in both directions and all namespace modes. */

import { describe, expect, test } from 'vitest';
import type { ReferenceConfig } from '../../../src/syncer/patch/patch-schema.ts';
import type { JsonObject, JsonValue } from '../../../src/base/json.ts';
import type { Direction, PatchedObject } from '../../../src/syncer/patch/types.ts';
import { hostName, hostNameShort } from '../../../src/syncer/translate/names.ts';
import { LEGACY, translators } from '../translate/setup.ts';
import { build, context, type BuildOptions } from './build.ts';
import { MAPPINGS, PARTS, SECRET, toHost, toVirtual, translate, type Job } from './reference-setup.ts';

const OTHER_MAPPING = {
  mode: { kind: 'mappings', byName: { team: 'host-team' }, mappingsOnly: false },
} as const;
const LEGACY_NAMESPACE =
  translators(LEGACY, { vcluster: 'vc', hostNamespace: 'ns' }).names.namespaceToHost('default') ?? '';

describe('virtual to host', () => {
  test('a name', async () => {
    expect(await toHost('abc')).toBe(hostNameShort('abc', 'default', 'vc'));
    expect(await toHost('abc', { naming: 'long' })).toBe('abc-x-default-x-vc');
    expect(await toHost('abc', MAPPINGS)).toBe('abc');
    expect(await toHost('')).toBe('');
  });

  test('an object with the name in its fields', async () => {
    expect(await toHost({ name: 'abc', namespace: 'team', extra: 1 }, { reference: PARTS })).toEqual({
      name: hostNameShort('abc', 'team', 'vc'),
      namespace: 'ns',
      extra: 1,
    });
    expect(await toHost({ name: 'abc' }, { reference: PARTS })).toEqual({
      name: hostNameShort('abc', 'default', 'vc'),
    });
    expect(await toHost({ name: 'abc', namespace: '' }, { reference: PARTS })).toEqual({
      name: hostNameShort('abc', 'default', 'vc'),
      namespace: '',
    });
    expect(await toHost({ other: 1 }, { reference: PARTS })).toEqual({ other: 1 });
    const nested: ReferenceConfig = { ...SECRET, namePath: 'to["the.name"][0]' };
    expect(await toHost({ to: { 'the.name': ['abc'] } }, { reference: nested, naming: 'long' })).toEqual({
      to: { 'the.name': ['abc-x-default-x-vc'] },
    });
  });

  test('multi-namespace: the name is kept, a namespace is translated', async () => {
    const reference = PARTS;
    expect(await toHost({ name: 'abc', namespace: 'team' }, { ...MAPPINGS, reference })).toEqual({
      name: 'abc',
      namespace: 'host-team',
    });
    expect(await toHost({ name: 'abc' }, { ...MAPPINGS, reference })).toEqual({ name: 'abc' });
    await expect(
      toHost({ name: 'abc', namespace: 'elsewhere' }, { ...MAPPINGS, reference }),
    ).rejects.toMatchObject({
      name: 'PatchError',
      path: 'ref',
      message: expect.stringMatching(/elsewhere\/abc is in a namespace that no mapping covers/) as unknown,
    });
  });

  test('the copy on the host has another name', async () => {
    const known = { namespace: 'ns', name: 'created-by-another-client' };
    const references = {
      lookup: (one: { name: string; namespace: string }, direction: Direction) =>
        direction === 'toHost' && one.name === 'abc' && one.namespace === 'default' ? known : undefined,
    };
    expect(await toHost('abc', { references })).toBe('created-by-another-client');
    expect(await toHost('other', { references })).toBe(hostNameShort('other', 'default', 'vc'));
  });

  test.each<[string, JsonValue, ReferenceConfig, RegExp]>([
    ['a number', 5, SECRET, /this is the number 5; set namePath/],
    ['null', null, SECRET, /this is null/],
    ['an object without namePath', { name: 'a' }, SECRET, /this is an object; set namePath/],
    ['text with namePath', 'abc', PARTS, /with namePath is an object, this is the string "abc"/],
    ['a list', [], PARTS, /this is a list/],
    ['a name that is no text', { name: 5 }, PARTS, /namePath leads to the number 5/],
    ['a namespace that is no text', { name: 'a', namespace: {} }, PARTS, /namespacePath leads to an object/],
    ['a kind that is no text', { name: 'a', kind: true }, PARTS, /kindPath leads to the boolean true/],
  ])('%s is an error', async (_, value, reference, message) => {
    await expect(toHost(value, { reference })).rejects.toMatchObject({
      name: 'PatchError',
      kind: 'runtime',
      path: 'ref',
      message: expect.stringMatching(message) as unknown,
    });
  });

  test('a kind that the value contains must be allowed; the configured kind always is', async () => {
    const job: Job = {
      path: 'ref[*]',
      reference: PARTS,
      references: { isKindAllowed: (_, kind) => kind === 'ConfigMap' },
    };
    const value = [
      { name: 'a' },
      { name: 'b', kind: 'ConfigMap' },
      { name: 'c', kind: 'Role', apiVersion: 'rbac/v1' },
    ];
    const { object, references, notAllowed } = await translate(value, job);
    expect(object['ref']).toMatchObject([
      {},
      { kind: 'ConfigMap' },
      { name: 'c', kind: 'Role', apiVersion: 'rbac/v1' },
    ]);
    expect(references.map(({ name }) => name)).toEqual(['a', 'b']);
    expect(notAllowed).toMatchObject([{ path: 'ref.2', apiVersion: 'rbac/v1', kind: 'Role', name: 'c' }]);
  });
});

describe('host to virtual', () => {
  test('a generated name is reversed with the value of the virtual object at the same path', async () => {
    const host = hostNameShort('abc', 'default', 'vc');
    expect(await toVirtual(host, { context: { virtualObject: { ref: 'abc' } } })).toBe('abc');
  });

  test.each<[string, JsonValue | undefined]>([
    ['another name', 'changed'],
    ['no name', 5],
    ['nothing', undefined],
  ])('a generated name that no object has is an error where the virtual object has %s', async (_, ref) => {
    const host = hostNameShort('abc', 'default', 'vc');
    const virtualObject = ref === undefined ? {} : { ref };
    await expect(toVirtual(host, { context: { virtualObject } })).rejects.toMatchObject({
      name: 'PatchError',
      path: 'ref',
      message: `no Secret of the virtual cluster has the name "${host}" on the host; name one that exists`,
      retryAfterMs: 30_000,
    });
  });

  test('a lookup takes precedence if its result fits into the value', async () => {
    const references = { lookup: () => ({ namespace: 'team', name: 'known' }) };
    const host = { name: 'v123', namespace: 'ns' };
    expect(await toVirtual(host, { references, reference: PARTS })).toEqual({
      name: 'known',
      namespace: 'team',
    });
    await expect(toVirtual('v123', { references })).rejects.toThrow(/no Secret of the virtual cluster/);
    expect(await toVirtual('v123', { references, context: { objectNamespace: 'team' } })).toBe('known');
  });

  test('a long name is reversed if that has one result', async () => {
    expect(await toVirtual(hostName('abc', 'default', 'vc'), { naming: 'long' })).toBe('abc');
    await expect(toVirtual(hostName('abc', 'team', 'vc'), { naming: 'long' })).rejects.toThrow(
      /has the name "abc-x-team-x-vc" on the host/,
    );
    expect(await toVirtual({ name: 'abc-x-team-x-vc', namespace: 'ns' }, { reference: PARTS })).toEqual({
      name: 'abc',
      namespace: 'team',
    });
  });

  test('the name of an object of the host is kept', async () => {
    // The object exists only on the host, so its name is not translated.
    const references = {
      lookup: ({ name }: { name: string }, direction: Direction) =>
        direction === 'toHost' && name === 'shared-secret' ? { namespace: 'ns', name } : undefined,
    };
    expect(await toVirtual('shared-secret', { references })).toBe('shared-secret');
    await expect(toVirtual('other-secret', { references })).rejects.toThrow(/no Secret/);
    await expect(
      toVirtual({ name: 'shared-secret', namespace: 'kube-system' }, { references, reference: PARTS }),
    ).rejects.toThrow(/no Secret/);
  });

  test('multi-namespace: the namespace is reversed', async () => {
    expect(
      await toVirtual({ name: 'abc', namespace: 'host-team' }, { ...MAPPINGS, reference: PARTS }),
    ).toEqual({
      name: 'abc',
      namespace: 'team',
    });
    expect(await toVirtual('abc', MAPPINGS)).toBe('abc');
  });
});

describe('Pod references that the built-in translation has rewritten', () => {
  const subsets = [
    {
      addresses: [
        { ip: '10.0.0.1', targetRef: { kind: 'Pod', name: 'p-x-default-x-vc', namespace: 'ns' } },
        { ip: '10.0.0.2', targetRef: { kind: 'Node', name: 'n' } },
      ],
      notReadyAddresses: [{ targetRef: { kind: 'Pod', name: 'q-x-default-x-vc' } }],
    },
  ];
  const [asNode, asPod] = [hostNameShort('n', 'default', 'vc'), hostName('n', 'default', 'vc')];
  const untouched = [subsets[0]?.addresses[0]?.targetRef.name, 'q-x-default-x-vc'];

  test.each<[string, ReferenceConfig, string]>([
    [
      'subsets[*].*[*].targetRef',
      { apiVersion: 'v1', kind: 'Pod', namePath: 'name', kindPath: 'kind' },
      asNode,
    ],
    [
      'subsets[*].*[*]',
      { apiVersion: 'v1', kind: 'Pod', namePath: 'targetRef.name', kindPath: 'targetRef.kind' },
      asNode,
    ],
    ['subsets[*].*[*].targetRef.name', { apiVersion: 'v1', kind: 'Pod' }, asPod],
  ])('%s', async (path, reference, node) => {
    const { pipeline } = build([{ path, reference }], { references: { skipPodTargetRefs: true } });
    const { object, references } = await pipeline.apply('toHost', { subsets }, context());
    const [subset] = object['subsets'] as typeof subsets;
    const names = [subset?.addresses[0]?.targetRef.name, subset?.notReadyAddresses[0]?.targetRef.name];
    expect(names).toEqual(untouched);
    expect(subset?.addresses[1]?.targetRef.name).toBe(node);
    expect(references.map(({ name }) => name)).toEqual(['n']);
    const anyObject = await build([{ path, reference }]).pipeline.apply('toHost', { subsets }, context());
    expect(anyObject.references).toHaveLength(3);
  });
});

describe('the own namespace, spelled out as namespacePath', () => {
  const object = (namespace: string, ref: string): JsonObject => ({
    metadata: { namespace, annotations: { ref } },
  });
  const ways: readonly (readonly [string, ReferenceConfig])[] = [
    ['', { ...SECRET, namePath: 'metadata.annotations.ref', namespacePath: 'metadata.namespace' }],
    ['metadata', { ...SECRET, namePath: 'annotations.ref', namespacePath: 'namespace' }],
  ];
  const modes: readonly (readonly [string, BuildOptions, string, string])[] = [
    ['single-namespace', {}, 'ns', hostNameShort('abc', 'default', 'vc')],
    ['long names', { naming: 'long' }, 'ns', hostName('abc', 'default', 'vc')],
    ['mappings', MAPPINGS, 'host-default', 'abc'],
    ['mappings without this namespace', OTHER_MAPPING, 'ns', hostNameShort('abc', 'default', 'vc')],
    ['the legacy multi-namespace mode', { mode: { kind: 'legacy-multi' } }, LEGACY_NAMESPACE, 'abc'],
  ];
  const rows = ways.flatMap(([path, reference]) =>
    modes.map(([mode, options, hostNamespace, name]) => ({
      path,
      reference,
      mode,
      options,
      hostNamespace,
      name,
    })),
  );

  test.each(rows)(
    'on "$path" means the same as none, $mode',
    async ({ path, reference, options, hostNamespace, name }) => {
      const host = object(hostNamespace, name);
      const { pipeline } = build([{ path, reference }], options);
      const translated = object(hostNamespace, 'abc');
      const there = await pipeline.apply('toHost', translated, context());
      expect(there.object).toEqual(host);
      expect(there.references).toMatchObject([{ kind: 'Secret', namespace: 'default', name: 'abc' }]);
      const virtualObject = object('default', 'abc');
      const back = await pipeline.apply('toVirtual', host, context({ virtualObject }));
      expect(back.object).toEqual(translated);
    },
  );

  test('alone, it leaves the namespace of the object as it is', async () => {
    const reference = { ...SECRET, namespacePath: 'metadata.namespace' };
    const { pipeline } = build([{ path: '', reference }], MAPPINGS);
    const host = object('host-default', 'abc');
    expect((await pipeline.apply('toHost', host, context())).object).toEqual(host);
    expect((await pipeline.apply('toVirtual', host, context())).object).toEqual(host);
  });
});

describe('namespacePath alone', () => {
  const reference = { ...SECRET, namespacePath: 'ns' };

  test('translates the namespace and references no object', async () => {
    const mapped = await translate({ ns: 'team', name: 'abc' }, { ...MAPPINGS, reference });
    expect(mapped.object['ref']).toEqual({ ns: 'host-team', name: 'abc' });
    expect(mapped.references).toEqual([]);
    expect(await toHost({ ns: 'team' }, { reference })).toEqual({ ns: 'ns' });
    expect(await toHost({ other: 1 }, { reference })).toEqual({ other: 1 });
  });

  test('a namespace that no mapping covers is an error', async () => {
    await expect(toHost({ ns: 'elsewhere' }, { ...MAPPINGS, reference })).rejects.toThrow(
      /no mapping covers the namespace elsewhere/,
    );
    await expect(toHost('team', { ...MAPPINGS, reference })).rejects.toThrow(
      /with namespacePath is an object/,
    );
  });

  test('is reversed if the virtual namespace is known', async () => {
    expect(await toVirtual({ ns: 'host-team' }, { ...MAPPINGS, reference })).toEqual({ ns: 'team' });
    const virtualObject = { ref: { ns: 'team' } };
    expect(await toVirtual({ ns: 'ns' }, { reference, context: { virtualObject } })).toEqual({ ns: 'team' });
    expect(await toVirtual({ ns: 'ns' }, { reference })).toEqual({ ns: 'ns' });
  });
});

describe('several references in one value', () => {
  const at = (namePath: string, more: Partial<ReferenceConfig> = {}): ReferenceConfig => ({
    ...SECRET,
    namePath,
    ...more,
  });
  const pair = [at('secret'), at('config', { kind: 'ConfigMap' })];
  const shared = pair.map((reference) => ({ ...reference, namespacePath: 'in.ns' }));

  async function both(
    references: readonly ReferenceConfig[],
    direction: Direction,
    ref: JsonValue,
    options: BuildOptions & { readonly path?: string; readonly virtual?: JsonValue } = {},
  ): Promise<PatchedObject> {
    const patches = references.map((reference) => ({ path: options.path ?? 'ref', reference }));
    const virtualObject = options.virtual === undefined ? null : { ref: options.virtual };
    return build(patches, options).pipeline.apply(direction, { ref }, context({ virtualObject }));
  }

  test('each is translated, reported with the index of its entry, and translated back', async () => {
    const virtual = { secret: 'a', config: 'b', other: 'c' };
    const { object, references } = await both(pair, 'toHost', virtual);
    const [secret, config] = ['a', 'b'].map((name) => hostNameShort(name, 'default', 'vc'));
    expect(object).toEqual({ ref: { secret, config, other: 'c' } });
    expect(references).toMatchObject([
      { patchIndex: 0, path: 'ref', kind: 'Secret', name: 'a' },
      { patchIndex: 1, path: 'ref', kind: 'ConfigMap', name: 'b' },
    ]);
    const back = await both(pair, 'toVirtual', object['ref'] ?? null, { virtual });
    expect(back.object).toEqual({ ref: virtual });
  });

  test.each<[string, BuildOptions, string, (name: string) => string]>([
    ['single-namespace', {}, 'ns', (name) => hostNameShort(name, 'team', 'vc')],
    ['mappings', MAPPINGS, 'host-team', (name) => name],
  ])('they may share their namespace, %s', async (_, options, namespace, hostNameOf) => {
    const virtual = [
      { secret: 'a', config: 'b', in: { ns: 'team' } },
      { config: 'c', in: { ns: 'team' } },
    ];
    const host = [
      { secret: hostNameOf('a'), config: hostNameOf('b'), in: { ns: namespace } },
      { config: hostNameOf('c'), in: { ns: namespace } },
    ];
    const path = 'ref[*]';
    const { object, references } = await both(shared, 'toHost', virtual, { ...options, path });
    expect(object).toEqual({ ref: host });
    expect(references.map(({ namespace: ns, name }) => `${ns}/${name}`)).toEqual([
      'team/a',
      'team/b',
      'team/c',
    ]);
    const back = await both(shared, 'toVirtual', host, { ...options, path, virtual });
    expect(back.object).toEqual({ ref: virtual });
  });

  test('an expression between them may write another namespace', async () => {
    const [first, second] = shared.map((reference) => ({ path: 'ref', reference }));
    const between = { path: 'ref.in.ns', expression: '"other"' };
    const { pipeline } = build([first ?? between, between, second ?? between]);
    const input = { ref: { secret: 'a', config: 'b', in: { ns: 'team' } } };
    const { references } = await pipeline.apply('toHost', input, context());
    expect(references.map(({ namespace, name }) => `${namespace}/${name}`)).toEqual(['team/a', 'other/b']);
  });

  test('a shared namespace that would have to be two is an error of the later entry', async () => {
    const lookup = ({ kind, name }: { kind: string; name: string }): { namespace: string; name: string } => ({
      namespace: kind,
      name,
    });
    const ref = { secret: 'a', config: 'b', in: { ns: 'ns' } };
    await expect(both(shared, 'toVirtual', ref, { references: { lookup } })).rejects.toMatchObject({
      index: 0,
      path: 'ref',
      message:
        'the namespace at ref.in.ns is that of several references: it would be both "ConfigMap" and "Secret"',
    });
  });

  test('a name that no object has is unresolved where it is, not in the whole value', async () => {
    const host = { secret: 'v-unknown', config: 'b' };
    const { object, unresolved } = await both(pair, 'toVirtual', host, {
      references: {
        lookup: ({ kind, name }) => (kind === 'ConfigMap' ? { namespace: 'default', name } : undefined),
      },
    });
    expect(object).toEqual({ ref: host });
    expect(unresolved).toMatchObject([{ path: ['ref', 'secret'], error: { index: 0, path: 'ref' } }]);
  });
});
