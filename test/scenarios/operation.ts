/** Operation of the daemon: readiness, metrics, signals, dry run, and a start that cannot work. */

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { JsonObject } from '../../src/base/json.ts';
import { capturedRun } from '../cli/captured-run.ts';
import { eventually } from '../support/eventually.ts';
import { freePorts } from '../support/free-ports.ts';
import { kubeconfigText } from '../support/kubeconfig.ts';
import { ipsOf, subset } from './objects.ts';
import { LOWER, patched, UPPER } from './reload.ts';
import type { NewWorld, Rule, World } from './world.ts';
import type { Daemon } from './daemon.ts';

export function operationScenarios(newWorld: NewWorld): void {
  describe('the daemon', () => {
    test('serves /healthz, /readyz and /metrics, and exits with 0 on SIGTERM', async ({ expect }) => {
      await using world = await newWorld();
      await world.createVirtual('default/zero');
      const daemon = await world.startDaemon();
      await world.whenCopied('default/zero');
      expect((await daemon.get('/healthz')).status).toBe(200);
      expect((await daemon.get('/readyz?verbose')).text).toMatch(/virtual[\s\S]*host|host[\s\S]*virtual/);
      await world.createVirtual('default/one');
      await world.whenCopied('default/one');
      const { text } = await daemon.get('/metrics');
      for (const name of [
        'workqueue_depth',
        'workqueue_adds_total',
        'controller_runtime_reconcile_total',
        'controller_runtime_reconcile_errors_total',
        'rest_client_requests_total',
      ])
        expect(text).toContain(name);
      await daemon.whenMetric('leader_election_master_status', (leads) => leads === 1);
      expect(await daemon.whenLogged(/^ready$/u)).toMatchObject({
        level: 'info',
        servers: {
          virtual: expect.stringMatching(/^https?:/u) as string,
          host: expect.stringMatching(/^https?:/u) as string,
        },
        objects: {
          'virtual-endpoints': expect.any(Number) as number,
          'host-endpoints': expect.any(Number) as number,
        },
        seconds: expect.any(Number) as number,
      });
      expect(await daemon.whenLogged(/^first pass complete$/u)).toMatchObject({
        level: 'info',
        created: 1,
        seconds: expect.any(Number) as number,
      });
      await world.createVirtual('default/two');
      const synced = await eventually(
        () => daemon.log.filter(({ msg }) => msg === 'synced').map(({ key }) => key),
        (keys) => keys.includes('default/two'),
      );
      expect(synced).not.toContain('default/zero');
      expect(daemon.stdout).toBe('');
      expect(await daemon.terminate()).toEqual({ code: 0, signal: null });
    });

    test('drains on SIGTERM: started writes are completed, and the next daemon continues', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const daemon = await world.startDaemon();
      const keys = Array.from({ length: 60 }, (_, i) => `default/e-${i}`);
      await Promise.all(keys.map((key) => world.createVirtual(key)));
      expect(await daemon.terminate()).toEqual({ code: 0, signal: null });
      for (const copy of await world.copies()) expect(ipsOf(copy)).toEqual(['10.1.0.1']);
      await world.settle(await world.startSync());
      for (const key of keys) await world.whenCopied(key);
      expect(await world.copies()).toHaveLength(keys.length);
    });

    test('killed at any moment leaves a state from which the next daemon continues', async ({ expect }) => {
      await using world = await newWorld();
      const keys = Array.from({ length: 40 }, (_, i) => `default/k-${i}`);
      await Promise.all(keys.map((key) => world.createVirtual(key)));
      // Between any two writes: test/sim. Here the process is real.
      for (const copies of world.clusters.kind === 'real' ? [1, 13, 30] : [13]) {
        const daemon = await world.spawnDaemon();
        await eventually(
          () => world.copies(),
          (found) => found.length >= copies,
        );
        await daemon.kill();
        await world.mergeVirtual(keys[copies] ?? '', {
          subsets: [subset(`10.5.0.${copies}`)],
        });
      }
      await world.settle(await world.startSync());
      for (const key of keys) await world.whenCopied(key);
      expect(await world.copies()).toHaveLength(keys.length);
    });

    test('sets the configured owner on what it creates', async ({ expect }) => {
      await using world = await newWorld();
      const owner = await world.host.create('ConfigMap', {
        metadata: { namespace: world.hostNamespace, name: 'vc' },
      });
      await world.startSync({
        config: { endpointSyncer: { owner: { apiVersion: 'v1', kind: 'ConfigMap', name: 'vc' } } },
      });
      await world.createVirtual('default/owned');
      const copy = await world.whenCopied('default/owned');
      expect(copy.metadata['ownerReferences']).toEqual([
        expect.objectContaining({ apiVersion: 'v1', kind: 'ConfigMap', name: 'vc', uid: owner.metadata.uid }),
      ]);
    });

    test('corrects an object that another client keeps overwriting with increasing delays, and reports it', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const daemon = await world.startSync();
      await world.createVirtual('default/fought');
      await world.createVirtual('default/peace');
      await world.whenCopied('default/fought');
      for (let round = 0; round < 12; round++) {
        if ((await world.eventsOn('default/fought', 'Contested')).length > 0) break;
        await overwrite(world, 'default/fought', `10.66.0.${round + 1}`);
        await world.settle(daemon);
      }
      const note = await world.whenEvent('default/fought', 'Contested');
      expect(note).toContain('other-tool');
      await world.mergeVirtual('default/peace', {
        metadata: { labels: { still: 'works' } },
      });
      await world.whenCopied('default/peace');
      expect(ipsOf(await world.whenCopied('default/fought'))).toEqual(['10.1.0.1']);
    });

    test('corrects 30 edits of a copy in a row', async ({ expect }) => {
      await using world = await newWorld();
      await world.startSync();
      await world.createVirtual('default/fought');
      await world.whenCopied('default/fought');
      for (let i = 0; i < 30; i++) await overwrite(world, 'default/fought', `10.66.1.${i + 1}`);
      expect(ipsOf(await world.whenCopied('default/fought'))).toEqual(['10.1.0.1']);
    });

    test('writes a change of the virtual object immediately, contested or not', async ({ expect }) => {
      await using world = await newWorld();
      const daemon = await world.startSync();
      const key = 'default/fought';
      await world.createVirtual(key);
      await world.whenCopied(key);
      // Each correction is overwritten once more, so that the next one waits for seconds.
      for (let round = 0; round < 8; round++) {
        await overwrite(world, key, `10.66.2.${round + 1}`);
        await world.whenIdle(daemon);
        if (round >= 4) await world.whenCopied(key);
      }
      await overwrite(world, key, '10.66.2.99');
      await world.whenIdle(daemon);
      await world.mergeVirtual(key, { subsets: [subset('10.1.0.2')] });
      // The correction itself waits for 16 s, which leaves a busy machine time for the write.
      expect(ipsOf(await world.whenCopied(key, { timeoutMs: 14_000 }))).toEqual(['10.1.0.2']);
    });

    test('running twice with different configurations, without a Lease: says so, and status shows it while it lasts', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const first = await world.startSync({ config: patched(UPPER) });
      await world.startSync({ config: patched(LOWER) });
      await world.createVirtual('default/fought', { annotations: { note: 'MiXed' } });
      const note = await world.whenEvent('default/fought', 'Contested');
      expect(note).toMatch(
        /^Another daemon of this program keeps overwriting the host copy; .*leaderElection/u,
      );
      const logged = await eventually(
        () => first.log.find(({ reason }) => reason === 'Contested'),
        (line) => line !== undefined,
      );
      expect(logged).toMatchObject({ level: 'warn', msg: 'not synced', key: 'default/fought' });
      expect(logged?.['note']).toMatch(/^Another daemon of this program .*leaderElection/u);
      for (const patch of [UPPER, LOWER]) {
        const path = world.writeConfig(world.configuration({ config: patched(patch) }, 0));
        const { out } = await capturedRun(['status', '--config', path, '-o', 'json']);
        const rows = JSON.parse(out) as { virtual: { name: string }; state: string }[];
        expect(rows.find(({ virtual }) => virtual.name === 'fought')?.state).toBe('contested');
      }
    });

    test('running twice, as with two leaders: both write the same and then nothing', async ({ expect }) => {
      await using world = await newWorld();
      const daemons = [await world.startSync(), await world.startSync()] as const;
      const keys = Array.from({ length: 20 }, (_, i) => `default/t-${i}`);
      for (const key of keys) await world.createVirtual(key, { annotations: { a: '1' } });
      for (const [i, key] of keys.entries()) {
        await world.mergeVirtual(key, { subsets: [subset(`10.4.0.${i + 1}`)] });
        await world.whenCopy(key);
        await world.mergeCopy(key, { metadata: { annotations: { h: `${i}` } } });
      }
      for (const daemon of daemons) await world.settle(daemon);
      for (const [i, key] of keys.entries()) {
        await world.whenVirtual(key, ({ metadata }) => metadata.annotations?.['h'] === `${i}`);
        await world.whenCopied(key, { anyOrigin: true });
      }
      for (const daemon of daemons) await world.settle(daemon);
      const logs = [await world.log('host'), await world.log('virtual')];
      for (const daemon of daemons) await world.settle(daemon);
      expect(logs.flatMap((log) => world.writesIn(log))).toEqual([]);
      for (const key of keys) await world.deleteVirtual(key);
      for (const key of keys) await world.whenNoCopy(key);
    });
  });

  badStartScenarios(newWorld);
}

