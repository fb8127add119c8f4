/** References under faults: in the end no import is missing, and no unreferenced import remains. */

import { describe, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { MARKER } from './expected-copy.ts';
import { dieAfterWrites } from './faults.ts';
import { leastRights } from './operation.ts';
import {
  configMap,
  importedTo,
  KINDS_BY_DATA,
  named,
  NOTES,
  referencePatches,
  secret,
  short,
} from './reference-objects.ts';
import type { NewWorld, Rule, World } from './world.ts';

const PATCHES = referencePatches();

export function referenceFaultScenarios(newWorld: NewWorld): void {
  describe('references under faults', () => {
    test('the daemon that dies after each of its writes leaves no import behind and none out', async ({
      expect,
    }) => {
      await using world = await newWorld();
      await prepareUnfinishedWork(world);
      const [host, virtual] = [await world.proxy('host'), await world.proxy('virtual')];
      const writes = await dieAfterWrites(world, host, virtual, PATCHES);
      expect(writes).toBeGreaterThan(8);
      expect(writes).toBeLessThan(40);
      const daemon = await world.startDaemon({ config: PATCHES });
      await world.settle(daemon);
      await expect
        .poll(() => importNames(world, 'host'))
        .toEqual(
          ['new', 'kept', 'changed', 'recreated']
            .map((name) => short(world, `default/${name}`)[1])
            .toSorted(),
        );
      await expect.poll(() => importNames(world, 'virtual')).toEqual(['h-kept', 'h-new']);
      const changed = await world.host.get('Secret', ...short(world, 'default/changed'));
      expect(changed['data']).toEqual({ k: 'bmV3' });
      const recreated = await world.host.get('Secret', ...short(world, 'default/recreated'));
      expect(recreated).toMatchObject({ immutable: true, data: { k: 'bmV3' } });
    });

    test('Endpoints that cannot be translated keep the imports of their copy', async ({ expect }) => {
      await using world = await newWorld();
      const first = await world.startDaemon({ config: PATCHES });
      await world.virtual.create('Secret', secret('default/s'));
      await world.virtual.create('Endpoints', named('default/web', { secret: 's' }));
      await importedTo(world, 'Secret', 'default/s');
      await world.whenCopy('default/web');
      await first.terminate();
      const failing = {
        path: 'subsets[*].ports[*].port',
        expression: 'value.nothing.here',
      };
      const patches = [...patchesOf(PATCHES), failing];
      const config = { sync: { toHost: { endpoints: { enabled: true, patches } } } };
      const second = await world.startDaemon({ config });
      await world.whenEvent('default/web', 'PatchFailed');
      await world.whenIdle(second);
      expect(await world.host.find('Secret', ...short(world, 'default/s'))).toBeDefined();
      await world.deleteVirtual('default/web');
      await world.host.whenGone('Secret', short(world, 'default/s'));
    });

    test('a kind that only data names and that may not be watched does not block other objects', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const least = leastRights(world);
      const secrets = { apiGroups: [''], resources: ['secrets'] };
      const verbs = ['get', 'list', 'watch', 'create', 'update', 'delete'];
      const host: Rule[] = [...least.host, { ...secrets, verbs, namespace: world.hostNamespace }];
      const virtual: Rule[] = [...least.virtual, { ...secrets, verbs, namespace: '' }];
      await world.startDaemon({
        config: KINDS_BY_DATA,
        kubeconfigs: {
          host: world.file('lazy-host.kubeconfig', await world.clusters.userKubeconfig('host', host)),
          virtual: world.file(
            'lazy-virtual.kubeconfig',
            await world.clusters.userKubeconfig('virtual', virtual),
          ),
        },
      });
      await world.virtual.create('ConfigMap', configMap('default/cfg', { k: '1' }));
      const targetRef = { kind: 'ConfigMap', name: 'cfg', namespace: 'default' };
      const subsets = [{ addresses: [{ ip: '10.1.0.1', targetRef }], ports: [{ port: 80 }] }];
      await world.createVirtual('default/web', { subsets });
      await world.createVirtual('default/other');
      await world.whenCopied('default/other');
      await world.whenCopy('default/web');
      expect(await world.whenEvent('default/web', 'ReferenceNotFound')).toMatch(/configmaps|forbidden/);
    });

    test('a copy that another client keeps overwriting is no longer corrected, and an Event reports it', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const daemon = await world.startDaemon({ config: PATCHES });
      await world.virtual.create('Secret', secret('default/s'));
      await world.virtual.create('Endpoints', named('default/web', { secret: 's' }));
      await importedTo(world, 'Secret', 'default/s');
      for (let round = 0; round < 12; round++) {
        if ((await world.eventsOn('default/web', 'Contested')).length > 0) break;
        const data = { k: Buffer.from(String(round)).toString('base64') };
        const overwritten = await world.host.merge('Secret', short(world, 'default/s'), { data });
        // Each is corrected before the next one, unless that is over.
        await eventually(
          async () =>
            [
              await world.host.get('Secret', ...short(world, 'default/s')),
              await world.eventsOn('default/web', 'Contested'),
            ] as const,
          ([copy, events]) =>
            copy.metadata.resourceVersion !== overwritten.metadata.resourceVersion || events.length > 0,
          { what: 'the correction of the copy' },
        );
        await world.settle(daemon);
      }
      expect(await world.whenEvent('default/web', 'Contested')).toContain('default/s');
    });

    test('a write whose response is lost happens exactly once', async ({ expect }) => {
      await using world = await newWorld();
      const host = await world.proxy('host');
      await world.startDaemon({ config: PATCHES, kubeconfigs: { host: host.path } });
      const log = await world.log('host', 'Secret');
      let lost = 0;
      host.behaviour = {
        decide: ({ isWrite, path }) =>
          isWrite && path.includes('/secrets') && lost++ === 0 ? { kind: 'lose-answer' } : { kind: 'pass' },
      };
      await world.virtual.create('Secret', secret('default/s'));
      await world.virtual.create('Endpoints', named('default/web', { secret: 's' }));
      await importedTo(world, 'Secret', 'default/s');
      await world.deleteVirtual('default/web');
      await world.host.whenGone('Secret', short(world, 'default/s'));
      await log.until(({ type }) => type === 'DELETED');
      expect(log.of(short(world, 'default/s')[1])).toEqual(['ADDED', 'DELETED']);
    });

    test('imports of a kind that only data names are found after a crash', async ({ expect }) => {
      await using world = await newWorld();
      const first = await world.startDaemon({ config: KINDS_BY_DATA });
      await world.virtual.create('ConfigMap', configMap('default/cfg', { k: '1' }));
      const targetRef = { kind: 'ConfigMap', name: 'cfg', namespace: 'default' };
      const subsets = [{ addresses: [{ ip: '10.1.0.1', targetRef }], ports: [{ port: 80 }] }];
      await world.createVirtual('default/web', { subsets });
      await importedTo(world, 'ConfigMap', 'default/cfg');
      await first.kill();
      await world.deleteVirtual('default/web');
      await world.deleteCopy('default/web');
      await world.startDaemon({ config: KINDS_BY_DATA });
      await world.host.whenGone('ConfigMap', short(world, 'default/cfg'));
      expect(await world.virtual.find('ConfigMap', 'default', 'cfg')).toBeDefined();
    });

    test('needs exactly the rights that are documented, and names those that are missing', async ({
      expect,
    }) => {
      await using world = await newWorld();
      world.expectErrors(/right is missing|cannot start/u);
      const least = leastRights(world);
      const write = ['create', 'update', 'delete'];
      const kinds = { apiGroups: [''], resources: ['secrets', 'configmaps'] };
      const rules = { ...kinds, verbs: ['get', 'list', 'watch', ...write] };
      const host: Rule[] = [...least.host, { ...rules, namespace: world.hostNamespace }];
      const virtual: Rule[] = [...least.virtual, { ...rules, namespace: '' }];
      const daemon = await world.startDaemon({
        config: PATCHES,
        kubeconfigs: {
          host: world.file('refs-host.kubeconfig', await world.clusters.userKubeconfig('host', host)),
          virtual: world.file(
            'refs-virtual.kubeconfig',
            await world.clusters.userKubeconfig('virtual', virtual),
          ),
        },
      });
      await world.virtual.create('Secret', secret('default/s'));
      await world.virtual.create('Endpoints', named('default/web', { secret: 's', config: 'cfg' }));
      await importedTo(world, 'Secret', 'default/s');
      await world.host.create('ConfigMap', configMap(`${world.hostNamespace}/cfg`, { k: '1' }));
      await world.virtual.when('ConfigMap', ['default', 'cfg']);
      await world.deleteVirtual('default/web');
      await world.virtual.whenGone('ConfigMap', ['default', 'cfg']);
      expect(daemon.stderr).not.toMatch(/forbidden/i);
      await daemon.terminate();
      const few = least.virtual;
      const kubeconfig = world.file('few.kubeconfig', await world.clusters.userKubeconfig('virtual', few));
      const refused = await world.spawnDaemon({ config: PATCHES, kubeconfigs: { virtual: kubeconfig } });
      expect((await refused.exited).code).toBe(1);
      expect(refused.stderr).toMatch(/list secrets in every namespace of the virtual cluster/);
    });
  });
}

