/** A start handles the changes of a downtime; a start without changes writes nothing. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KubeObject } from '../../src/kube/object.ts';
import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import type { Daemon } from './daemon.ts';
import { LAST_SYNCED, MARKER } from './expected-copy.ts';
import { endpoints, ipsOf, subset } from './objects.ts';
import { importedTo, named, referencePatches, secret, short } from './reference-objects.ts';
import { VIRTUAL_CLUSTER } from '../../src/syncer/virtual-identity.ts';
import { capturedRun } from '../cli/captured-run.ts';
import { eventually } from '../support/eventually.ts';
import type { NewWorld, World } from './world.ts';
import type { WriteLog } from './write-log.ts';

const NAMES = [
  'host-removed',
  'virtual-removed',
  'both-changed',
  'host-added',
  'host-changed',
  'virtual-deleted',
  'recreated',
  'untouched',
  'host-deleted',
  'drifted',
  'stripped',
  'skips',
  'controlled',
  'virtual-updated',
  'both-removed',
] as const;
type Name = (typeof NAMES)[number];
const keyOf = (name: Name): string => `default/${name}`;

export function restartScenarios(newWorld: NewWorld): void {
  describe('after a restart', { concurrent: false }, () => {
    let world: World;
    let daemon: Daemon;
    let log: { host: WriteLog; virtual: WriteLog };
    const uids = new Map<Name, string>();

    beforeAll(async () => {
      world = await newWorld();
      const first = await world.startSync();
      for (const name of NAMES) await world.virtual.create('Endpoints', initial(name));
      for (const name of NAMES) uids.set(name, (await world.whenCopied(keyOf(name))).metadata.uid ?? '');
      await world.settle(first);
      await first.stop();
      await whileDown(world);
      log = { host: await world.log('host'), virtual: await world.log('virtual') };
      daemon = await world.startDaemon();
      await world.settle(daemon);
    });
    afterAll(() => world[Symbol.asyncDispose]());

    const both = async (name: Name): Promise<[KubeObject, KubeObject]> => [
      await world.getVirtual(keyOf(name)),
      await world.getCopy(keyOf(name)),
    ];

    test('a key removed on the host is removed from the virtual object', async () => {
      const [virtual, copy] = await both('host-removed');
      expect(virtual.metadata).toMatchObject({ labels: { keep: '1' }, annotations: { keep: '1' } });
      expect(virtual.metadata.labels).not.toHaveProperty('gone');
      expect(virtual.metadata.annotations).not.toHaveProperty('gone');
      expect(copy.metadata.annotations).not.toHaveProperty('gone');
    });

    test('a key removed in the virtual cluster is removed on the host', async () => {
      const [virtual, copy] = await both('virtual-removed');
      expect(virtual.metadata.annotations).toEqual({ keep: '1' });
      expect(copy.metadata.annotations).not.toHaveProperty('gone');
      expect(copy.metadata.labels).not.toHaveProperty('gone');
    });

    test('a key removed on both sides is not restored', async () => {
      const [virtual, copy] = await both('both-removed');
      expect(virtual.metadata.annotations).toEqual({ keep: '1' });
      expect(copy.metadata.annotations).not.toHaveProperty('gone');
    });

    test('a key changed on both sides has the virtual value', async () => {
      const [virtual, copy] = await both('both-changed');
      expect([virtual.metadata.annotations?.['gone'], copy.metadata.annotations?.['gone']]).toEqual([
        'virtual',
        'virtual',
      ]);
      expect(virtual.metadata.labels).toMatchObject({ gone: 'host' });
    });

    test('keys that were added or changed on the host are synced back', async () => {
      expect((await both('host-added'))[0].metadata).toMatchObject({
        labels: { added: '1' },
        annotations: { added: '1' },
      });
      expect((await both('host-changed'))[0].metadata).toMatchObject({
        labels: { gone: 'host' },
        annotations: { gone: 'host' },
      });
    });

    test('the copy of a deleted virtual object is deleted', async () => {
      expect(await world.findCopy(keyOf('virtual-deleted'))).toBeUndefined();
    });

    test('the copy of a recreated virtual object is updated in place and keeps nothing of the old object', async () => {
      const [virtual, copy] = await both('recreated');
      expect(copy.metadata.uid).toBe(uids.get('recreated'));
      await world.whenCopied(keyOf('recreated'));
      expect(copy.metadata.annotations).not.toHaveProperty('gone');
      expect(virtual.metadata.labels).toBeUndefined();
      expect(virtual.metadata.annotations).toBeUndefined();
      expect(log.host.of(copy.metadata.name)).toEqual(['MODIFIED']);
    });

    test('an unchanged pair was not written', () => {
      expect(log.host.of(world.hostName(keyOf('untouched')))).toEqual([]);
      expect(log.virtual.of('untouched')).toEqual([]);
    });

    test('a copy that was deleted in the meantime is recreated', async () => {
      expect((await world.whenCopied(keyOf('host-deleted'))).metadata.uid).not.toBe(uids.get('host-deleted'));
    });

    test('drift is corrected, and an update is applied', async () => {
      expect(ipsOf((await both('drifted'))[1])).toEqual(['10.1.0.1']);
      expect(ipsOf((await both('virtual-updated'))[1])).toEqual(['10.1.0.99']);
    });

    test('without the record the virtual side takes precedence', async () => {
      const [virtual, copy] = await both('stripped');
      expect(virtual.metadata.annotations).toEqual({ keep: '1', gone: '1' });
      expect(copy.metadata.annotations).toMatchObject({ gone: '1', keep: '1' });
      expect(copy.metadata.annotations).toHaveProperty([LAST_SYNCED]);
    });

    test('copies that are opted out, and foreign objects, still exist', async () => {
      expect(await world.findCopy(keyOf('skips'))).toBeDefined();
      expect(await world.findCopy(keyOf('controlled'))).toBeDefined();
      expect(await world.host.find('Endpoints', world.hostNamespace, 'foreign')).toBeDefined();
      expect(await world.host.find('Endpoints', world.hostNamespace, 'stray')).toBeDefined();
      expect([...log.host.of('foreign'), ...log.host.of('stray')]).toEqual([]);
    });

    test('the next start writes nothing, after SIGTERM and after SIGKILL', async () => {
      await world.settle(daemon);
      expect(await daemon.terminate()).toEqual({ code: 0, signal: null });
      const [host, virtual] = [await world.log('host'), await world.log('virtual')];
      const second = await world.startDaemon();
      await world.settle(second);
      await second.kill();
      await world.settle(await world.startSync());
      expect([...world.writesIn(host), ...world.writesIn(virtual)]).toEqual([]);
    });
  });
}

/** The Lease says that the copies are of another virtual cluster, in which case this one lacks their objects for that reason. */
export function otherClusterScenarios(newWorld: NewWorld): void {
  describe('before another virtual cluster', { concurrent: false }, () => {
    let world: World;
    beforeAll(async () => {
      world = await newWorld();
    });
    afterAll(() => world[Symbol.asyncDispose]());

    test('copies of objects that are gone stay until it is adopted, and everything else is synced', async () => {
      const lease = [world.hostNamespace, `endpoint-syncer-${world.vcluster}`] as const;
      const first = await world.startSync();
      for (const name of ['a', 'b']) await world.createVirtual(`default/${name}`);
      for (const name of ['a', 'b']) await world.whenCopied(`default/${name}`);
      await world.settle(first);
      await whenIdentified(world);
      await first.stop();
      for (const name of ['a', 'b']) await world.deleteVirtual(`default/${name}`);
      await world.host.merge('Lease', lease, { metadata: { annotations: { [VIRTUAL_CLUSTER]: 'another' } } });

      const second = await world.startSync();
      await world.createVirtual('default/new');
      await world.whenCopied('default/new');
      const ready = await eventually(
        () => second.get('/readyz?verbose'),
        ({ text }) => text.includes('this is another virtual cluster than before'),
        { what: 'the reason in /readyz' },
      );
      expect(ready.status).toBe(200);
      await second.whenMetric('endpoint_syncer_deletions_held', (isHeld) => isHeld === 1);
      await world.settle(second);
      for (const name of ['a', 'b']) expect(await world.getCopy(`default/${name}`)).toBeDefined();
      await second.stop();

      const config = world.writeConfig(world.configuration({}, 0));
      const why = 'this is another virtual cluster than before';
      const differs = await capturedRun(['diff', '--config', config]);
      expect([differs.out, differs.code]).toEqual(['', 0]);
      expect(differs.err).toContain(`note: copies of objects that are gone are not deleted: ${why}`);
      const held = await capturedRun(['status', '--config', config, '-o', 'json']);
      const states = (JSON.parse(held.out) as JsonObject[])
        .filter(({ state }) => state !== 'synced')
        .map(({ virtual, state, reason }) => [(virtual as JsonObject)['name'], state, reason]);
      expect(states).toEqual(['a', 'b'].map((name) => [name, 'pending', 'DeletionsHeld']));
      const explained = await capturedRun(['explain', 'default/a', '--config', config]);
      expect(explained.out).toContain(`stays: ${why}`);
      const adopted = await capturedRun(['adopt', '--config', config]);
      expect([adopted.code, adopted.err]).toEqual([0, '']);
      expect(adopted.out).toContain(
        `Lease "${lease.join('/')}" says that the copies are of this virtual cluster`,
      );
      await world.startSync();
      for (const name of ['a', 'b']) await world.whenNoCopy(`default/${name}`);
      expect(await world.getCopy('default/new')).toBeDefined();
    });

    test('copies of objects that the kept copies reference stay, too', async () => {
      const config = referencePatches();
      await using own = await newWorld();
      const lease = [own.hostNamespace, `endpoint-syncer-${own.vcluster}`] as const;
      const first = await own.startSync({ config });
      await own.virtual.create('Secret', secret('default/tls'));
      await own.virtual.create('Endpoints', named('default/web', { secret: 'tls' }));
      await importedTo(own, 'Secret', 'default/tls');
      await own.whenCopy('default/web');
      await own.settle(first);
      await whenIdentified(own);
      await first.stop();
      await own.deleteVirtual('default/web');
      await own.virtual.delete('Secret', 'default', 'tls');
      await own.host.merge('Lease', lease, { metadata: { annotations: { [VIRTUAL_CLUSTER]: 'another' } } });

      await own.startSync({ config });
      await own.virtual.create('Secret', secret('default/next'));
      await own.virtual.create('Endpoints', named('default/new', { secret: 'next' }));
      await importedTo(own, 'Secret', 'default/next');
      expect(await own.getCopy('default/web')).toBeDefined();
      expect(await own.host.find('Secret', ...short(own, 'default/tls'))).toBeDefined();

      const file = own.writeConfig(own.configuration({ config }, 0));
      const unused = await capturedRun(['cleanup', '--unused', '--yes', '--config', file]);
      expect([unused.code, unused.out]).toEqual([0, '']);
      expect(unused.err).toContain('warning: copies of objects that are gone are left: this is another');
      expect(await own.host.find('Secret', ...short(own, 'default/tls'))).toBeDefined();
      const status = await capturedRun(['status', '--config', file, '-o', 'json']);
      expect(JSON.parse(status.out)).toContainEqual(
        expect.objectContaining({
          kind: 'Secret',
          virtual: { namespace: 'default', name: 'tls' },
          state: 'pending',
          reason: 'DeletionsHeld',
        }),
      );
    });
  });
}

