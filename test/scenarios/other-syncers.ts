/** Other writers of the same objects on both sides: a second syncer, as that of vCluster when its sync is still on. */

import { describe, test } from 'vitest';
import type { KubeObject, StringMap } from '../../src/kube/object.ts';
import { whenNoSlice, slice } from './endpoint-slices.ts';
import type { TestCluster } from './cluster-client.ts';
import { eventually } from '../support/eventually.ts';
import { rewrite, withSyncer } from './reload.ts';
import { pair, type NewWorld, type World } from './world.ts';

const TEAM = 'example.com/team';
const AGENT = 'example.com/agent';
const LAST_SYNCED = 'endpoint-syncer/last-synced';
const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
const MIRRORING = 'endpointslicemirroring-controller.k8s.io';
const TEAM_PATCH = {
  path: `metadata.annotations["${TEAM}"]`,
  expression: '"team-" + value',
  reverseExpression: 'value.replace(/^team-/, "")',
};
const BOTH = { sync: { toHost: { endpointSlices: { enabled: true } } } };
const PATCHED = { sync: { toHost: { endpoints: { patches: [TEAM_PATCH] } } } };

export function otherSyncerScenarios(newWorld: NewWorld): void {
  describe('another syncer of the same objects', () => {
    test('that copies values of the host copy back: none grows, and the user gets the own one back, also after a restart', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const daemon = await world.startSync({ config: PATCHED });
      const key = 'default/echoed';
      await world.createVirtual(key, { annotations: { [TEAM]: 'a' } });
      await world.whenCopy(key, (copy) => teamOf(copy) === 'team-a');
      await using log = await world.log('host');
      for (let round = 0; round < 3; round++) {
        await copyBack(world, key);
        await world.whenVirtual(key, ({ metadata }) => metadata.annotations?.[TEAM] === 'a');
      }
      const note = await world.whenEvent(key, 'Contested');
      expect(note).toContain('"vcluster" copies the host copy back');
      expect(note).toContain('sync.toHost.endpoints.enabled');
      await daemon.stop();
      await copyBack(world, key);
      const next = await world.startSync({ config: PATCHED });
      const restored = await world.whenVirtual(key, (object) => teamOf(object) === 'a');
      expect(restored.metadata.annotations).toEqual({ [TEAM]: 'a' });
      await world.settle(next);
      // Neither of the copies nor the record on them has to be written for that.
      expect(log.of(world.hostName(key))).toEqual([]);
    });

    test('that copies the record back and deletes it with the user’s: it is written less and less often', async ({
      expect,
    }) => {
      await using world = await newWorld();
      await world.startSync({ config: BOTH });
      const key = 'default/stripped';
      await world.createVirtual(key);
      const hasRecord = ({ metadata }: KubeObject): boolean =>
        metadata.annotations?.[LAST_SYNCED] !== undefined;
      await world.whenCopy(key, hasRecord);
      let longestMs = 0;
      for (let round = 0; round < 5 && longestMs < 3000; round++) {
        const startedMs = performance.now();
        await copyBack(world, key);
        await world.whenVirtual(key, (object) => !hasRecord(object));
        const annotations = { [LAST_SYNCED]: null };
        await world.mergeCopy(key, { metadata: { annotations } });
        await world.whenCopy(key, hasRecord);
        longestMs = Math.max(longestMs, performance.now() - startedMs);
      }
      expect(longestMs).toBeGreaterThan(3000);
    });

    test.for([
      ['', undefined],
      [', also with a record that it has copied from elsewhere', '{"v":1,"r":"1"}'],
    ] as const)(
      'that creates a copy of a mirrored slice again and again%s: the third one is left for a while',
      async ([, record], { expect }) => {
        await using world = await newWorld();
        const daemon = await world.startSync({ config: BOTH });
        for (const name of ['web-1', 'web-2']) {
          await createMirrored(world, `default/${name}`, record);
          await whenNoSlice(world, `default/${name}`);
        }
        await createMirrored(world, 'default/web-3', record);
        const note = await world.whenEvent('default/web-3', 'Contested', { kind: 'EndpointSlice' });
        expect(note).toContain(`"${world.hostKey('default/web-3').join('/')}" again and again`);
        await world.settle(daemon);
        expect(await world.host.find('EndpointSlice', ...world.hostKey('default/web-3'))).toBeDefined();
      },
    );

    test('two agents that rewrite one annotation: the key alone backs off, and the Event names the setting', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const daemon = await world.startSync();
      const key = 'default/agents';
      await world.createVirtual(key);
      await world.whenCopied(key);
      // Each agent writes its value when it sees another one; the sixth change is the one that waits.
      for (let round = 0; (await world.eventsOn(key, 'Contested')).length === 0; round++) {
        expect(round).toBeLessThan(10);
        await annotate(world.virtual, pair(key), 'virtual');
        await eventually(
          async () =>
            (await world.getCopy(key)).metadata.annotations?.[AGENT] === 'virtual' || isContested(world, key),
          (found) => found,
        );
        await annotate(world.host, world.hostKey(key), 'host');
        await eventually(
          async () =>
            (await world.getVirtual(key)).metadata.annotations?.[AGENT] === 'host' || isContested(world, key),
          (found) => found,
        );
      }
      const note = await world.whenEvent(key, 'Contested');
      expect(note).toContain(`keep rewriting the annotation ${AGENT}`);
      expect(note).toContain('endpointSyncer.metadata.excludeAnnotations');
      await world.mergeVirtual(key, { metadata: { labels: { other: 'works' } } });
      await world.whenCopy(key, ({ metadata }) => metadata.labels?.['other'] === 'works');
      // Once both have stopped, both sides agree again.
      await eventually(
        async () => [await world.getVirtual(key), await world.getCopy(key)] as const,
        ([virtual, copy]) => virtual.metadata.annotations?.[AGENT] === copy.metadata.annotations?.[AGENT],
      );
      await world.settle(daemon);
    });

    test('excluded annotations and labels belong to each cluster, also after a reload', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const metadata = { excludeAnnotations: ['example.com/*'], excludeLabels: ['tier'] };
      const daemon = await world.startSync({ config: { endpointSyncer: { metadata } } });
      const key = 'default/excluded';
      const annotations = { [AGENT]: 'virtual', note: 'crosses' };
      await world.createVirtual(key, { annotations, labels: { tier: 'virtual' } });
      await world.whenCopy(key, (copy) => copy.metadata.annotations?.['note'] === 'crosses');
      await annotate(world.host, world.hostKey(key), 'host');
      await world.settle(daemon);
      const [virtual, copy] = [await world.getVirtual(key), await world.getCopy(key)];
      expect([virtual.metadata.annotations, virtual.metadata.labels]).toEqual([
        annotations,
        { tier: 'virtual' },
      ]);
      expect([copy.metadata.annotations?.[AGENT], copy.metadata.labels?.['tier']]).toEqual([
        'host',
        undefined,
      ]);
      await rewrite(daemon, (config) =>
        withSyncer(config, { metadata: { ...metadata, excludeAnnotations: ['note'] } }),
      );
      await world.whenCopy(key, (found) => found.metadata.annotations?.[AGENT] === 'virtual');
      await world.mergeVirtual(key, { metadata: { annotations: { note: 'stays' } } });
      await world.settle(daemon);
      expect((await world.getCopy(key)).metadata.annotations?.['note']).toBe('crosses');
    });
  });
}

