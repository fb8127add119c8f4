/** The stand-in of a slice that has to be deleted and created again, where the daemon ends at each step: the copy is there in the end, and alone. */

import { describe, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import type { ProxiedRequest } from './api-proxy.ts';
import { newEmbeddedWorld } from './embedded-world.ts';
import { slice, whenSlice } from './endpoint-slices.ts';
import { LAST_SYNCED } from './expected-copy.ts';
import { sliceOfVcluster } from './hand-over.ts';
import type { World } from './world.ts';

const KEY = 'default/db-abcde';
const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
const MIRRORED = { labels: { [MANAGED_BY]: 'endpointslicemirroring-controller.k8s.io' } };
const SLICES_ALONE: JsonObject = { sync: { toHost: { endpoints: { enabled: false } } } };

const STEPS = [
  ['POST', '-stand-in'],
  ['DELETE', ''],
  ['POST', ''],
  ['DELETE', '-stand-in'],
] as const;
const ENDS = ['cut', 'lose-answer'] as const;
const MOMENTS = STEPS.flatMap(([method, suffix]) => ENDS.map((kind) => ({ method, suffix, kind })));

/** A slice that vCluster made, which this program takes over as another controller's. */
async function startWithMirroredSlice(world: World): Promise<void> {
  const { metadata } = await world.virtual.create('EndpointSlice', slice(KEY, 'db', MIRRORED));
  await world.host.create(
    'EndpointSlice',
    sliceOfVcluster(world, KEY, { ...MIRRORED, uid: metadata.uid ?? '' }),
  );
}

function nameIn({ path, body, method }: ProxiedRequest): string {
  if (method !== 'POST') return /\/endpointslices\/([^?]+)/u.exec(path)?.[1] ?? '';
  return (JSON.parse(body.toString()) as KubeObject).metadata.name; // of a slice
}

/** All writes of slices fail from the step on, as if the daemon had ended there. */
async function endAt(world: World, { method, suffix, kind }: (typeof MOMENTS)[number]): Promise<void> {
  const host = await world.proxy('host');
  const ended = Promise.withResolvers<void>();
  let isOver = false;
  host.behaviour = {
    decide(request) {
      if (!request.isWrite || !request.path.includes('/endpointslices')) return { kind: 'pass' };
      if (isOver) return { kind: 'cut' };
      isOver = request.method === method && nameIn(request) === `${world.hostName(KEY)}${suffix}`;
      if (isOver) ended.resolve();
      return isOver ? { kind } : { kind: 'pass' };
    },
  };
  const daemon = await world.startSync({ config: SLICES_ALONE, kubeconfigs: { host: host.path } });
  await ended.promise;
  await daemon.stop();
}

async function sliceNames(world: World): Promise<string[]> {
  const slices = await world.host.list('EndpointSlice', world.hostNamespace);
  return slices.map(({ metadata }) => metadata.name);
}

describe.concurrent('a stand-in', () => {
  test('has the addresses, the Service and the labels of the copy until that is there, and is deleted then', async ({
    expect,
  }) => {
    await using world = await newEmbeddedWorld();
    await startWithMirroredSlice(world);
    const host = await world.proxy('host');
    let between: readonly KubeObject[] = [];
    host.behaviour = {
      async decide(request) {
        if (request.method === 'DELETE' && nameIn(request) === world.hostName(KEY))
          between = await world.host.list('EndpointSlice', world.hostNamespace);
        return { kind: 'pass' };
      },
    };
    const daemon = await world.startSync({ config: SLICES_ALONE, kubeconfigs: { host: host.path } });
    const copy = await whenSlice(
      world,
      KEY,
      ({ metadata }) => metadata.annotations?.[LAST_SYNCED] !== undefined,
    );
    await world.whenIdle(daemon);
    const standIn = between.find(({ metadata }) => metadata.name === `${world.hostName(KEY)}-stand-in`);
    expect(standIn).toMatchObject({ endpoints: copy['endpoints'], ports: copy['ports'] });
    expect(standIn?.metadata.labels).toEqual(copy.metadata.labels);
    expect(await sliceNames(world)).toEqual([world.hostName(KEY)]);
  });

  test.for(MOMENTS)('is not left by a daemon that ends with %j', async (moment, { expect }) => {
    await using world = await newEmbeddedWorld();
    await startWithMirroredSlice(world);
    await endAt(world, moment);
    const daemon = await world.startSync({ config: SLICES_ALONE });
    const isOurs = ({ metadata: { labels } }: KubeObject): boolean =>
      labels?.[MANAGED_BY] === 'endpoint-syncer';
    await whenSlice(world, KEY, isOurs);
    await world.whenIdle(daemon);
    expect(await sliceNames(world)).toEqual([world.hostName(KEY)]);
  });

  // Before the first of them, the slice is vCluster's.
  test.for(MOMENTS.slice(1))(
    'goes with the virtual slice where a daemon ends with %j',
    async (moment, { expect }) => {
      await using world = await newEmbeddedWorld();
      await startWithMirroredSlice(world);
      await endAt(world, moment);
      await world.virtual.delete('EndpointSlice', 'default', 'db-abcde');
      const daemon = await world.startSync({ config: SLICES_ALONE });
      await world.whenIdle(daemon);
      expect(await sliceNames(world)).toEqual([]);
    },
  );
});
