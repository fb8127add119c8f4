/** Host namespaces that are shared with others: a tenant's copies get no traffic from a Service that is not of the virtual cluster. */

import { beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { slice } from './endpoint-slices.ts';
import { eventually } from '../support/eventually.ts';
import { MARKER } from './expected-copy.ts';
import { endpoints, service, subset } from './objects.ts';
import { sharedWorld } from './shared-world.ts';
import { type NewWorld, type World } from './world.ts';

/** The address to which the tenant would have the traffic. */
const TENANT_IP = '10.66.0.1';
const SERVICE_NAME = 'kubernetes.io/service-name';
const CONTROLLED_BY = 'vcluster.loft.sh/controlled-by';
const SKIP_BACKSYNC = 'vcluster.loft.sh/skip-backsync';

export function hostServiceScenarios(newWorld: NewWorld): void {
  describe('in a host namespace that is shared with others', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, (world) => ({ config: sharedNamespace(world) }));
    beforeAll(async () => {
      const { world } = shared();
      await world.virtualNamespace('team-a');
      await world.hostNamespaceNamed(hostNs(world));
    });

    test.each([
      ['with a selector', { app: 'payments' }],
      ['without a selector', undefined],
    ])('Endpoints and slices do not join a Service of the host %s', async (how, selector) => {
      const { world, daemon } = shared();
      const name = `payments-${how.split(' ', 1)[0] ?? ''}`;
      await world.host.create('Service', service(`${hostNs(world)}/${name}`, selector));
      await world.virtual.create('Endpoints', tenantEndpoints(name));
      await world.virtual.create('EndpointSlice', tenantSlice(`${name}-1`, name));
      await world.virtual.create('EndpointSlice', tenantSlice(`${name}-2`, 'harmless', { to: name }));
      expect(await notManaged(world, `${name}-1`)).toContain(`The host Service "${hostNs(world)}/${name}"`);
      await notManaged(world, `${name}-2`);
      await world.whenEvent(`team-a/${name}`, 'NotManaged');
      await world.settle(daemon);
      expect(await tenantAddresses(world, name)).toEqual([]);
    });

    test('a Service of the host that appears or disappears decides again', async () => {
      const { world, daemon } = shared();
      await world.virtual.create('Endpoints', tenantEndpoints('later'));
      await world.virtual.create('EndpointSlice', tenantSlice('later-1', 'later'));
      await whenAddresses(world, 'later', (found) => found.includes('later-1'));
      await world.host.create('Service', service(`${hostNs(world)}/later`));
      await whenAddresses(world, 'later', (found) => found.length === 0);
      expect(await notManaged(world, 'later-1')).toContain('Choose another name');
      await world.settle(daemon);
      expect(await tenantAddresses(world, 'later')).toEqual([]);
      await world.host.delete('Service', hostNs(world), 'later');
      await whenAddresses(world, 'later', (found) => found.includes('later-1') && found.includes('later'));
    });

    test('no label of the tenant keeps a copy there', async () => {
      const { world } = shared();
      for (const [name, labels] of [
        ['left', { [SKIP_BACKSYNC]: 'true' }],
        ['held', {}],
      ] as const) {
        await world.virtual.create('EndpointSlice', tenantSlice(name, name, { labels }));
        await whenAddresses(world, name, (found) => found.includes(name));
      }
      await world.virtual.delete('EndpointSlice', 'team-a', 'left');
      await world.virtual.merge('EndpointSlice', ['team-a', 'held'], {
        metadata: { labels: { [CONTROLLED_BY]: 'me' } },
      });
      for (const name of ['left', 'held']) {
        await world.host.create('Service', service(`${hostNs(world)}/${name}`));
        await whenAddresses(world, name, (found) => found.length === 0);
        expect(await world.host.find('EndpointSlice', hostNs(world), name)).toBeUndefined();
      }
    });

    test('a changed label does not move a copy to a Service of the host', async () => {
      const { world } = shared();
      await world.host.create('Service', service(`${hostNs(world)}/aim`));
      await world.virtual.create('EndpointSlice', tenantSlice('moving', 'own'));
      await whenAddresses(world, 'own', (found) => found.includes('moving'));
      await world.virtual.merge('EndpointSlice', ['team-a', 'moving'], {
        metadata: { labels: { [SERVICE_NAME]: 'aim' } },
      });
      expect(await notManaged(world, 'moving')).toContain(`"${hostNs(world)}/aim"`);
      await world.host.when('EndpointSlice', [hostNs(world), 'moving'], (copy) => copy === undefined);
    });

    test('a Service that is a copy of the virtual cluster gets them', async () => {
      const { world } = shared();
      await world.host.create('Service', copyOfService(world, 'web'));
      await world.virtual.create('Endpoints', tenantEndpoints('web'));
      await world.virtual.create('EndpointSlice', tenantSlice('web-1', 'web'));
      // The host's controller mirrors the Endpoints into a third one.
      const found = await whenAddresses(
        world,
        'web',
        (names) => names.includes('web') && names.includes('web-1'),
      );
      expect(found.length).toBeLessThanOrEqual(3);
    });
  });
}