async function isContested(world: World, key: string): Promise<boolean> {
  return (await world.eventsOn(key, 'Contested')).length > 0;
}

async function annotate(cluster: TestCluster, key: readonly [string, string], value: string): Promise<void> {
  await cluster.merge('Endpoints', key, { metadata: { annotations: { [AGENT]: value } } });
}

function teamOf({ metadata }: KubeObject): string | undefined {
  return metadata.annotations?.[TEAM];
}

/** What vCluster's sync does with a change on the host. */
async function copyBack(world: World, key: string): Promise<void> {
  const { annotations = {} } = (await world.getCopy(key)).metadata;
  const copied: StringMap = {
    ...(annotations[TEAM] === undefined ? {} : { [TEAM]: annotations[TEAM] }),
    [LAST_SYNCED]: annotations[LAST_SYNCED] ?? '',
  };
  const [namespace, name] = pair(key);
  await world.virtual.request(
    'PATCH',
    `/api/v1/namespaces/${namespace}/endpoints/${name}?fieldManager=vcluster`,
    { metadata: { annotations: copied } },
    'application/merge-patch+json',
  );
}

/** A slice of the virtual cluster's mirroring controller, and the copy that vCluster creates. */
async function createMirrored(world: World, key: string, record: string | undefined): Promise<void> {
  const object = await world.virtual.create(
    'EndpointSlice',
    slice(key, 'web', { labels: { [MANAGED_BY]: MIRRORING } }),
  );
  const { labels, annotations } = world.bookkeeping('EndpointSlice', key, object.metadata.uid);
  const copy = slice(world.hostKey(key).join('/'), world.hostName('default/web'), {
    labels,
    annotations: { ...annotations, ...(record === undefined ? {} : { [LAST_SYNCED]: record }) },
  });
  await world.host.create('EndpointSlice', copy);
}
