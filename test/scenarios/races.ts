/**
 * Races between the daemon's decision and its write. A proxy delays the write or the event, and another client writes
 * first: its changes are not lost, and foreign objects are not changed.
 */

import { afterEach, describe, expect, test } from 'vitest';
import type { KubeObject } from '../../src/kube/object.ts';
import type { ApiProxy, ProxiedRequest, ProxyBehaviour } from './api-proxy.ts';
import { endpoints, ipsOf, service, subset } from './objects.ts';
import { sharedWorld, type Shared } from './shared-world.ts';
import { pair, type NewWorld, type World } from './world.ts';
import type { RunningDaemon } from './running-daemon.ts';

export function raceScenarios(newWorld: NewWorld): void {
  describe('with the daemon behind proxies', { concurrent: false }, () => {
    const open = behindProxies(newWorld);
    lookAndWriteRaces(open);
    storms(open);
  });
  startRaces(newWorld);
}

/** A virtual namespace with one synced object, unless the options say otherwise. */
type Open = (options?: { create?: boolean }) => Promise<Opened>;

interface Opened {
  readonly world: World;
  readonly daemon: RunningDaemon;
  readonly virtual: ApiProxy;
  readonly host: ApiProxy;
  /** The key of the object. Requests about other objects do not contain its name. */
  readonly key: string;
}

