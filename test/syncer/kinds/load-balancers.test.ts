/** Labels and annotations by which load balancers of the host give out addresses: what of them a tenant can choose, and that nothing flows back. */

import { describe, expect, test } from 'vitest';
import type { AddressField } from '../../../src/syncer/kinds/load-balancers.ts';
import { objectField, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import { asJson, SERVICES, type KubeObject, type StringMap } from '../../../src/kube/object.ts';
import { BALANCER_KEYS } from '../../../src/syncer/kinds/load-balancers.ts';
import { createServiceKind } from '../../../src/syncer/kinds/services.ts';
import { merge, noPatches, type Merged, type TestPair } from '../translate/merge-setup.ts';
import { hasSyncedEndpoints, service } from './service-setup.ts';

type Member = 'annotations' | 'labels';

/** A prefix stands for any key that it begins. */
const rows = BALANCER_KEYS.map(({ key, is, member = 'annotations' as Member }) => ({
  key: key.endsWith('/') ? `${key}any` : key,
  is,
  member,
}));
const choices = rows.filter(({ is }) => is === 'choice');
const VALUE = 'a';

const virtualWith = (member: Member, map: StringMap): KubeObject => {
  const object = service({ type: 'LoadBalancer', ports: [{ port: 80 }] });
  return { ...object, metadata: { ...object.metadata, [member]: map } };
};
const with_ = (object: KubeObject, member: Member, map: StringMap): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, [member]: { ...object.metadata[member], ...map } },
});
const synced = (pair: TestPair, allow: readonly AddressField[] = []): Promise<Merged> =>
  merge({
    kind: SERVICES,
    content: createServiceKind({ hasSyncedEndpoints, neverCopied: () => undefined, allow }).content,
    ...pair,
  });
/** By a version before this table. */
const formerly = (pair: TestPair): Promise<Merged> => {
  const { crossingOf: _none, ...content } = createServiceKind({
    hasSyncedEndpoints,
    neverCopied: () => undefined,
    allow: [],
  }).content;
  return synced({ content, ...pair });
};

describe.each(rows)('$key as one of $member', ({ key, is, member }) => {
  test('is not copied unless addresses are allowed, and stays on the virtual Service', async () => {
    const virtual = virtualWith(member, { [key]: VALUE, 'example.com/kept': 'yes' });
    const { host, isVirtualChanged } = await synced({ virtual, host: undefined });
    expect(host.metadata[member]).not.toHaveProperty([key]);
    expect(host.metadata[member]).toHaveProperty(['example.com/kept'], 'yes');
    expect(isVirtualChanged).toBe(false);
    const allowed = await synced({ virtual, host: undefined }, ['loadBalancerIP']);
    expect(Object.hasOwn(allowed.host.metadata[member] ?? {}, key)).toBe(is === 'choice');
    const other = await synced({ virtual, host: undefined }, ['externalIPs']);
    expect(other.host.metadata[member]).not.toHaveProperty([key]);
  });

  test.each([[[]], [['loadBalancerIP']]] as [AddressField[]][])(
    'stays where the host has set it, and does not flow back, with allow %j',
    async (allow) => {
      const virtual = virtualWith(member, {});
      const copy = await synced({ virtual, host: undefined }, allow);
      const host = with_(copy.host, member, { [key]: VALUE });
      const first = await synced({ virtual, host }, allow);
      expect(first.host.metadata[member]).toHaveProperty([key], VALUE);
      expect(first.isVirtualChanged).toBe(false);
      const second = await synced({ virtual, host: first.host }, allow);
      expect(second.host).toEqual(first.host);
    },
  );

  test('that an earlier version copied goes, and one that it took from the host stays there', async () => {
    const virtual = virtualWith(member, { [key]: VALUE });
    const { host } = await formerly({ virtual, host: undefined });
    expect(host.metadata[member]).toHaveProperty([key], VALUE);
    const now = await synced({ virtual, host });
    expect(now.host.metadata[member]).not.toHaveProperty([key]);
    expect(now.isVirtualChanged).toBe(false);

    const before = await formerly({ virtual: virtualWith(member, {}), host: undefined });
    const taken = await formerly({
      virtual: virtualWith(member, {}),
      host: with_(before.host, member, { [key]: VALUE }),
    });
    expect(taken.virtual.metadata[member]).toHaveProperty([key], VALUE);
    const kept = await synced({ virtual: taken.virtual, host: taken.host });
    expect(kept.host.metadata[member]).toHaveProperty([key], VALUE);
    expect(kept.isVirtualChanged).toBe(false);
    const again = await synced({ virtual: taken.virtual, host: kept.host });
    expect(again.host).toEqual(kept.host);
  });

  test('may be set by a patch', async () => {
    const patches = {
      ...noPatches,
      forward: (copy: KubeObject) => with_(copy, member, { [key]: 'patched' }),
    };
    const virtual = virtualWith(member, { [key]: VALUE });
    const { host, isVirtualChanged } = await synced({ virtual, host: undefined, patches });
    expect(host.metadata[member]).toHaveProperty([key], 'patched');
    expect(isVirtualChanged).toBe(false);
    const second = await synced({ virtual, host, patches });
    expect(second.host).toEqual(host);
    const { host: without } = await synced({ virtual, host });
    expect(without.metadata[member]).not.toHaveProperty([key]);
  });
});