function badStartScenarios(newWorld: NewWorld): void {
  describe('a failing start', () => {
    test('because of an invalid file exits with 2 and prints the position', async ({ expect }) => {
      await using world = await newWorld();
      const daemon = await world.spawnDaemon({
        config: {
          sync: {
            toHost: { endpoints: { patches: [{ path: 'subsets[', expression: 'value +' }], enabeld: true } },
          },
        },
      });
      expect(await daemon.exited).toEqual({ code: 2, signal: null });
      expect(daemon.stderr).toMatch(/config-\d+\.yaml:\d+:\d+: /);
      expect(daemon.stderr).toContain('sync.toHost.endpoints.patches[0].path');
      expect(daemon.stderr).toContain('enabeld');
      expect(daemon.stderr).toContain('^');
    });

    test('because of a missing right exits with 1 and names verb, resource, namespace and cluster', async ({
      expect,
    }) => {
      await using world = await newWorld();
      world.expectErrors(/right is missing|cannot start/u);
      const without = (verb: string): Rule[] =>
        leastRights(world).host.map((rule) =>
          rule.resources.includes('endpoints')
            ? { ...rule, verbs: rule.verbs.filter((one) => one !== verb) }
            : rule,
        );
      const host = world.file(
        'few.kubeconfig',
        await world.clusters.userKubeconfig('host', without('delete')),
      );
      const daemon = await world.spawnDaemon({ kubeconfigs: { host } });
      expect(await daemon.exited).toEqual({ code: 1, signal: null });
      const named = daemon.stderr.split('\n').filter((line) => line.includes('delete'));
      expect(named).toHaveLength(1);
      expect(daemon.log.map(({ msg }) => msg)).toEqual(['starting', 'right is missing', 'cannot start']);
      for (const word of ['endpoints', world.hostNamespace, 'host']) expect(named[0]).toContain(word);
      expect(daemon.stderr).not.toMatch(/\bcreate endpoints/);
    });

    test('because slices may not be listed names the right and the setting that needs it, and without the setting it starts', async ({
      expect,
    }) => {
      await using world = await newWorld();
      world.expectErrors(/right is missing|cannot start/u);
      const rules = leastRights(world).virtual.map((rule) =>
        rule.resources.includes('endpointslices')
          ? { ...rule, verbs: rule.verbs.filter((verb) => verb !== 'list') }
          : rule,
      );
      const virtual = world.file('few.kubeconfig', await world.clusters.userKubeconfig('virtual', rules));
      const daemon = await world.spawnDaemon({ kubeconfigs: { virtual } });
      expect(await daemon.exited).toEqual({ code: 1, signal: null });
      expect(daemon.log.flatMap(({ right }) => right ?? [])).toEqual([
        'list endpointslices.discovery.k8s.io in every namespace of the virtual cluster',
      ]);
      expect(daemon.stderr).toContain('or disable what needs it (sync.toHost.endpointSlices.enabled)');
      const config = { sync: { toHost: { endpointSlices: { enabled: false } } } };
      await world.startSync({ kubeconfigs: { virtual }, config });
    });

    test('does not happen with exactly the rights that are documented', async ({ expect }) => {
      await using world = await newWorld();
      const rights = leastRights(world);
      const kubeconfigs = {
        host: world.file('least-host.kubeconfig', await world.clusters.userKubeconfig('host', rights.host)),
        virtual: world.file(
          'least-virtual.kubeconfig',
          await world.clusters.userKubeconfig('virtual', rights.virtual),
        ),
      };
      const daemon = await world.startSync({ kubeconfigs });
      await world.createVirtual('default/modest');
      await world.whenCopied('default/modest');
      await world.whenEvent('default/modest', 'Synced');
      await world.mergeCopy('default/modest', {
        metadata: { labels: { h: '1' } },
      });
      await world.whenVirtual('default/modest', ({ metadata }) => metadata.labels?.['h'] === '1');
      await world.deleteVirtual('default/modest');
      await world.whenNoCopy('default/modest');
      expect(daemon.stderr).not.toMatch(/forbidden/i);
    });

    test('because no server listens is retried and logged, and succeeds once a server listens', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const [port = 0] = await freePorts(1);
      const host = world.file(
        'no-server.kubeconfig',
        kubeconfigText('c', { server: `http://127.0.0.1:${port}` }, { token: 'x' }),
      );
      const daemon = await world.spawnDaemon({ kubeconfigs: { host } });
      await eventually(
        () => daemon.stderr,
        (text) => /host/.test(text) && text.includes(`127.0.0.1:${port}`) && text.includes('ECONNREFUSED'),
        { what: 'a line that names the cluster and its address' },
      );
      expect((await daemon.get('/readyz')).status).toBe(503);
      expect((await daemon.get('/healthz')).status).toBe(200);
      expect(await daemon.terminate()).toEqual({ code: 0, signal: null });
    });

    test('because of an invalid token exits with 1 and names the cluster', async ({ expect }) => {
      await using world = await newWorld();
      world.expectErrors(/cannot start/u);
      const good = parse(readFileSync(world.virtual.kubeconfigPath, 'utf8')) as JsonObject; // tests' kubeconfig
      const virtual = world.file(
        'wrong.kubeconfig',
        JSON.stringify({
          ...good,
          users: [
            { name: (good['users'] as { name: string }[])[0]?.name ?? 'user', user: { token: 'wrong' } },
          ],
        }),
      );
      const daemon = await world.spawnDaemon({ kubeconfigs: { virtual } });
      expect((await daemon.exited).code).toBe(1);
      expect(cannotStart(daemon)).toMatch(/\bvirtual\b/);
      expect(cannotStart(daemon)).toMatch(/401|unauthori[sz]ed|credential/i);
      expect(daemon.stderr).not.toContain('wrong-token');
    });

    test('creates a missing host namespace with createNamespaces', async ({ expect }) => {
      await using world = await newWorld();
      const namespace = `${world.hostNamespace}-created`;
      await world.startSync({ config: { endpointSyncer: { host: { namespace }, createNamespaces: true } } });
      await world.createVirtual('default/first');
      const place: [string, string] = [namespace, world.hostName('default/first')];
      const copy = await world.host.when('Endpoints', place);
      expect(copy?.metadata.namespace).toBe(namespace);
    });

    test('is not caused by a missing host namespace: the log and an Event name it, and syncing resumes when it exists', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const namespace = `${world.hostNamespace}-later`;
      const daemon = await world.startSync({ config: { endpointSyncer: { host: { namespace } } } });
      expect(await daemon.whenLogged(/^host namespace does not exist$/u)).toMatchObject({
        level: 'warn',
        namespace,
      });
      await world.createVirtual('default/nowhere');
      expect(await world.whenEvent('default/nowhere', 'NamespaceNotFound')).toBe(
        `The host namespace "${namespace}" does not exist: create it, correct endpointSyncer.host.namespace, ` +
          'or set endpointSyncer.createNamespaces to true. Syncing resumes automatically.',
      );
      await world.hostNamespaceNamed(namespace);
      const place: [string, string] = [namespace, world.hostName('default/nowhere')];
      expect(await world.host.when('Endpoints', place)).toBeDefined();
    });
  });
}

