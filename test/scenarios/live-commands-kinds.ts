/** The live commands with EndpointSlices and Services: the same results as for Endpoints, and a complete cleanup. */

import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { JsonObject } from '../../src/base/json.ts';
import { capturedRun, type CapturedRun } from '../cli/captured-run.ts';
import { slice } from './endpoint-slices.ts';
import { sliceOfVcluster } from './hand-over.ts';
import { whenNoDiff } from './live-commands.ts';
import { eventually } from '../support/eventually.ts';
import { publishedHash } from './reload.ts';
import { plain, whenService } from './services.ts';
import { sharedWorld } from './shared-world.ts';
import { pair, type NewWorld, type World } from './world.ts';

const NO_SLICES: JsonObject = { sync: { toHost: { endpointSlices: { enabled: false } } } };
const KINDS = ['Endpoints', 'EndpointSlice', 'Service'] as const;
const CONFIG: JsonObject = {
  sync: {
    toHost: {
      endpointSlices: {
        enabled: true,
        patches: [
          {
            path: 'metadata.annotations.owner',
            expression: '"team-" + value',
            reverseExpression: 'value.replace(/^team-/, "")',
          },
          { path: 'metadata.annotations.secret', reference: { apiVersion: 'v1', kind: 'Secret' } },
        ],
      },
      services: {
        patches: [
          { path: 'spec.ports[*].port', expression: 'value + 1000', reverseExpression: 'value - 1000' },
        ],
      },
    },
  },
  endpointSyncer: { services: 'sync' },
};

/** {@link CONFIG} with these settings below `sync.toHost`. */
function mergedWith(toHost: JsonObject): JsonObject {
  const { sync } = CONFIG as { sync: { toHost: JsonObject } };
  return { ...CONFIG, sync: { toHost: { ...sync.toHost, ...toHost } } };
}

async function run(world: World, args: readonly string[], config: JsonObject = CONFIG): Promise<CapturedRun> {
  const path = world.writeConfig(world.configuration({ config }, 0));
  const [name = '', ...rest] = args;
  return capturedRun([name, '--config', path, ...rest]);
}

/** A Service with Endpoints and a slice of an operator, and a Secret that the slice references. */
async function createDatabase(world: World, namespace: string): Promise<void> {
  await world.virtual.create('Secret', { metadata: { namespace, name: 'tls' }, data: { k: 'dg==' } });
  await world.virtual.create('Service', plain(`${namespace}/db`, { spec: { type: 'LoadBalancer' } }));
  await world.createVirtual(`${namespace}/db`);
  const annotations = { owner: 'shop', secret: 'tls' };
  await world.virtual.create('EndpointSlice', slice(`${namespace}/db-extra`, 'db', { annotations }));
}

/** Copies in the host namespace, as kind and name; without what the host's own controllers created, and what `settle` did. */
async function copiesOf(world: World): Promise<string[]> {
  const found = await Promise.all(
    [...KINDS, 'Secret' as const].map(async (kind) =>
      (await world.host.list(kind, world.hostNamespace))
        .filter(({ metadata }) => {
          const named = metadata.annotations?.['vcluster.loft.sh/object-kind'] ?? '';
          const isOther = metadata['generateName'] !== undefined || metadata.name.startsWith('fence-');
          return named.endsWith(`Kind=${kind}`) && !isOther;
        })
        .map(({ metadata }) => `${kind} ${metadata.name}`),
    ),
  );
  return found.flat();
}

