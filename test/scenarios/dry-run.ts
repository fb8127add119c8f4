/** `run --dry-run`: every write is checked by the API servers and logged as a difference, none is stored. */

import { describe, test } from 'vitest';
import type { ProxiedRequest } from './api-proxy.ts';
import { slice, whenSlice } from './endpoint-slices.ts';
import { eventually } from '../support/eventually.ts';
import { endpoints, service } from './objects.ts';
import { configMap, importedTo, named, NOTES, referencePatches, secret, short } from './reference-objects.ts';
import { plain, whenService } from './services.ts';
import type { NewWorld, World } from './world.ts';

const ONCE = ['--dry-run', '--once'];
const NAMED = { type: 'ExternalName', externalName: 'a.example.com', ports: undefined };

export function dryRunScenarios(newWorld: NewWorld): void {
  describe('a dry run', () => {
    test('stores nothing, and logs each write once as a difference', async ({ expect }) => {
      await using world = await newWorld();
      await preparePairs(world);
      const [host, virtual] = [await world.proxy('host'), await world.proxy('virtual')];
      const daemon = await world.startDaemon({
        args: ['--dry-run'],
        kubeconfigs: { host: host.path, virtual: virtual.path },
      });
      await world.createVirtual('default/while-it-runs');
      const planned = (name: string) =>
        daemon.log.filter(({ msg, key }) => msg === 'would write' && key === keyOnHost(world, name));
      for (const [name, verb] of [
        ['new', 'create'],
        ['while-it-runs', 'create'],
        ['changed', 'update'],
        ['deleted', 'delete'],
        ['gated', 'delete'],
      ] as const)
        await eventually(
          () => planned(name).map((line) => line['verb']),
          (verbs) => verbs.join() === verb,
          { what: `one ${verb} of ${name}` },
        );
      expect(planned('changed')[0]?.['diff']).toEqual(['+ metadata.labels.a: "1"']);
      // An event without an effect on the copy is not reported.
      await world.mergeVirtual('default/new', { metadata: { finalizers: ['e.com/f'] } });
      await world.mergeVirtual('default/new', { metadata: { finalizers: null } });
      await world.whenIdle(daemon);
      expect(planned('new')).toHaveLength(1);
      expect(planned('same')).toEqual([]);
      expect(daemon.log.filter(({ msg }) => msg === 'synced')).toEqual([]);
      expect([...host.requests, ...virtual.requests].filter(isStored).map(({ path }) => path)).toEqual([]);
      expect(await world.findCopy('default/new')).toBeUndefined();
      expect(await world.findCopy('default/deleted')).toBeDefined();
    });

    test('reports objects that a missing namespace blocks once, and no object as synced', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const host = { namespace: `${world.hostNamespace}-missing` };
      const daemon = await world.startDaemon({ args: ['--dry-run'], config: { endpointSyncer: { host } } });
      await world.createVirtual('default/nowhere');
      await eventually(
        () => daemon.log.filter(({ reason }) => reason === 'NamespaceNotFound'),
        (lines) => lines.length > 1,
        { what: 'the second line about the namespace' },
      );
      const lines = daemon.log.filter(({ reason }) => reason === 'NamespaceNotFound');
      expect(lines[0]).toMatchObject({ level: 'warn', key: 'default/nowhere', msg: 'not synced' });
      expect(lines.map(({ count }) => count)).toEqual([undefined, 2, 4, 8, 16].slice(0, lines.length));
      expect(daemon.log.some(({ msg }) => msg === 'synced' || msg === 'would write')).toBe(false);
      expect(daemon.stderr).not.toContain('"stack"');
      expect(await world.eventsOn('default/nowhere', 'NamespaceNotFound')).toEqual([]);
    });

    test('covers imports, without the data of Secrets', async ({ expect }) => {
      await using world = await newWorld();
      await world.virtual.create('Secret', secret('default/tls', { data: { k: 'c2VjcmV0' } }));
      await world.virtual.create('Endpoints', named('default/web', { secret: 'tls' }));
      const daemon = await world.startDaemon({ args: ['--dry-run'], config: referencePatches() });
      const key = short(world, 'default/tls').join('/');
      const lines = await eventually(
        () => daemon.log.filter(({ msg, kind }) => msg === 'would write' && kind === 'Secret'),
        (found) => found.length > 0,
        { what: 'the import of the Secret' },
      );
      expect(lines[0]).toMatchObject({ cluster: 'host', verb: 'create', key });
      expect(lines[0]?.['diff']).toContain('+ data.k: (not shown)');
      expect(daemon.stderr).not.toContain('c2VjcmV0');
      expect(await world.host.find('Secret', ...short(world, 'default/tls'))).toBeUndefined();
    });
  });

  describe('a dry run with --once', () => {
    test.for(['virtual', 'host'] as const)(
      'shows of an import from the %s cluster what differs, and no more',
      async (source, { expect }) => {
        await using world = await newWorld();
        const config = referencePatches();
        const before = await world.startSync({ config });
        const place = source === 'virtual' ? 'default' : world.hostNamespace;
        const settings = configMap(`${place}/cfg`, { same: '1', new: '1', gone: '1' });
        await world[source].create('ConfigMap', settings);
        await world.virtual.create('Endpoints', named('default/web', { config: 'cfg' }));
        if (source === 'virtual') await importedTo(world, 'ConfigMap', 'default/cfg');
        else await world.virtual.when('ConfigMap', ['default', 'cfg']);
        await world.settle(before);
        await before.stop();
        await world[source].merge('ConfigMap', [place, 'cfg'], { data: { new: '2', gone: null } });
        const daemon = await world.spawnDaemon({ args: ONCE, config });
        expect(await daemon.exited).toEqual({ code: 1, signal: null });
        const lines = daemon.log.filter(({ msg }) => msg === 'would write');
        expect(lines.map(({ verb, kind, diff }) => [verb, kind, diff])).toEqual([
          ['update', 'ConfigMap', ['- data.gone: "1"', '- data.new: "1"', '+ data.new: "2"']],
        ]);
      },
    );

    test('exits with 0 if there is nothing to do', async ({ expect }) => {
      await using world = await newWorld();
      const config = referencePatches();
      const before = await world.startSync({ config });
      await world.virtual.create('Secret', secret('default/tls'));
      await world.virtual.create('Endpoints', named('default/web', { secret: 'tls' }));
      const { metadata } = await importedTo(world, 'Secret', 'default/tls');
      await world.whenCopy(
        'default/web',
        (copy) => copy.metadata.annotations?.[NOTES.secret] === metadata.name,
      );
      await world.settle(before);
      await before.stop();
      const daemon = await world.spawnDaemon({ args: ONCE, config });
      expect(await daemon.exited).toEqual({ code: 0, signal: null });
      expect(daemon.stdout).toBe('');
    });

    test('exits with 1 and prints a table of changes and failures', async ({ expect }) => {
      await using world = await newWorld();
      await preparePairs(world);
      const foreign = endpoints(`${world.hostNamespace}/${world.hostName('default/taken')}`);
      foreign.metadata.annotations = { 'vcluster.loft.sh/object-name': 'another' };
      await world.host.create('Endpoints', foreign);
      await world.createVirtual('default/taken');
      const daemon = await world.spawnDaemon({ args: ONCE });
      expect(await daemon.exited).toEqual({ code: 1, signal: null });
      const rows = daemon.stdout.split('\n').map((line) => line.split(/ {2,}/).slice(0, 4));
      expect(rows).toEqual([
        ['CLUSTER', 'KIND', 'OBJECT', 'ACTION'],
        ['host', 'Endpoints', keyOnHost(world, 'changed'), 'update'],
        ['host', 'Endpoints', keyOnHost(world, 'deleted'), 'delete'],
        ['host', 'Endpoints', keyOnHost(world, 'gated'), 'delete'],
        ['host', 'Endpoints', keyOnHost(world, 'new'), 'create'],
        ['virtual', 'Endpoints', 'default/taken', 'failed'],
        [''],
      ]);
      expect(daemon.stdout).toContain('NotManaged');
      expect(await world.findCopy('default/new')).toBeUndefined();
    });

    test('covers every kind, including recreations', async ({ expect }) => {
      await using world = await newWorld();
      const config = {
        sync: { toHost: { endpointSlices: { enabled: true } } },
        endpointSyncer: { services: 'sync' },
      };
      const before = await world.startSync({ config });
      for (const name of ['db', 'typed']) {
        await world.virtual.create('Service', plain(`default/${name}`, { spec: { type: 'LoadBalancer' } }));
        await world.virtual.create('EndpointSlice', slice(`default/${name}-1`, name));
        await whenService(world, `default/${name}`);
        await whenSlice(world, `default/${name}-1`);
      }
      await world.whenIdle(before);
      await before.stop();
      await world.host.mergeStatus('Service', world.hostKey('default/db'), {
        loadBalancer: { ingress: [{ ip: '203.0.113.7' }] },
      });
      await world.virtual.delete('EndpointSlice', 'default', 'typed-1');
      const six = { addressType: 'IPv6', endpoints: [{ addresses: ['fd00::1'] }] };
      await world.virtual.create('EndpointSlice', slice('default/typed-1', 'typed', six));
      await world.virtual.create('Service', plain('default/named', { spec: NAMED }));
      const untouched = await world.host.get('EndpointSlice', ...world.hostKey('default/typed-1'));
      const daemon = await world.spawnDaemon({ args: ONCE, config });
      expect(await daemon.exited).toEqual({ code: 1, signal: null });
      const rows = daemon.stdout.split('\n').map((line) => line.split(/ {2,}/).slice(0, 4));
      expect(rows).toEqual([
        ['CLUSTER', 'KIND', 'OBJECT', 'ACTION'],
        ['host', 'EndpointSlice', keyOnHost(world, 'typed-1'), 'delete'],
        ['host', 'Service', keyOnHost(world, 'named'), 'create'],
        ['virtual', 'Service', 'default/db', 'patch'],
        [''],
      ]);
      const { metadata } = await world.host.get('EndpointSlice', ...world.hostKey('default/typed-1'));
      expect(metadata.resourceVersion).toBe(untouched.metadata.resourceVersion);
      expect(JSON.stringify(await world.virtual.get('Service', 'default', 'db'))).not.toContain(
        '203.0.113.7',
      );
    });

    test('without --dry-run is a usage error', async ({ expect }) => {
      await using world = await newWorld();
      const daemon = await world.spawnDaemon({ args: ['--once'] });
      expect(await daemon.exited).toEqual({ code: 2, signal: null });
    });
  });
}

