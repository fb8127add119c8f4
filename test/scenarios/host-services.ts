/** A tenant's copies get no traffic from a host Service that is not the copy of their virtual Service. */

import { beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { keyOf, type KubeObject, type NamespacedName } from '../../src/kube/object.ts';
import { LAST_SYNCED, OBJECT_NAME } from '../../src/syncer/translate/bookkeeping.ts';
import {
  encodeLastSynced,
  NO_ROOM,
  shortHash,
  type SyncedEntry,
  type SyncedSection,
} from '../../src/syncer/translate/last-synced.ts';
import { slice } from './endpoint-slices.ts';
import { eventually } from '../support/eventually.ts';
import { bookkeeping, MARKER } from './expected-copy.ts';
import { endpoints, service, subset } from './objects.ts';
import { sharedWorld } from './shared-world.ts';
import { type NewWorld, type World } from './world.ts';

/** The address to which the tenant would have the traffic. */
const TENANT_IP = '10.66.0.1';
const SERVICE_NAME = 'kubernetes.io/service-name';
const CONTROLLED_BY = 'vcluster.loft.sh/controlled-by';
const SKIP_BACKSYNC = 'vcluster.loft.sh/skip-backsync';

export function hostServiceScenarios(newWorld: NewWorld): void {
  sameNameScenarios(newWorld);
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
      // The host's controller deletes its mirror of what was there before the daemon knew of the Service.
      expect(await whenAddresses(world, name, (found) => found.length === 0)).toEqual([]);
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
      expect(await whenAddresses(world, 'later', (found) => found.length === 0)).toEqual([]);
      await world.host.delete('Service', hostNs(world), 'later');
      await whenAddresses(world, 'later', (found) => found.includes('later-1') && found.includes('later'));
    });

    test.each([
      ['the name of the object', { annotations: { [OBJECT_NAME]: null } }],
      ['all annotations', { annotations: null }],
    ])(
      'a client that removes %s of the copy of a Service does not end its traffic',
      async (what, metadata) => {
        const { world, daemon } = shared();
        const name = `damaged-${what.split(' ', 1)[0] ?? ''}`;
        const place = { namespace: hostNs(world), name };
        const copy = serviceCopy(world, place, { namespace: 'team-a', name });
        await world.host.create('Service', copy);
        await world.virtual.create('Endpoints', tenantEndpoints(name));
        await world.virtual.create('EndpointSlice', tenantSlice(`${name}-1`, name));
        const pairs = [
          ['Endpoints', name],
          ['EndpointSlice', `${name}-1`],
        ] as const;
        const uids = () =>
          Promise.all(
            pairs.map(async ([kind, of]) => (await world.host.when(kind, [hostNs(world), of])).metadata.uid),
          );
        const before = await uids();
        await world.settle(daemon);
        await world.host.merge('Service', [hostNs(world), name], { metadata });
        await world.settle(daemon);
        // As vCluster repairs it.
        await world.host.merge('Service', [hostNs(world), name], { metadata: copy.metadata });
        await world.settle(daemon);
        expect(await uids()).toEqual(before);
      },
    );

    test('no label of the tenant keeps a copy there', async () => {
      const { world } = shared();
      for (const [name, labels] of [
        ['left', { [SKIP_BACKSYNC]: 'true' }],
        ['held', {}],
        ['crowded', {}],
      ] as const) {
        await world.virtual.create('EndpointSlice', tenantSlice(name, name, { labels }));
        await whenAddresses(world, name, (found) => found.includes(name));
      }
      await world.virtual.delete('EndpointSlice', 'team-a', 'left');
      await crowdOut(world, 'crowded');
      for (const name of ['held', 'crowded'])
        await world.virtual.merge('EndpointSlice', ['team-a', name], {
          metadata: { labels: { [CONTROLLED_BY]: 'me' } },
        });
      for (const name of ['left', 'held', 'crowded']) {
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
      await world.host.whenGone('EndpointSlice', [hostNs(world), 'moving']);
    });

    test('a Service that is a copy of the virtual cluster gets them', async () => {
      const { world } = shared();
      await world.host.create(
        'Service',
        serviceCopy(world, { namespace: hostNs(world), name: 'web' }, { namespace: 'team-a', name: 'web' }),
      );
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

/** Two virtual Services with one host name: `a-x-b` in `c`, and `a` in `b-x-c`. */
function sameNameScenarios(newWorld: NewWorld): void {
  describe('in the host namespace of the virtual cluster', { concurrent: false }, () => {
    const shared = sharedWorld(newWorld, () => ({
      config: { sync: { toHost: { endpointSlices: { patches: [PREFIX] } } } },
    }));
    beforeAll(async () => {
      await Promise.all(['c', 'b-x-c'].map((name) => shared().world.virtualNamespace(name)));
    });

    test('a slice does not join the copy of another virtual Service', async () => {
      const { world, daemon } = shared();
      const place = { namespace: world.hostNamespace, name: `a-x-b-x-c-x-${world.vcluster}` };
      await world.host.create('Service', serviceCopy(world, place, { namespace: 'b-x-c', name: 'a' }));
      await world.virtual.create('EndpointSlice', slice('c/thief', 'a-x-b'));
      await world.virtual.create('EndpointSlice', slice('c/raw', place.name));
      await world.virtual.create('EndpointSlice', slice('b-x-c/own', 'a'));
      for (const name of ['thief', 'raw'])
        expect(await world.whenEvent(`c/${name}`, 'NotManaged', { kind: 'EndpointSlice' })).toContain(
          `The host Service "${keyOf(place)}" is not the copy of this object's Service`,
        );
      await world.host.when('EndpointSlice', hostPair(world, 'own', 'b-x-c'));
      await world.settle(daemon);
      for (const name of ['thief', 'raw'])
        expect(await world.host.find('EndpointSlice', ...hostPair(world, name, 'c'))).toBeUndefined();
    });

    test('a copy that was there before the Service goes', async () => {
      const { world } = shared();
      const place = { namespace: world.hostNamespace, name: `later-x-b-x-c-x-${world.vcluster}` };
      await world.virtual.create('EndpointSlice', slice('c/early', 'later-x-b'));
      const copy = hostPair(world, 'early', 'c');
      await world.host.when('EndpointSlice', copy);
      await world.host.create('Service', serviceCopy(world, place, { namespace: 'b-x-c', name: 'later' }));
      await world.host.whenGone('EndpointSlice', copy);
      await world.host.delete('Service', place.namespace, place.name);
      const again = await world.host.when('EndpointSlice', copy);
      expect(again.metadata.labels).toMatchObject({ [SERVICE_NAME]: place.name });
    });

    test('a name that is cut does not join the copy of another virtual Service', async () => {
      const { world } = shared();
      const long = 'l'.repeat(60);
      await world.virtual.create('EndpointSlice', slice('c/cut', long));
      const copy = hostPair(world, 'cut', 'c');
      const { metadata } = await world.host.when('EndpointSlice', copy);
      const place = { namespace: world.hostNamespace, name: metadata.labels?.[SERVICE_NAME] ?? '' };
      // As if its hash were the same.
      await world.host.create('Service', serviceCopy(world, place, { namespace: 'b-x-c', name: long }));
      await world.host.whenGone('EndpointSlice', copy);
      expect(await world.whenEvent('c/cut', 'NotManaged', { kind: 'EndpointSlice' })).toContain(place.name);
    });

    test('a record on the virtual object brings no value to the host as it is', async () => {
      const { world, daemon } = shared();
      const annotations = { team: 'root' };
      const forged = encodeLastSynced({
        annotations: forgedSection(annotations),
        labels: forgedSection({ [SERVICE_NAME]: 'victim' }),
        paths: new Map(),
      });
      await world.virtual.create(
        'EndpointSlice',
        slice('c/forger', 'victim', { annotations: { ...annotations, [LAST_SYNCED]: forged } }),
      );
      const copy = hostPair(world, 'forger', 'c');
      await world.host.when('EndpointSlice', copy);
      await world.settle(daemon);
      const { metadata } = await world.host.get('EndpointSlice', ...copy);
      expect(metadata.annotations).toMatchObject({ team: 'team-root' });
      expect(metadata.labels).toMatchObject({ [SERVICE_NAME]: `victim-x-c-x-${world.vcluster}` });
    });
  });
}

const PREFIX = { path: 'metadata.annotations["team"]', expression: '"team-" + value' };

function hostPair(world: World, name: string, namespace: string): [string, string] {
  return [world.hostNamespace, `${name}-x-${namespace}-x-${world.vcluster}`];
}

/** What the tenant says the host holds, and something else that the virtual object held. */
function forgedSection(values: Readonly<Record<string, string>>): SyncedSection {
  const entries = Object.entries(values).map(([key, value]): [string, SyncedEntry] => [
    shortHash(key),
    { virtual: shortHash('anything'), host: shortHash(value), isFromHost: false },
  ]);
  return new Map(entries);
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

/** The tenant leaves no room for the record beside the annotations of its slice: an object may have 256 KiB of them. */
async function crowdOut(world: World, name: string): Promise<void> {
  const { annotations = {} } = (await world.host.get('EndpointSlice', hostNs(world), name)).metadata;
  const identity = Object.entries(annotations).filter(([key]) => key !== LAST_SYNCED);
  const bytes = identity.reduce((sum, [key, value]) => sum + key.length + value.length, 0);
  const big = 'x'.repeat(256 * 1024 - bytes - 'big'.length - 60);
  await world.virtual.merge('EndpointSlice', ['team-a', name], { metadata: { annotations: { big } } });
  const copy = await world.host.when(
    'EndpointSlice',
    [hostNs(world), name],
    ({ metadata }) => metadata.annotations?.['big'] === big,
  );
  expect(copy.metadata.annotations?.[LAST_SYNCED]).toBe(NO_ROOM);
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

/** A Service at this place of the host, as vCluster copies it. */
function serviceCopy(world: World, place: NamespacedName, virtual: NamespacedName): KubeObject {
  const copy = service(keyOf(place));
  const annotations = bookkeeping('Service', virtual, place);
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
