/** SIGTERM while an API server accepts connections and sends no responses: the process still exits in time. */

import { describe, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { subset } from './objects.ts';
import type { ProxiedRequest } from './api-proxy.ts';
import type { NewWorld, World } from './world.ts';

/** The process ends after 8 s at most; without that limit a hung request lasts 30 s and longer. */
const END_MAX_MS = 15_000;

type Hung = (request: ProxiedRequest) => boolean;

async function terminated(world: World, hung: Hung): Promise<{ ms: number; code: unknown; left: unknown }> {
  const proxy = await world.proxy('host');
  let isHung = false;
  proxy.behaviour = {
    decide: (request) => (isHung && hung(request) ? new Promise(() => undefined) : { kind: 'pass' }),
  };
  const daemon = await world.startDaemon({ kubeconfigs: { host: proxy.path } });
  const keys = Array.from({ length: 30 }, (_, index) => `default/hung-${index}`);
  for (const key of keys) await world.createVirtual(key);
  await world.settle(daemon);
  isHung = true;
  const asked = proxy.requests.length;
  const queued = await daemon.metric('workqueue_adds_total');
  for (const [index, key] of keys.entries())
    await world.mergeVirtual(key, { subsets: [subset(`10.9.0.${index + 1}`)] });
  await eventually(
    () => proxy.requests.slice(asked).filter(hung).length,
    (count) => count > 0,
    { what: 'a request that hangs' },
  );
  // What has not reached the daemon cannot be counted as left.
  await eventually(
    async () => (await daemon.metric('workqueue_adds_total')) - queued,
    (added) => added >= keys.length,
    { what: 'every change in the queue' },
  );
  const startedMs = performance.now();
  const { code } = await daemon.terminate();
  const [line] = daemon.log.filter(({ msg }) => msg === 'stopped');
  return { ms: performance.now() - startedMs, code, left: line?.['left'] };
}

export function shutdownScenarios(newWorld: NewWorld): void {
  describe('SIGTERM while the API server of the host hangs', () => {
    test('in writes: exits in time with 0, and counts the remaining objects', async ({ expect }) => {
      await using world = await newWorld();
      const { ms, code, left } = await terminated(world, ({ isWrite }) => isWrite);
      expect({ code, isInTime: ms < END_MAX_MS, left }).toEqual({ code: 0, isInTime: true, left: 30 });
    });

    test('in all requests: exits in time with 0', async ({ expect }) => {
      await using world = await newWorld();
      const { ms, code, left } = await terminated(world, () => true);
      expect({ code, isInTime: ms < END_MAX_MS, left }).toEqual({ code: 0, isInTime: true, left: 30 });
    });

    test('during the start: exits immediately with 0', async ({ expect }) => {
      await using world = await newWorld();
      const proxy = await world.proxy('host');
      proxy.behaviour = { decide: () => new Promise(() => undefined) };
      const daemon = await world.spawnDaemon({ kubeconfigs: { host: proxy.path } });
      await eventually(
        () => proxy.requests.length,
        (count) => count > 0,
        { what: 'a first request' },
      );
      const startedMs = performance.now();
      expect(await daemon.terminate()).toEqual({ code: 0, signal: null });
      expect(performance.now() - startedMs).toBeLessThan(END_MAX_MS);
    });
  });
}
