/** Endpoints of a Service with a selector belong to the host's own controller; all others are synced. */

import { describe, expect, test } from 'vitest';
import type { JsonValue } from '../../src/base/json.ts';
import { endpoints, ipsOf, service, subset } from './objects.ts';
import { sharedWorld, type SharedWorld } from './shared-world.ts';
import { pair, type NewWorld } from './world.ts';

export function serviceGateScenarios(shared: SharedWorld): void {
  describe('the Service of the same name', () => {
    test('without a selector allows the sync of the Endpoints, created before or after', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      await world.virtual.create('Service', service(`${ns}/before`));
      await world.virtual.create('Endpoints', endpoints(`${ns}/before`));
      await world.virtual.create('Endpoints', endpoints(`${ns}/after`));
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
      await world.virtual.create('Endpoints', endpoints(key));
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
        await world.virtual.create('Endpoints', endpoints(key));
      }
      await world.settle(daemon);
      expect(keys.flatMap((key) => log.of(world.hostName(key)))).toEqual([]);
    });

    test('gets a selector: the copy is deleted; loses it: the copy is recreated', async () => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/flips`;
      await world.virtual.create('Service', service(key));
      await world.virtual.create('Endpoints', endpoints(key));
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
      await world.virtual.create('Endpoints', endpoints(key));
      await world.whenCopied(key);
      await world.virtual.create('Service', service(key, { app: 'x' }));
      await world.whenNoCopy(key);
      expect(await world.findCopy(key)).toBeUndefined();
    });

    test('with a selector is deleted: Endpoints of that name are synced again', async () => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/freed`;
      await world.virtual.create('Service', service(key, { app: 'x' }));
      await world.virtual.create('Endpoints', endpoints(key));
      await world.virtual.delete('Service', ...pair(key));
      // An API server deletes the Endpoints of a Service with it.
      if ((await world.virtual.find('Endpoints', ...pair(key))) === undefined)
        await world.virtual.create('Endpoints', endpoints(key, { subsets: [subset('10.1.0.5')] }));
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
      await world.virtual.create('Endpoints', endpoints(key));
      await world.virtual.create('Service', service(fence));
      await world.virtual.create('Endpoints', endpoints(fence));
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
