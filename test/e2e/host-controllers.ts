/** Scenarios that need a real host: its controllers mirror, rebuild and delete objects, and its API servers stop. */

import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../src/kube/object.ts';
import { isJsonObject } from '../../src/base/json.ts';
import { slice, whenSlice } from '../scenarios/endpoint-slices.ts';
import { eventually } from '../support/eventually.ts';
import { endpoints, ipsOf, service, subset } from '../scenarios/objects.ts';
import { sharedWorld } from '../scenarios/shared-world.ts';
import { pair, type NewWorld, type World } from '../scenarios/world.ts';

const SLICE_MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
const MIRRORING = 'endpointslicemirroring-controller.k8s.io';

export function hostControllerScenarios(newWorld: NewWorld): void {
  describe('EndpointSlices beside the host’s controllers', () => {
    const shared = sharedWorld(newWorld, () => ({
      config: { sync: { toHost: { endpointSlices: { enabled: true } } } },
    }));

    test('a custom and a mirrored slice of one Service are the only slices, and no controller changes them', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const key = `${ns}/svc`;
      await world.virtual.create('Service', service(key));
      await world.host.create('Service', service(world.hostKey(key).join('/')));
      await world.createVirtual(key, { subsets: [subset('10.1.0.9')] });
      const operator = { labels: { [SLICE_MANAGED_BY]: 'mariadb-operator.mariadb.com' } };
      await world.virtual.create('EndpointSlice', slice(`${ns}/custom`, 'svc', operator));
      // What the virtual cluster's own controllers would have created for the Endpoints.
      const mirrored = { labels: { [SLICE_MANAGED_BY]: MIRRORING } };
      await world.virtual.create('EndpointSlice', slice(`${ns}/svc-abcde`, 'svc', mirrored));
      const slices = () =>
        world.host.list(
          'EndpointSlice',
          world.hostNamespace,
          `?labelSelector=kubernetes.io/service-name%3D${world.hostName(key)}`,
        );
      await eventually(slices, (found) => found.length === 2, { what: 'two slices of the Service' });
      const custom = await whenSlice(world, `${ns}/custom`);
      await world.virtual.merge('EndpointSlice', [ns, 'custom'], {
        endpoints: [{ addresses: ['10.1.0.2'] }],
      });
      await whenSlice(world, `${ns}/custom`, (one) => JSON.stringify(one['endpoints']).includes('10.1.0.2'));
      await world.settle(daemon);
      const generations = async () =>
        (await slices()).map(({ metadata: { name, generation } }) => `${name}@${generation}`).sort();
      const before = await generations();
      // Two seconds in which a controller that disagrees would have written.
      const sinceMs = performance.now();
      await eventually(generations, () => performance.now() - sinceMs > 2000);
      expect(await generations()).toEqual(before);
      expect((await slices()).map(managerOf).sort()).toEqual(
        ['mariadb-operator.mariadb.com', MIRRORING].sort(),
      );
      expect((await whenSlice(world, `${ns}/custom`)).metadata.uid).toBe(custom.metadata.uid);
    });
  });

  describe('EndpointSlices alone beside the host’s controllers', () => {
    test('a mirrored slice is synced with managed-by endpoint-syncer, and the mirroring controller does not change it', async () => {
      await using world = await newWorld();
      const daemon = await world.startDaemon({
        config: { sync: { toHost: { endpoints: { enabled: false }, endpointSlices: { enabled: true } } } },
      });
      await world.host.create('Service', service(world.hostKey('default/svc').join('/')));
      const mirrored = { labels: { [SLICE_MANAGED_BY]: MIRRORING } };
      await world.virtual.create('EndpointSlice', slice('default/svc-abcde', 'svc', mirrored));
      const copy = await whenSlice(world, 'default/svc-abcde');
      expect(managerOf(copy)).toBe('endpoint-syncer');
      await world.whenIdle(daemon);
      const sinceMs = performance.now();
      const now = await eventually(
        () => whenSlice(world, 'default/svc-abcde'),
        () => performance.now() - sinceMs > 2000,
      );
      expect(now.metadata).toMatchObject({ uid: copy.metadata.uid, generation: copy.metadata.generation });
    });
  });

  describe('a second syncer of mirrored slices', () => {
    test('is reported once on the Endpoints, with the remedy', async () => {
      await using world = await newWorld();
      const key = 'default/fought';
      const [hostNamespace, hostName] = world.hostKey(key);
      await leaveToController(world, 'default/taken');
      const daemon = await world.startDaemon({
        config: {
          sync: {
            toHost: { endpoints: { patches: [{ path: 'metadata.labels.app', expression: 'value + "-x"' }] } },
          },
        },
      });
      await world.virtual.create('Service', service(key));
      await world.host.create('Service', service(`${hostNamespace}/${hostName}`));
      // What vCluster writes for a slice that the virtual cluster's mirroring controller created: the label of that controller is kept.
      const name = `fought-abcde-x-default-x-${world.vcluster}`;
      const copied = (): KubeObject => {
        const object = slice(`${hostNamespace}/${name}`, hostName, {
          labels: {
            app: 'web',
            [SLICE_MANAGED_BY]: MIRRORING,
            'vcluster.loft.sh/managed-by': world.vcluster,
          },
          annotations: {
            'vcluster.loft.sh/object-name': 'fought-abcde',
            'vcluster.loft.sh/object-namespace': 'default',
            'vcluster.loft.sh/object-kind': 'discovery.k8s.io/v1, Kind=EndpointSlice',
          },
        });
        return { ...object, endpoints: [{ addresses: ['10.1.0.1'], conditions: { ready: true } }] };
      };
      await world.createVirtual(key, { labels: { app: 'web' } });
      await world.whenCopy(key);
      const events = await eventually(
        async () => {
          // vCluster writes it again whenever the host's mirroring controller has changed or deleted it.
          await world.host.apply('EndpointSlice', copied(), 'vcluster');
          return world.eventsOn(key, 'Contested');
        },
        (found) => found.length > 0,
        { timeoutMs: 60_000, what: 'the Event Contested' },
      );
      expect(events).toHaveLength(1);
      // The same check has seen the slice that vCluster once named and only the controller writes.
      await world.whenCopy('default/taken', ({ metadata }) => metadata.labels?.['app'] === 'web-x');
      expect(await world.eventsOn('default/taken', 'Contested')).toEqual([]);
      expect(events[0]?.['note']).toContain(`"${hostNamespace}/${name}"`);
      expect(events[0]?.['note']).toContain('sync.toHost.endpointSlices.enabled');
      await world.whenIdle(daemon);
    });
  });

  describe('the host’s controllers', () => {
    const shared = sharedWorld(newWorld);

    test('mirror a copy into an EndpointSlice with its labels, without conflicting writes', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/svc`;
      const log = await world.log('host');
      await world.createVirtual(key, {
        labels: { app: 'x' },
        subsets: [{ addresses: [{ ip: '1.1.1.1' }], ports: [{ port: 5000 }] }],
      });
      await world.whenCopied(key);
      await world.virtual.create('Service', service(key));
      await world.host.create('Service', service(world.hostKey(key).join('/')));
      const slices = await whenMirrored(world, key);
      expect(slices[0]?.metadata.labels).toMatchObject({
        app: 'x',
        'vcluster.loft.sh/managed-by': world.vcluster,
      });
      await world.settle(daemon);
      // Without the mark of copies that have no Service, which hides them from the mirroring controller.
      expect(log.of(world.hostName(key))).toEqual(['ADDED', 'MODIFIED']);

      await world.virtual.delete('Service', ...pair(key));
      await world.host.delete('Service', ...world.hostKey(key));
      // The daemon creates the copy again.
      await log.until(({ type, name }) => type === 'DELETED' && name === world.hostName(key));
      await whenMirrored(world, key, 0);
    });

    test('create the Endpoints if the Service has a selector, and do not change the copy if it has none', async () => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/turns`;
      await world.virtual.create('Service', service(key));
      await world.createVirtual(key);
      await world.host.create('Service', service(world.hostKey(key).join('/')));
      const before = await world.whenCopied(key);
      await setSelector(world, key, { app: 'x' });
      await world.whenCopy(
        key,
        (copy) => copy.metadata.uid !== before.metadata.uid && ipsOf(copy).length === 0,
        {
          what: 'the controller’s own Endpoints',
        },
      );
      await setSelector(world, key, null);
      const after = await world.whenCopied(key);
      expect(ipsOf(after)).toEqual(['10.1.0.1']);
    });

    test('delete copies without a Service after each deletion: it converges, and an Event says so once', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const keys = Array.from({ length: 20 }, (_, i) => `${ns}/unserved-${i}`);
      for (const key of keys) await world.createVirtual(key);
      for (const key of keys) await world.whenCopied(key);
      const log = await world.log('host');
      for (const key of keys) await world.deleteCopy(key);
      await whenStable(world, keys);
      await world.settle(daemon);
      const count = (key: string, wanted: string): number =>
        log.of(world.hostName(key)).filter((type) => type === wanted).length;
      for (const key of keys) {
        await world.whenCopied(key);
        expect(count(key, 'ADDED')).toBeLessThanOrEqual(8);
        // The Event follows the deletion.
        await eventually(
          async () => (await world.eventsOn(key, 'SyncError')).length - (count(key, 'DELETED') > 1 ? 1 : 0),
          (surplus) => surplus === 0,
          { what: `an Event about ${key} if it was deleted more than once` },
        );
      }
    });
  });

  describe('the host’s controllers after a restart', () => {
    test('keep every copy without a Service, and mirror those that get one', async () => {
      await using world = await newWorld();
      const daemon = await world.startDaemon();
      const keys = Array.from({ length: 30 }, (_, i) => `default/restarted-${i}`);
      for (const key of keys) await world.createVirtual(key);
      for (const key of keys) await world.whenCopied(key);
      await world.settle(daemon);
      const uidsOf = async (): Promise<readonly unknown[]> => {
        const copies = await Promise.all(keys.map((key) => world.getCopy(key)));
        return copies.map(({ metadata }) => metadata.uid);
      };
      const before = await uidsOf();
      const log = await world.log('host');
      await world.clusters.stop('controllers');
      // Of another client, so without the mark: its deletion shows that the controller has started.
      await world.host.create('Endpoints', endpoints(`${world.hostNamespace}/leftover`));
      await world.clusters.start('controllers');
      await log.until(({ type, name }) => type === 'DELETED' && name === 'leftover');
      await whenStable(world, keys);
      expect(await uidsOf()).toEqual(before);
      expect(keys.flatMap((key) => log.of(world.hostName(key)))).toEqual([]);
      const [key = ''] = keys;
      await world.host.create('Service', service(world.hostKey(key).join('/')));
      await whenMirrored(world, key);
      await world.host.delete('Service', ...world.hostKey(key));
      // Its controllers delete the copy with the Service, once or twice.
      await world.whenCopied(key);
      await world.settle(daemon);
      await world.whenCopied(key);
      await world.clusters.stop('controllers');
      await world.host.create('Endpoints', endpoints(`${world.hostNamespace}/leftover-2`));
      const kept = await uidsOf();
      await world.clusters.start('controllers');
      await log.until(({ type, name }) => type === 'DELETED' && name === 'leftover-2');
      await whenStable(world, keys);
      expect(await uidsOf()).toEqual(kept);
    });
  });

  describe('a host without the mirroring controller', () => {
    test('is reported on the Endpoints, once, until it runs', async () => {
      await using world = await newWorld();
      await world.startDaemon();
      await world.clusters.stop('controllers');
      const key = 'default/unmirrored';
      try {
        await world.virtual.create('Service', service(key));
        await world.createVirtual(key);
        await world.host.create('Service', service(world.hostKey(key).join('/')));
        await world.whenCopied(key);
        const note = await world.whenEvent(key, 'NoEffect', { timeoutMs: 60_000 });
        expect(note).toContain('sync.toHost.endpoints.enabled: false');
        expect(await world.eventsOn(key, 'NoEffect')).toHaveLength(1);
      } finally {
        await world.clusters.start('controllers');
      }
      await whenMirrored(world, key);
    });
  });

  describe.for(['host', 'virtual'] as const)('the %s API server, killed and started again,', (side) => {
    test('is in sync again', async () => {
      await using world = await newWorld();
      const daemon = await world.startDaemon();
      for (const name of ['changed', 'same']) await world.createVirtual(`default/${name}`);
      await world.settle(daemon);
      const { uid, resourceVersion } = (await world.getCopy('default/same')).metadata;
      await world.clusters.stop(side);
      const other = side === 'host' ? world.virtual : world.host;
      const place = side === 'host' ? pair('default/changed') : world.hostKey('default/changed');
      await other.merge('Endpoints', place, { metadata: { labels: { meanwhile: '1' } } });
      await world.clusters.start(side);
      const isChanged = ({ metadata }: KubeObject): boolean => metadata.labels?.['meanwhile'] === '1';
      await world.whenCopy('default/changed', isChanged);
      await world.whenVirtual('default/changed', isChanged);
      await world.settle(daemon);
      expect((await world.getCopy('default/same')).metadata).toMatchObject({ uid, resourceVersion });
      // The watches of other kinds resume later.
      await daemon.ready();
    });
  });

  describe('a real API server', () => {
    test('sets defaults for fields that a patch omits, which are not drift', async () => {
      await using world = await newWorld();
      const host = await world.proxy('host');
      const start = {
        kubeconfigs: { host: host.path },
        config: {
          sync: {
            toHost: {
              endpoints: {
                patches: [
                  { path: 'subsets[*].ports', expression: '[{port: 81}]' },
                  { path: 'subsets[*].notReadyAddresses', expression: '[]' },
                  { path: 'subsets[*].addresses[*].hostname', expression: '""' },
                ],
              },
            },
          },
        },
      };
      const first = await world.startDaemon(start);
      const addresses = [{ ip: '10.1.0.1', hostname: 'h' }];
      const subsets = [{ ...subset(), addresses, notReadyAddresses: [{ ip: '10.1.0.2' }] }];
      await world.createVirtual('default/filled', { subsets });
      const copy = await world.whenCopy('default/filled');
      expect(copy['subsets']).toEqual([
        { addresses: [{ ip: '10.1.0.1' }], ports: [{ port: 81, protocol: 'TCP' }] },
      ]);
      await world.settle(first);
      await first.terminate();
      host.requests.length = 0;
      const again = await world.startDaemon(start);
      await world.whenIdle(again);
      const ofObjects = host.writes().filter((line) => !line.includes('/leases/'));
      expect(ofObjects).toEqual([]);
    });

    test('shows the other client and this program in managedFields', async () => {
      await using world = await newWorld();
      await world.startDaemon();
      await world.createVirtual('default/managed');
      const copy = await world.whenCopied('default/managed');
      const managers = (copy.metadata.managedFields ?? []).filter(isJsonObject).map(({ manager }) => manager);
      expect(managers).toEqual(['endpoint-syncer']);
    });
  });
}

