/**
 * What is synced at all: Endpoints of a Service with a selector belong to the host's own controller; all others are synced, if the
 * configuration selects them.
 */

import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../src/kube/object.ts';
import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import { ipsOf, service, subset } from './objects.ts';
import { rewrite, withSyncer } from './reload.ts';
import { sharedWorld, type SharedWorld } from './shared-world.ts';
import { pair, type NewWorld, type StartOptions } from './world.ts';

export function serviceGateScenarios(shared: SharedWorld): void {
  describe('the Service of the same name', () => {
    test('without a selector allows the sync of the Endpoints, created before or after', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      await world.virtual.create('Service', service(`${ns}/before`));
      await world.createVirtual(`${ns}/before`);
      await world.createVirtual(`${ns}/after`);
      await world.whenCopied(`${ns}/after`);
      await world.virtual.create('Service', service(`${ns}/after`));
      const copy = await world.whenCopied(`${ns}/before`);
      expect(ipsOf(copy)).toEqual(['10.1.0.1']);
      expect(await world.findCopy(`${ns}/after`)).toBeDefined();
    });

    test('with a selector prevents the sync', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/selected`;
      const log = await world.log('host');
      await world.virtual.create('Service', service(key, { app: 'x' }));
      await world.createVirtual(key);
      await world.settle(daemon);
      expect(log.of(world.hostName(key))).toEqual([]);
    });

    test('with a selector is detected even if its watch event is delayed', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const log = await world.log('host');
      const keys = Array.from({ length: 20 }, (_, i) => `${ns}/race-${i}`);
      for (const key of keys) {
        await world.virtual.create('Service', service(key, { app: 'x' }));
        await world.createVirtual(key);
      }
      await world.settle(daemon);
      expect(keys.flatMap((key) => log.of(world.hostName(key)))).toEqual([]);
    });

    test('gets a selector: the copy is deleted; loses it: the copy is recreated', async () => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/flips`;
      await world.virtual.create('Service', service(key));
      await world.createVirtual(key);
      await world.whenCopied(key);
      await setSelector(key, { app: 'x' });
      await world.whenNoCopy(key);
      await setSelector(key, { app: 'y' });
      await setSelector(key, null);
      expect(ipsOf(await world.whenCopied(key))).toEqual(['10.1.0.1']);
    });

    test('with a selector appears after the copy was created: the copy is deleted', async () => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/late`;
      await world.createVirtual(key);
      await world.whenCopied(key);
      await world.virtual.create('Service', service(key, { app: 'x' }));
      await world.whenNoCopy(key);
      expect(await world.findCopy(key)).toBeUndefined();
    });

    test('with a selector is deleted: Endpoints of that name are synced again', async () => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/freed`;
      await world.virtual.create('Service', service(key, { app: 'x' }));
      await world.createVirtual(key);
      await world.virtual.delete('Service', ...pair(key));
      // An API server before 1.37 deletes the Endpoints of a Service with it, the endpoints controller of a later one.
      if ((await world.virtual.find('Endpoints', ...pair(key))) === undefined)
        await world.createVirtual(key, { subsets: [subset('10.1.0.5')] });
      expect(ipsOf(await world.whenCopied(key))).toHaveLength(1);
    });

    async function setSelector(key: string, selector: JsonValue): Promise<void> {
      await shared().world.virtual.merge('Service', pair(key), { spec: { selector } });
    }
  });
}

export function requireServiceScenarios(newWorld: NewWorld): void {
  describe('with requireService', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, () => ({ config: { endpointSyncer: { requireService: true } } }));

    test('a copy is created with the Service and deleted with it', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const key = `${ns}/needs`;
      const fence = `${ns}/has`;
      await world.createVirtual(key);
      await world.virtual.create('Service', service(fence));
      await world.createVirtual(fence);
      await world.whenCopied(fence);
      await world.whenIdle(daemon);
      expect(await world.findCopy(key)).toBeUndefined();
      await world.virtual.create('Service', service(key));
      await world.whenCopied(key);
      await world.virtual.delete('Service', ...pair(key));
      await world.whenNoCopy(key);
      expect(await world.findCopy(key)).toBeUndefined();
    });
  });
}

export function selectionScenarios(newWorld: NewWorld): void {
  describe('with a selector of objects and namespaces', () => {
    const configured = (matchLabels: JsonObject): StartOptions => ({
      config: {
        endpointSyncer: { selector: { matchLabels }, namespaces: { exclude: ['private-*'] } },
      },
    });

    test('objects are synced as long as they match, also after a reload with another selector, and a restart', async () => {
      await using world = await newWorld();
      await world.virtualNamespace('private-a');
      await using daemon = await world.startSync(configured({ sync: 'a' }));
      const [key, other, hidden] = ['default/web', 'default/other', 'private-a/web'];
      const labelled = (of: string, sync: string): Promise<KubeObject> =>
        world.createVirtual(of, { labels: { sync } });
      await labelled(hidden, 'a');
      await labelled(other, 'b');
      await labelled(key, 'a');
      await world.whenCopied(key);
      await world.whenIdle(daemon);
      expect([await world.findCopy(other), await world.findCopy(hidden)]).toEqual([undefined, undefined]);
      const setLabel = (of: string, sync: string): Promise<KubeObject> =>
        world.mergeVirtual(of, { metadata: { labels: { sync } } });
      await setLabel(other, 'a');
      await world.whenCopied(other);
      await setLabel(key, 'b');
      await world.whenNoCopy(key);
      // A label of the host copy comes back, and decides like any other.
      await world.mergeCopy(other, { metadata: { labels: { sync: 'b' } } });
      await world.whenNoCopy(other);
      expect((await world.getVirtual(other)).metadata.labels?.['sync']).toBe('b');
      await rewrite(daemon, (config) => withSyncer(config, { selector: { matchLabels: { sync: 'b' } } }));
      await world.whenCopied(key);
      await world.whenCopied(other);
      await daemon.stop();
      await setLabel(other, 'c');
      await using second = await world.startSync(configured({ sync: 'b' }));
      await world.whenNoCopy(other);
      await setLabel(hidden, 'b');
      await world.whenIdle(second);
      expect(await world.findCopy(hidden)).toBeUndefined();
    });
  });
}
