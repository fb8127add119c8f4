/** Labels and annotations are synced in both directions by key; the virtual side takes precedence; no change is synced back to its origin. */

import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../src/kube/object.ts';
import type { JsonValue } from '../../src/base/json.ts';
import type { Daemon } from './daemon.ts';
import { LAST_SYNCED, MARKER } from './expected-copy.ts';
import { ipsOf } from './objects.ts';
import type { Shared, SharedWorld } from './shared-world.ts';
import { pair } from './world.ts';

type Both = { labels?: Record<string, JsonValue>; annotations?: Record<string, JsonValue> };

const annotationOf = (object: KubeObject, name: string): string | undefined =>
  object.metadata.annotations?.[name];
const labelOf = (object: KubeObject, name: string): string | undefined => object.metadata.labels?.[name];

export function metadataScenarios(shared: SharedWorld<Daemon>): void {
  describe('labels and annotations', () => {
    const touchHost = (key: string, metadata: Both): Promise<KubeObject> =>
      shared().world.mergeCopy(key, { metadata });
    const touchVirtual = (key: string, metadata: Both): Promise<KubeObject> =>
      shared().world.mergeVirtual(key, { metadata });

    test('added on the host are synced to the virtual object, which keeps its own', async () => {
      const { world, daemon } = shared();
      const key = await synced(shared(), { labels: { own: 'l' }, annotations: { own: 'a' } });
      await touchHost(key, { labels: { 'host-label': '1' }, annotations: { 'host-annotation': '1' } });
      const virtual = await world.whenVirtual(key, (o) => labelOf(o, 'host-label') === '1');
      expect(annotationOf(virtual, 'host-annotation')).toBe('1');
      expect([labelOf(virtual, 'own'), annotationOf(virtual, 'own')]).toEqual(['l', 'a']);

      await touchVirtual(key, { labels: { later: '2' }, annotations: { later: '2' } });
      const copy = await world.whenCopy(key, (o) => labelOf(o, 'later') === '2');
      expect(annotationOf(copy, 'later')).toBe('2');
      expect([labelOf(copy, 'host-label'), annotationOf(copy, 'host-annotation')]).toEqual(['1', '1']);
      await world.settle(daemon);
      expect(annotationOf(await world.getVirtual(key), 'host-annotation')).toBe('1');
    });

    test('changed on the host change in the virtual cluster', async () => {
      const { world } = shared();
      const key = await synced(shared(), { labels: { l: '1' }, annotations: { a: '1' } });
      await touchHost(key, { labels: { l: '2' }, annotations: { a: '2' } });
      const virtual = await world.whenVirtual(key, (o) => labelOf(o, 'l') === '2');
      expect(annotationOf(virtual, 'a')).toBe('2');
      await world.whenCopied(key);
    });

    test('removed on either side are removed on the other', async () => {
      const { world, daemon } = shared();
      const key = await synced(shared(), {
        labels: { gone: '1', stays: '1', 'gone-virtual': '1' },
        annotations: { gone: '1', stays: '1', 'gone-virtual': '1' },
      });
      await touchHost(key, { labels: { gone: null }, annotations: { gone: null } });
      await world.whenVirtual(
        key,
        (o) => labelOf(o, 'gone') === undefined && annotationOf(o, 'gone') === undefined,
      );
      await touchVirtual(key, { labels: { 'gone-virtual': null }, annotations: { 'gone-virtual': null } });
      await world.whenCopy(key, (o) => labelOf(o, 'gone-virtual') === undefined);
      await world.settle(daemon);
      const copy = await world.whenCopied(key);
      expect([labelOf(copy, 'stays'), annotationOf(copy, 'stays')]).toEqual(['1', '1']);
      expect([labelOf(copy, 'gone'), annotationOf(copy, 'gone')]).toEqual([undefined, undefined]);
    });

    test('that were synced from the host can be changed and removed on the virtual side', async () => {
      const { world } = shared();
      const key = await synced(shared(), {});
      await touchHost(key, { annotations: { 'from-host': '1', other: '1' } });
      await world.whenVirtual(key, (o) => annotationOf(o, 'from-host') === '1');
      await touchVirtual(key, { annotations: { 'from-host': null, other: '2' } });
      const copy = await world.whenCopy(key, (o) => annotationOf(o, 'from-host') === undefined);
      expect(annotationOf(copy, 'other')).toBe('2');
    });

    test('changed on both sides concurrently: the virtual side takes precedence for each key', async () => {
      const { world, daemon } = shared();
      const key = await synced(shared(), { labels: { l: '1' }, annotations: { a: '1', b: '1', c: '1' } });
      daemon.signal('SIGSTOP');
      await touchHost(key, {
        labels: { l: 'host' },
        annotations: { a: 'host', b: 'host', c: null, h: 'host' },
      });
      await touchVirtual(key, { labels: { l: 'virtual' }, annotations: { a: 'virtual', c: 'virtual' } });
      daemon.signal('SIGCONT');
      const copy = await world.whenCopy(key, (o) => annotationOf(o, 'a') === 'virtual');
      expect([labelOf(copy, 'l'), annotationOf(copy, 'c')]).toEqual(['virtual', 'virtual']);
      const virtual = await world.whenVirtual(key, (o) => annotationOf(o, 'b') === 'host');
      expect([labelOf(virtual, 'l'), annotationOf(virtual, 'a')]).toEqual(['virtual', 'virtual']);
      expect(annotationOf(virtual, 'c')).toBe('virtual');
    });

    test('of bookkeeping are corrected on the host and never synced back', async () => {
      const { world, daemon } = shared();
      const key = await synced(shared(), { labels: { app: 'x' }, annotations: { note: 'x' } });
      await touchHost(key, {
        labels: { [MARKER]: null, 'vcluster.loft.sh/namespace': 'nonsense' },
        annotations: {
          'vcluster.loft.sh/object-uid': 'nonsense',
          'vcluster.loft.sh/managed-annotations': null,
        },
      });
      await world.whenCopied(key);
      await touchHost(key, { annotations: { [LAST_SYNCED]: 'nonsense' } });
      await world.whenCopy(key, (o) => annotationOf(o, LAST_SYNCED) !== 'nonsense');
      await world.settle(daemon);
      const virtual = await world.getVirtual(key);
      expect(virtual.metadata.labels).toEqual({ app: 'x' });
      expect(virtual.metadata.annotations).toEqual({ note: 'x' });
    });

    test('that belong to one side are not synced: leader election', async () => {
      const { world, daemon } = shared();
      const leader = 'control-plane.alpha.kubernetes.io/leader';
      const key = await synced(shared(), { annotations: { [leader]: 'virtual' } });
      expect(annotationOf(await world.getCopy(key), leader)).toBe('endpoint-syncer');
      await touchHost(key, { annotations: { [leader]: 'host' } });
      await world.settle(daemon);
      expect(annotationOf(await world.getVirtual(key), leader)).toBe('virtual');
      expect(annotationOf(await world.getCopy(key), leader)).toBe('host');
      await touchVirtual(key, { annotations: { [leader]: 'virtual 2' } });
      await world.settle(daemon);
      expect(annotationOf(await world.getCopy(key), leader)).toBe('host');
    });

    test('with an untranslated reserved key on the host are kept and never synced back', async () => {
      const { world, daemon } = shared();
      const key = await synced(shared(), { labels: { release: 'virtual' } });
      await touchHost(key, { labels: { release: 'raw' } });
      await world.settle(daemon);
      expect(labelOf(await world.getVirtual(key), 'release')).toBe('virtual');
      expect(labelOf(await world.getCopy(key), 'release')).toBe('raw');
      await touchVirtual(key, { labels: { other: '1' } });
      const copy = await world.whenCopy(key, (o) => labelOf(o, 'other') === '1');
      expect(labelOf(copy, 'release')).toBe('raw');
    });

    test('without a readable record: the virtual side takes precedence', async () => {
      const { world, daemon } = shared();
      const key = await synced(shared(), { labels: { l: '1' }, annotations: { a: '1', b: '1' } });
      daemon.signal('SIGSTOP');
      await touchHost(key, {
        labels: { l: 'host' },
        annotations: { a: 'host', b: null, [LAST_SYNCED]: null },
      });
      daemon.signal('SIGCONT');
      await world.whenCopied(key);
      await world.settle(daemon);
      const virtual = await world.getVirtual(key);
      expect([labelOf(virtual, 'l'), annotationOf(virtual, 'a'), annotationOf(virtual, 'b')]).toEqual([
        '1',
        '1',
        '1',
      ]);
      expect(annotationOf(await world.getCopy(key), LAST_SYNCED)).toBeDefined();
    });

    test('of bookkeeping are not synced in either direction, and are corrected on the host', async () => {
      const { world, daemon } = shared();
      const imported = 'vcluster.loft.sh/object-imported';
      const key = await synced(shared(), { annotations: { a: '1' } });
      await touchHost(key, { annotations: { [imported]: 'true', b: '1' } });
      await world.whenVirtual(key, (o) => annotationOf(o, 'b') === '1');
      await world.whenCopy(key, (o) => annotationOf(o, imported) === undefined);
      await touchVirtual(key, { annotations: { [imported]: 'true', a: '2' } });
      await world.whenCopy(key, (o) => annotationOf(o, 'a') === '2');
      await world.settle(daemon);
      expect(annotationOf(await world.getCopy(key), imported)).toBeUndefined();
      expect((await world.getVirtual(key)).metadata.annotations).toEqual({
        a: '2',
        b: '1',
        [imported]: 'true',
      });
    });

    test('converge after a change with at most two writes of the daemon, then none', async () => {
      const { world, daemon } = shared();
      const key = await synced(shared(), { annotations: { a: '1' } });
      const [host, virtual] = [await world.log('host'), await world.log('virtual')];
      const [, name] = pair(key);
      await touchHost(key, { annotations: { a: '2', b: '1' }, labels: { c: '1' } });
      await world.whenVirtual(key, (o) => annotationOf(o, 'b') === '1');
      await world.settle(daemon);
      await world.settle(daemon);
      const ours = host.of(world.hostName(key)).length - 1 + virtual.of(name).length;
      expect(ours).toBeLessThanOrEqual(2);
      await touchVirtual(key, { annotations: { a: '3' } });
      await world.whenCopy(key, (o) => annotationOf(o, 'a') === '3');
      await world.settle(daemon);
      await world.settle(daemon);
      expect(
        host.of(world.hostName(key)).length - 1 + virtual.of(name).length - 1 - ours,
      ).toBeLessThanOrEqual(2);
    });

    test('changed rapidly on both sides converge, and then nothing is written', async () => {
      const { world, daemon } = shared();
      const key = await synced(shared(), {});
      for (let i = 0; i < 15; i++) {
        await Promise.all([
          touchHost(key, { annotations: { [`h${i % 3}`]: i % 4 === 0 ? null : `h${i}` } }),
          touchVirtual(key, { annotations: { [`v${i % 3}`]: i % 5 === 0 ? null : `v${i}` } }),
        ]);
      }
      await world.settle(daemon);
      await world.settle(daemon);
      const log = [await world.log('host'), await world.log('virtual')] as const;
      await world.settle(daemon);
      expect(log.flatMap((one) => world.writesIn(one))).toEqual([]);
      const [virtual, copy] = [await world.getVirtual(key), await world.getCopy(key)];
      for (const name of ['h0', 'h1', 'h2', 'v0', 'v1', 'v2'])
        expect([name, annotationOf(copy, name)]).toEqual([name, annotationOf(virtual, name)]);
      expect(ipsOf(copy)).toEqual(ipsOf(virtual));
    });
  });
}

/** A virtual object whose copy is up to date. */
async function synced(
  { world, daemon, namespace }: Shared,
  metadata: { labels?: Record<string, string>; annotations?: Record<string, string> },
): Promise<string> {
  const key = `${await namespace()}/meta`;
  await world.createVirtual(key, metadata);
  await world.whenCopied(key);
  await world.whenIdle(daemon);
  return key;
}
