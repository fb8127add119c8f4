/** The merge of two-way and host-owned paths in the content of an object. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import { jsonEquals, type JsonObject, type JsonValue, valueAt } from '../../../src/base/json.ts';
import { memberOf } from '../../../src/syncer/translate/content.ts';
import { withValueAt } from '../../../src/syncer/translate/paths.ts';
import type { ConcretePath } from '../../../src/syncer/translate/types.ts';
import { LOST, merge, noPatches, touch, written, type TestPatches } from './merge-setup.ts';
import { endpoints } from './setup.ts';

/** hostname: both ways; nodeName: the host's own. */
function memberPaths(object: JsonObject, member: string): ConcretePath[] {
  const paths: ConcretePath[] = [];
  for (let subset = 0; subset < 3; subset++) {
    for (let i = 0; i < 4; i++) {
      const path = ['subsets', subset, 'addresses', i, member];
      if (valueAt(object, path) !== undefined) paths.push(path);
    }
  }
  return paths;
}

function mapMember(
  object: KubeObject,
  member: string,
  change: (text: string) => string,
  added: JsonObject = {},
): KubeObject {
  let root = object as unknown as JsonValue; // a Kubernetes object is JSON
  for (const path of memberPaths(root as JsonObject, member)) {
    const old = valueAt(root, path);
    if (typeof old === 'string') root = withValueAt(root, path, change(old));
    for (const [key, value] of Object.entries(added))
      root = withValueAt(root, [...path.slice(0, -1), key], value);
  }
  return root as unknown as KubeObject;
}

const patches: TestPatches = {
  ...noPatches,
  twoWayPaths: (object) => memberPaths(object, 'hostname'),
  hostOwnedPaths: (object) => memberPaths(object, 'nodeName'),
  forward: (object) => mapMember(object, 'hostname', (name) => `t-${name}`),
  reverse: (object) =>
    mapMember(
      mapMember(object, 'hostname', (name) => name.replace(/^t-/, '')),
      'nodeName',
      (name) => `v-${name}`,
    ),
};

const address = (ip: string, rest: JsonObject = {}): JsonObject => ({ ip, ...rest });
const ports = [{ port: 80, protocol: 'TCP' }];
const object = (...addresses: JsonObject[]): KubeObject => endpoints({}, { subsets: [{ addresses, ports }] });

async function sync(
  virtual: KubeObject,
  host: KubeObject | undefined,
): Promise<{ virtual: JsonValue; host: JsonValue }> {
  const merged = await merge({ virtual, host, patches });
  return {
    virtual: valueAt(memberOf(merged.virtual, 'subsets'), [0]) ?? null,
    host: valueAt(memberOf(merged.host, 'subsets'), [0]) ?? null,
  };
}

async function copyOf(virtual: KubeObject): Promise<KubeObject> {
  return (await merge({ virtual, host: undefined, patches })).host;
}

function withSubset(host: KubeObject, subset: JsonObject): KubeObject {
  return { ...host, subsets: [subset] };
}

