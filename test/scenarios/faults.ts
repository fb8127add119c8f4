/**
 * After any faults the clusters converge to the same state: every copy matches its virtual object by the rules, foreign objects are
 * unchanged, no copy or import is orphaned, and no further writes follow.
 */

import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../src/kube/object.ts';
import type { JsonObject } from '../../src/base/json.ts';
import type { ApiProxy, ProxiedRequest, ProxyBehaviour, Verdict } from './api-proxy.ts';
import type { Daemon } from './daemon.ts';
import { endpoints, ipsOf, service, subset } from './objects.ts';
import { pair, type NewWorld, type World } from './world.ts';
import { seededRandom } from '../support/random.ts';

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

    test('of all kinds, at random, during changes on both sides', async () => {
      const seed = Number(process.env['SCENARIO_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
      try {
        await randomRun(newWorld, seed);
      } catch (error) {
        throw new Error(`failed with SCENARIO_SEED=${seed}`, { cause: error });
      }
      expect(seed).toBeGreaterThanOrEqual(0);
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
      decide: (request) => ({ kind: isSync(request) && begun++ >= writesMax ? 'cut' : 'pass' }),
      afterWrite: async (request) => {
        if (isSync(request) && ++done === writesMax) await daemon.kill().then(resolve, reject);
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

/** The Lease has the hash of the file of the configuration, which is another one in each life. */
function isSync({ isWrite, path }: ProxiedRequest): boolean {
  return isWrite && !path.includes('/leases');
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

// The random run.

const KEYS = ['default/r-0', 'default/r-1', 'default/r-2', 'default/r-3', 'default/r-4', 'default/r-5'];
const STEPS = 60;
/** After more than four overwrites of one object in a minute, the daemon would delay its corrections. */
const DRIFTS_MAX = 2;

async function randomRun(newWorld: NewWorld, seed: number): Promise<void> {
  const random = seededRandom(seed);
  await using world = await newWorld();
  const proxies = [await world.proxy('host'), await world.proxy('virtual')] as const;
  const kubeconfigs = { host: proxies[0].path, virtual: proxies[1].path };
  const foreign = await world.host.create('Endpoints', endpoints(`${world.hostNamespace}/foreign`));
  let daemon: Daemon = await world.startDaemon({ kubeconfigs });
  for (const proxy of proxies) proxy.behaviour = misbehave(random);
  const drifts = new Map<string, number>();
  for (let step = 0; step < STEPS; step++) {
    await randomStep(world, random, drifts);
    if (step % 20 === 13) {
      await daemon.kill();
      daemon = await world.spawnDaemon({ kubeconfigs });
    }
  }
  for (const proxy of proxies) proxy.behaviour = {};
  daemon = await survivor(world, daemon, kubeconfigs);
  await world.settle(daemon);
  await world.settle(daemon);
  await expectRight(world);
  const untouched = await world.host.get('Endpoints', world.hostNamespace, 'foreign');
  if (untouched.metadata.resourceVersion !== foreign.metadata.resourceVersion)
    throw new Error('the foreign object was touched');
  await expectNothingWritten(world, daemon);
}

/** A start may fail under faults; then another one is made. */
async function survivor(
  world: World,
  daemon: Daemon,
  kubeconfigs: Record<'host' | 'virtual', string>,
): Promise<Daemon> {
  try {
    return await daemon.ready();
  } catch {
    await daemon.kill();
    return world.startDaemon({ kubeconfigs });
  }
}

async function expectRight(world: World): Promise<void> {
  for (const key of KEYS) {
    const [virtual, virtualService] = await Promise.all([
      world.virtual.find('Endpoints', ...pair(key)),
      world.virtual.find('Service', ...pair(key)),
    ]);
    const spec = virtualService?.['spec'] as { selector?: object } | undefined; // a Service
    if (virtual !== undefined && spec?.selector === undefined)
      await world.whenCopied(key, { anyOrigin: true });
    else await world.whenNoCopy(key);
  }
  const expected = new Set(KEYS.map((key) => world.hostName(key)));
  const orphans = (await world.copies()).filter(({ metadata }) => !expected.has(metadata.name));
  if (orphans.length > 0)
    throw new Error(`orphans: ${orphans.map(({ metadata }) => metadata.name).join(', ')}`);
}

async function randomStep(world: World, random: () => number, drifts: Map<string, number>): Promise<void> {
  const key = pick(random, KEYS);
  const value = String(Math.floor(random() * 1000));
  const roll = random();
  const there = await world.virtual.find('Endpoints', ...pair(key));
  try {
    if (there === undefined) {
      await world.createVirtual(key, { labels: { l: value }, annotations: { a: value } });
    } else if (roll < 0.3) {
      const ip = `10.3.${Number(value) >> 8}.${Number(value) & 255}`;
      await world.mergeVirtual(key, { subsets: [subset(ip)] });
    } else if (roll < 0.5) {
      const metadata = {
        labels: { l: random() < 0.3 ? null : value },
        annotations: { [`v${value[0]}`]: value },
      };
      await world.mergeVirtual(key, { metadata });
    } else if (roll < 0.6) {
      await world.deleteVirtual(key);
    } else if (roll < 0.7) {
      await flipService(world, key, random);
    } else {
      await randomHostStep(world, key, { random, drifts, value });
    }
  } catch (error) {
    // Another step or the daemon has changed the object: the scenario expects such conflicts.
    if (!(error instanceof Error) || !/: (404|409) /.test(error.message)) throw error;
  }
}

async function flipService(world: World, key: string, random: () => number): Promise<void> {
  const there = await world.virtual.find('Service', ...pair(key));
  if (there === undefined) {
    await world.virtual.create('Service', service(key, random() < 0.5 ? { app: 'x' } : undefined));
  } else {
    const selector = random() < 0.5 ? { app: 'y' } : null;
    await world.virtual.merge('Service', pair(key), { spec: { selector } });
  }
}

async function randomHostStep(
  world: World,
  key: string,
  { random, drifts, value }: { random: () => number; drifts: Map<string, number>; value: string },
): Promise<void> {
  const count = drifts.get(key) ?? 0;
  const roll = random();
  if (roll < 0.5) {
    const metadata: Partial<KubeObject['metadata']> = { annotations: { [`h${value[0]}`]: value } };
    await world.mergeCopy(key, { metadata });
  } else if (count < DRIFTS_MAX) {
    drifts.set(key, count + 1);
    if (roll < 0.75) await world.mergeCopy(key, { subsets: [subset('10.66.6.6')] });
    else await world.deleteCopy(key);
  }
}

/** The faults of one proxy: requests fail in all possible ways, watches end, repeat events and expire. */
function misbehave(random: () => number): ProxyBehaviour {
  /** A limit, because the daemon's backoff doubles with each broken watch. */
  let breaks = 4;
  return {
    decide(request) {
      if (request.path.includes('selfsubject') || random() > 0.12) return { kind: 'pass' };
      if (!request.isWatch) return requestFault(request, random);
      if (breaks-- <= 0) return { kind: 'pass' };
      return random() < 0.5 ? { kind: 'cut' } : { kind: 'refuse', status: 410, reason: 'Expired' };
    },
    watchLine(line) {
      const roll = random();
      if (roll < 0.05 && breaks-- > 0) return 'cut';
      return roll < 0.1 ? [line, line] : [line];
    },
  };
}

function requestFault({ isWrite }: ProxiedRequest, random: () => number): Verdict {
  const faults: Verdict[] = [
    { kind: 'cut' },
    { kind: 'refuse', status: 500, reason: 'InternalError' },
    { kind: 'refuse', status: 503, reason: 'ServiceUnavailable' },
    { kind: 'refuse', status: 429, reason: 'TooManyRequests', retryAfter: 1 },
  ];
  if (isWrite)
    faults.push(
      { kind: 'lose-answer' },
      { kind: 'lose-answer' },
      { kind: 'refuse', status: 409, reason: 'Conflict' },
    );
  return pick(random, faults);
}

function pick<T>(random: () => number, list: readonly T[]): T {
  const item = list[Math.floor(random() * list.length)];
  if (item === undefined) throw new Error('nothing to pick from');
  return item;
}