/** A write of another field manager on the copy of `key`. */
async function overwrite(world: World, key: string, ip: string): Promise<void> {
  const path = `/api/v1/namespaces/${world.hostNamespace}/endpoints/${world.hostName(key)}`;
  const foreign = { subsets: [subset(ip)] };
  await world.host.request(
    'PATCH',
    `${path}?fieldManager=other-tool`,
    foreign,
    'application/merge-patch+json',
  );
}

/** The minimum rights for sync.toHost.endpoints in single-namespace mode. */
export function leastRights({ hostNamespace }: World): Record<'host' | 'virtual', Rule[]> {
  const rule = (namespace: string, group: string, resource: string, ...verbs: string[]): Rule => ({
    namespace,
    apiGroups: [group],
    resources: [resource],
    verbs,
  });
  const [read, slices] = [
    ['get', 'list', 'watch'],
    ['discovery.k8s.io', 'endpointslices'],
  ] as const;
  return {
    host: [
      rule(hostNamespace, '', 'endpoints', ...read, 'create', 'update', 'patch', 'delete'),
      rule(hostNamespace, ...slices, ...read, 'create', 'update', 'patch', 'delete'),
      rule(hostNamespace, '', 'services', ...read),
    ],
    virtual: [
      rule('', '', 'endpoints', ...read, 'update', 'patch'),
      rule('', ...slices, ...read, 'update', 'patch'),
      rule('', '', 'services', ...read),
      rule('', '', 'events', 'create', 'patch'),
      rule('', 'events.k8s.io', 'events', 'create', 'patch'),
    ],
  };
}

/** The reason of a failed start, which is logged exactly once. */
function cannotStart(daemon: Daemon): string {
  const reasons = daemon.log.filter(({ msg }) => msg === 'cannot start').map(({ reason }) => String(reason));
  expect(reasons).toHaveLength(1);
  expect(daemon.stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'))).toEqual([]);
  return reasons[0] ?? '';
}
