/** A tenant writes what an earlier policy made of its values on its own objects, with a record: the policy in use decides all the same. */

import { describe, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject, StringMap } from '../../src/kube/object.ts';
import { eventually } from '../support/eventually.ts';
import { slice } from './endpoint-slices.ts';
import { endpoints } from './objects.ts';
import { rewrite } from './reload.ts';
import { plain } from './services.ts';
import { pair, type NewWorld, type World } from './world.ts';

const CLASS = 'example.com/class';
const KINDS = ['Endpoints', 'EndpointSlice', 'Service'] as const;
const TRICK = 'default/trick';
const HONEST = 'default/honest';
/** What no patch changes causes no write, either. */
const CALM = 'default/calm';
const FORGED: readonly StringMap[] = [{}, { 'endpoint-syncer/last-synced': '{"v":1}' }];

/** Annotations and labels alike, and a path of the content. */
function policy(expression: string, prefix: string): JsonObject {
  const patches = (path: string): JsonObject[] => [
    { path: `metadata.annotations["${CLASS}"]`, expression },
    { path: `metadata.labels["${CLASS}"]`, expression },
    { path, expression: `value === undefined || value === "calm" ? value : "${prefix}-" + value` },
  ];
  return {
    sync: {
      toHost: {
        endpoints: { patches: patches('subsets[*].addresses[*].hostname') },
        endpointSlices: { enabled: true, patches: patches('endpoints[*].hostname') },
        services: { patches: patches('spec.ports[*].name') },
      },
    },
    endpointSyncer: { services: 'sync' },
  };
}

const BEFORE = policy('value.toLowerCase()', 'a');
const AFTER = policy('value.toLowerCase() === "premium" ? "basic" : value.toLowerCase()', 'b');

export function formerPolicyScenarios(newWorld: NewWorld): void {
  describe('what an earlier policy made of a value', () => {
    for (const how of ['restart', 'reload'] as const) {
      test.for(FORGED)(
        `does not stay on the host after a ${how} because the tenant writes it, with %o`,
        async (mark, { expect }) => {
          await using world = await newWorld();
          const daemon = await world.startSync({ config: BEFORE });
          for (const key of [TRICK, HONEST, CALM]) await create(world, key);
          await whenAll(world, TRICK, ['premium', 'a-x']);
          await whenAll(world, CALM, ['calm', 'calm']);
          await world.settle(daemon);
          await using log = await world.log('host');
          if (how === 'restart') {
            await daemon.stop();
            await pin(world, mark);
            await world.settle(await world.startSync({ config: AFTER }));
          } else {
            await rewrite(daemon, (config) => ({ ...config, sync: AFTER['sync'] ?? null }));
            // The tenant writes before, while and after the policy changes.
            await eventually(
              async () => {
                await pin(world, mark);
                return classesOf(await world.host.get('Endpoints', ...world.hostKey(HONEST)));
              },
              (classes) => classes.every((one) => one === 'basic'),
            );
          }
          await whenAll(world, HONEST, ['basic', 'b-x']);
          await whenAll(world, TRICK, ['basic', how === 'restart' ? 'b-a-x' : undefined]);
          expect(log.of(world.hostName(CALM))).toEqual([]);
        },
      );
    }

    test('is not told from a record without its version, which is not written for that', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const daemon = await world.startSync({ config: BEFORE });
      for (const key of [TRICK, CALM]) await create(world, key);
      await whenAll(world, TRICK, ['premium', 'a-x']);
      await world.settle(daemon);
      await daemon.stop();
      const recorded = await Promise.all(KINDS.map((kind) => withoutVersions(world, kind)));
      await using log = await world.log('host');
      const next = await world.startSync({ config: BEFORE });
      await world.settle(next);
      expect(log.of(world.hostName(TRICK))).toEqual([]);
      await next.stop();
      await pin(world, {});
      await world.settle(await world.startSync({ config: AFTER }));
      await whenAll(world, TRICK, ['basic', 'b-a-x']);
      expect(recorded.every((text) => text.includes('"av":"'))).toBe(true);
    });
  });
}

async function create(world: World, key: string): Promise<void> {
  const [value, hostname] = key === CALM ? ['calm', 'calm'] : ['PREMIUM', 'x'];
  const metadata = { annotations: { [CLASS]: value }, labels: { [CLASS]: value } };
  const address = { ip: '10.7.0.1', hostname };
  const ports = [{ name: hostname, port: 80, protocol: 'TCP' }];
  await world.virtual.create('Service', plain(key, { ...metadata, spec: { ports } }));
  await world.virtual.create(
    'Endpoints',
    endpoints(key, { ...metadata, subsets: [{ addresses: [address] }] }),
  );
  const content = { endpoints: [{ addresses: [address.ip], hostname }] };
  await world.virtual.create('EndpointSlice', slice(key, pair(key)[1], { ...metadata, ...content }));
}

/** The tenant writes the values of the copy, and perhaps a record, on its own objects. */
async function pin(world: World, mark: StringMap): Promise<void> {
  const metadata = { annotations: { [CLASS]: 'premium', ...mark }, labels: { [CLASS]: 'premium' } };
  const contents: Record<(typeof KINDS)[number], JsonObject> = {
    Endpoints: { subsets: [{ addresses: [{ ip: '10.7.0.1', hostname: 'a-x' }] }] },
    EndpointSlice: { endpoints: [{ addresses: ['10.7.0.1'], hostname: 'a-x' }] },
    Service: { spec: { ports: [{ name: 'a-x', port: 80, protocol: 'TCP' }] } },
  };
  for (const kind of KINDS)
    await world.virtual.merge(kind, pair(TRICK), { metadata: { ...metadata }, ...contents[kind] });
}

/** The copies of all kinds have this class, and this name in their content, if given. */
async function whenAll(
  world: World,
  key: string,
  [wanted, name]: readonly [string, string | undefined],
): Promise<void> {
  for (const kind of KINDS)
    await world.host.when(
      kind,
      world.hostKey(key),
      (copy) =>
        classesOf(copy).every((one) => one === wanted) &&
        (name === undefined || JSON.stringify(copy).includes(`name":"${name}"`)),
      { what: `${kind} ${key} with ${wanted} and ${name}` },
    );
}

function classesOf({ metadata }: KubeObject): readonly (string | undefined)[] {
  return [metadata.annotations?.[CLASS], metadata.labels?.[CLASS]];
}

/** As the build before this one has written the record; returns it as it was. */
async function withoutVersions(world: World, kind: (typeof KINDS)[number]): Promise<string> {
  const key = world.hostKey(TRICK);
  const text =
    (await world.host.get(kind, ...key)).metadata.annotations?.['endpoint-syncer/last-synced'] ?? '';
  const annotations = { 'endpoint-syncer/last-synced': text.replace(/,"[al]v":"[^"]*"/gu, '') };
  await world.host.merge(kind, key, { metadata: { annotations } });
  return text;
}