/** One copy that is up to date, one that is not, one without its original, one that is no longer synced, and an original without a copy. */
async function preparePairs(world: World): Promise<void> {
  const before = await world.startSync();
  for (const name of ['changed', 'deleted', 'gated', 'same']) await world.createVirtual(`default/${name}`);
  for (const name of ['changed', 'deleted', 'gated', 'same']) await world.whenCopied(`default/${name}`);
  await before.stop();
  await world.createVirtual('default/new');
  await world.virtual.create('Service', service('default/gated', { app: 'gated' }));
  await world.deleteVirtual('default/deleted');
  await world.mergeVirtual('default/changed', { metadata: { labels: { a: '1' } } });
}

function keyOnHost(world: World, name: string): string {
  return world.hostKey(`default/${name}`).join('/');
}

/** Whether the request changes the cluster: a write without dryRun. */
function isStored({ method, path, body }: ProxiedRequest): boolean {
  if (method === 'GET' || path.includes('selfsubject')) return false;
  // kube-apiserver reads the options of a DELETE with a body from the body alone.
  if (method !== 'DELETE' && path.includes('dryRun=All')) return false;
  const { dryRun = [] } = (body.length > 0 ? JSON.parse(body.toString('utf8')) : {}) as { dryRun?: string[] };
  return !dryRun.includes('All');
}
