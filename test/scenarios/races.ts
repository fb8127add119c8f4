/**
 * What happens between the daemon's look at the world and its write. A proxy holds the write, or the news, and somebody else is
 * faster: nothing of theirs is lost, nothing foreign is touched.
 */

import { describe, expect, test } from 'vitest';
import type { ApiProxy, ProxiedRequest, ProxyBehaviour } from './api-proxy.ts';
import { endpoints, ipsOf, service, subset } from './objects.ts';
import { pair, type NewWorld, type World } from './world.ts';
import type { Daemon } from './daemon.ts';

const KEY = 'default/raced';

export function raceScenarios(newWorld: NewWorld): void {
  describe('between look and write', () => {
    test('the virtual object changes while a host change is carried back: the virtual side wins', async () => {
      await using world = await newWorld();
      const { daemon, virtual } = await open(world);
      virtual.behaviour = beforeFirst('PATCH', () =>
        world.virtual.merge('Endpoints', pair(KEY), { metadata: { annotations: { a: 'user', c: 'user' } } }),
      );
      await world.host.merge('Endpoints', world.hostKey(KEY), {
        metadata: { annotations: { a: 'host', b: 'host' } },
      });
      await world.whenVirtual(KEY, ({ metadata }) => metadata.annotations?.['b'] === 'host');
      await world.settle(daemon);
      const expected = { a: 'user', b: 'host', c: 'user' };
      expect((await world.getVirtual(KEY)).metadata.annotations).toEqual(expected);
      expect((await world.getCopy(KEY)).metadata.annotations).toMatchObject(expected);
    });

    test('the virtual side takes away at once what has just come from the host: it is gone on both sides', async () => {
      await using world = await newWorld();
      const { daemon, virtual } = await open(world);
      const isKnown = Promise.withResolvers<void>();
      let isRemoved = false;
      virtual.behaviour = {
        // The daemon hears of the removal before it hears that its own write was done.
        watchLine: (line) => {
          if (isRemoved && line.includes('raced') && !line.includes('from-host'))
            setImmediate(isKnown.resolve);
          return [line];
        },
        afterWrite: async ({ method, body }) => {
          if (isRemoved || method !== 'PATCH' || !body.includes('from-host')) return;
          isRemoved = true;
          await world.virtual.merge('Endpoints', pair(KEY), {
            metadata: { annotations: { 'from-host': null } },
          });
          await isKnown.promise;
        },
      };
      await world.host.merge('Endpoints', world.hostKey(KEY), {
        metadata: { annotations: { 'from-host': '1' } },
      });
      await world.whenCopy(
        KEY,
        (copy) => isRemoved && copy.metadata.annotations?.['from-host'] === undefined,
      );
      await world.settle(daemon);
      expect((await world.getVirtual(KEY)).metadata.annotations?.['from-host']).toBeUndefined();
      expect((await world.getCopy(KEY)).metadata.annotations?.['from-host']).toBeUndefined();
    });

    test('somebody labels the host copy while it is updated: the label stays and comes back', async () => {
      await using world = await newWorld();
      const { daemon, host } = await open(world);
      host.behaviour = beforeFirst('PUT', () =>
        world.host.merge('Endpoints', world.hostKey(KEY), { metadata: { labels: { theirs: '1' } } }),
      );
      await world.virtual.merge('Endpoints', pair(KEY), { subsets: [subset('10.1.0.2')] });
      await world.whenCopy(KEY, (copy) => ipsOf(copy)[0] === '10.1.0.2');
      await world.settle(daemon);
      expect((await world.getVirtual(KEY)).metadata.labels).toEqual({ theirs: '1' });
      expect((await world.getCopy(KEY)).metadata.labels).toMatchObject({ theirs: '1' });
    });

    test('somebody replaces the host copy by an object of theirs while it is deleted: theirs stays', async () => {
      await using world = await newWorld();
      const { daemon, host } = await open(world);
      await keepControllersAway(world);
      let uid = '';
      host.behaviour = beforeFirst('DELETE', async () => {
        await world.host.delete('Endpoints', ...world.hostKey(KEY));
        uid = (await putForeign(world)).metadata.uid ?? '';
      });
      await world.virtual.delete('Endpoints', ...pair(KEY));
      await world.settle(daemon);
      expect((await world.getCopy(KEY)).metadata.uid).toBe(uid);
    });

    test('somebody replaces the host copy by an object of theirs while it is updated: theirs stays as it is', async () => {
      await using world = await newWorld();
      const { daemon, host } = await open(world);
      await keepControllersAway(world);
      let version = '';
      host.behaviour = beforeFirst('PUT', async () => {
        await world.host.delete('Endpoints', ...world.hostKey(KEY));
        version = (await putForeign(world)).metadata.resourceVersion ?? '';
      });
      await world.virtual.merge('Endpoints', pair(KEY), { subsets: [subset('10.1.0.2')] });
      await world.whenEvent(KEY, 'NotManaged');
      await world.settle(daemon);
      expect((await world.getCopy(KEY)).metadata.resourceVersion).toBe(version);
    });

    test('somebody takes the name while the copy is made: theirs stays as it is', async () => {
      await using world = await newWorld();
      const { daemon, host } = await open(world, { create: false });
      await keepControllersAway(world);
      let version = '';
      host.behaviour = beforeFirst('POST', async () => {
        version = (await putForeign(world)).metadata.resourceVersion ?? '';
      });
      await world.virtual.create('Endpoints', endpoints(KEY));
      await world.whenEvent(KEY, 'NotManaged');
      await world.settle(daemon);
      expect((await world.getCopy(KEY)).metadata.resourceVersion).toBe(version);
    });

    test('the virtual object goes while its copy is made: no copy stays', async () => {
      await using world = await newWorld();
      const { daemon, host } = await open(world, { create: false });
      host.behaviour = beforeFirst('POST', () => world.virtual.delete('Endpoints', ...pair(KEY)));
      await world.virtual.create('Endpoints', endpoints(KEY));
      await world.virtual.when('Endpoints', pair(KEY), (object) => object === undefined);
      await world.settle(daemon);
      await world.whenNoCopy(KEY);
      expect(await world.copies()).toEqual([]);
    });

    test('the news of a Service with a selector is late: no copy is made', async () => {
      await using world = await newWorld();
      const { daemon, virtual, host } = await open(world, { create: false });
      const gate = Promise.withResolvers<void>();
      virtual.behaviour = {
        watchLine: async (line, { path }) => {
          if (path.includes('/services')) await gate.promise;
          return [line];
        },
      };
      await world.virtual.create('Service', service(KEY, { app: 'x' }));
      await world.virtual.create('Endpoints', endpoints(KEY));
      await world.settle(daemon);
      gate.resolve();
      await world.settle(daemon);
      expect(host.writes().filter((write) => write.includes('raced'))).toEqual([]);
      expect(await world.findCopy(KEY)).toBeUndefined();
    });

    test('the news of our own writes is late: nothing is written twice', async () => {
      await using world = await newWorld();
      const { daemon, host } = await open(world);
      const log = await world.log('host');
      const gate = Promise.withResolvers<void>();
      host.behaviour = {
        watchLine: async (line) => {
          await gate.promise;
          return [line];
        },
      };
      for (let i = 1; i <= 5; i++) {
        await world.virtual.merge('Endpoints', pair(KEY), { subsets: [subset(`10.1.1.${i}`)] });
        await world.whenCopy(KEY, (copy) => ipsOf(copy)[0] === `10.1.1.${i}`);
      }
      await world.whenIdle(daemon);
      gate.resolve();
      host.behaviour = {};
      await world.settle(daemon);
      expect(log.of(world.hostName(KEY))).toEqual(Array.from({ length: 5 }, () => 'MODIFIED'));
      expect(
        host.requests.filter(({ method, path }) => method === 'PUT' && path.includes('raced')),
      ).toHaveLength(5);
    });

    test('the host copy was deleted and nobody heard: it is made again', async () => {
      await using world = await newWorld();
      const { daemon, host } = await open(world);
      const gate = Promise.withResolvers<void>();
      host.behaviour = {
        watchLine: async (line) => {
          await gate.promise;
          return [line];
        },
      };
      await world.host.delete('Endpoints', ...world.hostKey(KEY));
      await world.virtual.merge('Endpoints', pair(KEY), { subsets: [subset('10.1.0.3')] });
      await world.whenCopy(KEY, (copy) => ipsOf(copy)[0] === '10.1.0.3');
      gate.resolve();
      host.behaviour = {};
      await world.settle(daemon);
      expect(ipsOf(await world.whenCopied(KEY))).toEqual(['10.1.0.3']);
    });
  });

  startRaces(newWorld);
  stormScenarios(newWorld);
}

