/** Services that this program copies (`endpointSyncer.services: sync`), on a host whose controllers run, do not run, or start again. */

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { slice, whenSlice } from '../scenarios/endpoint-slices.ts';
import { endpoints } from '../scenarios/objects.ts';
import { plain, whenService } from '../scenarios/services.ts';
import { pair, type NewWorld, type World } from '../scenarios/world.ts';
import { readerOf } from './slice-reader.ts';
import { suiteClusters } from './suite-clusters.ts';

const SERVICES: JsonObject = { endpointSyncer: { services: 'sync' } };
const INGRESS = { loadBalancer: { ingress: [{ ip: '203.0.113.7', ipMode: 'VIP' }] } };
const SERVICE_NAME = 'kubernetes.io/service-name';
const OF_UID = 'vcluster.loft.sh/object-uid';

const HOST_CONTROLLERS = ['that run', 'that do not run', 'that start again'] as const;
type HostControllers = (typeof HOST_CONTROLLERS)[number];

export function copiedServiceScenarios(newWorld: NewWorld): void {
  describe.for(HOST_CONTROLLERS)('copied Services beside controllers of the host %s', (controllers) => {
    test.for(['Endpoints', 'EndpointSlice'] as const)(
      'keep cluster IP, node port and load-balancer address when the only %s behind them is replaced',
      async (kind) => {
        await using world = await newWorld();
        const daemon = await world.startDaemon({ config: SERVICES });
        const key = 'default/db';
        const object = kind === 'Endpoints' ? endpoints(key) : slice(key, 'db');
        // Its address has to be known before anything is behind it.
        await world.virtual.create('Service', plain(key, { spec: { type: 'LoadBalancer' } }));
        await whenService(world, key);
        await world.virtual.create(kind, object);
        await world.host.when(kind, world.hostKey(key));
        await world.host.mergeStatus('Service', world.hostKey(key), INGRESS);
        await whenBalanced(world, key);
        await world.settle(daemon);
        const { metadata, spec } = await whenService(world, key);
        await beside(world, controllers, async () => {
          await kubectlReplace(world, object);
          const { uid } = (await world.virtual.get(kind, ...pair(key))).metadata;
          await world.host.when(
            kind,
            world.hostKey(key),
            (one) => one.metadata.annotations?.[OF_UID] === uid,
          );
          await world.settle(daemon);
        });
        await world.settle(daemon);
        const kept = await whenService(world, key);
        expect([kept.metadata.uid, kept['spec']]).toEqual([metadata.uid, spec]);
        expect(kept['status']).toMatchObject(INGRESS);
        expect((await whenBalanced(world, key))['status']).toMatchObject(INGRESS);
      },
    );

    test('keep what an allocator of the host writes, through changes and a restart of the daemon', async () => {
      await using world = await newWorld();
      const key = 'default/allocated';
      const allocated = { loadBalancerIP: '203.0.113.7', externalIPs: ['203.0.113.6'] };
      const first = await world.startDaemon({ config: SERVICES });
      await world.virtual.create('Service', plain(key, { spec: { type: 'LoadBalancer' } }));
      await whenService(world, key);
      await beside(world, controllers, async () => {
        await world.host.merge('Service', world.hostKey(key), { spec: allocated });
        await world.virtual.merge('Service', pair(key), {
          metadata: { labels: { changed: '1' } },
          spec: { sessionAffinity: 'ClientIP' },
        });
        const hasChanged = ({ metadata }: KubeObject): boolean => metadata.labels?.['changed'] === '1';
        expect((await whenService(world, key, hasChanged))['spec']).toMatchObject(allocated);
        await world.settle(first);
      });
      const { metadata } = await whenService(world, key);
      await first.terminate();
      const second = await world.startDaemon({ config: SERVICES });
      await world.settle(second);
      const kept = await whenService(world, key);
      expect(kept['spec']).toMatchObject({ ...allocated, sessionAffinity: 'ClientIP' });
      expect(kept.metadata.resourceVersion).toBe(metadata.resourceVersion);
      expect((await world.virtual.get('Service', ...pair(key)))['spec']).not.toMatchObject(allocated);
    });

    test('are created again each time that another client deletes them, with nothing behind them', async () => {
      await using world = await newWorld();
      const daemon = await world.startDaemon({ config: SERVICES });
      const key = 'default/deleted';
      await world.virtual.create('Service', plain(key, { spec: { type: 'NodePort' } }));
      await world.createVirtual(key);
      let copy = await whenService(world, key);
      await world.deleteVirtual(key);
      await world.host.whenGone('Endpoints', world.hostKey(key));
      await beside(world, controllers, async () => {
        for (let round = 0; round < 3; round++) {
          const { uid } = copy.metadata;
          await world.host.delete('Service', ...world.hostKey(key));
          copy = await whenService(world, key, ({ metadata }) => metadata.uid !== uid);
        }
      });
      await world.settle(daemon);
      expect((await whenService(world, key)).metadata.uid).toBe(copy.metadata.uid);
    });

    test('have the addresses of a slice that moves to one, and those that it leaves have none', async () => {
      await using world = await newWorld();
      await using reader = await readerOf(world, 'kube-proxy');
      await world.startDaemon({ config: SERVICES });
      await world.virtual.create('EndpointSlice', slice('default/moving', 'from'));
      const [from, to] = [world.hostKey('default/from'), world.hostKey('default/to')];
      await reader.whenRoutes(from, ['10.1.0.1:80']);
      const first = await whenSlice(world, 'default/moving');
      await beside(world, controllers, async () => {
        await world.virtual.merge('EndpointSlice', ['default', 'moving'], {
          metadata: { labels: { [SERVICE_NAME]: 'to' } },
        });
        await reader.whenRoutes(to, ['10.1.0.1:80']);
        await reader.whenRoutes(from, []);
        // kube-proxy would give a Service that is created later what it has kept.
        for (const name of ['from', 'to']) await world.virtual.create('Service', plain(`default/${name}`));
        await whenService(world, 'default/to');
      });
      expect((await whenSlice(world, 'default/moving')).metadata.uid).not.toBe(first.metadata.uid);
      expect([reader.routesOf(from).at(-1), reader.routesOf(to).at(-1)]).toEqual([[], ['10.1.0.1:80']]);
    });
  });
}

async function beside(world: World, controllers: HostControllers, act: () => Promise<void>): Promise<void> {
  if (controllers === 'that run') return act();
  await world.clusters.stop('controllers');
  if (controllers === 'that start again') return startAgain(world, act);
  try {
    await act();
  } finally {
    await world.clusters.start('controllers');
  }
}

/** Until they have deleted what another client has left without a Service, which the endpoints controller does at its start alone. */
async function startAgain(world: World, act: () => Promise<void>): Promise<void> {
  const left = [world.hostNamespace, 'left'] as const;
  try {
    await act();
    await world.host.create('Endpoints', endpoints(left.join('/')));
  } finally {
    await world.clusters.start('controllers');
  }
  await world.host.whenGone('Endpoints', left);
}

async function kubectlReplace(world: World, object: KubeObject): Promise<void> {
  const file = world.file('replaced.json', JSON.stringify(object));
  const access = `--kubeconfig=${suiteClusters().virtual.kubeconfigPath}`;
  await promisify(execFile)(suiteClusters().kubectl, [access, 'replace', '--force', '-f', file]);
}

function whenBalanced(world: World, key: string): Promise<KubeObject> {
  const isBalanced = (one: KubeObject): boolean =>
    JSON.stringify(one['status'] as JsonValue).includes('203.');
  return world.virtual.when('Service', pair(key), isBalanced);
}
