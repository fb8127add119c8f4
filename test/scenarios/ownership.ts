/** Ownership of host objects: drift of our copies is corrected, foreign objects are never changed. */

import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import type { Daemon } from './daemon.ts';
import { MARKER } from './expected-copy.ts';
import { eventually } from '../support/eventually.ts';
import { endpoints, ipsOf, service, subset } from './objects.ts';
import { plain } from './services.ts';
import { sharedWorld, type SharedWorld } from './shared-world.ts';
import { pair, type NewWorld, type World } from './world.ts';

const CONTROLLED_BY = 'vcluster.loft.sh/controlled-by';

const OBJECT_NAME = 'vcluster.loft.sh/object-name';
/** What the host's endpoints controller writes since Kubernetes 1.33. */
const BY_CONTROLLER = { 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' };

/** Time until an object is synced that was refused several times, without a retry, which is a minute later. */
const FREED_MAX_MS = 20_000;

export function ownershipScenarios(shared: SharedWorld<Daemon>): void {
  describe('a foreign host object', () => {
    test('is never changed; when it is deleted, the copy is created', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/blocked`;
      const foreign = await putOnHost(world, key, { labels: { owner: 'foreign' } });
      await world.createVirtual(key);
      expect(await world.whenEvent(key, 'NotManaged')).toContain(world.hostName(key));
      await world.mergeVirtual(key, { subsets: [subset('10.1.0.8')] });
      await world.settle(daemon);
      expect(await world.getCopy(key)).toEqual(foreign);
      expect((await world.getVirtual(key)).metadata.labels).toBeUndefined();

      await refuseOften(world, daemon, key);
      await world.deleteCopy(key);
      expect(ipsOf(await world.whenCopied(key, { timeoutMs: FREED_MAX_MS }))).toEqual(['10.1.0.8']);
    });

    test('is kept when the virtual object with the same host name is deleted', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/never-mine`;
      const foreign = await putOnHost(world, key, {});
      await world.createVirtual(key);
      await world.whenEvent(key, 'NotManaged');
      await world.deleteVirtual(key);
      await world.settle(daemon);
      expect(await world.getCopy(key)).toEqual(foreign);
    });

    test('is not changed if the virtual Service has a selector', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/foreign`;
      const foreign = await putOnHost(world, key, {});
      await world.virtual.create('Service', service(key, { app: 'x' }));
      await world.createVirtual(key);
      await world.settle(daemon);
      expect(await world.getCopy(key)).toEqual(foreign);
    });

    test('that another virtual cluster created is not taken over, with or without a Service', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/others`;
      const foreign = await putOnHost(world, key, {
        labels: { [MARKER]: 'another' },
        annotations: { ...world.bookkeeping('Endpoints', key).annotations, [OBJECT_NAME]: 'something-else' },
      });
      await world.virtual.create('Service', service(key));
      await world.createVirtual(key);
      await world.whenEvent(key, 'NotManaged');
      await world.settle(daemon);
      expect(await world.getCopy(key)).toEqual(foreign);
    });

    test('that the endpoints controller created before the Service lost its selector is taken over in place', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/left`;
      const left = await putOnHost(world, key, {
        labels: BY_CONTROLLER,
        annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': '2026-01-01T00:00:00Z' },
        subsets: [subset('10.9.9.9')],
      });
      const log = await world.log('host');
      await world.virtual.create('Service', service(key));
      await world.createVirtual(key);
      const copy = await world.whenCopied(key);
      expect(copy.metadata.uid).toBe(left.metadata.uid);
      await world.settle(daemon);
      expect(log.of(world.hostName(key))).toEqual(['MODIFIED']);
      expect((await world.getVirtual(key)).metadata.annotations).toBeUndefined();
      expect(await world.whenEvent(key, 'TakenOver')).toContain(world.hostName(key));
    });

    test('is not taken over while it is being deleted, and the copy is created when it is gone', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/held`;
      const hostKey = world.hostKey(key);
      await putOnHost(world, key, { labels: BY_CONTROLLER });
      await world.host.merge('Endpoints', hostKey, { metadata: { finalizers: ['example.com/held'] } });
      await world.host.delete('Endpoints', ...hostKey);
      const held = await world.getCopy(key);
      await world.virtual.create('Service', service(key));
      await world.createVirtual(key);
      await world.settle(daemon);
      expect(await world.getCopy(key)).toEqual(held);
      await world.host.merge('Endpoints', hostKey, { metadata: { finalizers: null } });
      const copy = await world.whenCopied(key);
      expect(copy.metadata.uid).not.toBe(held.metadata.uid);
    });

    test('is foreign without proof that the controller created it, and is kept when the virtual object is deleted', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/unproven`;
      const foreign = await putOnHost(world, key, {});
      await world.virtual.create('Service', service(key));
      await world.createVirtual(key);
      await world.whenEvent(key, 'NotManaged');
      await world.settle(daemon);
      expect(await world.getCopy(key)).toEqual(foreign);
      await world.deleteVirtual(key);
      await world.settle(daemon);
      expect(await world.getCopy(key)).toEqual(foreign);
    });

    test('is taken over only when the host Service has lost its selector', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/selected`;
      const hostService = world.hostKey(key);
      await world.host.create('Service', service(hostService.join('/'), { app: 'nothing' }));
      if (isReal(world)) await world.host.when('Endpoints', hostService);
      const left = (await world.findCopy(key)) ?? (await putOnHost(world, key, { labels: BY_CONTROLLER }));
      await world.virtual.create('Service', service(key));
      await world.createVirtual(key);
      await world.settle(daemon);
      expect((await world.getCopy(key)).metadata.annotations ?? {}).not.toHaveProperty(OBJECT_NAME);
      await world.host.merge('Service', hostService, { spec: { selector: null } });
      const copy = await world.whenCopied(key);
      expect(copy.metadata.uid).toBe(left.metadata.uid);
    });

    test('is taken over as soon as the virtual Service appears', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/waits`;
      await putOnHost(world, key, { labels: BY_CONTROLLER });
      await world.createVirtual(key);
      await world.whenEvent(key, 'NotManaged');
      await refuseOften(world, daemon, key);
      await world.virtual.create('Service', service(key));
      expect(await world.whenCopied(key, { timeoutMs: FREED_MAX_MS })).toBeDefined();
    });

    test('with the bookkeeping of a copy under another name is not a copy', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/real`;
      await world.createVirtual(key);
      await world.whenCopied(key);
      const stray = await world.host.create('Endpoints', {
        ...endpoints(`${world.hostNamespace}/stray`),
        metadata: {
          namespace: world.hostNamespace,
          name: 'stray',
          labels: { [MARKER]: world.vcluster },
          annotations: { 'vcluster.loft.sh/object-name': 'gone', 'vcluster.loft.sh/object-namespace': 'x' },
        },
      });
      await world.settle(daemon);
      expect(await world.host.get('Endpoints', world.hostNamespace, 'stray')).toEqual(stray);
    });

    test('with a name that two virtual objects translate to is the copy of the first', async () => {
      const { world, daemon } = shared();
      await world.virtualNamespace('c');
      await world.virtualNamespace('b-x-c');
      const [first, second] = ['c/a-x-b', 'b-x-c/a'];
      expect(world.hostName(first)).toBe(world.hostName(second));
      await world.createVirtual(first);
      await world.whenCopied(first);
      const log = await world.log('host');
      await world.createVirtual(second, { subsets: [subset('10.1.0.66')] });
      const note = await world.whenEvent(second, 'NameConflict');
      expect(note).toContain(first);
      await world.settle(daemon);
      expect(log.of(world.hostName(first))).toEqual([]);
      expect(ipsOf(await world.whenCopied(first))).toEqual(['10.1.0.1']);

      await refuseOften(world, daemon, second);
      await world.deleteVirtual(first);
      expect(ipsOf(await world.whenCopied(second, { timeoutMs: FREED_MAX_MS }))).toEqual(['10.1.0.66']);
    });
  });

  describe('an owned copy', () => {
    test('is corrected when another client changes its subsets', async () => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/drift`;
      await world.createVirtual(key);
      const { metadata } = await world.whenCopied(key);
      await world.mergeCopy(key, { subsets: [subset('10.6.6.6')] });
      await world.whenCopy(key, (copy) => ipsOf(copy)[0] === '10.1.0.1');
      await world.mergeCopy(key, { subsets: null });
      await world.whenCopy(key, (copy) => ipsOf(copy)[0] === '10.1.0.1');
      expect((await world.getCopy(key)).metadata.uid).toBe(metadata.uid);
      expect(ipsOf(await world.getVirtual(key))).toEqual(['10.1.0.1']);
    });

    test('gets its labels back when the host’s controller rewrites them', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/relabelled`;
      await world.createVirtual(key, { labels: { app: 'x' } });
      const copy = await world.whenCopied(key);
      await world.host.update('Endpoints', {
        ...copy,
        metadata: { ...copy.metadata, labels: {} },
      });
      // Its labels are all gone: those that were copied go from the virtual object, the marker comes back.
      await world.whenCopy(key, ({ metadata }) => metadata.labels?.[MARKER] === world.vcluster);
      await world.settle(daemon);
      await world.whenCopied(key);
      expect((await world.getCopy(key)).metadata.uid).toBe(copy.metadata.uid);
    });

    test('is recreated when another client deletes it', async () => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/deleted`;
      await world.createVirtual(key);
      const before = await world.whenCopied(key);
      await world.deleteCopy(key);
      await world.whenCopy(key, ({ metadata }) => metadata.uid !== before.metadata.uid);
      await world.whenCopied(key);
      expect(await world.getVirtual(key)).toBeDefined();
    });

    test('is not changed while the virtual object is controlled by another syncer', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const [labelled, born, named] = [`${ns}/labelled`, `${ns}/born`, `${ns}/named`];
      // The annotation may name this syncer itself.
      await world.createVirtual(named, { annotations: { [CONTROLLED_BY]: 'endpoints' } });
      await world.whenCopied(named);
      await world.createVirtual(labelled);
      await world.createVirtual(born, { annotations: { [CONTROLLED_BY]: 'else' } });
      const copy = await world.whenCopied(labelled);
      await world.mergeVirtual(labelled, {
        metadata: { labels: { [CONTROLLED_BY]: 'other' } },
        subsets: [subset('10.1.0.44')],
      });
      await world.settle(daemon);
      expect(await world.getCopy(labelled)).toEqual(copy);
      expect(await world.findCopy(born)).toBeUndefined();
      await world.mergeVirtual(labelled, {
        metadata: { labels: { [CONTROLLED_BY]: null } },
      });
      await world.mergeVirtual(born, {
        metadata: { annotations: { [CONTROLLED_BY]: null } },
      });
      await world.whenCopied(born);
      expect(ipsOf(await world.whenCopied(labelled))).toEqual(['10.1.0.44']);
    });

    test('is not changed while it is controlled by another syncer, even when the virtual object is deleted', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const [resumes, outlives] = [`${ns}/resumes`, `${ns}/outlives`];
      for (const key of [resumes, outlives]) {
        await world.createVirtual(key);
        await world.whenCopied(key);
        await world.mergeCopy(key, {
          metadata: { annotations: { [CONTROLLED_BY]: 'other' } },
        });
      }
      await world.settle(daemon);
      await world.mergeVirtual(resumes, { subsets: [subset('10.1.0.45')] });
      await world.deleteVirtual(outlives);
      await world.settle(daemon);
      expect(ipsOf(await world.getCopy(resumes))).toEqual(['10.1.0.1']);
      expect(await world.findCopy(outlives)).toBeDefined();
      for (const key of [resumes, outlives])
        await world.mergeCopy(key, {
          metadata: { annotations: { [CONTROLLED_BY]: null } },
        });
      await world.whenCopy(resumes, (copy) => ipsOf(copy)[0] === '10.1.0.45');
      await world.whenNoCopy(outlives);
    });

    test('is kept when a virtual object that requests this is deleted', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/skips`;
      const annotations = { 'vcluster.loft.sh/skip-backsync': 'true' };
      await world.createVirtual(key, { annotations });
      await world.whenCopied(key);
      await world.deleteVirtual(key);
      await world.settle(daemon);
      expect(await world.findCopy(key)).toBeDefined();
    });

    test('of a recreated virtual object belongs to the new object', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/again`;
      await world.createVirtual(key, { annotations: { old: '1' }, labels: { old: '1' } });
      const before = await world.whenCopied(key);
      daemon.signal('SIGSTOP');
      await world.deleteVirtual(key);
      await world.createVirtual(key, { subsets: [subset('10.1.0.77')] });
      daemon.signal('SIGCONT');
      await world.whenCopy(key, (copy) => ipsOf(copy)[0] === '10.1.0.77');
      const after = await world.whenCopied(key);
      expect(after.metadata.annotations).not.toHaveProperty('old');
      expect(before.metadata.name).toBe(after.metadata.name);
      await world.settle(daemon);
      expect((await world.getVirtual(key)).metadata.labels).toBeUndefined();
    });
  });
}

/** What a kube-apiserver answers for an object behind its own proxy of a Service that is gone. */
const OTHERS_404 = {
  kind: 'refuse',
  status: 404,
  reason: 'NotFound',
  message: 'services "gateway" not found',
  details: { name: 'gateway', kind: 'services' },
} as const;

export function onHostDeleteScenarios(newWorld: NewWorld): void {
  test('a deletion that a webhook denies with the 404 of an object of its own is tried again', async ({
    expect,
  }) => {
    await using world = await newWorld();
    const key = 'default/held';
    const proxy = await world.proxy('host');
    const daemon = await world.startSync({ kubeconfigs: { host: proxy.path } });
    await world.createVirtual(key);
    await world.whenCopied(key);
    await world.settle(daemon);
    let denied = 0;
    proxy.behaviour = {
      decide: ({ method, path }) => {
        if (method !== 'DELETE' || !path.includes('/endpoints/') || denied > 1) return { kind: 'pass' };
        denied++;
        const details = { name: 'acme', group: 'example.com', kind: 'Tenant' };
        return { kind: 'refuse', status: 404, reason: 'NotFound', details };
      },
    };
    await world.deleteVirtual(key);
    await world.whenNoCopy(key);
    expect(denied).toBe(2);
  });

  describe('with onHostDelete: deleteVirtual', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, () => ({
      config: { endpointSyncer: { onHostDelete: 'deleteVirtual' } },
    }));

    test('a deletion on the host deletes the virtual object, and the start logs a warning', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/follows`;
      await createHostService(world, key);
      await world.createVirtual(key);
      await world.whenCopied(key);
      await world.deleteCopy(key);
      await world.virtual.whenGone('Endpoints', pair(key));
      await eventually(
        async () => (await world.virtual.list('Event', pair(key)[0])).map(({ reason }) => reason),
        (reasons) => reasons.includes('DeletedWithCopy'),
        { what: 'an Event on the object that does not exist any more' },
      );
      await world.settle(daemon);
      expect(await world.findCopy(key)).toBeUndefined();
      expect(daemon.stderr).toContain('onHostDelete');
    });

    test.for([
      ['without a route', { kind: 'page', status: 404 }],
      ['that names another object', OTHERS_404],
    ] as const)('a proxy %s, which answers 404, deletes nothing', async ([, answer], { expect }) => {
      await using world = await newWorld();
      const key = 'default/unrouted';
      const { proxies, daemon, made, copy } = await copiedThroughProxies(world, key);
      const unrouted: string[] = [];
      proxies.host.behaviour = {
        decide: ({ method, path }) => {
          if (!path.includes(`/endpoints/${world.hostKey(key)[1]}`)) return { kind: 'pass' };
          unrouted.push(method);
          return answer;
        },
      };
      await world.mergeVirtual(key, { metadata: { labels: { changed: 'yes' } } });
      await eventually(
        () => unrouted,
        (methods) => methods.filter((method) => method === 'PUT').length > 1,
      );
      proxies.host.behaviour = {};
      const { metadata } = await world.whenCopied(key);
      await world.settle(daemon);
      expect([metadata.uid, (await world.virtual.get('Endpoints', ...pair(key))).metadata.uid]).toEqual([
        copy.metadata.uid,
        made.metadata.uid,
      ]);
    });

    test('an object that its owner has just opted out stays when its copy is deleted', async ({ expect }) => {
      await using world = await newWorld();
      const key = 'default/released';
      const { proxies, daemon, made } = await copiedThroughProxies(world, key);
      const probes: string[] = [];
      proxies.host.behaviour = {
        decide: ({ method, path }) => {
          if (method === 'POST' && path.includes('dryRun=All')) probes.push(path);
          return { kind: 'pass' };
        },
      };
      const release = proxies.virtual.holdWatches('/endpoints');
      await world.mergeVirtual(key, {
        metadata: { annotations: { 'vcluster.loft.sh/controlled-by': 'other' } },
      });
      await world.deleteCopy(key);
      await eventually(
        () => probes.length,
        (count) => count > 0,
      );
      release();
      await world.settle(daemon);
      expect((await world.virtual.find('Endpoints', ...pair(key)))?.metadata.uid).toBe(made.metadata.uid);
    });

    test('a copy that is there again before the question for its namespace was replaced, not deleted', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const key = 'default/replaced';
      const { proxies, daemon, made, copy } = await copiedThroughProxies(world, key);
      const { uid: _uid, resourceVersion: _version, ...metadata } = copy.metadata;
      proxies.host.behaviour = {
        decide: async ({ method, path }) => {
          if (method === 'POST' && path.includes('/endpoints?') && path.includes('dryRun=All'))
            await world.host.create('Endpoints', { ...copy, metadata });
          return { kind: 'pass' };
        },
      };
      await world.deleteCopy(key);
      await world.whenCopy(key, ({ metadata: { uid } }) => uid !== copy.metadata.uid);
      await world.settle(daemon);
      expect((await world.virtual.get('Endpoints', ...pair(key))).metadata.uid).toBe(made.metadata.uid);
    });

    test('a copy without a host Service is created again, because the controllers of a host delete such Endpoints', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const [alone, selected] = [`${ns}/alone`, `${ns}/selected`];
      for (const key of [alone, selected]) {
        await world.createVirtual(key);
        const before = await world.whenCopied(key);
        if (key === selected)
          await world.host.create('Service', service(world.hostKey(key).join('/'), { app: 'nothing' }));
        await world.settle(daemon);
        await world.deleteCopy(key).catch(() => undefined);
        if (key === alone) await world.whenCopy(key, ({ metadata }) => metadata.uid !== before.metadata.uid);
        await world.settle(daemon);
        expect(await world.virtual.find('Endpoints', ...pair(key))).toBeDefined();
      }
    });

    test('a copy that had no Service a moment ago is created again, because those controllers may be behind', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/late`;
      await world.createVirtual(key);
      const first = await world.whenCopied(key);
      await world.settle(daemon);
      await world.deleteCopy(key);
      const second = await world.whenCopy(key, ({ metadata }) => metadata.uid !== first.metadata.uid);
      await createHostService(world, key);
      await world.settle(daemon);
      await world.deleteCopy(key).catch(() => undefined);
      await world.whenCopy(key, ({ metadata }) => metadata.uid !== second.metadata.uid);
      await world.settle(daemon);
      expect(await world.virtual.find('Endpoints', ...pair(key))).toBeDefined();
    });

    test('a copy that this program deletes takes no virtual object along that is created meanwhile', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/renewed`;
      await createHostService(world, key);
      await world.createVirtual(key);
      await world.whenCopied(key);
      await world.mergeCopy(key, { metadata: { finalizers: ['example.com/held'] } });
      await world.settle(daemon);
      await world.deleteVirtual(key);
      const held = await world.whenCopy(key, ({ metadata }) => metadata.deletionTimestamp !== undefined);
      await world.createVirtual(key, { subsets: [subset('10.1.0.4')] });
      await world.whenCopy(key, (copy) => ipsOf(copy)[0] === '10.1.0.4');
      await world.settle(daemon);
      await world.mergeCopy(key, { metadata: { finalizers: null } });
      await world.whenCopy(key, ({ metadata }) => metadata.uid !== held.metadata.uid);
      await world.settle(daemon);
      expect(ipsOf(await world.getVirtual(key))).toEqual(['10.1.0.4']);
      await world.whenCopied(key);
    });

    test.each(['virtual object', 'copy'])(
      'a deletion while the %s is controlled by another syncer takes no virtual object along once that ends',
      async (side) => {
        const { world, daemon, namespace } = shared();
        const key = `${await namespace()}/released`;
        await createHostService(world, key);
        await world.createVirtual(key);
        const before = await world.whenCopied(key);
        const released = { metadata: { annotations: { [CONTROLLED_BY]: 'other' } } };
        await (side === 'copy' ? world.mergeCopy(key, released) : world.mergeVirtual(key, released));
        await world.settle(daemon);
        await world.deleteCopy(key);
        if (side === 'virtual object') {
          await world.settle(daemon);
          await world.mergeVirtual(key, { metadata: { annotations: { [CONTROLLED_BY]: null } } });
        }
        await world.whenCopy(key, ({ metadata }) => metadata.uid !== before.metadata.uid);
        await world.settle(daemon);
        expect(await world.virtual.find('Endpoints', ...pair(key))).toBeDefined();
      },
    );

    test('a deletion that the daemon learns from a failed write deletes the virtual object, too', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const host = await world.proxy('host');
      const daemon = await world.startSync({
        config: { endpointSyncer: { onHostDelete: 'deleteVirtual' } },
        kubeconfigs: { host: host.path },
      });
      const key = 'default/follows';
      await createHostService(world, key);
      await world.createVirtual(key);
      await world.whenCopied(key);
      await world.settle(daemon);
      const release = host.holdWatches();
      await world.deleteCopy(key);
      await world.mergeVirtual(key, { subsets: [subset('10.1.0.3')] });
      await world.virtual.whenGone('Endpoints', pair(key));
      release();
      await world.settle(daemon);
      expect(await world.findCopy(key)).toBeUndefined();
    });

    test('a copy that the daemon deletes to create it again takes no virtual object along, also if the event comes before the response', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const [virtual, host] = [await world.proxy('virtual'), await world.proxy('host')];
      const daemon = await world.startSync({
        config: { endpointSyncer: { onHostDelete: 'deleteVirtual', services: 'sync' } },
        kubeconfigs: { virtual: virtual.path, host: host.path },
      });
      const [key, other] = ['default/web', 'default/other'];
      for (const one of [key, other]) {
        await world.virtual.create('Service', plain(one));
        await world.createVirtual(one);
        await world.host.when('Service', world.hostKey(one));
      }
      await world.settle(daemon);
      const [first, copy] = [
        await world.virtual.get('Service', ...pair(key)),
        await world.host.get('Service', ...world.hostKey(key)),
      ];
      const change = (spec: JsonObject): Promise<unknown> =>
        world.virtual.merge('Service', pair(key), { spec });
      host.behaviour = {
        // Until a later event of the same watch has arrived.
        async afterWrite({ method, path }) {
          if (method !== 'DELETE' || !path.includes(`/services/${world.hostName(key)}`)) return;
          await world.host.merge('Service', world.hostKey(other), { metadata: { labels: { later: 'x' } } });
          await world.virtual.when(
            'Service',
            pair(other),
            ({ metadata: { labels } }) => labels?.['later'] === 'x',
          );
        },
      };
      // The state between the two, of which a copy can be made in place, is not seen.
      virtual.behaviour = { watchLine: (line) => (line.includes('"ExternalName"') ? [] : [line]) };
      await change({
        type: 'ExternalName',
        externalName: 'db.example.com',
        clusterIP: null,
        clusterIPs: null,
      });
      await change({ type: 'ClusterIP', externalName: null, clusterIP: 'None' });
      const after = await world.host.when(
        'Service',
        world.hostKey(key),
        ({ metadata: { uid } }) => uid !== copy.metadata.uid,
      );
      expect(after['spec']).toMatchObject({ clusterIP: 'None' });
      await world.settle(daemon);
      expect((await world.virtual.get('Service', ...pair(key))).metadata.uid).toBe(first.metadata.uid);
    });
  });
}