function startRaces(newWorld: NewWorld): void {
  describe('while the daemon starts', () => {
    test.for(['endpoints', 'services'])(
      'nothing is decided before the %s of the virtual cluster are known',
      async (plural) => {
        await using world = await newWorld();
        const first = await world.startDaemon();
        const log = await world.log('host');
        await world.virtual.create('Endpoints', endpoints('default/plain'));
        await world.whenCopied('default/plain');
        await world.settle(first);
        await first.kill();
        await world.virtual.create('Service', service('default/selected', { app: 'x' }));
        await world.virtual.create('Endpoints', endpoints('default/selected'));
        const virtual = await world.proxy('virtual');
        const gate = Promise.withResolvers<void>();
        virtual.behaviour = {
          async decide({ method, path, isWatch }) {
            if (method === 'GET' && !isWatch && path.startsWith(`/api/v1/${plural}`)) await gate.promise;
            return { kind: 'pass' };
          },
        };
        const daemon = await world.spawnDaemon({ kubeconfigs: { virtual: virtual.path } });
        await world.host.when('Endpoints', world.hostKey('default/plain'), () =>
          virtual.requests.some(({ path }) => path.startsWith(`/api/v1/${plural}`)),
        );
        expect((await daemon.get('/readyz')).status).toBe(503);
        gate.resolve();
        await daemon.ready();
        await world.settle(daemon);
        expect(log.of(world.hostName('default/plain'))).toEqual(['ADDED']);
        expect(log.of(world.hostName('default/selected'))).toEqual([]);
      },
    );

    test(
      'a list that expires half-way is begun again, nothing is taken for gone',
      { timeout: 60_000 },
      async () => {
        await using world = await newWorld();
        const keys = Array.from({ length: 620 }, (_, i) => `default/page-${i}`);
        await inLanes(keys, (key) => world.virtual.create('Endpoints', endpoints(key)));
        const first = await world.startDaemon();
        await world.settle(first);
        await first.terminate();
        const [virtual, host] = [await world.proxy('virtual'), await world.proxy('host')];
        for (const proxy of [virtual, host]) {
          let expired = 0;
          proxy.behaviour = {
            decide: ({ path }) =>
              path.includes('continue=') && expired++ < 1
                ? { kind: 'refuse', status: 410, reason: 'Expired' }
                : { kind: 'pass' },
          };
        }
        const log = await world.log('host');
        const daemon = await world.startDaemon({ kubeconfigs: { virtual: virtual.path, host: host.path } });
        await world.settle(daemon);
        for (const proxy of [virtual, host])
          expect(proxy.requests.some(({ path }) => path.includes('continue='))).toBe(true);
        expect(world.writesIn(log)).toEqual([]);
        expect(await world.copies()).toHaveLength(keys.length);
      },
    );
  });
}