export function liveCommandKindScenarios(newWorld: NewWorld): void {
  describe('live commands with every kind', () => {
    const shared = sharedWorld(newWorld, () => ({ config: CONFIG }));

    test('diff is empty once the daemon is idle', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      await createDatabase(world, ns);
      await whenService(world, `${ns}/db`);
      await world.settle(daemon);
      const quiet = await whenNoDiff(world, CONFIG);
      expect(quiet).toMatchObject({ out: '', err: '' });
      const unknown = await run(world, ['diff', '-k', 'Service', `${ns}/db-extra`]);
      expect(unknown).toMatchObject({
        code: 2,
        err: `error: Service "${ns}/db-extra" exists in neither cluster\n`,
      });
    });

    test('diff shows the patched copy of a Service, and its reverse on the virtual one', async () => {
      await using world = await newWorld();
      const key = 'default/db';
      await createDatabase(world, 'default');
      const planned = await run(world, ['diff', '-k', 'Service', key]);
      expect(planned).toMatchObject({ code: 1, err: '' });
      expect(planned.out).toMatch(/^\+.*port: 1080$/mu);
      const daemon = await world.startSync({ config: CONFIG });
      const copy = await whenService(world, key);
      await world.whenIdle(daemon);
      await daemon.stop();
      const { ports } = copy['spec'] as { ports: JsonObject[] }; // a Service
      const [port] = ports;
      await world.host.merge('Service', world.hostKey(key), { spec: { ports: [{ ...port, port: 1090 }] } });
      const back = await run(world, ['diff', '-k', 'Service', key]);
      expect(back.out).toMatch(/^-.*port: 80$/mu);
      expect(back.out).toMatch(/^\+.*port: 90$/mu);
    });

    test('status has a row for each kind, and can show one kind', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      await createDatabase(world, ns);
      await world.virtual.create('Service', plain(`${ns}/pods`, { spec: { selector: { app: 'x' } } }));
      await whenService(world, `${ns}/db`);
      await world.settle(daemon);
      await whenNoDiff(world, CONFIG);
      const { out } = await run(world, ['status', '-n', ns, '-o', 'json']);
      const rows = JSON.parse(out) as {
        kind: string;
        virtual: { name: string };
        state: string;
        reason: string;
      }[];
      expect(
        rows.map(({ kind, virtual, state, reason }) => [kind, virtual.name, state, reason].join(' ').trim()),
      ).toEqual([
        'Endpoints db synced',
        'EndpointSlice db-extra synced',
        'Service db synced',
        'Service pods skipped selects Pods',
        'Secret tls synced',
      ]);
      expect((await run(world, ['status', '-n', ns, '-o', 'name'])).out.split('\n')).toEqual([
        'endpoints/db',
        'endpointslice.discovery.k8s.io/db-extra',
        'service/db',
        'service/pods',
        'secret/tls',
        '',
      ]);
      const names = await run(world, [
        'status',
        '-n',
        ns,
        '-k',
        'services',
        '-o',
        'jsonpath={[*].virtual.name}',
      ]);
      expect(names.out.trim().split(' ')).toEqual(['db', 'pods']);
    });

    test('explain covers each kind, by virtual name and by host name', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      await createDatabase(world, ns);
      await whenService(world, `${ns}/db`);
      await world.settle(daemon);
      await whenNoDiff(world, CONFIG);
      const explain = async (...args: string[]): Promise<string> =>
        (await run(world, ['explain', ...args])).out.split('\n')[0] ?? '';
      const host = (key: string): string => `"${world.hostKey(key).join('/')}"`;
      const [db, extra] = [`${ns}/db`, `${ns}/db-extra`];
      expect(await explain(db)).toBe(`Endpoints "${db}" is synced to ${host(db)}.`);
      expect(await explain(db, '-k', 'Service')).toBe(`Service "${db}" is synced to ${host(db)}.`);
      expect(await explain(extra)).toBe(`EndpointSlice "${extra}" is synced to ${host(extra)}.`);
      expect(await explain('--host', world.hostName(extra))).toBe(
        `EndpointSlice "${extra}" is synced to ${host(extra)}.`,
      );
      expect(parse((await run(world, ['explain', extra, '-o', 'yaml'])).out)).toMatchObject({
        kind: 'EndpointSlice',
        virtual: { namespace: ns, name: 'db-extra' },
        state: 'synced',
      });
      expect((await run(world, ['explain', extra])).out).toMatch(
        /^patches\[0\] +metadata\.annotations\.owner: "shop" -> "team-shop"$/mu,
      );
      expect((await run(world, ['explain', db, '-k', 'Service'])).out).toMatch(
        /^patches\[0\] +spec\.ports\.0\.port: 80 -> 1080$/mu,
      );
    });
  });

  describe('addresses of Services on the host', () => {
    test('are shown by explain, and by status as JSON and wide', async () => {
      await using world = await newWorld();
      const daemon = await world.startSync({ config: CONFIG });
      const ns = 'default';
      await createDatabase(world, ns);
      const spec = { type: 'ExternalName', externalName: 'db.example.com', ports: undefined };
      await world.virtual.create('Service', plain(`${ns}/alias`, { spec }));
      await whenService(world, `${ns}/alias`);
      const created = await whenService(world, `${ns}/db`);
      if (world.clusters.kind === 'embedded') {
        // Nothing is allocated there.
        const { ports } = created['spec'] as { ports: JsonObject[] }; // a Service
        await world.host.merge('Service', world.hostKey(`${ns}/db`), {
          spec: { clusterIP: '10.0.0.77', ports: [{ ...ports[0], nodePort: 30_777 }] },
        });
      }
      const ingress = [{ ip: '203.0.113.7' }];
      await world.host.mergeStatus('Service', world.hostKey(`${ns}/db`), { loadBalancer: { ingress } });
      await world.settle(daemon);
      await whenNoDiff(world, CONFIG);
      const copy = await world.host.get('Service', ...world.hostKey(`${ns}/db`));
      const { clusterIP, ports } = copy['spec'] as { clusterIP: string; ports: JsonObject[] }; // a Service
      const nodePort = Number(ports[0]?.['nodePort']);
      const explained = await run(world, ['explain', `${ns}/db`, '-k', 'Service']);
      expect(explained.out).toContain(`${clusterIP}, 203.0.113.7, ports 1080:${nodePort}/TCP\n`);
      const { out } = await run(world, ['explain', `${ns}/db`, '-k', 'Service', '-o', 'json']);
      const address = { addresses: [clusterIP, '203.0.113.7'], ports: [`1080:${nodePort}/TCP`] };
      expect(JSON.parse(out)).toMatchObject(address);
      const listed = await run(world, ['status', '-n', ns, '-k', 'Service', '-o', 'json']);
      const rows = JSON.parse(listed.out) as JsonObject[];
      // Without that of the API server, which has no copy.
      const shown = rows.flatMap(({ addresses }) => (addresses === undefined ? [] : [addresses]));
      expect(shown).toEqual([['db.example.com'], address.addresses]);
      const wide = await run(world, ['status', '-n', ns, '-o', 'wide']);
      const rowOf = (kind: string): string =>
        wide.out.split('\n').find((line) => line.startsWith(kind)) ?? '';
      expect(wide.out).toMatch(/^KIND .* ADDRESS +PORTS +WHY/u);
      expect(wide.out).toContain(` ${address.addresses.join(',')} `);
      expect(rowOf('Endpoints')).toMatch(/ - +- +Endpoints "default\/db" is synced/u);
      expect((await run(world, ['status', '-n', ns])).out).not.toContain('ADDRESS');
    });
  });

  describe('cleanup with every kind', () => {
    test('and diff names the copies, of any syncer, that the configuration no longer updates', async () => {
      await using world = await newWorld();
      const key = 'default/db-extra';
      await world.virtual.create('EndpointSlice', slice(key, 'db'));
      const daemon = await world.startSync();
      await world.host.when('EndpointSlice', world.hostKey(key));
      await daemon.stop();
      for (const one of ['default/a', 'default/b'])
        await world.host.create('EndpointSlice', sliceOfVcluster(world, one));
      const { code, err } = await run(world, ['diff'], NO_SLICES);
      expect(code).toBe(0);
      expect(err.split('\n')).toEqual([
        'note: this configuration does not update 1 EndpointSlice copy of this program on the host; "endpoint-syncer cleanup --unused" removes what is not used',
        'note: this configuration does not update 2 EndpointSlice copies of another syncer on the host; unless vCluster does, set sync.toHost.endpointSlices.enabled to true',
        '',
      ]);
      expect((await run(world, ['diff', '-k', 'Endpoints'], NO_SLICES)).err).toBe('');
      await world.virtual.create('EndpointSlice', slice('default/a', 'db'));
      await world.virtual.create('EndpointSlice', slice('default/b', 'db'));
      expect(await run(world, ['diff', '--show-bookkeeping'], {})).toMatchObject({ code: 1, err: '' });
    });

    test('warns about kinds that it has no right to list, and fails if such a kind is synced', async () => {
      await using world = await newWorld();
      const rule = { apiGroups: [''], verbs: ['get', 'list'], namespace: world.hostNamespace };
      const kubeconfig = await world.clusters.userKubeconfig('host', [
        { ...rule, resources: ['endpoints', 'services'] },
      ]);
      const path = world.file('limited.kubeconfig', kubeconfig);
      const host = { kubeconfig: path, namespace: world.hostNamespace };
      const listed = await run(world, ['cleanup', '--dry-run'], { ...NO_SLICES, endpointSyncer: { host } });
      expect(listed.code).toBe(0);
      expect(listed.err).toMatch(
        /^warning: copies may remain, because they cannot be listed: EndpointSlice: the host cluster: /mu,
      );
      const config = { ...CONFIG, endpointSyncer: { services: 'sync', host } };
      expect(await run(world, ['cleanup', '--dry-run'], config)).toMatchObject({ code: 1, out: '' });
    });

    test('deletes exactly the copies of all kinds, including kinds that are no longer synced', async () => {
      await using world = await newWorld();
      await createDatabase(world, 'default');
      const daemon = await world.startSync({ config: CONFIG });
      await world.host.create('Service', plain(`${world.hostNamespace}/foreign`));
      await world.host.create('EndpointSlice', slice(`${world.hostNamespace}/foreign`, 'foreign'));
      await whenService(world, 'default/db');
      await world.whenCopy('default/db');
      await world.host.when('EndpointSlice', world.hostKey('default/db-extra'));
      await world.host.mergeStatus('Service', world.hostKey('default/db'), {
        loadBalancer: { ingress: [{ ip: '203.0.113.7' }] },
      });
      await world.virtual.when('Service', ['default', 'db'], (one) =>
        JSON.stringify(one).includes('203.0.113.7'),
      );
      await whenNoDiff(world, CONFIG);
      await publishedHash(world);
      await daemon.stop();
      expect((await copiesOf(world)).map((copy) => copy.split(' ')[0])).toEqual([...KINDS, 'Secret']);
      // An earlier configuration had them synced; this one syncs nothing but Endpoints.
      const later: JsonObject = NO_SLICES;
      const listed = await run(world, ['cleanup', '--dry-run', '-o', 'json'], later);
      const rows = JSON.parse(listed.out) as { kind: string; of: unknown }[];
      expect(rows.map(({ kind }) => kind).toSorted()).toEqual([
        'EndpointSlice',
        'Endpoints',
        'Lease',
        'Secret',
        'Service',
      ]);
      const names = await run(world, ['cleanup', '--dry-run', '-o', 'name'], later);
      expect(names.out.trim().split('\n').toSorted()).toEqual([
        `endpoints/${world.hostName('default/db')}`,
        `endpointslice.discovery.k8s.io/${world.hostName('default/db-extra')}`,
        expect.stringMatching(/^lease\.coordination\.k8s\.io\/endpoint-syncer-/u),
        expect.stringMatching(/^secret\/\w+$/u),
        `service/${world.hostName('default/db')}`,
      ]);
      const done = await run(world, ['cleanup', '--yes'], later);
      expect(done.code).toBe(0);
      expect(done.out).toContain('cleared the status of Service "default/db" in the virtual cluster\n');
      expect(JSON.stringify(await world.virtual.get('Service', 'default', 'db'))).not.toContain(
        '203.0.113.7',
      );
      expect(await copiesOf(world)).toEqual([]);
      expect(await world.host.find('Service', world.hostNamespace, 'foreign')).toBeDefined();
      expect(await world.host.find('EndpointSlice', world.hostNamespace, 'foreign')).toBeDefined();
      for (const kind of KINDS.filter((one) => one !== 'EndpointSlice'))
        expect(await world.virtual.find(kind, ...pair('default/db'))).toBeDefined();
      expect(await world.virtual.find('EndpointSlice', 'default', 'db-extra')).toBeDefined();
      expect(await run(world, ['cleanup', '--yes'], later)).toMatchObject({ code: 0, out: '' });
    });

    test('with --unused deletes what the configuration does not keep, while the daemon runs, and nothing else', async () => {
      await using world = await newWorld();
      await createDatabase(world, 'default');
      await world.createVirtual('default/web', { annotations: { secret: 'kept' } });
      await world.virtual.create('Secret', { metadata: { namespace: 'default', name: 'kept' } });
      const patches = [
        { path: 'metadata.annotations.secret', reference: { apiVersion: 'v1', kind: 'Secret' } },
      ];
      const config = mergedWith({ endpoints: { patches } });
      const daemon = await world.startSync({ config });
      await whenService(world, 'default/db');
      await world.host.when('EndpointSlice', world.hostKey('default/db-extra'));
      await world.settle(daemon);
      await whenNoDiff(world, config);
      await daemon.stop();
      const before = await copiesOf(world);
      expect(before.map((copy) => copy.split(' ')[0])).toEqual([
        'Endpoints',
        'Endpoints',
        'EndpointSlice',
        'Service',
        'Secret',
        'Secret',
      ]);

      const later: JsonObject = {
        sync: { toHost: { endpointSlices: { enabled: false }, endpoints: { patches } } },
      };
      const next = await world.startSync({ config: later });
      await world.settle(next);
      const commands = (): Set<unknown> =>
        new Set(next.log.flatMap(({ command }) => (command === undefined ? [] : [command])));
      await expect.poll(commands).toEqual(new Set(['endpoint-syncer cleanup --unused --config FILE']));
      const done = await run(world, ['cleanup', '--unused', '--yes'], later);
      expect(done).toMatchObject({ code: 0, err: '' });
      expect(await run(world, ['cleanup', '--unused', '--dry-run'], later)).toMatchObject({
        code: 0,
        err: 'nothing to delete\n',
      });
      // An API server before 1.37, or the endpoints controller later, deletes Endpoints with their Service; the daemon creates the copy again.
      const kept = await eventually(
        () => copiesOf(world),
        (copies) => copies.map((copy) => copy.split(' ')[0]).join() === 'Endpoints,Endpoints,Secret',
      );
      await world.settle(next);
      await expect.poll(() => copiesOf(world)).toEqual(kept);
    });

    test('with --kind deletes the copies of that kind', async () => {
      await using world = await newWorld();
      await createDatabase(world, 'default');
      const daemon = await world.startSync({ config: CONFIG });
      await whenService(world, 'default/db');
      await world.host.when('EndpointSlice', world.hostKey('default/db-extra'));
      await world.settle(daemon);
      await whenNoDiff(world, CONFIG);
      await daemon.stop();
      expect(await run(world, ['cleanup', '--kind', 'endpointslices', '--yes'])).toMatchObject({ code: 0 });
      expect((await copiesOf(world)).map((copy) => copy.split(' ')[0])).toEqual([
        'Endpoints',
        'Service',
        'Secret',
      ]);
      expect(await run(world, ['cleanup', '--kind', 'EndpointSlise', '--yes'])).toMatchObject({
        code: 2,
        err: expect.stringContaining(
          'error: --kind: unknown kind "EndpointSlise", did you mean "EndpointSlice"?\n',
        ) as string,
      });
    });
  });
}
