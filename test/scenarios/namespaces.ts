/** The host namespaces of copies: mappings, missing namespaces, and the multi-namespace mode. */

import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import { MARKER } from './expected-copy.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { capturedRun } from '../cli/captured-run.ts';
import { eventually } from '../support/eventually.ts';
import { endpoints, ipsOf, subset, subsetsOf } from './objects.ts';
import { named, referencePatches, secret } from './reference-objects.ts';
import { rewrite } from './reload.ts';
import { plain } from './services.ts';
import { sharedWorld } from './shared-world.ts';
import { pair, type NewWorld, type World } from './world.ts';

const podRef = (name: string, namespace?: string): Record<string, JsonValue> => ({
  kind: 'Pod',
  name,
  ...(namespace === undefined ? {} : { namespace }),
  uid: 'u1',
});

export function namespaceScenarios(newWorld: NewWorld): void {
  describe('with namespace mappings', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, (world) => ({
      config: mappings(world, false),
    }));
    beforeAll(async () => {
      const { world } = shared();
      await prepare(world);
    });

    test('a mapped namespace keeps its names, and the most specific entry applies', async () => {
      const { world } = shared();
      for (const [key, target] of [
        ['team-a/web', 'a'],
        ['dev-one/web', 'dev-one'],
        ['dev-special/web', 'special'],
      ] as const) {
        await world.createVirtual(key, {
          labels: { release: 'stays', [MARKER]: 'nested' },
          subsets: [{ addresses: [{ ip: '10.1.0.1', targetRef: podRef('pod-0', 'team-a') }], ports: [] }],
        });
        const copy = await there(world, target, 'web');
        expect(copy.metadata.labels).toMatchObject({
          release: 'stays',
          [MARKER]: world.vcluster,
          'vcluster.loft.sh/namespace': pair(key)[0],
        });
        expect(copy.metadata.annotations).toMatchObject({
          'vcluster.loft.sh/object-host-name': 'web',
          'vcluster.loft.sh/object-host-namespace': hostNs(world, target),
        });
        expect(subsetsOf(copy)[0]?.addresses?.[0]?.targetRef).toEqual({
          kind: 'Pod',
          name: 'pod-0',
          namespace: hostNs(world, 'a'),
        });
      }
    });

    test('updates, host metadata and deletion work as in single-namespace mode', async () => {
      const { world } = shared();
      await world.createVirtual('team-a/flow');
      await there(world, 'a', 'flow');
      await world.host.merge('Endpoints', [hostNs(world, 'a'), 'flow'], { metadata: { labels: { h: '1' } } });
      await world.whenVirtual('team-a/flow', ({ metadata }) => metadata.labels?.['h'] === '1');
      await world.mergeVirtual('team-a/flow', {
        subsets: [subset('10.1.0.4')],
      });
      await world.host.when(
        'Endpoints',
        [hostNs(world, 'a'), 'flow'],
        (copy) => ipsOf(copy)[0] === '10.1.0.4',
      );
      await world.deleteVirtual('team-a/flow');
      await world.host.whenGone('Endpoints', [hostNs(world, 'a'), 'flow']);
      expect(await world.host.find('Endpoints', hostNs(world, 'a'), 'flow')).toBeUndefined();
    });

    test('an unmapped namespace is synced to the default host namespace', async () => {
      const { world } = shared();
      await world.createVirtual('plain/web');
      expect(await world.whenCopied('plain/web')).toBeDefined();
    });

    test('a foreign host object with the same name is never changed', async () => {
      const { world } = shared();
      const foreign = await world.host.create('Endpoints', endpoints(`${hostNs(world, 'a')}/taken`));
      await world.createVirtual('team-a/taken', { subsets: [subset('10.1.0.9')] });
      await world.whenEvent('team-a/taken', 'NotManaged');
      expect(await world.host.get('Endpoints', hostNs(world, 'a'), 'taken')).toEqual(foreign);
    });
  });

  describe('a mapping that is removed', () => {
    const config = (world: World, ...mapped: string[]): JsonObject => {
      const byName = Object.fromEntries(mapped.map((one) => [`team-${one}`, hostNs(world, one)]));
      return referencePatches({ namespaces: { enabled: true, mappingsOnly: true, mappings: { byName } } });
    };
    const mapBoth = async (world: World): ReturnType<World['startDaemon']> => {
      for (const one of ['a', 'b']) {
        await world.virtualNamespace(`team-${one}`);
        await world.hostNamespaceNamed(hostNs(world, one));
      }
      return await world.startDaemon({ config: config(world, 'a', 'b') });
    };

    test.for(['a restart', 'a reload'])('leaves no copy after %s', async (how, { expect }) => {
      await using world = await newWorld();
      const daemon = await mapBoth(world);
      await world.virtual.create('Secret', secret('team-b/tls', { data: { k: 'djE=' } }));
      await world.virtual.create('Endpoints', named('team-b/web', { secret: 'tls' }));
      await world.createVirtual('team-a/web');
      for (const one of ['a', 'b']) await there(world, one, 'web');
      await world.host.when('Secret', [hostNs(world, 'b'), 'tls']);
      if (how === 'a reload') await rewrite(daemon, (before) => ({ ...before, ...config(world, 'a') }));
      else {
        await daemon.stop();
        await world.startDaemon({ config: config(world, 'a') });
      }
      await world.host.whenGone('Endpoints', [hostNs(world, 'b'), 'web']);
      await world.host.whenGone('Secret', [hostNs(world, 'b'), 'tls']);
      expect(await there(world, 'a', 'web')).toBeDefined();
    });

    test('leaves its copies without the right to list all host namespaces, which the log says once', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const daemon = await mapBoth(world);
      await world.createVirtual('team-b/web');
      await there(world, 'b', 'web');
      await daemon.stop();
      const proxy = await world.proxy('host');
      proxy.behaviour = {
        decide: ({ path }) =>
          path.startsWith('/api/v1/endpoints?')
            ? { kind: 'refuse', status: 403, reason: 'Forbidden' }
            : { kind: 'pass' },
      };
      const kubeconfigs = { host: proxy.path };
      const next = await world.startDaemon({ config: config(world, 'a'), kubeconfigs });
      const message = /^if a mapping is removed, its copies stay/u;
      expect(await next.whenLogged(message)).toMatchObject({
        level: 'info',
        command: 'endpoint-syncer cleanup --unused --config FILE',
      });
      await world.whenIdle(next);
      expect(next.log.filter(({ msg }) => message.test(String(msg)))).toHaveLength(1);
      expect(await there(world, 'b', 'web')).toBeDefined();
    });

    test('is cleaned up by hand too; what may be of another virtual cluster is only named', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const daemon = await mapBoth(world);
      await world.createVirtual('team-b/web');
      const copy = await there(world, 'b', 'web');
      await daemon.stop();
      const other = await world.host.create('Endpoints', ofAnotherCluster(copy));
      const file = world.writeConfig(world.configuration({ config: config(world, 'a') }, 0));
      const dryRun = await world.startDaemon({ config: config(world, 'a'), args: ['--dry-run'] });
      await world.whenIdle(dryRun);
      expect(dryRun.log.some(({ msg }) => msg === 'copies deleted')).toBe(false);
      expect(await there(world, 'b', 'web')).toBeDefined();
      await dryRun.stop();
      const { out, err } = await capturedRun(['cleanup', '--config', file, '--unused', '--yes']);
      expect(out).toBe(`deleted Endpoints "${hostNs(world, 'b')}/web" in the host cluster\n`);
      expect(err).toContain(
        `left Endpoints "${hostNs(world, 'b')}/other" in the host cluster: its namespace is not mapped`,
      );
      const next = await world.startDaemon({ config: config(world, 'a') });
      expect(await next.whenLogged(/namespaces that are not mapped/u)).toMatchObject({
        level: 'warn',
        kind: 'Endpoints',
        copies: 1,
        namespaces: hostNs(world, 'b'),
      });
      await world.whenIdle(next);
      expect(next.log.some(({ msg }) => msg === 'copies deleted')).toBe(false);
      expect(await world.host.get('Endpoints', hostNs(world, 'b'), 'other')).toEqual(other);
    });
  });

  describe('with mappingsOnly', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, (world) => ({ config: mappings(world, true) }));

    test('an unmapped namespace is refused with an Event, and the others are synced', async () => {
      const { world } = shared();
      await prepare(world);
      await world.createVirtual('plain/web');
      await world.createVirtual('team-a/web');
      await there(world, 'a', 'web');
      expect(await world.whenEvent('plain/web', 'NamespaceNotMapped')).toContain('plain');
      expect(await world.findCopy('plain/web')).toBeUndefined();
    });
  });

  describe('with a host namespace that is missing', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, (world) => ({ config: mappings(world, false) }));

    test('an Event reports it, and syncing resumes when it is created', async () => {
      const { world } = shared();
      await world.virtualNamespace('team-a');
      await world.virtualNamespace('plain');
      await world.createVirtual('team-a/web');
      await world.createVirtual('plain/web');
      await world.whenCopied('plain/web');
      expect(await world.whenEvent('team-a/web', 'NamespaceNotFound')).toContain(
        `"${hostNs(world, 'a')}" does not exist: create it, or set endpointSyncer.createNamespaces to true`,
      );
      await world.hostNamespaceNamed(hostNs(world, 'a'));
      await there(world, 'a', 'web');
    });
  });

  test('a host namespace that is being deleted is waited for, with its reason, and the copy is created when it exists again', async ({
    expect,
  }) => {
    await using world = await newWorld();
    await world.virtualNamespace('team-a');
    const target = hostNs(world, 'a');
    await world.hostNamespaceNamed(target);
    const held = { metadata: { name: 'held', namespace: target, finalizers: ['example.com/hold'] } };
    await world.host.create('ConfigMap', { apiVersion: 'v1', kind: 'ConfigMap', ...held });
    await world.host.request('DELETE', `/api/v1/namespaces/${target}`);
    await world.host.when(
      'Namespace',
      ['', target],
      ({ metadata }) => metadata.deletionTimestamp !== undefined,
    );
    const config = { ...mappings(world, false), endpointSyncer: { createNamespaces: true } };
    await world.startSync({ config });
    const key = 'team-a/waits';
    await world.createVirtual(key);
    const note = await world.whenEvent(key, 'Terminating');
    expect(note).toContain(
      `The host namespace "${target}" is being deleted, so nothing can be created there.`,
    );
    const file = world.writeConfig(world.configuration({ config }, 0));
    const status = await capturedRun(['status', '--config', file, '-n', 'team-a']);
    expect(status.out).toMatch(/waits .* terminating +Terminating/);
    const explained = await capturedRun(['explain', '--config', file, key]);
    expect(explained.out).toContain(`host namespace "${target}" is being deleted since `);
    const diff = await capturedRun(['diff', '--config', file, key]);
    expect([diff.code, diff.err]).toEqual([2, expect.stringContaining(`failed Endpoints ${key}: ${note}`)]);
    await world.host.merge('ConfigMap', [target, 'held'], { metadata: { finalizers: null } });
    await there(world, 'a', 'waits');
  });

  test('a host namespace that ends takes no virtual object along', async ({ expect }) => {
    await using world = await newWorld();
    await world.virtualNamespace('team-a');
    const target = hostNs(world, 'a');
    await world.hostNamespaceNamed(target);
    const keys = ['first', 'second', 'third'].map((name) => `team-a/${name}`);
    const made: KubeObject[] = [];
    for (const key of keys) {
      made.push(await world.virtual.create('Service', plain(key)), await world.createVirtual(key));
    }
    const settings = { createNamespaces: true, services: 'sync', onHostDelete: 'deleteVirtual' };
    const daemon = await world.startSync({ config: { ...mappings(world, false), endpointSyncer: settings } });
    const copies = await Promise.all(
      keys.map((key) => world.host.when('Service', [target, pair(key)[1]], () => true)),
    );
    await world.settle(daemon);
    await world.host.request('DELETE', `/api/v1/namespaces/${target}`);
    for (const { metadata } of copies)
      await world.host.when('Service', [target, metadata.name], (copy) => copy.metadata.uid !== metadata.uid);
    await world.settle(daemon);
    const found = await Promise.all(
      keys.flatMap((key) => [
        world.virtual.find('Service', ...pair(key)),
        world.virtual.find('Endpoints', ...pair(key)),
      ]),
    );
    expect(found.map((one) => one?.metadata.uid)).toEqual(made.map(({ metadata }) => metadata.uid));
  });

  test.for([
    ['its RoleBinding', 403, 'Forbidden'],
    ['its ServiceAccount', 401, 'Unauthorized'],
  ] as const)(
    'a host namespace that ends with %s takes no virtual object along',
    async ([, status, reason], { expect }) => {
      await using world = await newWorld();
      const proxy = await world.proxy('host');
      await world.virtualNamespace('team-a');
      const target = hostNs(world, 'a');
      await world.hostNamespaceNamed(target);
      const made = await world.virtual.create('Service', plain('team-a/web'));
      await world.createVirtual('team-a/web');
      const settings = { services: 'sync', onHostDelete: 'deleteVirtual' };
      const daemon = await world.startSync({
        config: { ...mappings(world, false), endpointSyncer: settings },
        kubeconfigs: { host: proxy.path },
      });
      const copy = await world.host.when('Service', [target, 'web'], () => true);
      await world.settle(daemon);
      const refused: string[] = [];
      proxy.behaviour = {
        decide: ({ method, path }) => {
          if (method !== 'POST' || !path.startsWith(`/api/v1/namespaces/${target}/`)) return { kind: 'pass' };
          refused.push(path);
          return { kind: 'refuse', status, reason };
        },
      };
      await world.host.delete('Service', target, 'web');
      // Not only whether it could be created was asked.
      await eventually(
        () => refused,
        (paths) => paths.some((path) => path.includes('/services') && !path.includes('dryRun')),
      );
      expect((await world.virtual.get('Service', 'team-a', 'web')).metadata.uid).toBe(made.metadata.uid);
      proxy.behaviour = {};
      await world.host.when('Service', [target, 'web'], ({ metadata }) => metadata.uid !== copy.metadata.uid);
      await world.settle(daemon);
      expect((await world.virtual.get('Service', 'team-a', 'web')).metadata.uid).toBe(made.metadata.uid);
    },
  );

  describe('with createNamespaces', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, (world) => ({
      config: { ...mappings(world, false), endpointSyncer: { createNamespaces: true } },
    }));

    test('a missing host namespace is created', async () => {
      const { world } = shared();
      await world.virtualNamespace('team-a');
      world.claimHostNamespace(hostNs(world, 'a'));
      await world.createVirtual('team-a/web');
      await there(world, 'a', 'web');
      const namespace = await world.host.get('Namespace', '', hostNs(world, 'a'));
      expect(namespace.metadata.labels).toMatchObject({ [MARKER]: world.vcluster });
      expect(namespace.metadata.annotations).toEqual({ 'endpoint-syncer/virtual-namespace': 'team-a' });
      const file = world.writeConfig(world.configuration({}, 0));
      const { err } = await capturedRun(['cleanup', '--config', file, '--dry-run']);
      expect(err).toContain(
        `left Namespace "${hostNs(world, 'a')}" in the host cluster: createNamespaces made it for a virtual cluster of this name; if nothing else uses it, run kubectl delete namespace ${hostNs(world, 'a')}`,
      );
    });
  });

  describe('with the multi-namespace mode of vCluster 0.25', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, () => ({
      config: { experimental: { multiNamespaceMode: { enabled: true } } },
    }));

    test('every virtual namespace has its hashed host namespace', async () => {
      const { world } = shared();
      await world.virtualNamespace('team-a');
      const target = legacyNamespace(world, 'team-a');
      await world.hostNamespaceNamed(target);
      await world.createVirtual('team-a/web', {
        subsets: [{ addresses: [{ ip: '10.1.0.1', targetRef: podRef('web-0') }] }],
      });
      const copy = await world.host.when('Endpoints', [target, 'web']);
      expect(subsetsOf(copy)[0]?.addresses?.[0]?.targetRef).toEqual({
        kind: 'Pod',
        name: 'web-0',
        namespace: target,
      });
      expect(copy.metadata.labels?.[MARKER]).toBe(world.vcluster);
      await world.deleteVirtual('team-a/web');
      await world.host.whenGone('Endpoints', [target, 'web']);
    });
  });
}

