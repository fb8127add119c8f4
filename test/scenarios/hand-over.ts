/** Hand-over of copies between vCluster's own sync and this program: the same objects, nothing deleted, no key lost or restored. */

import { describe, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject, StringMap } from '../../src/kube/object.ts';
import { eventually } from '../support/eventually.ts';
import { slice, whenNoSlice, whenSlice } from './endpoint-slices.ts';
import { expectedCopy, LAST_SYNCED } from './expected-copy.ts';
import { ipsOf, service, subset } from './objects.ts';
import { configMap, importedTo } from './reference-objects.ts';
import { plain, whenService } from './services.ts';
import { pair, type NewWorld, type World } from './world.ts';

const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
const MIRRORING = 'endpointslicemirroring-controller.k8s.io';
const SLICE_CONTROLLER = 'endpointslice-controller.k8s.io';
const KEY = 'default/web';
const NO_SLICES: JsonObject = { sync: { toHost: { endpointSlices: { enabled: false } } } };

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

      await world.mergeVirtual(KEY, {
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

    test('of Endpoints and of slices of every origin are all kept by the default configuration', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const uid = await startWithCopyOfVcluster(world);
      const byHand = 'default/by-hand';
      const generated = { 'default/mirrored': MIRRORING, 'default/selected-abcde': SLICE_CONTROLLER };
      const before = new Map<string, KubeObject>();
      for (const [key, manager] of [[byHand, undefined], ...Object.entries(generated)] as const) {
        const labels = manager === undefined ? {} : { [MANAGED_BY]: manager };
        // Of another Service, so that the mirroring controller of a real host does not write them.
        const virtual = await world.virtual.create('EndpointSlice', slice(key, 'db', { labels }));
        const copy = sliceOfVcluster(world, key, { labels, uid: virtual.metadata.uid ?? '' });
        before.set(key, await world.host.create('EndpointSlice', copy));
      }

      const daemon = await world.startSync();
      await world.whenCopy(KEY, ({ metadata }) => metadata.annotations?.[LAST_SYNCED] !== undefined);
      const taken = await whenSlice(
        world,
        byHand,
        ({ metadata }) => metadata.annotations?.[LAST_SYNCED] !== undefined,
      );
      await world.settle(daemon);
      expect((await world.whenCopied(KEY)).metadata.uid).toBe(uid);
      const { resourceVersion } = (await whenSlice(world, byHand)).metadata;
      expect([taken.metadata.uid, taken.metadata.resourceVersion]).toEqual([
        before.get(byHand)?.metadata.uid,
        resourceVersion,
      ]);
      for (const [key, manager] of Object.entries(generated)) {
        const now = await world.host.find('EndpointSlice', ...world.hostKey(key));
        // The host's mirroring controller deletes its slices of a Service without Endpoints.
        if (manager !== MIRRORING || world.clusters.kind === 'embedded') expect(now).toEqual(before.get(key));
      }
      expect(daemon.log.filter(({ copies }) => copies !== undefined)).toEqual([]);

      const endpointsOf = [{ addresses: ['10.1.0.9'], conditions: { ready: true } }];
      await world.virtual.merge('EndpointSlice', pair(byHand), { endpoints: endpointsOf });
      await whenSlice(world, byHand, (copy) => JSON.stringify(copy['endpoints']).includes('10.1.0.9'));
      await world.virtual.delete('EndpointSlice', ...pair(byHand));
      await whenNoSlice(world, byHand);
    });

    test('of a kind that is not synced are reported, unless vCluster syncs them', async ({ expect }) => {
      await using world = await newWorld();
      const slices = ['default/own', 'default/of-controller'];
      for (const key of slices) await world.host.create('EndpointSlice', sliceOfVcluster(world, key));
      const host = {
        labels: { 'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io' },
      };
      await world.host.merge('EndpointSlice', world.hostKey('default/of-controller'), { metadata: host });

      const reported = async (values: string): Promise<readonly unknown[]> => {
        const vclusterConfig = world.file('values.yaml', values);
        const config = { ...NO_SLICES, endpointSyncer: { vclusterConfig } };
        const daemon = await world.startSync({ config });
        await daemon.whenLogged(/^ready$/u);
        await daemon.stop();
        return daemon.log.filter(({ copies }) => copies !== undefined);
      };
      const off = '{sync: {toHost: {endpoints: {enabled: false}, endpointSlices: {enabled: false}}}}';
      expect(await reported(off)).toMatchObject([
        { level: 'warn', kind: 'EndpointSlice', copies: 1, setting: 'sync.toHost.endpointSlices.enabled' },
      ]);
      expect(await reported('{sync: {toHost: {endpoints: {enabled: false}}}}')).toEqual([]);
    });
  });
}

