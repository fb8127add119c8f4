/**
 * After any faults the clusters converge to the same state: every copy matches its virtual object by the rules, foreign objects are
 * unchanged, no copy or import is orphaned, and no further writes follow.
 */

import { describe, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { ApiProxy, ProxiedRequest, ProxyBehaviour, Verdict } from './api-proxy.ts';
import type { Daemon } from './daemon.ts';
import { endpoints, ipsOf, service, subset } from './objects.ts';
import type { NewWorld, World } from './world.ts';

export function faultScenarios(newWorld: NewWorld): void {
  describe('under faults', () => {
    test('a daemon that is killed after each of its writes completes all of them', async ({ expect }) => {
      await using world = await newWorld();
      await prepareUnfinishedWork(world);
      const foreign = await world.host.get('Endpoints', world.hostNamespace, 'foreign');
      const [host, virtual] = [await world.proxy('host'), await world.proxy('virtual')];
      const writes = await dieAfterWrites(world, host, virtual);
      expect(writes).toBeGreaterThanOrEqual(7);
      expect(writes).toBeLessThan(25);
      const daemon = await world.startDaemon();
      await world.settle(daemon);
      for (const key of ['created', 'updated', 'recreated', 'taken', 'removed-there', 'changed-there'])
        await world.whenCopied(`default/${key}`);
      expect((await world.getVirtual('default/changed-there')).metadata.annotations).toEqual({ a: 'host' });
      expect((await world.getVirtual('default/removed-there')).metadata.annotations).toBeUndefined();
      expect(await world.findCopy('default/deleted')).toBeUndefined();
      expect(await world.host.get('Endpoints', world.hostNamespace, 'foreign')).toEqual(foreign);
      await expectNothingWritten(world, daemon);
    });

    test('a write whose response is lost happens exactly once', async ({ expect }) => {
      await using world = await newWorld();
      const host = await world.proxy('host');
      const daemon = await world.startDaemon({ kubeconfigs: { host: host.path } });
      const log = await world.log('host');
      host.behaviour = once(({ isWrite, method }) => isWrite && method === 'POST', { kind: 'lose-answer' });
      await world.createVirtual('default/lost');
      await world.whenCopied('default/lost');
      host.behaviour = once(({ isWrite }) => isWrite, { kind: 'lose-answer' });
      await world.mergeVirtual('default/lost', { subsets: [subset('10.1.0.2')] });
      await world.whenCopied('default/lost');
      host.behaviour = once(({ method }) => method === 'DELETE', { kind: 'lose-answer' });
      await world.deleteVirtual('default/lost');
      await world.whenNoCopy('default/lost');
      host.behaviour = {};
      await world.settle(daemon);
      expect(log.of(world.hostName('default/lost'))).toEqual(['ADDED', 'MODIFIED', 'DELETED']);
    });

    test('a write that failed in spite of a success response is repeated', async ({ expect }) => {
      await using world = await newWorld();
      const host = await world.proxy('host');
      const daemon = await world.startDaemon({ kubeconfigs: { host: host.path } });
      await world.createVirtual('default/a');
      await world.whenCopied('default/a');
      const [namespace, name] = world.hostKey('default/a');
      const object = { apiVersion: 'v1', kind: 'Endpoints' };
      const answers: JsonObject[] = [
        {},
        { ...object, metadata: { name, namespace } },
        { ...object, metadata: { name: 'other', namespace, uid: 'u', resourceVersion: '999999' } },
        { ...object, kind: 'Service', metadata: { name, namespace, uid: 'u', resourceVersion: '999999' } },
      ];
      for (const [index, answer] of answers.entries()) {
        const body = JSON.stringify(answer);
        host.behaviour = once(({ isWrite }) => isWrite, { kind: 'pretend', body });
        await world.mergeVirtual('default/a', { subsets: [subset(`10.1.1.${index}`)] });
        await world.whenCopy('default/a', (copy) => ipsOf(copy)[0] === `10.1.1.${index}`);
      }
      host.behaviour = once(({ method }) => method === 'DELETE', { kind: 'pretend', body: '{}' });
      await world.deleteVirtual('default/a');
      await world.whenNoCopy('default/a');
      await world.settle(daemon);
      expect(await world.copies()).toHaveLength(0);
    });

    test.for(['host', 'virtual'] as const)(
      'after an outage of the %s API server syncing resumes',
      async (side, { expect }) => {
        await using world = await newWorld();
        const proxy = await world.proxy(side);
        const daemon = await world.startDaemon({ kubeconfigs: { [side]: proxy.path } });
        for (const name of ['changed', 'deleted', 'back']) await world.createVirtual(`default/${name}`);
        await world.settle(daemon);
        proxy.behaviour = { decide: () => ({ kind: 'cut' }) };
        proxy.cutAll();
        await world.createVirtual('default/new');
        await world.mergeVirtual('default/changed', { subsets: [subset('10.1.0.3')] });
        await world.deleteVirtual('default/deleted');
        await world.mergeCopy('default/back', {
          metadata: { labels: { l: '1' } },
        });
        const asked = proxy.requests.length;
        await world.host.when(
          'Endpoints',
          world.hostKey('default/back'),
          () => proxy.requests.length > asked,
        );
        expect((await daemon.get('/healthz')).status).toBe(200);
        proxy.behaviour = {};
        await world.whenCopy('default/changed', (copy) => ipsOf(copy)[0] === '10.1.0.3');
        await world.whenCopied('default/new');
        await world.whenNoCopy('default/deleted');
        await world.whenVirtual('default/back', ({ metadata }) => metadata.labels?.['l'] === '1');
        await world.settle(daemon);
      },
    );

    test('after an expired resourceVersion the objects are listed again, and deletions in between are not lost', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const [host, virtual] = [await world.proxy('host'), await world.proxy('virtual')];
      const daemon = await world.startDaemon({ kubeconfigs: { host: host.path, virtual: virtual.path } });
      for (const name of ['stays', 'goes']) await world.createVirtual(`default/${name}`);
      await world.settle(daemon);
      for (const proxy of [virtual, host]) proxy.behaviour = { decide: expireWatches() };
      await world.deleteVirtual('default/goes');
      for (const proxy of [virtual, host]) proxy.cutAll();
      await world.whenNoCopy('default/goes');
      await world.settle(daemon);
      await world.whenCopied('default/stays');
      expect(await world.copies()).toHaveLength(1);
    });
  });
}