function lookAndWriteRaces(open: Open): void {
  describe('between read and write', () => {
    test('the virtual object changes while a host change is synced back: the virtual side takes precedence', async () => {
      const { world, daemon, virtual, key } = await open();
      virtual.behaviour = beforeFirst(key, 'PATCH', () =>
        world.mergeVirtual(key, { metadata: { annotations: { a: 'user', c: 'user' } } }),
      );
      await world.mergeCopy(key, {
        metadata: { annotations: { a: 'host', b: 'host' } },
      });
      await world.whenVirtual(key, ({ metadata }) => metadata.annotations?.['b'] === 'host');
      await world.settle(daemon);
      const expected = { a: 'user', b: 'host', c: 'user' };
      expect((await world.getVirtual(key)).metadata.annotations).toEqual(expected);
      expect((await world.getCopy(key)).metadata.annotations).toMatchObject(expected);
    });

    test('the virtual side removes a value immediately after it was synced back: it is removed on both sides', async () => {
      const { world, daemon, virtual, key } = await open();
      const isKnown = Promise.withResolvers<void>();
      let isRemoved = false;
      virtual.behaviour = {
        // The event of the removal arrives before the response to the daemon's own write.
        watchLine: (line) => {
          if (isRemoved && line.includes(nameOf(key)) && !line.includes('from-host'))
            setImmediate(isKnown.resolve);
          return [line];
        },
        afterWrite: async ({ method, body }) => {
          if (isRemoved || method !== 'PATCH' || !body.includes('from-host')) return;
          isRemoved = true;
          await world.mergeVirtual(key, {
            metadata: { annotations: { 'from-host': null } },
          });
          await isKnown.promise;
        },
      };
      await world.mergeCopy(key, {
        metadata: { annotations: { 'from-host': '1' } },
      });
      await world.whenCopy(
        key,
        (copy) => isRemoved && copy.metadata.annotations?.['from-host'] === undefined,
      );
      await world.settle(daemon);
      expect((await world.getVirtual(key)).metadata.annotations?.['from-host']).toBeUndefined();
      expect((await world.getCopy(key)).metadata.annotations?.['from-host']).toBeUndefined();
    });

    test('another client labels the host copy while it is updated: the label is kept and synced back', async () => {
      const { world, daemon, host, key } = await open();
      host.behaviour = beforeFirst(key, 'PUT', () =>
        world.mergeCopy(key, { metadata: { labels: { foreign: '1' } } }),
      );
      await world.mergeVirtual(key, { subsets: [subset('10.1.0.2')] });
      await world.whenCopy(key, (copy) => ipsOf(copy)[0] === '10.1.0.2');
      await world.settle(daemon);
      expect((await world.getVirtual(key)).metadata.labels).toEqual({ foreign: '1' });
      expect((await world.getCopy(key)).metadata.labels).toMatchObject({ foreign: '1' });
    });

    test('another client replaces the host copy with its own object while it is deleted: that object is not deleted', async () => {
      const { world, daemon, host, key } = await open();
      await keepControllersAway(world, key);
      let uid = '';
      host.behaviour = beforeFirst(key, 'DELETE', async () => {
        await world.deleteCopy(key);
        uid = (await putForeign(world, key)).metadata.uid ?? '';
      });
      await world.deleteVirtual(key);
      await world.settle(daemon);
      expect((await world.getCopy(key)).metadata.uid).toBe(uid);
    });

    test('another client replaces the host copy with its own object while it is updated: that object is not changed', async () => {
      const { world, daemon, host, key } = await open();
      await keepControllersAway(world, key);
      let version = '';
      host.behaviour = beforeFirst(key, 'PUT', async () => {
        await world.deleteCopy(key);
        version = (await putForeign(world, key)).metadata.resourceVersion ?? '';
      });
      await world.mergeVirtual(key, { subsets: [subset('10.1.0.2')] });
      await world.whenEvent(key, 'NotManaged');
      await world.settle(daemon);
      expect((await world.getCopy(key)).metadata.resourceVersion).toBe(version);
    });

    test('another client creates an object with the same name while the copy is created: that object is not changed', async () => {
      const { world, daemon, host, key } = await open({ create: false });
      await keepControllersAway(world, key);
      let version = '';
      host.behaviour = beforeFirst(key, 'POST', async () => {
        version = (await putForeign(world, key)).metadata.resourceVersion ?? '';
      });
      await world.createVirtual(key);
      await world.whenEvent(key, 'NotManaged');
      await world.settle(daemon);
      expect((await world.getCopy(key)).metadata.resourceVersion).toBe(version);
    });

    test('the virtual object is deleted while its copy is created: the copy is deleted', async () => {
      const { world, daemon, host, key } = await open({ create: false });
      host.behaviour = beforeFirst(key, 'POST', () => world.deleteVirtual(key));
      await world.createVirtual(key);
      await world.virtual.whenGone('Endpoints', pair(key));
      await world.settle(daemon);
      await world.whenNoCopy(key);
      expect(await copiesFrom(world, key)).toEqual([]);
    });

    test('the watch event of a Service with a selector is delayed: no copy is created', async () => {
      const { world, daemon, virtual, host, key } = await open({ create: false });
      const release = virtual.holdWatches('/services');
      await world.virtual.create('Service', service(key, { app: 'x' }));
      await world.createVirtual(key);
      await world.settle(daemon);
      release();
      await world.settle(daemon);
      expect(host.writes().filter((write) => write.includes(nameOf(key)))).toEqual([]);
      expect(await world.findCopy(key)).toBeUndefined();
    });

    test('watch events of writes by the daemon are delayed: nothing is written twice', async () => {
      const { world, daemon, host, key } = await open();
      const log = await world.log('host');
      const release = host.holdWatches();
      for (let i = 1; i <= 5; i++) {
        await world.mergeVirtual(key, { subsets: [subset(`10.1.1.${i}`)] });
        await world.whenCopy(key, (copy) => ipsOf(copy)[0] === `10.1.1.${i}`);
      }
      await world.whenIdle(daemon);
      release();
      await world.settle(daemon);
      expect(log.of(world.hostName(key))).toEqual(Array.from({ length: 5 }, () => 'MODIFIED'));
      expect(
        host.requests.filter(({ method, path }) => method === 'PUT' && path.includes(nameOf(key))),
      ).toHaveLength(5);
    });

    test('the host copy was deleted without a watch event: it is recreated', async () => {
      const { world, daemon, host, key } = await open();
      const release = host.holdWatches();
      await world.deleteCopy(key);
      await world.mergeVirtual(key, { subsets: [subset('10.1.0.3')] });
      await world.whenCopy(key, (copy) => ipsOf(copy)[0] === '10.1.0.3');
      release();
      await world.settle(daemon);
      expect(ipsOf(await world.whenCopied(key))).toEqual(['10.1.0.3']);
    });
  });
}