/** With the Service that vCluster's chart creates, of which vCluster's own copies are dependents. */
export function ownerScenarios(newWorld: NewWorld): void {
  describe("vCluster's Service on the host", () => {
    const ownersOf = ({ metadata }: KubeObject): unknown => metadata['ownerReferences'] ?? [];
    const config = (owner: JsonObject = {}): JsonObject => {
      const path = 'metadata.annotations.config';
      const patches = [{ path, reference: { apiVersion: 'v1', kind: 'ConfigMap' } }];
      return { sync: { toHost: { endpoints: { patches } } }, endpointSyncer: owner };
    };

    test('owns the copies and imports, also those from before, which get it with one write', async ({
      expect,
    }) => {
      await using world = await newWorld();
      await world.virtual.create('ConfigMap', configMap('default/settings', { k: '1' }));
      await world.createVirtual(KEY, { annotations: { config: 'settings' } });
      const before = await world.startSync({ config: config() });
      await world.settle(before);
      await before.stop();
      const imported = () => importedTo(world, 'ConfigMap', 'default/settings');
      expect([ownersOf(await world.getCopy(KEY)), ownersOf(await imported())]).toEqual([[], []]);

      const made = await world.host.create('Service', service(`${world.hostNamespace}/${world.vcluster}`));
      const log = await world.log('host');
      const daemon = await world.startSync({ config: config() });
      await world.settle(daemon);
      const owner = { apiVersion: 'v1', kind: 'Service', name: world.vcluster, uid: made.metadata.uid };
      expect([ownersOf(await world.getCopy(KEY)), ownersOf(await imported())]).toEqual([[owner], [owner]]);
      expect(world.writesIn(log)).toEqual([`MODIFIED ${world.hostName(KEY)}`]);
    });

    test('owns the copies and imports soon after it is created, and with its new uid after it is created again', async ({
      expect,
    }) => {
      await using world = await newWorld();
      await world.virtual.create('ConfigMap', configMap('default/settings', { k: '1' }));
      await world.createVirtual(KEY, { annotations: { config: 'settings' } });
      const daemon = await world.startSync({ config: config() });
      await world.settle(daemon);
      const importedOne = () => importedTo(world, 'ConfigMap', 'default/settings');
      expect([ownersOf(await world.getCopy(KEY)), ownersOf(await importedOne())]).toEqual([[], []]);

      for (let round = 0; round < 2; round++) {
        const made = await world.host.create('Service', service(`${world.hostNamespace}/${world.vcluster}`));
        const { uid = '' } = made.metadata;
        const isOwned = (one: KubeObject): boolean => JSON.stringify(ownersOf(one)).includes(uid);
        // The garbage collector may delete what names a uid that is gone, before it gets the new one: then it is created again.
        const [copy, imported] = [await world.whenCopy(KEY, isOwned), await eventually(importedOne, isOwned)];
        const owner = { apiVersion: 'v1', kind: 'Service', name: world.vcluster, uid };
        expect([ownersOf(copy), ownersOf(imported)]).toEqual([[owner], [owner]]);
        await world.host.delete('Service', world.hostNamespace, world.vcluster);
      }
    });

    test.for(['the copy', 'the import'])(
      'owns %s that is written while it is created',
      async (what, { expect }) => {
        await using world = await newWorld();
        const host = await world.proxy('host');
        const [settings, other] = ['default/settings', 'default/other'];
        await world.virtual.create('ConfigMap', configMap(settings, { k: '1' }));
        await world.createVirtual(KEY, { annotations: { config: 'settings' } });
        await world.createVirtual(other);
        const daemon = await world.startSync({ config: config(), kubeconfigs: { host: host.path } });
        await world.whenCopied(other);
        await world.settle(daemon);
        const isOwned = (one: KubeObject): boolean => JSON.stringify(ownersOf(one)).includes(world.vcluster);
        const { name } = (await importedTo(world, 'ConfigMap', settings)).metadata;
        const written = what === 'the copy' ? world.hostName(KEY) : name;
        let isHeld = false;
        host.behaviour = {
          async decide({ isWrite, path }) {
            if (isHeld || !isWrite || !path.includes(`/${written}`)) return { kind: 'pass' };
            isHeld = true;
            await world.host.create('Service', service(`${world.hostNamespace}/${world.vcluster}`));
            await world.whenCopy(other, isOwned);
            return { kind: 'pass' };
          },
        };
        if (what === 'the copy')
          await world.mergeVirtual(KEY, { metadata: { annotations: { changed: '1' } } });
        else await world.virtual.merge('ConfigMap', pair(settings), { data: { k: '2' } });
        await (what === 'the copy'
          ? world.whenCopy(KEY, isOwned)
          : eventually(() => importedTo(world, 'ConfigMap', settings), isOwned));
        expect(isHeld).toBe(true);
      },
    );

    test('owns the copies with its new uid after it was created again, so that no garbage collector deletes them', async ({
      expect,
    }) => {
      await using world = await newWorld();
      await world.host.create('Service', service(`${world.hostNamespace}/${world.vcluster}`));
      await world.createVirtual(KEY);
      const daemon = await world.startSync({ config: NO_SLICES });
      const { metadata } = await world.whenCopied(KEY);
      await world.settle(daemon);
      await world.host.delete('Service', world.hostNamespace, world.vcluster);
      const made = await world.host.create('Service', service(`${world.hostNamespace}/${world.vcluster}`));
      await world.deleteCopy(KEY);
      const copy = await world.whenCopy(KEY, (one) => one.metadata.uid !== metadata.uid);
      expect(ownersOf(copy)).toMatchObject([{ name: world.vcluster, uid: made.metadata.uid }]);
    });

    test('takes no virtual object along when it goes and the garbage collector deletes the copies', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const ownerKey = `${world.hostNamespace}/${world.vcluster}`;
      await world.host.create('Service', service(ownerKey));
      const made = [
        await world.virtual.create('Service', plain(KEY)),
        await world.createVirtual(KEY),
        await world.virtual.create('EndpointSlice', slice('default/own', 'web')),
      ];
      const daemon = await world.startSync({
        config: { endpointSyncer: { services: 'sync', onHostDelete: 'deleteVirtual' } },
      });
      await whenService(world, KEY);
      await whenSlice(world, 'default/own');
      await world.whenCopied(KEY);
      await world.settle(daemon);
      await world.host.delete('Service', ...pair(ownerKey));
      // As the garbage collector of a real host does, which may be first.
      for (const [kind, key] of [
        ['EndpointSlice', 'default/own'],
        ['Endpoints', KEY],
        ['Service', KEY],
      ] as const)
        await world.host.delete(kind, ...world.hostKey(key)).catch(() => undefined);
      const owner = await world.host.create('Service', service(ownerKey));
      const isOwned = (one: KubeObject): boolean =>
        JSON.stringify(ownersOf(one)).includes(owner.metadata.uid ?? '');
      await whenService(world, KEY, isOwned);
      await whenSlice(world, 'default/own', isOwned);
      await world.whenCopy(KEY, isOwned);
      await world.settle(daemon);
      const found = [
        await world.virtual.find('Service', ...pair(KEY)),
        await world.virtual.find('Endpoints', ...pair(KEY)),
        await world.virtual.find('EndpointSlice', ...pair('default/own')),
      ];
      expect(found.map((one) => one?.metadata.uid)).toEqual(made.map(({ metadata }) => metadata.uid));
    });

    test('owns nothing with owner: {kind: ""}', async ({ expect }) => {
      await using world = await newWorld();
      await world.host.create('Service', service(`${world.hostNamespace}/${world.vcluster}`));
      await world.createVirtual(KEY);
      const daemon = await world.startSync({ config: config({ owner: { kind: '' } }) });
      await world.settle(daemon);
      expect(ownersOf(await world.whenCopied(KEY))).toEqual([]);
    });

    test('stays the owner of a copy of vCluster as vCluster has written it', async ({ expect }) => {
      await using world = await newWorld();
      const made = await world.host.create('Service', service(`${world.hostNamespace}/${world.vcluster}`));
      await startWithCopyOfVcluster(world);
      const { uid } = made.metadata;
      const owners = [{ apiVersion: 'v1', kind: 'Service', name: world.vcluster, uid, controller: false }];
      await world.mergeCopy(KEY, { metadata: { ownerReferences: owners } });
      const daemon = await world.startSync({ config: config() });
      await world.whenCopy(KEY, ({ metadata }) => metadata.annotations?.[LAST_SYNCED] !== undefined);
      await world.settle(daemon);
      expect(ownersOf(await world.getCopy(KEY))).toEqual(owners);
    });
  });
}