function mappings(world: World, mappingsOnly: boolean): Record<string, JsonValue> {
  const byName = {
    'team-a': hostNs(world, 'a'),
    'dev-*': `${hostNs(world, '')}*`,
    'dev-special': hostNs(world, 'special'),
    'dev-o*': `${hostNs(world, 'dev-o')}*`,
  };
  return { sync: { toHost: { namespaces: { enabled: true, mappingsOnly, mappings: { byName } } } } };
}

/** As the copy of another virtual cluster of the same name. */
function ofAnotherCluster({ metadata, ...content }: KubeObject): KubeObject {
  const { namespace = '', labels, annotations } = metadata;
  const own = {
    'vcluster.loft.sh/object-name': 'other',
    'vcluster.loft.sh/object-uid': 'another-uid',
    'vcluster.loft.sh/object-host-name': 'other',
  };
  return {
    ...content,
    metadata: {
      name: 'other',
      namespace,
      ...(labels && { labels }),
      annotations: { ...annotations, ...own },
    },
  };
}

function hostNs(world: World, name: string): string {
  return `${world.hostNamespace}-${name}`;
}

async function prepare(world: World): Promise<void> {
  for (const name of ['team-a', 'dev-one', 'dev-special', 'plain']) await world.virtualNamespace(name);
  for (const name of ['a', 'dev-one', 'special']) await world.hostNamespaceNamed(hostNs(world, name));
}

function there(world: World, target: string, name: string): ReturnType<World['getCopy']> {
  return world.host.when('Endpoints', [hostNs(world, target), name]);
}

function legacyNamespace(world: World, namespace: string): string {
  const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8);
  return `vcluster-${hash(namespace)}-${hash(`${world.hostNamespace}x${world.vcluster}`)}`;
}