/** Waits until the Lease names the virtual cluster. The sync does not wait for that. */
async function whenIdentified({ host, hostNamespace, vcluster }: World): Promise<void> {
  await host.when(
    'Lease',
    [hostNamespace, `endpoint-syncer-${vcluster}`],
    (lease) => lease.metadata.annotations?.[VIRTUAL_CLUSTER] !== undefined,
    { what: 'the identity of the virtual cluster on the Lease' },
  );
}

function initial(name: Name): KubeObject {
  const metadata = { labels: { keep: '1', gone: '1' }, annotations: { keep: '1', gone: '1' } };
  if (name === 'skips')
    return endpoints(keyOf(name), { labels: { 'vcluster.loft.sh/skip-backsync': 'true' } });
  return endpoints(keyOf(name), metadata);
}

async function whileDown(world: World): Promise<void> {
  const onHost = (name: Name, patch: unknown): Promise<KubeObject> => world.mergeCopy(keyOf(name), patch);
  const onVirtual = (name: Name, patch: unknown): Promise<KubeObject> =>
    world.mergeVirtual(keyOf(name), patch);
  const all = (value: string | null): JsonValue => ({
    metadata: { labels: { gone: value }, annotations: { gone: value } },
  });
  await onHost('host-removed', all(null));
  await onVirtual('virtual-removed', all(null));
  await onHost('both-removed', all(null));
  await onVirtual('both-removed', all(null));
  await onHost('both-changed', all('host'));
  await onVirtual('both-changed', { metadata: { annotations: { gone: 'virtual' } } });
  await onHost('host-added', { metadata: { labels: { added: '1' }, annotations: { added: '1' } } });
  await onHost('host-changed', all('host'));
  await onHost('drifted', { subsets: [subset('10.6.6.6')] });
  await onHost('stripped', { metadata: { annotations: { [LAST_SYNCED]: null, gone: 'host' } } });
  await onVirtual('virtual-updated', { subsets: [subset('10.1.0.99')] });
  await onHost('controlled', { metadata: { labels: { 'vcluster.loft.sh/controlled-by': 'x' } } });
  for (const name of ['virtual-deleted', 'skips', 'controlled', 'recreated'] as const)
    await world.deleteVirtual(keyOf(name));
  await world.createVirtual(keyOf('recreated'), { subsets: [subset('10.1.0.50')] });
  await world.deleteCopy(keyOf('host-deleted'));
  await world.host.create('Endpoints', endpoints(`${world.hostNamespace}/foreign`));
  await world.host.create('Endpoints', {
    ...endpoints(`${world.hostNamespace}/stray`),
    metadata: {
      namespace: world.hostNamespace,
      name: 'stray',
      labels: { [MARKER]: world.vcluster },
      annotations: {
        'vcluster.loft.sh/object-name': 'stray',
        'vcluster.loft.sh/object-namespace': 'default',
      },
    },
  });
}