function sharedNamespace(world: World): JsonObject {
  const mappings = { byName: { 'team-a': hostNs(world) } };
  const label = `metadata.labels["${SERVICE_NAME}"]`;
  const expression = 'context.virtualObject.metadata.annotations?.to ?? value';
  return {
    sync: {
      toHost: {
        namespaces: { enabled: true, mappings },
        endpointSlices: { enabled: true, patches: [{ path: label, expression }] },
      },
    },
  };
}

function hostNs(world: World): string {
  return `${world.hostNamespace}-shared`;
}

function tenantEndpoints(name: string): KubeObject {
  return endpoints(`team-a/${name}`, { subsets: [subset(TENANT_IP)] });
}

function tenantSlice(
  name: string,
  serviceName: string,
  { to, labels = {} }: { to?: string; labels?: Record<string, string> } = {},
): KubeObject {
  return slice(`team-a/${name}`, serviceName, {
    labels,
    ...(to === undefined ? {} : { annotations: { to } }),
    endpoints: [{ addresses: [TENANT_IP], conditions: { ready: true } }],
  });
}

/** A Service as vCluster copies it. */
function copyOfService(world: World, name: string): KubeObject {
  const copy = service(`${hostNs(world)}/${name}`);
  const annotations = {
    'vcluster.loft.sh/object-name': name,
    'vcluster.loft.sh/object-namespace': 'team-a',
    'vcluster.loft.sh/object-uid': 'u',
    'vcluster.loft.sh/object-kind': '/v1, Kind=Service',
    'vcluster.loft.sh/object-host-name': name,
    'vcluster.loft.sh/object-host-namespace': hostNs(world),
  };
  return { ...copy, metadata: { ...copy.metadata, annotations, labels: { [MARKER]: world.vcluster } } };
}

function notManaged(world: World, name: string): Promise<string> {
  return world.whenEvent(`team-a/${name}`, 'NotManaged', { kind: 'EndpointSlice' });
}

/** The names of the Endpoints and slices that give this host Service the tenant's address. */
async function tenantAddresses(world: World, serviceName: string): Promise<string[]> {
  const [slices, own] = await Promise.all([
    world.host.list('EndpointSlice', hostNs(world), `?labelSelector=${SERVICE_NAME}%3D${serviceName}`),
    world.host.find('Endpoints', hostNs(world), serviceName),
  ]);
  return [...slices, ...(own === undefined ? [] : [own])]
    .filter((object) => JSON.stringify(object).includes(TENANT_IP))
    .map(({ metadata }) => metadata.name);
}

function whenAddresses(
  world: World,
  serviceName: string,
  holds: (names: readonly string[]) => boolean,
): Promise<string[]> {
  return eventually(() => tenantAddresses(world, serviceName), holds, {
    what: `the tenant's addresses of the host Service ${serviceName}`,
  });
}
