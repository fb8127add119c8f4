/** Hostile objects: each is copied or refused as a whole, and the others are synced. */

import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../src/kube/object.ts';
import { RefusedError } from './cluster-client.ts';
import { ipsOf, subset } from './objects.ts';
import type { SharedWorld } from './shared-world.ts';

export function hostileScenarios(shared: SharedWorld): void {
  describe('a hostile object', () => {
    test('with keys that are special in JavaScript is plain data', async () => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/keys`;
      const strange = JSON.parse(
        '{"constructor":"c","toString":"t","hasOwnProperty":"h","valueOf":"v","a.b/prototype":"p"}',
      ) as Record<string, string>;
      await world.createVirtual(key, { labels: strange, annotations: strange });
      const copy = await world.whenCopied(key);
      expect(copy.metadata.annotations).toMatchObject(strange);
      await world.mergeCopy(key, {
        metadata: { annotations: { constructor: null, valueOf: 'changed' } },
      });
      const virtual = await world.whenVirtual(
        key,
        ({ metadata }) => metadata.annotations?.['valueOf'] === 'changed',
      );
      expect(Object.hasOwn(virtual.metadata.annotations ?? {}, 'constructor')).toBe(false);
    });

    test('with own __proto__ members does not become a prototype', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const poisoned = JSON.parse(
        `{"metadata":{"namespace":"${ns}","name":"proto","annotations":{"__proto__":"x"},"__proto__":{"labels":{"evil":"1"}}},
          "subsets":[{"addresses":[{"ip":"10.1.0.1","targetRef":{"kind":"Pod","name":"p","__proto__":{"name":"evil"}}}],"__proto__":{"ports":[]}}]}`,
      ) as KubeObject;
      try {
        await world.virtual.create('Endpoints', poisoned);
      } catch (error) {
        // A real API server refuses such an annotation key; the members that it does not know it drops.
        if (!(error instanceof RefusedError)) throw error;
        delete (poisoned.metadata as { annotations?: unknown }).annotations;
        await world.virtual.create('Endpoints', poisoned);
      }
      const copy = await world.whenCopy(`${ns}/proto`, (found) => ipsOf(found).length === 1);
      expect(copy.metadata.labels).not.toHaveProperty('evil');
      await world.settle(daemon);
      expect((await daemon.get('/healthz')).status).toBe(200);
    });

    test('with annotations up to the size limit is copied; an Event reports a copy above the limit', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const limit = 256 * 1024;
      const large = (bytes: number): Record<string, string> => ({ big: 'x'.repeat(bytes - 'big'.length) });
      await world.createVirtual(`${ns}/large`, { annotations: large(limit - 4096) });
      await world.whenCopied(`${ns}/large`);
      await world.createVirtual(`${ns}/full`, { annotations: large(limit) });
      await world.createVirtual(`${ns}/beside`);
      await world.whenCopied(`${ns}/beside`);
      const outcome = await Promise.race([
        world.whenCopied(`${ns}/full`).then(() => 'copied'),
        world.whenEvent(`${ns}/full`, 'SyncError').then(() => 'refused'),
      ]);
      expect(['copied', 'refused']).toContain(outcome);
      await world.settle(daemon);
    });

    test('with a thousand annotations and labels is copied with one write', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/many`;
      const many = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`key-${i}`, `value-${i}`]));
      const log = await world.log('host');
      await world.createVirtual(key, { labels: many, annotations: many });
      await world.whenCopied(key);
      await world.settle(daemon);
      expect(log.of(world.hostName(key))).toEqual(['ADDED']);
      await world.mergeCopy(key, {
        metadata: { annotations: { 'key-500': null } },
      });
      await world.whenVirtual(key, ({ metadata }) => metadata.annotations?.['key-500'] === undefined);
    });

    test('with an empty Pod reference is copied', async () => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/odd-refs`;
      await world.createVirtual(key, {
        subsets: [
          {
            addresses: [
              { ip: '10.1.0.1', targetRef: { kind: 'Pod' } },
              { ip: '10.1.0.2', targetRef: { kind: 'Pod', name: '', namespace: '' } },
              { ip: '10.1.0.3', targetRef: {} },
            ],
          },
        ],
      });
      expect(ipsOf(await world.whenCopy(key))).toEqual(['10.1.0.1', '10.1.0.2', '10.1.0.3']);
    });

    test('with forged bookkeeping does not change the name of its copy', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const victim = `${ns}/victim`;
      const liar = `${ns}/liar`;
      await world.createVirtual(victim);
      await world.whenCopied(victim);
      await world.createVirtual(liar, {
        labels: { 'vcluster.loft.sh/managed-by': 'another', 'vcluster.loft.sh/namespace': 'kube-system' },
        annotations: {
          'vcluster.loft.sh/object-name': 'victim',
          'vcluster.loft.sh/object-host-name': world.hostName(victim),
          'endpoint-syncer/last-synced': '{"v":1}',
        },
        subsets: [subset('10.66.6.6')],
      });
      const copy = await world.whenCopy(liar);
      expect(copy.metadata.annotations).toMatchObject({
        'vcluster.loft.sh/object-name': 'liar',
        'vcluster.loft.sh/object-host-name': world.hostName(liar),
      });
      expect(copy.metadata.labels).toMatchObject({
        'vcluster.loft.sh/managed-by': world.vcluster,
        'vcluster.loft.sh/namespace': ns,
      });
      await world.deleteVirtual(liar);
      await world.whenNoCopy(liar);
      expect(ipsOf(await world.whenCopied(victim))).toEqual(['10.1.0.1']);
    });
  });
}
