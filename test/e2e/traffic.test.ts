/** Traffic to copies, as the readers of kube-proxy and CoreDNS lead it: no address that was right, and still is, is missing at any moment. */

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { slice, whenSlice } from '../scenarios/endpoint-slices.ts';
import { LAST_SYNCED } from '../scenarios/expected-copy.ts';
import { sliceOfVcluster } from '../scenarios/hand-over.ts';
import { subset } from '../scenarios/objects.ts';
import { plain } from '../scenarios/services.ts';
import { pair, type World } from '../scenarios/world.ts';
import { newRealWorld } from './real-world.ts';
import { READERS, readerOf, type ReaderName } from './slice-reader.ts';
import { suiteClusters } from './suite-clusters.ts';

const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
const MIRRORING = 'endpointslicemirroring-controller.k8s.io';
const SLICES_ALONE: JsonObject = { sync: { toHost: { endpoints: { enabled: false } } } };
const [FIRST, SECOND, THIRD] = ['10.1.0.1', '10.1.0.2', '10.1.0.3'];
const ROUTE = `${FIRST}:80`;
const KINDS = ['Endpoints', 'EndpointSlice'] as const;

type Kind = (typeof KINDS)[number];
type ServiceSpec = Readonly<Record<string, unknown>>;

interface Condition {
  readonly ready: boolean;
  readonly serving?: boolean;
  readonly terminating?: boolean;
}

/** What a Service has to be for the reader to lead to its slices. */
const SPECS: Readonly<Record<ReaderName, ServiceSpec>> = {
  'kube-proxy': {},
  CoreDNS: { clusterIP: 'None' },
};

/** With a Service on both sides, which vCluster would have copied. */
async function withService(
  world: World,
  key: string,
  reader: ReaderName,
  more: ServiceSpec = {},
): Promise<[string, string]> {
  const spec = { ...SPECS[reader], ...more };
  await world.virtual.create('Service', plain(key, { spec }));
  const hostKey = world.hostKey(key);
  await world.host.create('Service', plain(hostKey.join('/'), { spec }));
  return hostKey;
}

/** What changes the addresses of an object of the kind. */
function addressesOf(
  kind: Kind,
  ips: readonly string[],
  conditions: Condition = { ready: true },
): JsonObject {
  return kind === 'Endpoints'
    ? ({ subsets: [subset(...ips)] } as unknown as JsonObject) // raw JSON from here
    : { endpoints: ips.map((ip) => ({ addresses: [ip], conditions: { ...conditions } })) };
}

async function create(world: World, kind: Kind, key: string, ips: readonly string[]): Promise<void> {
  const object = slice(key, pair(key)[1]);
  if (kind === 'Endpoints') await world.createVirtual(key, { subsets: [subset(...ips)] });
  else await world.virtual.create(kind, { ...object, ...addressesOf(kind, ips) });
}

function routes(ips: readonly string[]): readonly string[] {
  return ips.map((ip) => `${ip}:80`);
}