/** One object for each kind of decision, waiting for a daemon. */
async function prepareUnfinishedWork(world: World): Promise<void> {
  const first = await world.startDaemon({ config: PATCHES });
  const fixed = (value: string) => secret('default/recreated', { immutable: true, data: { k: value } });
  await world.virtual.create('Secret', fixed('b2xk'));
  for (const name of ['kept', 'dropped', 'deleted', 'gone', 'changed'])
    await world.virtual.create('Secret', secret(`default/${name}`));
  for (const name of ['h-kept', 'h-dropped'])
    await world.host.create('Secret', secret(`${world.hostNamespace}/${name}`));
  const all = ['kept', 'dropped', 'deleted', 'gone', 'changed', 'recreated', 'h-kept', 'h-dropped'];
  for (const name of all) await world.virtual.create('Endpoints', named(`default/${name}`, { secret: name }));
  await eventually(
    async () => [...(await importNames(world, 'host')), ...(await importNames(world, 'virtual'))],
    (names) => names.length === all.length,
  );
  await first.terminate();
  await world.virtual.create('Secret', secret('default/new'));
  await world.host.create('Secret', secret(`${world.hostNamespace}/h-new`));
  for (const name of ['new', 'h-new'])
    await world.virtual.create('Endpoints', named(`default/${name}`, { secret: name }));
  for (const name of ['dropped', 'h-dropped'])
    await world.mergeVirtual(`default/${name}`, {
      metadata: { annotations: { [NOTES.secret]: null } },
    });
  await world.deleteVirtual('default/deleted');
  await world.virtual.delete('Secret', 'default', 'gone');
  await world.virtual.merge('Secret', ['default', 'changed'], { data: { k: 'bmV3' } });
  await world.virtual.delete('Secret', 'default', 'recreated');
  await world.virtual.create('Secret', fixed('bmV3'));
}

/** Names of all imports of this syncer in one cluster. */
async function importNames(world: World, side: 'host' | 'virtual'): Promise<string[]> {
  const namespace = side === 'host' ? world.hostNamespace : '';
  const found = await world[side].list('Secret', namespace, `?labelSelector=${MARKER}%3D${world.vcluster}`);
  return found.map(({ metadata }) => metadata.name).toSorted();
}

function patchesOf(config: typeof PATCHES): Record<string, never>[] {
  const { sync } = config as unknown as {
    sync: { toHost: { endpoints: { patches: Record<string, never>[] } } };
  }; // as created
  return sync.toHost.endpoints.patches;
}
