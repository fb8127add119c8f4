/** Hand-over of copies between vCluster's own sync and this program: the same objects, nothing deleted, no key lost or restored. */

import { describe, test } from 'vitest';
import type { KubeObject } from '../../src/kube/object.ts';
import { expectedCopy, LAST_SYNCED } from './expected-copy.ts';
import { endpoints, ipsOf, service, subset } from './objects.ts';
import { pair, type NewWorld, type World } from './world.ts';

const KEY = 'default/web';

export function handOverScenarios(newWorld: NewWorld): void {
  describe('copies of vCluster', () => {
    test('are taken over in place with at most one write', async ({ expect }) => {
      await using world = await newWorld();
      const uid = await startWithCopyOfVcluster(world);
      const log = await world.log('host');
      const daemon = await world.startSync();
      await world.whenCopy(KEY, ({ metadata }) => metadata.annotations?.[LAST_SYNCED] !== undefined);
      await world.settle(daemon);
      expect((await world.whenCopied(KEY)).metadata.uid).toBe(uid);
      expect(world.writesIn(log)).toEqual([`MODIFIED ${world.hostName(KEY)}`]);
    });

    test('are handed back to vCluster and taken over again with the changes in between', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const uid = await startWithCopyOfVcluster(world);
      const first = await world.startSync();
      await world.whenCopy(KEY, ({ metadata }) => metadata.annotations?.[LAST_SYNCED] !== undefined);
      await first.stop();

      await world.virtual.merge('Endpoints', pair(KEY), {
        metadata: { labels: { removed: null, added: '1' }, annotations: { owner: 'b' } },
        subsets: [subset('10.1.0.2')],
      });
      await syncAsVcluster(world);
      const log = await world.log('host');
      const second = await world.startSync();
      await world.settle(second);
      const copy = await world.whenCopied(KEY);
      expect(copy.metadata.uid).toBe(uid);
      expect(ipsOf(copy)).toEqual(['10.1.0.2']);
      const { labels, annotations } = (await world.getVirtual(KEY)).metadata;
      expect({ labels, annotations }).toEqual({
        labels: { app: 'web', added: '1' },
        annotations: { owner: 'b' },
      });
      expect(world.writesIn(log).filter((line) => !line.startsWith('MODIFIED'))).toEqual([]);
    });
  });
}

/** Returns the uid of the copy. Because of the Services, the controllers of a real host do not change it. */
async function startWithCopyOfVcluster(world: World): Promise<string> {
  await world.virtual.create('Service', service(KEY));
  await world.host.create('Service', service(world.hostKey(KEY).join('/')));
  const virtual = await world.virtual.create(
    'Endpoints',
    endpoints(KEY, { labels: { app: 'web', removed: '1' }, annotations: { owner: 'a' } }),
  );
  const { metadata } = await world.host.create('Endpoints', copyOfVcluster(world, virtual));
  return metadata.uid ?? '';
}

/** What vCluster 0.37 writes: names, labels and annotations as ours, without the sync record. */
function copyOfVcluster(world: World, virtual: KubeObject): KubeObject {
  const { labels, annotations, subsets } = expectedCopy(virtual, world);
  const [namespace, name] = world.hostKey(KEY);
  return { apiVersion: 'v1', kind: 'Endpoints', metadata: { namespace, name, labels, annotations }, subsets };
}

/** vCluster replaces what it manages, and keeps annotations that it does not know, such as the sync record. */
async function syncAsVcluster(world: World): Promise<void> {
  const copy = await world.getCopy(KEY);
  const { metadata, subsets } = copyOfVcluster(world, await world.getVirtual(KEY));
  const record = copy.metadata.annotations?.[LAST_SYNCED] ?? '';
  await world.host.update('Endpoints', {
    ...copy,
    metadata: {
      ...copy.metadata,
      labels: metadata.labels ?? {},
      annotations: { ...metadata.annotations, [LAST_SYNCED]: record },
    },
    subsets: subsets ?? null,
  });
}
