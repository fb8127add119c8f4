/** EndpointSlices: which ones are synced, under which names, and that the host's own controllers have nothing to correct. */

import { describe, expect, test } from 'vitest';
import type { KubeObject, StringMap } from '../../src/kube/object.ts';
import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import { MARKER } from './expected-copy.ts';
import { service, subset } from './objects.ts';
import { sharedWorld } from './shared-world.ts';
import { pair, type NewWorld, type World } from './world.ts';

const SERVICE_NAME = 'kubernetes.io/service-name';
const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
const MIRRORING = 'endpointslicemirroring-controller.k8s.io';
const SLICE_CONTROLLER = 'endpointslice-controller.k8s.io';

const BOTH: JsonObject = { sync: { toHost: { endpointSlices: { enabled: true } } } };
const SLICES_ONLY: JsonObject = {
  sync: { toHost: { endpoints: { enabled: false }, endpointSlices: { enabled: true } } },
};
const at = (name: string): string => `metadata.annotations["example.com/${name}"]`;
const PATCHED: JsonObject = {
  sync: {
    toHost: {
      secrets: { enabled: true },
      endpointSlices: {
        enabled: true,
        patches: [
          {
            path: 'endpoints[*].hostname',
            expression: 'value + "-h"',
            reverseExpression: 'value.replace(/-h$/, "")',
          },
          { path: 'ports[*].port', expression: 'value + 1000' },
          { path: at('secret'), reference: { apiVersion: 'v1', kind: 'Secret' } },
        ],
      },
    },
  },
};

const OF_ZONE: JsonValue = [{ addresses: ['10.1.0.1'], conditions: { ready: true }, zone: 'a' }];