test.each(choices)(
  '$key follows the virtual Service where addresses are allowed',
  async ({ key, member }) => {
    const copy = await synced({ virtual: virtualWith(member, { [key]: VALUE }), host: undefined }, [
      'loadBalancerIP',
    ]);
    const changed = await synced({ virtual: virtualWith(member, { [key]: 'b' }), host: copy.host }, [
      'loadBalancerIP',
    ]);
    expect(changed.host.metadata[member]).toHaveProperty([key], 'b');
    const removed = await synced({ virtual: virtualWith(member, {}), host: changed.host }, [
      'loadBalancerIP',
    ]);
    expect(removed.host.metadata[member]).not.toHaveProperty([key]);
  },
);

describe.each<[AddressField, JsonValue, JsonValue]>([
  ['loadBalancerIP', '198.51.100.10', '198.51.100.20'],
  ['externalIPs', ['198.51.100.11'], ['198.51.100.21']],
])('spec.%s', (field, theirs, ours) => {
  const specOf = (object: KubeObject): JsonObject => objectField(asJson(object), 'spec');
  const withSpec = (object: KubeObject, changes: JsonObject): KubeObject => ({
    ...object,
    spec: { ...specOf(object), ...changes },
  });
  const virtual = virtualWith('labels', {});
  const chosen = withSpec(virtual, { [field]: ours });

  test.each([[[]], [[field]]] as [AddressField[]][])(
    'of an allocator of the host stays, with allow %j',
    async (allow) => {
      const copy = await synced({ virtual, host: undefined }, allow);
      const first = await synced({ virtual, host: withSpec(copy.host, { [field]: theirs }) }, allow);
      expect(specOf(first.host)[field]).toEqual(theirs);
      expect(first.isVirtualChanged).toBe(false);
      const second = await synced({ virtual, host: first.host }, allow);
      expect(second.host).toEqual(first.host);
    },
  );

  test('that this program wrote follows the virtual Service, and goes with its value or with the setting', async () => {
    const copy = await synced({ virtual: chosen, host: undefined }, [field]);
    expect(specOf(copy.host)[field]).toEqual(ours);
    const again = await synced({ virtual: chosen, host: copy.host }, [field]);
    expect(again.host).toEqual(copy.host);
    const removed = await synced({ virtual, host: copy.host }, [field]);
    expect(specOf(removed.host)).not.toHaveProperty(field);
    const forbidden = await synced({ virtual: chosen, host: copy.host });
    expect(specOf(forbidden.host)).not.toHaveProperty(field);
    expect(forbidden.isVirtualChanged).toBe(false);
  });

  test('of the virtual Service wins over that of an allocator, whose later value then stays', async () => {
    const copy = await synced({ virtual, host: undefined }, [field]);
    const both = await synced({ virtual: chosen, host: withSpec(copy.host, { [field]: theirs }) }, [field]);
    expect(specOf(both.host)[field]).toEqual(ours);
    const allocated = await synced({ virtual, host: withSpec(both.host, { [field]: theirs }) }, [field]);
    expect(specOf(allocated.host)[field]).toEqual(theirs);
  });

  test('that an allocator set goes when the Service becomes another name', async () => {
    const copy = await synced({ virtual, host: undefined });
    const named = withSpec(virtual, { type: 'ExternalName', externalName: 'db.example.com' });
    const { host } = await synced({ virtual: named, host: withSpec(copy.host, { [field]: theirs }) });
    expect(specOf(host)).not.toHaveProperty(field);
  });
});