describe.for(READERS)('traffic that %s leads', (name) => {
  test.for(KINDS)('goes to each address of copies of %s for as long as the object has it', async (kind) => {
    await using world = await newRealWorld();
    await using reader = await readerOf(world, name);
    const first = await world.startDaemon();
    const key = 'default/steady';
    const hostKey = await withService(world, key, name);
    await create(world, kind, key, [FIRST]);
    await reader.whenRoutes(hostKey, routes([FIRST]));
    const steps = [[FIRST, SECOND], [FIRST, SECOND, THIRD], [FIRST, THIRD], [FIRST]];
    for (const ips of steps) {
      await world.virtual.merge(kind, pair(key), addressesOf(kind, ips));
      await reader.whenRoutes(hostKey, routes(ips));
    }
    for (const labels of [{ app: 'web' }, { app: null }]) {
      await world.virtual.merge(kind, pair(key), { metadata: { labels } });
      await world.settle(first);
    }
    await first.terminate();
    const second = await world.startDaemon();
    await world.settle(second);
    await world.clusters.stop('controllers');
    await world.clusters.start('controllers');
    await world.virtual.merge(kind, pair(key), addressesOf(kind, [FIRST, SECOND]));
    await reader.whenRoutes(hostKey, routes([FIRST, SECOND]));
    expect(reader.statesWithout(hostKey, ROUTE)).toEqual([]);
    await world.virtual.delete(kind, ...pair(key));
    await reader.whenRoutes(hostKey, []);
  });

  test('ends at an address that terminates as the program has it for slices of its own cluster', async () => {
    await using world = await newRealWorld();
    await using reader = await readerOf(world, name);
    await world.startDaemon();
    const key = 'default/ending';
    const hostKey = await withService(world, key, name);
    await create(world, 'EndpointSlice', key, [FIRST]);
    await reader.whenRoutes(hostKey, routes([FIRST]));
    const terminating = { ready: false, serving: true, terminating: true };
    const ending = addressesOf('EndpointSlice', [FIRST], terminating);
    await world.virtual.merge('EndpointSlice', pair(key), ending);
    await whenSlice(world, key, (copy) => JSON.stringify(copy['endpoints']).includes('"terminating":true'));
    // kube-proxy goes on while no other address serves, and CoreDNS has ready ones alone.
    const meanwhile = name === 'CoreDNS' ? [] : [ROUTE];
    await reader.whenRoutes(hostKey, meanwhile);
    const replaced = { endpoints: [ending, addressesOf('EndpointSlice', [SECOND])].flatMap(endpointsIn) };
    await world.virtual.merge('EndpointSlice', pair(key), replaced);
    await reader.whenRoutes(hostKey, routes([SECOND]));
    const states = [[ROUTE], ...(name === 'CoreDNS' ? [[]] : []), routes([SECOND])];
    expect(reader.routesOf(hostKey)).toEqual(states);
  });

  test('follows a slice to another Service, and leaves the one that it had', async () => {
    await using world = await newRealWorld();
    await using reader = await readerOf(world, name);
    await world.startDaemon();
    const [from, to] = [world.hostKey('default/from'), world.hostKey('default/to')];
    // kube-proxy keeps the routes of a Service that does not exist, and CoreDNS has no answer for one.
    if (name === 'CoreDNS')
      for (const key of ['default/from', 'default/to']) await withService(world, key, name);
    await world.virtual.create('EndpointSlice', slice('default/moving', 'from'));
    await reader.whenRoutes(from, routes([FIRST]));
    const labels = { 'kubernetes.io/service-name': 'to' };
    await world.virtual.merge('EndpointSlice', ['default', 'moving'], { metadata: { labels } });
    await reader.whenRoutes(to, routes([FIRST]));
    await reader.whenRoutes(from, []);
    await world.virtual.merge('EndpointSlice', ['default', 'moving'], {
      metadata: { labels: { 'kubernetes.io/service-name': null } },
    });
    await reader.whenRoutes(to, []);
    expect(reader.routesOf(from)).toEqual([routes([FIRST]), []]);
  });

  test.for([
    ['Endpoints and slices', {}],
    ['slices alone', SLICES_ALONE],
  ] as const)(
    'stays when this program takes copies of vCluster over and ends, with the sync of %s',
    async ([, config]) => {
      await using world = await newRealWorld();
      await using reader = await readerOf(world, name);
      const key = 'default/db';
      const hostKey = await withService(world, key, name);
      const byHand = await world.virtual.create('EndpointSlice', slice('default/by-hand', 'db'));
      const { uid = '' } = byHand.metadata;
      await world.host.create('EndpointSlice', sliceOfVcluster(world, 'default/by-hand', { uid }));
      // vCluster copies what the virtual cluster's mirroring controller has made of Endpoints, and that of the host adopts the copy.
      const labels = { [MANAGED_BY]: MIRRORING };
      const other = { endpoints: [{ addresses: [SECOND], conditions: { ready: true } }] };
      const mirrored = slice('default/db-abcde', 'db', { labels, ...other });
      const virtual = await world.virtual.create('EndpointSlice', mirrored);
      await world.createVirtual(key, { subsets: [subset(SECOND)] });
      const before = sliceOfVcluster(world, 'default/db-abcde', { labels, uid: virtual.metadata.uid ?? '' });
      const { labels: marker, annotations } = world.bookkeeping('Endpoints', key);
      await world.clusters.stop('controllers');
      await world.host.create('EndpointSlice', { ...before, ...other });
      await world.host.create('Endpoints', {
        apiVersion: 'v1',
        kind: 'Endpoints',
        metadata: { namespace: hostKey[0], name: hostKey[1], labels: marker, annotations },
        ...addressesOf('Endpoints', [SECOND]),
      });
      await reader.whenRoutes(hostKey, routes([FIRST, SECOND]));
      const daemon = await world.startDaemon({ config });
      const isTaken = ({ metadata }: KubeObject): boolean =>
        metadata.annotations?.[LAST_SYNCED] !== undefined;
      await whenSlice(world, 'default/by-hand', isTaken);
      if (config === SLICES_ALONE) await whenSlice(world, 'default/db-abcde', isTaken);
      else await world.whenCopy(key, isTaken);
      await world.whenIdle(daemon);
      await world.clusters.start('controllers');
      await daemon.terminate();
      for (const route of routes([FIRST, SECOND])) expect(reader.statesWithout(hostKey, route)).toEqual([]);
      const left = await world.host.list('EndpointSlice', world.hostNamespace);
      expect(left.filter(({ metadata }) => metadata.name.endsWith('-stand-in'))).toEqual([]);
    },
  );

  test('goes on to the Pods of a Service that loses its selector until their slices are deleted as the Event says', async () => {
    await using world = await newRealWorld();
    await using reader = await readerOf(world, name);
    await using resources = new AsyncDisposableStack();
    const key = 'default/selected';
    resources.defer(await createPod(world));
    const hostKey = await withService(world, key, name, { selector: { app: 'web' } });
    await reader.whenRoutes(hostKey, [`${POD_IP}:8080`]);
    await world.startDaemon();
    await create(world, 'Endpoints', key, [FIRST]);
    await world.virtual.merge('Service', pair(key), { spec: { selector: null } });
    await world.host.merge('Service', hostKey, { spec: { selector: null } });
    const note = await world.whenEvent(key, 'TakenOver');
    await reader.whenRoutes(hostKey, [...routes([FIRST]), `${POD_IP}:8080`]);
    const [, command = ''] = /: kubectl (.+)$/u.exec(note) ?? [];
    const access = `--kubeconfig=${world.clusters.host.kubeconfigPath}`;
    await promisify(execFile)(suiteClusters().kubectl, [access, ...command.split(' ')]);
    await reader.whenRoutes(hostKey, routes([FIRST]));
    expect(reader.statesWithout(hostKey, ROUTE)).toEqual([]);
  });
});

