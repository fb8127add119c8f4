/** Create, update and delete of Endpoints: the fields that are copied to the host, and the names of the copies. */

import { describe, expect, test } from 'vitest';
import type { JsonValue } from '../../src/base/json.ts';
import { endpoints, ipsOf, subset, subsetsOf } from './objects.ts';
import type { SharedWorld } from './shared-world.ts';

export function basicScenarios(shared: SharedWorld): void {
  describe('an Endpoints object', () => {
    test('is copied to the host, and updated and deleted together with its source', async () => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/web`;
      await world.createVirtual(key, {
        labels: { app: 'web', release: 'stable' },
        annotations: { 'example.com/note': 'one', 'control-plane.alpha.kubernetes.io/leader': '{}' },
      });
      await world.whenCopied(key);
      expect(await world.whenEvent(key, 'Synced')).toContain(world.hostName(key));

      await world.mergeVirtual(key, {
        metadata: { labels: { app: 'web2', release: null, tier: 'front' }, annotations: { more: '2' } },
        subsets: [subset('10.1.0.2', '10.1.0.3'), { ...subset('10.1.0.9'), ports: [{ port: 99 }] }],
      });
      await world.whenCopy(key, (copy) => ipsOf(copy).includes('10.1.0.9'));
      await world.whenCopied(key);
      expect(await world.eventsOn(key, 'Synced')).toHaveLength(1);

      await world.deleteVirtual(key);
      await world.whenNoCopy(key);
      expect(await world.findCopy(key)).toBeUndefined();
    });

    test('references the host Pods and keeps all other fields of an address', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const key = `${ns}/refs`;
      const ref = (name: string, more: Record<string, JsonValue> = {}): Record<string, JsonValue> => ({
        kind: 'Pod',
        name,
        uid: 'u1',
        resourceVersion: '7',
        ...more,
      });
      await world.createVirtual(key, {
        subsets: [
          {
            addresses: [
              {
                ip: '10.0.0.1',
                nodeName: 'n1',
                hostname: 'h',
                targetRef: ref('web-0', { namespace: ns, apiVersion: 'v1', fieldPath: 'f' }),
              },
              { ip: '10.0.0.3', targetRef: ref('elsewhere', { namespace: 'team-b' }) },
              { ip: '10.0.0.4', targetRef: { kind: 'Node', name: 'n1', uid: 'u1' } },
            ],
            notReadyAddresses: [{ ip: '10.0.0.2', targetRef: ref('web-1') }],
            ports: [{ name: 'http', port: 80, protocol: 'TCP', appProtocol: 'h2c' }],
          },
        ],
      });
      const [copied] = subsetsOf(await world.whenCopied(key));
      const place = `x-${ns}-x-${world.vcluster}`;
      expect(copied).toEqual({
        addresses: [
          {
            ip: '10.0.0.1',
            nodeName: 'n1',
            hostname: 'h',
            targetRef: {
              kind: 'Pod',
              name: `web-0-${place}`,
              namespace: world.hostNamespace,
              apiVersion: 'v1',
              fieldPath: 'f',
            },
          },
          {
            ip: '10.0.0.3',
            targetRef: {
              kind: 'Pod',
              name: `elsewhere-x-team-b-x-${world.vcluster}`,
              namespace: world.hostNamespace,
            },
          },
          { ip: '10.0.0.4', targetRef: { kind: 'Node', name: 'n1', uid: 'u1' } },
        ],
        notReadyAddresses: [
          {
            ip: '10.0.0.2',
            targetRef: { kind: 'Pod', name: `web-1-${place}`, namespace: world.hostNamespace },
          },
        ],
        ports: [{ name: 'http', port: 80, protocol: 'TCP', appProtocol: 'h2c' }],
      });
    });

    test('of 1000 addresses is synced with its truncation annotation', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const key = `${ns}/large`;
      const addresses = Array.from({ length: 1000 }, (_, i) => ({
        ip: `10.2.${i >> 8}.${i & 255}`,
        targetRef: { kind: 'Pod', name: `pod-${i}`, namespace: ns, uid: `uid-${i}` },
      }));
      await world.createVirtual(key, {
        annotations: { 'endpoints.kubernetes.io/over-capacity': 'truncated' },
        subsets: [{ ...subset(), addresses }],
      });
      const copy = await world.whenCopied(key);
      expect(ipsOf(copy)).toHaveLength(1000);
      expect(copy.metadata.annotations).toHaveProperty(
        ['endpoints.kubernetes.io/over-capacity'],
        'truncated',
      );
    });

    test('without subsets is copied unchanged', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      await world.createVirtual(`${ns}/null`, { subsets: null });
      await world.createVirtual(`${ns}/empty`, { subsets: [] });
      expect(subsetsOf(await world.whenCopied(`${ns}/null`))).toEqual([]);
      expect(subsetsOf(await world.whenCopied(`${ns}/empty`))).toEqual([]);
      await world.mergeVirtual(`${ns}/null`, { subsets: [subset('10.1.0.7')] });
      await world.whenCopy(`${ns}/null`, (copy) => ipsOf(copy)[0] === '10.1.0.7');
      await world.mergeVirtual(`${ns}/null`, { subsets: null });
      await world.whenCopy(`${ns}/null`, (copy) => ipsOf(copy).length === 0);
    });

    test('with a name that is too long for the host, or has dots, gets a valid host name', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const long = `${ns}/a-name-that-is-quite-long-already-before-anything-is-added-to-it`;
      const dotted = `${ns}/${'dotted.name.'.repeat(6)}end`;
      await world.createVirtual(long);
      await world.createVirtual(dotted);
      expect((await world.whenCopied(long)).metadata.name).toMatch(/^.{52}-[0-9a-f]{10}$/);
      expect((await world.whenCopied(dotted)).metadata.name.length).toBeLessThanOrEqual(63);
    });

    test('is copied without finalizers and owners, and stays in sync while a finalizer keeps it', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/held`;
      const object = endpoints(key, { finalizers: ['example.com/hold'] });
      object.metadata['ownerReferences'] = [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' }];
      await world.virtual.create('Endpoints', object);
      const copy = await world.whenCopied(key);
      expect(copy.metadata['finalizers']).toBeUndefined();
      expect(copy.metadata['ownerReferences']).toBeUndefined();

      await world.deleteVirtual(key);
      await world.whenVirtual(key, ({ metadata }) => metadata.deletionTimestamp !== undefined);
      await world.mergeVirtual(key, { subsets: [subset('10.1.7.7')] });
      await world.whenCopy(key, (held) => ipsOf(held)[0] === '10.1.7.7');
      await world.settle(daemon);
      expect((await world.getCopy(key)).metadata.uid).toBe(copy.metadata.uid);
      await world.mergeVirtual(key, { metadata: { finalizers: null } });
      await world.whenNoCopy(key);
    });

    test('that is default/kubernetes is never copied to the host', async () => {
      const { world, daemon } = shared();
      if ((await world.virtual.find('Endpoints', 'default', 'kubernetes')) === undefined)
        await world.createVirtual('default/kubernetes');
      await world.mergeVirtual('default/kubernetes', {
        metadata: { labels: { touched: 'yes' } },
      });
      await world.settle(daemon);
      expect(await world.findCopy('default/kubernetes')).toBeUndefined();
    });

    test('causes one write when it is created, one when it changes and none in between', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/counted`;
      const [host, virtual] = [await world.log('host'), await world.log('virtual')];
      await world.createVirtual(key, { labels: { a: '1' }, annotations: { b: '1' } });
      await world.whenCopied(key);
      await world.settle(daemon);
      expect(host.of(world.hostName(key))).toEqual(['ADDED']);
      await world.mergeVirtual(key, { metadata: { labels: { a: '2' } } });
      await world.whenCopy(key, ({ metadata }) => metadata.labels?.['a'] === '2');
      await world.settle(daemon);
      expect(host.of(world.hostName(key))).toEqual(['ADDED', 'MODIFIED']);
      expect(virtual.of('counted')).toEqual(['ADDED', 'MODIFIED']);
    });
  });
}