/** Waits until all copies exist and none of them has been re-created for a second. */
async function whenStable(world: World, keys: readonly string[]): Promise<void> {
  let before = '';
  let sinceMs = performance.now();
  await eventually(
    async () => {
      const copies = await world.copies();
      const uids = keys.map(
        (key) => copies.find(({ metadata }) => metadata.name === world.hostName(key))?.metadata.uid,
      );
      const now = uids.join();
      if (now !== before || uids.includes(undefined)) [before, sinceMs] = [now, performance.now()];
      return performance.now() - sinceMs;
    },
    (stableMs) => stableMs > 1000,
    { what: 'stable copies' },
  );
}

async function whenMirrored(world: World, key: string, count = 1): Promise<readonly KubeObject[]> {
  const selector = `?labelSelector=kubernetes.io/service-name%3D${world.hostName(key)}`;
  return eventually(
    () => world.host.list('EndpointSlice', world.hostNamespace, selector),
    (found) => found.length === count,
    { what: `${count} mirrored slices` },
  );
}

function managerOf({ metadata: { labels } }: KubeObject): string {
  return labels?.[SLICE_MANAGED_BY] ?? '';
}

/** As vCluster would carry it over: on the virtual Service and on the host's. */
async function setSelector(
  world: World,
  key: string,
  selector: Record<string, string> | null,
): Promise<void> {
  await world.virtual.merge('Service', pair(key), { spec: { selector } });
  await world.host.merge('Service', world.hostKey(key), { spec: { selector } });
}