describe('two-way paths', async () => {
  const virtual = object(address('1.1.1.1', { hostname: 'a' }), address('1.1.1.2'));
  const copy = await copyOf(virtual);

  test('start with the forward value', async () => {
    expect((await sync(virtual, copy)).host).toEqual({
      addresses: [address('1.1.1.1', { hostname: 't-a' }), address('1.1.1.2')],
      ports,
    });
  });

  test('a host change is synced back', async () => {
    const host = withSubset(copy, {
      addresses: [address('1.1.1.1', { hostname: 't-b' }), address('1.1.1.2', { hostname: 't-new' })],
      ports,
    });
    expect((await sync(virtual, host)).virtual).toEqual({
      addresses: [address('1.1.1.1', { hostname: 'b' }), address('1.1.1.2', { hostname: 'new' })],
      ports,
    });
    expect((await sync(virtual, host)).host).toEqual(valueAt(memberOf(host, 'subsets'), [0]));
  });

  test('a removal on the host is synced back', async () => {
    const host = withSubset(copy, { addresses: [address('1.1.1.1'), address('1.1.1.2')], ports });
    expect(valueAt((await sync(virtual, host)).virtual, ['addresses', 0])).toEqual({ ip: '1.1.1.1' });
  });

  test('a missing default protocol of a port on the host is not drift', async () => {
    const plain = endpoints(
      {},
      { subsets: [{ addresses: [address('1.1.1.1', { hostname: 'a' })], ports: [{ port: 80 }] }] },
    );
    const host = withSubset(await copyOf(plain), {
      addresses: [address('1.1.1.1', { hostname: 't-b' })],
      ports,
    });
    expect(valueAt((await sync(plain, host)).virtual, ['addresses', 0, 'hostname'])).toBe('b');
  });

  test.each<[string, JsonObject]>([
    ['another ip', { addresses: [address('9.9.9.9', { hostname: 't-b' }), address('1.1.1.2')], ports }],
    [
      'an address more',
      { addresses: [address('1.1.1.1', { hostname: 't-b' }), address('1.1.1.2'), address('1.1.1.3')], ports },
    ],
    ['no ports', { addresses: [address('1.1.1.1', { hostname: 't-b' }), address('1.1.1.2')] }],
  ])('beside %s, a host change is drift', async (_name, subset) => {
    const after = await sync(virtual, withSubset(copy, subset));
    expect(after.virtual).toEqual(valueAt(memberOf(virtual, 'subsets'), [0]));
    expect(after.host).toEqual(valueAt(memberOf(copy, 'subsets'), [0]));
  });

  test('changed on both sides: the virtual side wins', async () => {
    const host = withSubset(copy, {
      addresses: [address('1.1.1.1', { hostname: 't-b' }), address('1.1.1.2')],
      ports,
    });
    const after = await sync(object(address('1.1.1.1', { hostname: 'c' }), address('1.1.1.2')), host);
    expect(valueAt(after.host, ['addresses', 0, 'hostname'])).toBe('t-c');
    expect(valueAt(after.virtual, ['addresses', 0, 'hostname'])).toBe('c');
  });

  test('without a record the virtual side wins', async () => {
    const host = withSubset(copy, {
      addresses: [address('1.1.1.1', { hostname: 't-b' }), address('1.1.1.2')],
      ports,
    });
    const after = await sync(virtual, touch(host, { annotations: LOST }));
    expect(valueAt(after.host, ['addresses', 0, 'hostname'])).toBe('t-a');
  });
});

describe('paths where the host keeps its own value', async () => {
  const virtual = object(address('1.1.1.1', { nodeName: 'mine' }), address('1.1.1.2'));
  const copy = await copyOf(virtual);
  const owned = withSubset(copy, {
    addresses: [address('1.1.1.1', { nodeName: 'own' }), address('1.1.1.2')],
    ports,
  });

  test('the virtual value is not synced to the host', () => {
    expect(valueAt(memberOf(copy, 'subsets'), [0, 'addresses', 0])).toEqual({ ip: '1.1.1.1' });
  });

  test('the host value is kept, and synced back when it changed', async () => {
    const after = await sync(virtual, owned);
    expect(valueAt(after.host, ['addresses', 0, 'nodeName'])).toBe('own');
    expect(valueAt(after.virtual, ['addresses', 0, 'nodeName'])).toBe('v-own');
  });

  test('the value moves with its address, and a new address has none', async () => {
    const moved = object(address('1.1.1.3'), address('1.1.1.1', { nodeName: 'mine' }));
    expect(valueAt((await sync(moved, owned)).host, ['addresses'])).toEqual([
      { ip: '1.1.1.3' },
      { ip: '1.1.1.1', nodeName: 'own' },
    ]);
  });
});