const POD_IP = '10.9.9.9';

/** A ready Pod on a Node, without a kubelet. Returns what deletes the Node; the Pod goes with its namespace. */
async function createPod({ host, hostNamespace, vcluster }: World): Promise<() => Promise<void>> {
  const pods = `/api/v1/namespaces/${hostNamespace}/pods`;
  const containers = [{ name: 'web', image: 'example.com/web:1' }];
  const metadata = { name: 'web', labels: { app: 'web' } };
  const status = {
    phase: 'Running',
    podIP: POD_IP,
    podIPs: [{ ip: POD_IP }],
    conditions: [{ type: 'Ready', status: 'True' }],
  };
  const merge = 'application/merge-patch+json';
  const answers = [
    await host.request('POST', '/api/v1/nodes', { metadata: { name: vcluster } }),
    await host.request('POST', pods, { metadata, spec: { nodeName: vcluster, containers } }),
    await host.request('PATCH', `${pods}/web/status`, { status }, merge),
  ];
  expect(answers.map((answer) => answer.status)).toEqual([201, 201, 200]);
  return async () => {
    await host.request('DELETE', `${pods}/web?gracePeriodSeconds=0`);
    await host.request('DELETE', `/api/v1/nodes/${vcluster}`);
  };
}

function endpointsIn({ endpoints }: JsonObject): readonly JsonObject[] {
  return (endpoints ?? []) as unknown as readonly JsonObject[]; // of this file
}