function stormScenarios(newWorld: NewWorld): void {
  describe('a storm', () => {
    test('of updates of one object ends in the last one, with no more writes than updates', async () => {
      await using world = await newWorld();
      const { daemon } = await open(world);
      const log = await world.log('host');
      const count = 200;
      for (let i = 0; i < count; i++)
        await world.virtual.merge('Endpoints', pair(KEY), { subsets: [subset(`10.7.${i >> 8}.${i & 255}`)] });
      await world.whenCopied(KEY);
      await world.settle(daemon);
      expect(ipsOf(await world.getCopy(KEY))).toEqual(['10.7.0.199']);
      expect(log.of(world.hostName(KEY)).length).toBeLessThanOrEqual(count);
      expect(new Set(log.of(world.hostName(KEY)))).toEqual(new Set(['MODIFIED']));
    });

    test('of deletions and creations ends in what is there', async () => {
      await using world = await newWorld();
      const daemon = await world.startDaemon();
      const keys = Array.from({ length: 10 }, (_, i) => `default/storm-${i}`);
      await inLanes(keys, async (key) => {
        const rounds = 6 + (Number(key.at(-1)) % 2);
        for (let round = 0; round < rounds; round++) {
          if (round % 2 === 0)
            await world.virtual.create('Endpoints', endpoints(key, { subsets: [subset(`10.8.0.${round}`)] }));
          else await world.virtual.delete('Endpoints', ...pair(key));
        }
      });
      await world.settle(daemon);
      for (const [i, key] of keys.entries())
        if (i % 2 === 0) await world.whenNoCopy(key);
        else await world.whenCopied(key);
      expect(await world.copies()).toHaveLength(5);
    });
  });
}

interface Opened {
  readonly daemon: Daemon;
  readonly virtual: ApiProxy;
  readonly host: ApiProxy;
}

/** A daemon behind proxies, and (unless told otherwise) one object in step. */
async function open(world: World, { create = true } = {}): Promise<Opened> {
  const [virtual, host] = [await world.proxy('virtual'), await world.proxy('host')];
  const daemon = await world.startDaemon({ kubeconfigs: { virtual: virtual.path, host: host.path } });
  if (create) {
    await world.virtual.create('Endpoints', endpoints(KEY, { annotations: { a: '1' } }));
    await world.whenCopied(KEY);
    await world.settle(daemon);
    await world.virtual.merge('Endpoints', pair(KEY), { metadata: { annotations: { a: null } } });
    await world.whenCopy(KEY, ({ metadata }) => metadata.annotations?.['a'] === undefined);
    await world.settle(daemon);
    host.requests.length = 0;
  }
  return { daemon, virtual, host };
}

/** Something happens just before the first write of this method that concerns our object reaches the API server. */
function beforeFirst(method: string, happens: () => Promise<unknown>): ProxyBehaviour {
  let isDone = false;
  const concerns = ({ path, body }: ProxiedRequest): boolean =>
    path.includes('raced') || body.includes('raced');
  return {
    async decide(request) {
      if (!isDone && request.isWrite && request.method === method && concerns(request)) {
        isDone = true;
        await happens();
      }
      return { kind: 'pass' };
    },
  };
}

function putForeign(world: World): ReturnType<World['getCopy']> {
  const key = world.hostKey(KEY).join('/');
  return world.host.create('Endpoints', endpoints(key, { subsets: [subset('10.9.0.1')] }));
}

/** Without a Service the host's endpoints controller deletes whatever follows a deletion that it saw, theirs included. */
async function keepControllersAway(world: World): Promise<void> {
  await world.host.create('Service', service(world.hostKey(KEY).join('/')));
}

async function inLanes<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const queue = [...items];
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
    }),
  );
}