describe('if the indices of both sides differ', () => {
  test('the value of the host is not synced while one side has more addresses', async () => {
    const virtual = object(address('1.1.1.1'), address('1.1.1.2'));
    const host = withSubset(await copyOf(object(address('1.1.1.1'))), {
      addresses: [address('1.1.1.1', { nodeName: 'own' })],
      ports,
    });
    expect((await sync(virtual, host)).virtual).toEqual(valueAt(memberOf(virtual, 'subsets'), [0]));
  });

  test('a reverse patch that removes addresses syncs nothing back', async () => {
    const virtual = object(address('1.1.1.1'), address('1.1.1.2', { hostname: 'a' }));
    const host = withSubset(await copyOf(virtual), {
      addresses: [address('1.1.1.1'), address('1.1.1.2', { hostname: 't-b' })],
      ports,
    });
    const shortening = {
      ...patches,
      reverse: (one: KubeObject) => object(address('1.1.1.2', { hostname: 'x' }), ...listOf(one)),
    };
    const merged = await merge({ virtual, host, patches: shortening });
    expect(merged.isVirtualChanged).toBe(false);
    expect(valueAt(memberOf(merged.host, 'subsets'), [0, 'addresses', 1, 'hostname'])).toBe('t-a');
  });

  test('a change of a value that a patch created is reverted', async () => {
    const making = {
      ...patches,
      forward: (one: KubeObject) => mapMember(one, 'ip', (ip) => ip, { hostname: 'created' }),
    };
    const virtual = object(address('1.1.1.1'));
    const copy = (await merge({ virtual, host: undefined, patches: making })).host;
    const host = withSubset(copy, { addresses: [address('1.1.1.1', { hostname: 'changed' })], ports });
    const merged = await merge({ virtual, host, patches: making });
    expect(merged.isVirtualChanged).toBe(false);
    expect(valueAt(memberOf(merged.host, 'subsets'), [0, 'addresses', 0, 'hostname'])).toBe('created');
  });

  test('a value added on the host without a record is removed', async () => {
    const virtual = object(address('1.1.1.1'));
    const host = withSubset(await copyOf(virtual), {
      addresses: [address('1.1.1.1', { hostname: 'x' })],
      ports,
    });
    const after = await sync(virtual, touch(host, { annotations: LOST }));
    expect([after.virtual, after.host]).toEqual(
      [0, 0].map(() => ({ addresses: [address('1.1.1.1')], ports })),
    );
  });
});

function listOf(one: KubeObject): JsonObject[] {
  return (valueAt(memberOf(one, 'subsets'), [0, 'addresses']) ?? []) as JsonObject[];
}

describe('every history', () => {
  const text = fc.constantFrom('x', 'y', 't-x', 't-t-x');
  const step = fc.record({
    side: fc.constantFrom('virtual', 'host', 'sync'),
    index: fc.integer({ min: 0, max: 2 }),
    member: fc.constantFrom('hostname', 'nodeName', 'ip', 'zone'),
    value: fc.option(text, { nil: undefined }),
    kind: fc.constantFrom('set', 'set', 'set', 'add', 'remove'),
  });
  type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

  function change(one: KubeObject, { index, member, value, kind }: Step): KubeObject {
    const list = valueAt(memberOf(one, 'subsets'), [0, 'addresses']);
    const addresses = Array.isArray(list) ? list : [];
    const changed =
      kind === 'add'
        ? [...addresses.slice(0, 3), { ip: `2.2.2.${index}` }]
        : kind === 'remove'
          ? addresses.slice(1)
          : withValueAt(addresses, [index, member], value);
    return { ...one, subsets: [{ addresses: changed, ports }] };
  }

  test('converges, and then nothing is written', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        let virtual = written(object(address('1.1.1.1'), address('1.1.1.2', { hostname: 'a' })));
        let host = await copyOf(virtual);
        let writes = 0;
        const settle = async (): Promise<void> => {
          for (writes = 0; writes < 9; writes++) {
            const merged = await merge({ virtual, host, patches });
            const isHostChanged = !jsonEquals(merged.host as never, host as never);
            if (!isHostChanged && !merged.isVirtualChanged) return;
            host = merged.host;
            if (merged.isVirtualChanged) virtual = written(merged.virtual);
            writes += Number(isHostChanged && merged.isVirtualChanged);
          }
        };
        for (const one of steps) {
          if (one.side === 'sync') await settle();
          else if (one.side === 'virtual') virtual = written(change(virtual, one));
          else host = change(host, one);
        }
        await settle();
        expect(writes).toBeLessThanOrEqual(2);
      }),
      { numRuns: 600 },
    );
  });
});