/** What is left when vCluster's sync has been switched off: a copy, and a slice that vCluster created and the host's controller has adopted. */
async function leaveToController(world: World, key: string): Promise<void> {
  const [namespace, name] = pair(key);
  const [hostNamespace, hostName] = world.hostKey(key);
  const virtual = await world.createVirtual(key, { labels: { app: 'web' } });
  const { labels: marker, annotations } = world.bookkeeping('Endpoints', key, virtual.metadata.uid);
  const labels = { app: 'web', ...marker };
  await world.host.create('Endpoints', endpoints(`${hostNamespace}/${hostName}`, { labels, annotations }));
  const sliceName = `${name}-abcde-x-${namespace}-x-${world.vcluster}`;
  const copied = slice(`${hostNamespace}/${sliceName}`, hostName, {
    labels: { [SLICE_MANAGED_BY]: MIRRORING, ...labels },
  });
  const touch = (): Promise<unknown> =>
    world.host.merge('Endpoints', [hostNamespace, hostName], {
      metadata: { annotations: { 'example.com/touched': String(performance.now()) } },
    });
  await world.host.create('Service', service(`${hostNamespace}/${hostName}`));
  // The controller may delete it, or keep one of its own beside it.
  await eventually(
    async () => {
      const slices = await world.host.list('EndpointSlice', hostNamespace);
      for (const other of slices.filter((found) => found.metadata.name !== sliceName))
        await world.host.delete('EndpointSlice', hostNamespace, other.metadata.name);
      if (slices.some((found) => found.metadata.name === sliceName)) {
        // After conflicts with these writes the controller waits, for up to minutes; a change of the Endpoints makes it look at once.
        if (!slices.some(isWrittenByController)) await touch();
        return slices;
      }
      await world.host.create('EndpointSlice', copied);
      return [];
    },
    (slices) => slices.length === 1 && isWrittenByController(slices[0]),
    { what: 'the slice that the controller has adopted' },
  );
}

function isWrittenByController(object: KubeObject | undefined): boolean {
  return (object?.metadata.managedFields ?? []).some(({ manager }) => manager === 'kube-controller-manager');
}