export function endpointSliceScenarios(newWorld: NewWorld): void {
  describe('EndpointSlices', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, () => ({ config: BOTH }));

    test('have the name of the host Service, and translated Pod references, labels and annotations', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const targetRef = { kind: 'Pod', name: 'db-0', namespace: ns, uid: 'u', resourceVersion: '1' };
      const key = `${ns}/db-1`;
      await world.virtual.create(
        'EndpointSlice',
        slice(key, 'db', {
          labels: { app: 'db', [MANAGED_BY]: 'mariadb-operator.mariadb.com' },
          annotations: { a: '1' },
          endpoints: [
            { addresses: ['10.1.0.1'], conditions: { ready: true }, zone: 'z', nodeName: 'n', targetRef },
          ],
        }),
      );
      const copy = await whenSlice(world, key);
      expect(copy.metadata.labels).toEqual({
        app: 'db',
        [SERVICE_NAME]: world.hostName(`${ns}/db`),
        [MANAGED_BY]: 'mariadb-operator.mariadb.com',
        [MARKER]: world.vcluster,
        'vcluster.loft.sh/namespace': ns,
      });
      expect(copy.metadata.annotations).toMatchObject({
        a: '1',
        'vcluster.loft.sh/object-kind': 'discovery.k8s.io/v1, Kind=EndpointSlice',
      });
      const hostPod = { kind: 'Pod', name: world.hostName(`${ns}/db-0`), namespace: world.hostNamespace };
      expect(copy['endpoints']).toEqual([
        {
          addresses: ['10.1.0.1'],
          conditions: { ready: true },
          zone: 'z',
          nodeName: 'n',
          targetRef: hostPod,
        },
      ]);
      await world.host.merge('EndpointSlice', world.hostKey(key), {
        metadata: { labels: { [SERVICE_NAME]: 'other', [MANAGED_BY]: 'other', fromHost: '1' } },
      });
      await whenVirtualSlice(world, key, ({ metadata }) => metadata.labels?.['fromHost'] === '1');
      await world.settle(daemon);
      const { labels } = (await whenSlice(world, key)).metadata;
      expect([labels?.[SERVICE_NAME], labels?.[MANAGED_BY]]).toEqual([
        world.hostName(`${ns}/db`),
        'mariadb-operator.mariadb.com',
      ]);
      expect((await whenVirtualSlice(world, key)).metadata.labels).toEqual({
        app: 'db',
        fromHost: '1',
        [SERVICE_NAME]: 'db',
        [MANAGED_BY]: 'mariadb-operator.mariadb.com',
      });
    });

    test.for(['Endpoints', 'EndpointSlice'] as const)(
      '%s have no label that hides them from kube-proxy, and stay hidden in the virtual cluster',
      async (kind) => {
        const { world, daemon, namespace } = shared();
        const ns = await namespace();
        const key = `${ns}/hidden`;
        const labels = { 'service.kubernetes.io/headless': '', app: 'db' };
        if (kind === 'Endpoints') await world.createVirtual(key, { labels });
        else await world.virtual.create(kind, slice(key, 'hidden', { labels }));
        const copy = await world.host.when(kind, world.hostKey(key), () => true);
        expect(copy.metadata.labels).toMatchObject({ app: 'db' });
        expect(copy.metadata.labels).not.toHaveProperty(['service.kubernetes.io/headless']);
        await world.host.merge(kind, world.hostKey(key), { metadata: { labels: { ...labels, cloud: 'x' } } });
        const pair = [ns, 'hidden'] as const;
        await world.virtual.when(kind, pair, (one) => one.metadata.labels?.['cloud'] === 'x');
        await world.settle(daemon);
        const { metadata } = await world.host.get(kind, ...world.hostKey(key));
        expect(metadata.labels).not.toHaveProperty(['service.kubernetes.io/headless']);
        const virtual = await world.virtual.get(kind, ...pair);
        expect(virtual.metadata.labels).toMatchObject({ ...labels, cloud: 'x' });
      },
    );

    test('with the DNS name of a Service as address lead to its copy', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const addresses = [`db.${ns}.svc.cluster.local`, 'db.example.com'];
      const endpoints = addresses.map((address) => ({ addresses: [address] }));
      const key = `${ns}/names`;
      await world.virtual.create('EndpointSlice', slice(key, 'names', { addressType: 'FQDN', endpoints }));
      const copy = await whenSlice(world, key);
      const onHost = `${world.hostName(`${ns}/db`)}.${world.hostNamespace}.svc.cluster.local`;
      expect(copy['endpoints']).toMatchObject([{ addresses: [onHost] }, { addresses: ['db.example.com'] }]);
    });

    test('have the name of the host Service in their label if it is truncated to 63 bytes', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const name = `long-${'x'.repeat(55)}`;
      await world.virtual.create('EndpointSlice', slice(`${ns}/${name}`, name));
      const copy = await whenSlice(world, `${ns}/${name}`);
      expect(copy.metadata.labels?.[SERVICE_NAME]).toBe(world.hostName(`${ns}/${name}`));
      expect(copy.metadata.name).toHaveLength(63);
    });

    test('that controllers of the virtual cluster created are not synced', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      for (const manager of [SLICE_CONTROLLER, MIRRORING])
        await world.virtual.create(
          'EndpointSlice',
          slice(`${ns}/${manager}`, 'svc', { labels: { [MANAGED_BY]: manager } }),
        );
      await world.virtual.create('EndpointSlice', slice(`${ns}/unnamed`, undefined));
      await world.virtual.create('Service', service(`${ns}/selected`, { app: 'x' }));
      await world.virtual.create('EndpointSlice', slice(`${ns}/of-selected`, 'selected'));
      await world.settle(daemon);
      expect(await sliceNames(world, ns)).toEqual([]);
    });

    test('are deleted when their Service gets a selector, or when they lose their label', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const [gated, freed] = [`${ns}/gated`, `${ns}/freed`];
      await world.virtual.create('Service', service(`${ns}/svc`));
      await world.virtual.create('EndpointSlice', slice(gated, 'svc'));
      await world.virtual.create('EndpointSlice', slice(freed, 'other'));
      for (const key of [gated, freed]) await whenSlice(world, key);
      await world.virtual.merge('Service', [ns, 'svc'], { spec: { selector: { app: 'x' } } });
      await world.virtual.merge('EndpointSlice', pair(freed), {
        metadata: { labels: { [SERVICE_NAME]: null } },
      });
      for (const key of [gated, freed]) await whenNoSlice(world, key);
      await world.virtual.merge('Service', [ns, 'svc'], { spec: { selector: null } });
      expect((await whenSlice(world, gated)).metadata.labels?.[SERVICE_NAME]).toBe(
        world.hostName(`${ns}/svc`),
      );
    });

    test('lose their copy when a controller takes them over, unless another one controls them, and get it back', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const [taken, kept] = [`${ns}/taken`, `${ns}/kept`];
      for (const key of [taken, kept]) {
        await world.virtual.create('EndpointSlice', slice(key, 'svc'));
        await whenSlice(world, key);
      }
      const controlled = { 'vcluster.loft.sh/controlled-by': 'another' };
      const manager = (name: string | null) => ({ [MANAGED_BY]: name });
      await world.virtual.merge('EndpointSlice', pair(kept), {
        metadata: { annotations: controlled, labels: manager(SLICE_CONTROLLER) },
      });
      await world.virtual.merge('EndpointSlice', pair(taken), {
        metadata: { labels: manager(SLICE_CONTROLLER) },
      });
      await whenNoSlice(world, taken);
      await world.settle(daemon);
      expect(await sliceNames(world, ns)).toEqual([world.hostName(kept)]);
      await world.virtual.merge('EndpointSlice', pair(taken), { metadata: { labels: manager(null) } });
      await whenSlice(world, taken);
    });

    test('of others under the name of a copy are not changed, also those of a controller, which are not cached', async () => {
      const { world, daemon, namespace } = shared();
      const key = `${await namespace()}/occupied`;
      const labels = { [MANAGED_BY]: SLICE_CONTROLLER };
      const [hostNamespace, hostName] = world.hostKey(key);
      const foreign = await world.host.create(
        'EndpointSlice',
        slice(`${hostNamespace}/${hostName}`, undefined, { labels }),
      );
      await world.virtual.create('EndpointSlice', slice(key, 'svc'));
      await whenSliceEvent(world, key, 'NotManaged');
      await world.settle(daemon);
      expect(await whenSlice(world, key)).toEqual(foreign);
      await world.host.delete('EndpointSlice', hostNamespace, hostName);
      await whenSlice(world, key, ({ metadata }) => metadata.labels?.[MARKER] === world.vcluster);
    });

    test('are recreated when their address type changes', async () => {
      const { world, namespace } = shared();
      const key = `${await namespace()}/typed`;
      await world.virtual.create('EndpointSlice', slice(key, 'svc'));
      const before = await whenSlice(world, key);
      await world.virtual.delete('EndpointSlice', ...pair(key));
      await world.virtual.create(
        'EndpointSlice',
        slice(key, 'svc', { addressType: 'IPv6', endpoints: [{ addresses: ['fd00::1'] }] }),
      );
      const after = await whenSlice(world, key, (copy) => copy['addressType'] === 'IPv6');
      expect(after.metadata.uid).not.toBe(before.metadata.uid);
    });

    test('of 1000 endpoints, and of both address families, are synced completely', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const many = Array.from({ length: 1000 }, (_, i) => ({ addresses: [`10.${i >> 8}.${i & 255}.1`] }));
      await world.virtual.create('EndpointSlice', slice(`${ns}/four`, 'svc', { endpoints: many }));
      const six = { addressType: 'IPv6', endpoints: [{ addresses: ['fd00::1'] }] };
      await world.virtual.create('EndpointSlice', slice(`${ns}/six`, 'svc', six));
      const four = await whenSlice(world, `${ns}/four`);
      expect((four['endpoints'] as JsonValue[]).length).toBe(1000);
      expect((await whenSlice(world, `${ns}/six`))['addressType']).toBe('IPv6');
    });

    test('drift on the host is corrected, a deleted copy is recreated, and a foreign slice is never changed', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const [drift, blocked] = [`${ns}/drift`, `${ns}/blocked`];
      await world.virtual.create('EndpointSlice', slice(drift, 'svc'));
      await whenSlice(world, drift);
      await world.host.merge('EndpointSlice', world.hostKey(drift), {
        endpoints: [{ addresses: ['10.6.6.6'] }],
      });
      await whenSlice(world, drift, (copy) => JSON.stringify(copy['endpoints']).includes('10.1.0.1'));
      await world.host.delete('EndpointSlice', ...world.hostKey(drift));
      await whenSlice(world, drift);
      const foreign = await world.host.create(
        'EndpointSlice',
        slice(world.hostKey(blocked).join('/'), 'svc'),
      );
      await world.virtual.create('Service', service(`${ns}/svc`));
      await world.virtual.create('EndpointSlice', slice(blocked, 'svc'));
      await whenSliceEvent(world, blocked, 'NotManaged');
      await world.settle(daemon);
      expect(await whenSlice(world, blocked)).toEqual(foreign);
    });

    test('with an address of the Endpoints of the same Service are reported', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      await world.createVirtual(`${ns}/svc`, { subsets: [subset('10.1.0.1')] });
      await world.whenCopied(`${ns}/svc`);
      await world.virtual.create('EndpointSlice', slice(`${ns}/custom`, 'svc'));
      await whenSlice(world, `${ns}/custom`);
      expect(await whenSliceEvent(world, `${ns}/custom`, 'DuplicateEndpoints')).toContain('10.1.0.1');
    });
  });

  describe('EndpointSlices with patches', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, () => ({ config: PATCHED }));

    test('are patched in both directions, and the objects that they reference are imported', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const key = `${ns}/patched`;
      await world.virtual.create('Secret', {
        metadata: { namespace: ns, name: 'tls' },
        data: { k: 'dg==' },
      });
      await world.virtual.create(
        'EndpointSlice',
        slice(key, 'svc', {
          annotations: { 'example.com/secret': 'tls' },
          endpoints: [
            { addresses: ['10.1.0.1'], hostname: 'a' },
            { addresses: ['10.1.0.2'], hostname: 'b' },
          ],
        }),
      );
      const copy = await whenSlice(world, key);
      expect(copy['ports']).toEqual([{ name: 'http', port: 1080, protocol: 'TCP' }]);
      expect(copy['endpoints']).toMatchObject([{ hostname: 'a-h' }, { hostname: 'b-h' }]);
      const secret = copy.metadata.annotations?.['example.com/secret'] ?? '';
      await world.host.when('Secret', [world.hostNamespace, secret]);
      await world.host.merge('EndpointSlice', world.hostKey(key), {
        endpoints: [
          { addresses: ['10.1.0.1'], hostname: 'c-h' },
          { addresses: ['10.1.0.2'], hostname: 'b-h' },
        ],
      });
      await whenVirtualSlice(world, key, (one) => JSON.stringify(one['endpoints']).includes('"c"'));
      await world.settle(daemon);
      await world.virtual.delete('EndpointSlice', ...pair(key));
      await whenNoSlice(world, key);
      await world.host.whenGone('Secret', [world.hostNamespace, secret]);
    });
  });

  test('EndpointSlices without endpoints have an empty list in patches, and on the host', async ({
    expect,
  }) => {
    await using world = await newWorld();
    const patches = [{ path: 'endpoints', expression: 'value.filter((e) => e.conditions?.ready !== false)' }];
    const config = { sync: { toHost: { endpointSlices: { enabled: true, patches } } } };
    const daemon = await world.startSync({ config });
    await world.virtual.create('EndpointSlice', slice('default/zero', 'svc'));
    await whenSlice(world, 'default/zero', (copy) => JSON.stringify(copy['endpoints']).includes('10.1.0.1'));
    await world.virtual.merge('EndpointSlice', ['default', 'zero'], { endpoints: [] });
    const copy = await whenSlice(world, 'default/zero', (one) => !JSON.stringify(one).includes('10.1.0.1'));
    expect(copy['endpoints'] ?? []).toEqual([]);
    await world.settle(daemon);
    expect(await world.eventsOn('default/zero', 'PatchFailed', 'EndpointSlice')).toEqual([]);
  });

  test('EndpointSlices have no topology of v1beta1 on the host, which leaves it out of a write in v1', async ({
    expect,
  }) => {
    await using world = await newWorld();
    const expression = 'value.deprecatedTopology = { "topology.kubernetes.io/zone": "a" }; value';
    const patches = [{ path: 'endpoints[*]', expression }];
    const config = { sync: { toHost: { endpointSlices: { enabled: true, patches } } } };
    const daemon = await world.startSync({ config });
    await world.virtual.create('EndpointSlice', slice('default/old', 'svc', { endpoints: OF_ZONE }));
    const copy = await whenSlice(world, 'default/old');
    expect(copy['endpoints']).toEqual(OF_ZONE);
    await world.settle(daemon);
    expect((await whenSlice(world, 'default/old')).metadata.resourceVersion).toBe(
      copy.metadata.resourceVersion,
    );
    expect(await world.eventsOn('default/old', 'Contested', 'EndpointSlice')).toEqual([]);
  });

  describe('EndpointSlices with onHostDelete: deleteVirtual', () => {
    test('get their label back when a client gives the copy to a controller, and are deleted with the copy', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const daemon = await world.startSync({
        config: { ...BOTH, endpointSyncer: { onHostDelete: 'deleteVirtual' } },
      });
      const key = 'default/relabelled';
      await world.host.create('Service', service(world.hostKey('default/svc').join('/')));
      const created = await world.virtual.create('EndpointSlice', slice(key, 'svc'));
      const copy = await whenSlice(world, key);
      await world.host.merge('EndpointSlice', world.hostKey(key), {
        metadata: { labels: { [MANAGED_BY]: SLICE_CONTROLLER, touched: 'x' } },
      });
      const corrected = await whenSlice(
        world,
        key,
        ({ metadata: { labels = {} } }) => labels['touched'] === 'x' && labels[MANAGED_BY] === undefined,
      );
      await world.settle(daemon);
      const virtual = await whenVirtualSlice(world, key);
      // The controller would miss a change of the label.
      expect(corrected.metadata.uid).not.toBe(copy.metadata.uid);
      expect(virtual.metadata.uid).toBe(created.metadata.uid);
      await world.host.delete('EndpointSlice', ...world.hostKey(key));
      await world.virtual.whenGone('EndpointSlice', pair(key));
    });
  });

  describe('EndpointSlices without Endpoints', () => {
    test('mirrored slices are synced with managed-by endpoint-syncer, and deleted if they were deleted while the daemon was down', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const first = await world.startSync({ config: SLICES_ONLY });
      const [mirrored, gone] = ['default/mirrored', 'default/gone'];
      await world.virtual.create(
        'EndpointSlice',
        slice(mirrored, 'svc', { labels: { [MANAGED_BY]: MIRRORING } }),
      );
      await world.virtual.create('EndpointSlice', slice(gone, 'svc'));
      await world.createVirtual('default/not-synced');
      const copy = await whenSlice(world, mirrored);
      expect(copy.metadata.labels?.[MANAGED_BY]).toBe('endpoint-syncer');
      await whenSlice(world, gone);
      await first.stop();
      await world.virtual.delete('EndpointSlice', ...pair(gone));
      await world.startSync({ config: SLICES_ONLY });
      await whenNoSlice(world, gone);
      expect((await whenSlice(world, mirrored)).metadata.resourceVersion).toBe(copy.metadata.resourceVersion);
      expect(await world.findCopy('default/not-synced')).toBeUndefined();
    });
  });
}