function startRaces(newWorld: NewWorld): void {
  describe('while the daemon starts', () => {
    test.for(['endpoints', 'services'])(
      'nothing is decided before the %s of the virtual cluster are known',
      async (plural, { expect }) => {
        await using world = await newWorld();
        const first = await world.startDaemon();
        const log = await world.log('host');
        await world.createVirtual('default/plain');
        await world.whenCopied('default/plain');
        await world.settle(first);
        await first.kill();
        await world.virtual.create('Service', service('default/selected', { app: 'x' }));
        await world.createVirtual('default/selected');
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

    test('a list that expires half-way is begun again, nothing is taken for gone', async ({ expect }) => {
      await using world = await newWorld();
      const keys = Array.from({ length: 620 }, (_, i) => `default/page-${i}`);
      await inParallel(keys, (key) => world.createVirtual(key));
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
    });
  });
}

function storms(open: Open): void {
  describe('a burst', () => {
    test('of updates of one object results in the last state, with no more writes than updates', async () => {
      const { world, daemon, key } = await open();
      const log = await world.log('host');
      const count = 200;
      for (let i = 0; i < count; i++)
        await world.mergeVirtual(key, { subsets: [subset(`10.7.${i >> 8}.${i & 255}`)] });
      await world.whenCopied(key);
      await world.settle(daemon);
      expect(ipsOf(await world.getCopy(key))).toEqual(['10.7.0.199']);
      expect(log.of(world.hostName(key)).length).toBeLessThanOrEqual(count);
      expect(new Set(log.of(world.hostName(key)))).toEqual(new Set(['MODIFIED']));
    });

    test('of deletions and creations results in the last state', async () => {
      const { world, daemon, key: first } = await open({ create: false });
      const [namespace] = pair(first);
      const keys = Array.from({ length: 10 }, (_, i) => `${namespace}/storm-${i}`);
      await inParallel(keys, async (key) => {
        const rounds = 6 + (Number(key.at(-1)) % 2);
        for (let round = 0; round < rounds; round++) {
          if (round % 2 === 0) await world.createVirtual(key, { subsets: [subset(`10.8.0.${round}`)] });
          else await world.deleteVirtual(key);
        }
      });
      await world.settle(daemon);
      for (const [i, key] of keys.entries())
        if (i % 2 === 0) await world.whenNoCopy(key);
        else await world.whenCopied(key);
      expect(await copiesFrom(world, first)).toHaveLength(5);
    });
  });
}

/** One world and one daemon for all tests; the faults that a test sets on the proxies end with the test. */
function behindProxies(newWorld: NewWorld): Open {
  let proxies: readonly (ApiProxy & { path: string })[] = [];
  const shared = sharedWorld(newWorld, async (world) => {
    const [virtual, host] = [await world.proxy('virtual'), await world.proxy('host')];
    proxies = [virtual, host];
    return { kubeconfigs: { virtual: virtual.path, host: host.path } };
  });
  afterEach(({ task }) => {
    for (const proxy of proxies) {
      proxy.behaviour = {};
      // Requests that a failed test holds back are sent again.
      if (task.result?.state === 'fail') proxy.cutAll();
    }
  });
  return async ({ create = true } = {}) => {
    const [virtual, host] = proxies;
    if (virtual === undefined || host === undefined)
      throw new Error('the proxies are open only while tests run');
    const opened = await openIn(shared(), virtual, host);
    if (create) await bringInStep(opened);
    return opened;
  };
}

async function openIn(
  { world, daemon, namespace }: Shared,
  virtual: ApiProxy,
  host: ApiProxy,
): Promise<Opened> {
  const name = await namespace();
  return { world, daemon, virtual, host, key: `${name}/${name}-raced` };
}

async function bringInStep({ world, daemon, host, key }: Opened): Promise<void> {
  await world.createVirtual(key, { annotations: { a: '1' } });
  await world.whenCopied(key);
  await world.settle(daemon);
  await world.mergeVirtual(key, { metadata: { annotations: { a: null } } });
  await world.whenCopy(key, ({ metadata }) => metadata.annotations?.['a'] === undefined);
  await world.settle(daemon);
  host.requests.length = 0;
}

function nameOf(key: string): string {
  return pair(key)[1];
}

/** Of all objects in the virtual namespace of `key`. */
async function copiesFrom(world: World, key: string): Promise<KubeObject[]> {
  const [namespace] = pair(key);
  const copies = await world.copies();
  return copies.filter(
    ({ metadata }) => metadata.annotations?.['vcluster.loft.sh/object-namespace'] === namespace,
  );
}

/** Runs before the first write of this method to our object reaches the API server. */
function beforeFirst(key: string, method: string, happens: () => Promise<unknown>): ProxyBehaviour {
  let isDone = false;
  const concerns = ({ path, body }: ProxiedRequest): boolean =>
    path.includes(nameOf(key)) || body.includes(nameOf(key));
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

function putForeign(world: World, key: string): ReturnType<World['getCopy']> {
  return world.host.create(
    'Endpoints',
    endpoints(world.hostKey(key).join('/'), { subsets: [subset('10.9.0.1')] }),
  );
}

/** Without a Service the host's endpoints controller deletes any object of a name whose deletion it saw, foreign ones too. */
async function keepControllersAway(world: World, key: string): Promise<void> {
  await world.host.create('Service', service(world.hostKey(key).join('/')));
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const queue = [...items];
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
    }),
  );
}
