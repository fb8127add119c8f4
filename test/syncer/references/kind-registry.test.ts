/** Which kinds are watched, and what is known of the others. */

import { expect, test } from 'vitest';
import { sleep } from '../../../src/base/clock.ts';
import type { WatchClient } from '../../../src/kube/types.ts';
import { KindRegistry } from '../../../src/syncer/references/kind-registry.ts';
import { kindWorld } from './kind-world.ts';

const SECRET = 'v1 Secret';

/** Those that an informer calls. */
function clientMethods(client: WatchClient): WatchClient {
  return {
    ...client,
    watch: (...call) => client.watch(...call),
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  };
}

async function registryIn(world: ReturnType<typeof kindWorld>) {
  const { environment, signal } = world;
  const heard: string[] = [];
  const registry = new KindRegistry(environment, await world.named(), {
    changed: () => undefined,
    opened: ({ kind }) => void heard.push(`opened ${kind.id}`),
    retry: (kind) => void heard.push(`retry ${kind}`),
  });
  registry.start(signal);
  return { registry, heard };
}

test('a kind that a patch names is watched from the start', async () => {
  await using world = kindWorld();
  const { registry } = await registryIn(world);
  expect([registry.isOpened, registry.caches(SECRET)]).toEqual([false, undefined]);
  await registry.whenOpened(world.signal);
  expect([registry.isOpened, registry.detail, world.state.missing]).toEqual([true, '1 kinds are watched', 0]);
  expect(registry.caches(SECRET)?.kind.id).toBe(SECRET);
});

test('a command waits for a kind that is listed slowly, the daemon does not', async () => {
  const isWatched = async (giveUpMs: number | undefined): Promise<boolean> => {
    await using world = kindWorld();
    const { clients } = world.environment;
    const { virtual } = clients;
    const slow: WatchClient = {
      ...clientMethods(virtual),
      async list(...asked) {
        await sleep(world.clock, 50_000, world.signal);
        return virtual.list(...asked);
      },
    };
    Object.assign(world.environment, { clients: { ...clients, virtual: slow }, giveUpMs });
    const { registry } = await registryIn(world);
    let wasWatched = false;
    const opening = registry.whenOpened(world.signal).then(() => {
      wasWatched = registry.caches(SECRET) !== undefined;
    });
    await world.clock.advanceAsync(60_000);
    await opening;
    return wasWatched;
  };
  expect([await isWatched(1), await isWatched(undefined)]).toEqual([true, false]);
});

test('a kind that is not served is looked for until it is, and delays nothing', async () => {
  await using world = kindWorld();
  world.state.isServed = false;
  const { registry, heard } = await registryIn(world);
  await registry.whenOpened(world.signal);
  expect(registry.isOpened).toBe(true);
  // An API server that does not answer looks the same until the second attempt.
  expect(registry.detail).toBe(
    `not needed; ${SECRET}: its kind is not served by both clusters, or could not be looked up`,
  );
  await world.clock.advanceAsync(600_000);
  expect([world.state.missing, heard]).toEqual([1, []]);
  expect(registry.detail).toBe(`not needed; ${SECRET}: its kind is not served by both clusters`);
  world.state.isServed = true;
  await world.clock.advanceAsync(120_000);
  expect([world.state.missing, heard]).toEqual([0, [`opened ${SECRET}`]]);
  expect(registry.detail).toBe('1 kinds are watched');
});

test('a kind that is installed later and is cluster-scoped is said to be that', async () => {
  await using world = kindWorld();
  world.state.isServed = false;
  const { registry, heard } = await registryIn(world);
  await registry.whenOpened(world.signal);
  world.state.isClusterScoped = true;
  await world.clock.advanceAsync(120_000);
  expect(registry.detail).toBe(
    `not needed; ${SECRET}: Secret of v1 is cluster-scoped in the host cluster; only namespaced kinds can be used here`,
  );
  expect(heard).toEqual([]);
});

test('a kind that only an object names and that is not served is tried again after a minute', async () => {
  await using world = kindWorld();
  const { registry, heard } = await registryIn(world);
  await registry.whenOpened(world.signal);
  heard.length = 0;
  await registry.open(['v1 ConfigMap']);
  expect(registry.whyUnavailable('v1 ConfigMap')).toBe('v1 ConfigMap is not served');
  // No reconcile waits for it meanwhile.
  expect(registry.open(['v1 ConfigMap', SECRET])).toBeUndefined();
  await world.clock.advanceAsync(59_999);
  expect(heard).toEqual([]);
  await world.clock.advanceAsync(1);
  expect(heard).toEqual(['retry v1 ConfigMap']);
  expect(registry.open(['v1 ConfigMap'])).toBeDefined();
});