export interface SliceOptions {
  readonly labels?: StringMap;
  readonly annotations?: StringMap;
  readonly addressType?: string;
  readonly endpoints?: JsonValue;
}

/** One address, one port; `serviceName` undefined: without the label. */
export function slice(key: string, serviceName: string | undefined, options: SliceOptions = {}): KubeObject {
  const [namespace, name] = pair(key);
  const { labels = {}, annotations, addressType = 'IPv4' } = options;
  const named = serviceName === undefined ? {} : { [SERVICE_NAME]: serviceName };
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace, name, labels: { ...labels, ...named }, ...(annotations && { annotations }) },
    addressType,
    endpoints: options.endpoints ?? [{ addresses: ['10.1.0.1'], conditions: { ready: true } }],
    ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
  };
}

export function whenSlice(
  world: World,
  key: string,
  holds?: (copy: KubeObject) => boolean,
): Promise<KubeObject> {
  return world.host.when('EndpointSlice', world.hostKey(key), holds);
}

export async function whenNoSlice(world: World, key: string): Promise<void> {
  await world.host.whenGone('EndpointSlice', world.hostKey(key));
}

export function whenVirtualSlice(
  world: World,
  key: string,
  holds?: (object: KubeObject) => boolean,
): Promise<KubeObject> {
  return world.virtual.when('EndpointSlice', pair(key), holds);
}

/** The message of an Event of events.k8s.io on this slice. */
async function whenSliceEvent(world: World, key: string, reason: string): Promise<string> {
  return world.whenEvent(key, reason, { kind: 'EndpointSlice' });
}

async function sliceNames(world: World, namespace: string): Promise<string[]> {
  const selector = `?labelSelector=vcluster.loft.sh/namespace%3D${namespace}`;
  const found = await world.host.list('EndpointSlice', world.hostNamespace, selector);
  return found.map(({ metadata }) => metadata.name);
}