/** The copy of a slice that a tenant, or with `labels` a controller, created. */
export function sliceOfVcluster(
  world: World,
  key: string,
  { labels: own = {}, uid }: { readonly labels?: StringMap; readonly uid?: string } = {},
): KubeObject {
  const copy = slice(world.hostKey(key).join('/'), world.hostName('default/db'), { labels: own });
  const { labels, annotations } = world.bookkeeping('EndpointSlice', key, uid);
  return {
    ...copy,
    metadata: { ...copy.metadata, labels: { ...copy.metadata.labels, ...labels }, annotations },
  };
}

/** Returns the uid of the copy. Because of the Services, the controllers of a real host do not change it. */
async function startWithCopyOfVcluster(world: World): Promise<string> {
  await world.virtual.create('Service', service(KEY));
  await world.host.create('Service', service(world.hostKey(KEY).join('/')));
  const virtual = await world.createVirtual(KEY, {
    labels: { app: 'web', removed: '1' },
    annotations: { owner: 'a' },
  });
  const { metadata } = await world.host.create('Endpoints', copyOfVcluster(world, virtual));
  return metadata.uid ?? '';
}

/** What vCluster 0.37 writes: names, labels and annotations as ours, without the sync record. */
function copyOfVcluster(world: World, virtual: KubeObject): KubeObject {
  const { labels, annotations, subsets } = expectedCopy(virtual, world, true);
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