/** After six refusals, an object is retried once a minute; the change that unblocks it must not wait for the retry. */
async function refuseOften(world: World, daemon: Daemon, key: string): Promise<void> {
  for (let round = 0; round < 6; round++) {
    await world.mergeVirtual(key, { metadata: { annotations: { round: `${round}` } } });
    await world.settle(daemon);
  }
}

/** The Service in front of the copy, without a selector. */
async function createHostService(world: World, key: string): Promise<void> {
  await world.host.create('Service', service(world.hostKey(key).join('/')));
}

/** An Endpoints whose copy has a Service in front of it, with `deleteVirtual`. */
async function copiedThroughProxies(world: World, key: string) {
  const proxies = { virtual: await world.proxy('virtual'), host: await world.proxy('host') };
  const daemon = await world.startSync({
    config: { endpointSyncer: { onHostDelete: 'deleteVirtual' } },
    kubeconfigs: { virtual: proxies.virtual.path, host: proxies.host.path },
  });
  await createHostService(world, key);
  const made = await world.createVirtual(key);
  const copy = await world.whenCopied(key);
  await world.settle(daemon);
  return { proxies, daemon, made, copy };
}

function isReal({ clusters }: World): boolean {
  return clusters.kind === 'real';
}

/** An object with the name of `key`'s copy that this syncer did not create. */
function putOnHost(world: World, key: string, options: Parameters<typeof endpoints>[1]): Promise<KubeObject> {
  return world.host.create(
    'Endpoints',
    endpoints(world.hostKey(key).join('/'), { subsets: [subset('10.9.0.1')], ...options }),
  );
}