/** One object for each kind of decision, waiting for a daemon. */
async function prepareUnfinishedWork(world: World): Promise<void> {
  const first = await world.startDaemon();
  for (const name of ['updated', 'deleted', 'recreated'])
    await world.createVirtual(`default/${name}`, { labels: { old: '1' } });
  for (const name of ['changed-there', 'removed-there'])
    await world.createVirtual(`default/${name}`, { annotations: { a: '1' } });
  await world.settle(first);
  await first.terminate();
  await world.createVirtual('default/created');
  await world.mergeVirtual('default/updated', { subsets: [subset('10.1.0.2')] });
  await world.deleteVirtual('default/deleted');
  await world.deleteVirtual('default/recreated');
  await world.createVirtual('default/recreated', { labels: { new: '1' } });
  await world.virtual.create('Service', service('default/taken'));
  await world.createVirtual('default/taken');
  // Left behind by the host's endpoints controller, which is what may be taken over.
  const labels = { 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' };
  await world.host.create('Endpoints', endpoints(world.hostKey('default/taken').join('/'), { labels }));
  await world.host.create('Endpoints', endpoints(`${world.hostNamespace}/foreign`));
  for (const [name, value] of [
    ['changed-there', 'host'],
    ['removed-there', null],
  ] as const)
    await world.mergeCopy(`default/${name}`, {
      metadata: { annotations: { a: value } },
    });
}

/** More starts than needed: above it, the state does not converge. */
const STARTS_MAX = 40;

/**
 * Runs daemons until one finds nothing to write, and returns the number of writes. On real clusters each is killed at its first
 * write; on embedded ones at its second, which needs half as many starts for the same writes.
 */
export async function dieAfterWrites(
  world: World,
  host: ApiProxy,
  virtual: ApiProxy,
  config: JsonObject = {},
): Promise<number> {
  const writesMax = world.clusters.kind === 'real' ? 1 : 2;
  let total = 0;
  for (let life = 0; life < STARTS_MAX; life++) {
    const writes = await liveUntilWrite(world, { host, virtual, config, writesMax });
    total += writes;
    if (writes < writesMax) return total;
  }
  throw new Error(`${STARTS_MAX} daemons have died, and there is still something to write`);
}

interface Life {
  readonly host: ApiProxy;
  readonly virtual: ApiProxy;
  readonly config: JsonObject;
  readonly writesMax: number;
}

/** Runs a daemon until that many writes are done, and kills it before the last response. Returns the number of writes, lower if there were no more. */
async function liveUntilWrite(world: World, life: Life): Promise<number> {
  const { host, virtual, config, writesMax } = life;
  const path = (proxy: ApiProxy): string => (proxy as ApiProxy & { path: string }).path; // created by World.proxy
  const kubeconfigs = { host: path(host), virtual: path(virtual) };
  const daemon = await world.spawnDaemon({ kubeconfigs, config });
  let begun = 0;
  let done = 0;
  const died = new Promise<void>((resolve, reject) => {
    const behaviour: ProxyBehaviour = {
      decide: ({ isWrite }) => ({ kind: isWrite && begun++ >= writesMax ? 'cut' : 'pass' }),
      afterWrite: async () => {
        if (++done === writesMax) await daemon.kill().then(resolve, reject);
      },
    };
    for (const proxy of [host, virtual]) proxy.behaviour = behaviour;
  });
  const idle = daemon.ready().then(
    () => world.whenIdle(daemon),
    () => died, // killed before it was ready
  );
  await Promise.race([died, idle.catch(() => died)]);
  await daemon.kill();
  return done;
}

async function expectNothingWritten(world: World, daemon: Daemon): Promise<void> {
  const [host, virtual] = [await world.log('host'), await world.log('virtual')];
  await world.settle(daemon);
  const writes = [...world.writesIn(host), ...world.writesIn(virtual)];
  if (writes.length > 0) throw new Error(`not at rest: ${writes.join(', ')}`);
}

/** Applies to the first request that matches. */
function once(matches: (request: ProxiedRequest) => boolean, verdict: Verdict): ProxyBehaviour {
  let isDone = false;
  return {
    decide(request) {
      if (isDone || !matches(request)) return { kind: 'pass' };
      isDone = true;
      return verdict;
    },
  };
}

/** Answers the first watch of each resource with 410: its resourceVersion is too old. */
function expireWatches(): (request: ProxiedRequest) => Verdict {
  const expired = new Set<string>();
  return ({ isWatch, path }) => {
    const resource = path.split('?')[0] ?? '';
    if (!isWatch || expired.has(resource)) return { kind: 'pass' };
    expired.add(resource);
    return { kind: 'refuse', status: 410, reason: 'Expired' };
  };
}
