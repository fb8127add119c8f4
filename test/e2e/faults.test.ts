/**
 * What the simulation does from a seed, on two real kube-apiservers and an etcd of this file's own: API servers that stop, hang and
 * forget, a network that is slow and cuts, credentials that are replaced, a daemon that is killed. Each time everything converges, and
 * nothing foreign is touched.
 */

import { deepStrictEqual } from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { isJsonObject, type JsonValue } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import type { ApiProxy } from '../scenarios/api-proxy.ts';
import type { Daemon } from '../scenarios/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { replaceFile } from '../support/replace-file.ts';
import { endpoints, ipsOf, subset } from '../scenarios/objects.ts';
import { World } from '../scenarios/world.ts';
import { whenAuthorized } from './authorization.ts';
import { startRealClusters, type RealClusters } from './clusters.ts';
import { ownClusters } from './real-world.ts';

/** A busy machine may need minutes; this only ends a test that hangs. */
const TEST_MAX_MS = 300_000;
const TIMEOUT_MS = 60_000;
const FOREIGN = Array.from({ length: 10 }, (_, at) => `foreign-${at}`);

let clusters: RealClusters;
let world: World;
let foreign: readonly KubeObject[];

beforeAll(async () => {
  clusters = await startRealClusters({ controllers: false });
}, TEST_MAX_MS);

afterAll(() => clusters[Symbol.asyncDispose]());

beforeEach(async () => {
  world = await World.open(ownClusters(clusters));
  for (const name of FOREIGN)
    await world.host.create(
      'Endpoints',
      endpoints(`${world.hostNamespace}/${name}`, { subsets: [subset('10.8.0.1')] }),
    );
  foreign = await foreignObjects();
  return async () => {
    deepStrictEqual(await foreignObjects(), foreign);
    await world[Symbol.asyncDispose]();
  };
});

async function foreignObjects(): Promise<readonly KubeObject[]> {
  const all = await world.host.list('Endpoints', world.hostNamespace);
  return all.filter(({ metadata }) => FOREIGN.includes(metadata.name));
}

function keysOf(count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `default/web-${at}`);
}

async function createAll(keys: readonly string[]): Promise<void> {
  await inTurns(keys, (key, at) => world.createVirtual(key, { subsets: [subset(ipOf(0, at))] }));
}

/** Gives each object the address of this round. */
async function changeAll(keys: readonly string[], round: number): Promise<void> {
  await inTurns(keys, (key, at) =>
    world.virtual.merge('Endpoints', placeOf(key), {
      subsets: [subset(ipOf(round, at))] as unknown as JsonValue,
    }),
  );
}

async function inTurns(
  keys: readonly string[],
  act: (key: string, at: number) => Promise<unknown>,
): Promise<void> {
  const waiting = [...keys.entries()];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await act(next[1], next[0]);
  };
  await Promise.all(Array.from({ length: 16 }, work));
}

function placeOf(key: string): [string, string] {
  const [namespace = '', name = ''] = key.split('/');
  return [namespace, name];
}

function ipOf(round: number, at: number): string {
  return `10.${1 + round}.${at >> 8}.${1 + (at & 127)}`;
}

/** How many events of each type, of copies. */
function countsOf(writes: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const write of writes) {
    const [type = '', name = ''] = write.split(' ');
    if (name.startsWith('web-')) counts[type] = (counts[type] ?? 0) + 1;
  }
  return counts;
}

/** Every object has its copy with the address of this round, and there is no other copy. */
async function whenConverged(keys: readonly string[], round: number, gone = 0): Promise<number> {
  const all = keys.map((key, at) => `${world.hostName(key)} ${ipOf(round, at)}`);
  const wanted = all.slice(gone).toSorted(byText);
  const copies = await eventually(
    async () => (await world.copies()).map((copy) => `${copy.metadata.name} ${ipsOf(copy).join()}`),
    (seen) => seen.toSorted(byText).join() === wanted.join(),
    { timeoutMs: TIMEOUT_MS, what: `${wanted.length} right copies` },
  );
  return copies.length;
}

function byText(a: string, b: string): number {
  return a < b ? -1 : 1;
}

function rssMiB(daemon: Daemon): number {
  const status = readFileSync(`/proc/${daemon.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

test(
  'kill -9 in the middle of 1000 creations: each copy is created once',
  async () => {
    const keys = keysOf(1000);
    const log = await world.log('host');
    const first = await world.startDaemon();
    const created = createAll(keys);
    await eventually(
      async () => (await world.copies()).length,
      (count) => count >= 300,
      {
        timeoutMs: TIMEOUT_MS,
        what: '300 copies',
      },
    );
    await first.kill();
    await created;
    await world.startDaemon();
    await whenConverged(keys, 0);
    const counts = await eventually(
      () => countsOf(world.writesIn(log)),
      ({ ADDED = 0 }) => ADDED >= 1000,
      { timeoutMs: TIMEOUT_MS, what: '1000 creations in the log' },
    );
    expect(counts).toEqual({ ADDED: 1000 });
  },
  TEST_MAX_MS,
);

describe.each(['virtual', 'host'] as const)('the %s API server', (cluster) => {
  test(
    'hangs and resumes, then crashes and starts again, while objects change',
    async () => {
      const keys = keysOf(50);
      await createAll(keys);
      const daemon = await world.startDaemon();
      await whenConverged(keys, 0);
      process.kill(clusters.pidOf(cluster), 'SIGSTOP');
      const changing = changeAll(keys, 1);
      // The daemon's requests and watches get no response either.
      await new Promise((resolve) => setTimeout(resolve, 8000));
      process.kill(clusters.pidOf(cluster), 'SIGCONT');
      await changing;
      await whenConverged(keys, 1);
      await clusters.stop(cluster);
      if (cluster === 'host') await changeAll(keys, 2);
      await clusters.start(cluster);
      if (cluster === 'virtual') await changeAll(keys, 2);
      expect(await whenConverged(keys, 2)).toBe(keys.length);
      await world.settle(daemon);
    },
    TEST_MAX_MS,
  );
});

test(
  'etcd is compacted while both watches are held up: the lists that follow show everything',
  async () => {
    const keys = keysOf(50);
    await createAll(keys);
    const [virtual, host] = [await world.proxy('virtual'), await world.proxy('host')];
    const daemon = await world.startDaemon({ kubeconfigs: { virtual: virtual.path, host: host.path } });
    await whenConverged(keys, 0);
    const held = Promise.withResolvers<'cut'>();
    for (const proxy of [virtual, host]) proxy.behaviour = { watchLine: () => held.promise };
    await changeAll(keys, 1);
    const gone = keys.slice(0, 10);
    for (const key of gone) await world.virtual.delete('Endpoints', ...placeOf(key));
    for (const key of keys.slice(10, 15)) await world.deleteCopy(key);
    await clusters.compact();
    for (const proxy of [virtual, host]) proxy.behaviour = {};
    held.resolve('cut');
    expect(await whenConverged(keys, 1, gone.length)).toBe(40);
    await world.settle(daemon);
  },
  TEST_MAX_MS,
);

test(
  'credentials are replaced on disk: the daemon continues with the new ones',
  async () => {
    const keys = keysOf(20);
    await createAll(keys);
    const account = { namespace: world.hostNamespace, name: 'syncer' };
    const tokenFile = world.file('token', await newToken(account));
    const kubeconfig = JSON.parse(readFileSync(clusters.host.kubeconfigPath, 'utf8')) as {
      users: { user: JsonValue }[];
    }; // as the harness writes it
    kubeconfig.users = [{ ...kubeconfig.users[0], user: { tokenFile } }];
    const host = world.file('rotated.kubeconfig', JSON.stringify(kubeconfig));
    const daemon = await world.startDaemon({ kubeconfigs: { host } });
    await whenConverged(keys, 0);
    // The account is another one now, so its old token is no longer accepted.
    await world.host.delete('ServiceAccount', account.namespace, account.name);
    replaceFile(tokenFile, await newToken(account));
    await changeAll(keys, 1);
    expect(await whenConverged(keys, 1)).toBe(keys.length);
    await world.settle(daemon);
  },
  TEST_MAX_MS,
);

/** A token of a new service account that may do everything. */
async function newToken({ namespace, name }: { namespace: string; name: string }): Promise<string> {
  await world.host.create('ServiceAccount', { metadata: { namespace, name } });
  const binding = `${namespace}-${name}`;
  await world.host.delete('ClusterRoleBinding', '', binding).catch(() => undefined);
  await world.host.create('ClusterRoleBinding', {
    metadata: { name: binding },
    subjects: [{ kind: 'ServiceAccount', name, namespace }],
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
  });
  const user = `system:serviceaccount:${namespace}:${name}`;
  const rules = [{ apiGroups: [''], resources: ['endpoints'], verbs: ['list'] }];
  await whenAuthorized(world.host, { user, namespace: '', rules });
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
  const { body } = await world.host.request('POST', path, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: 3600 },
  });
  const status = isJsonObject(body) ? body['status'] : undefined;
  const token = isJsonObject(status) ? status['token'] : undefined;
  if (typeof token !== 'string') throw new Error(`no token: ${JSON.stringify(body)}`);
  return token;
}

test(
  'a slow network with resets of connections and watches: the daemon converges, and memory does not grow',
  async () => {
    const keys = keysOf(50);
    await createAll(keys);
    const [virtual, host] = [await world.proxy('virtual'), await world.proxy('host')];
    const daemon = await world.startDaemon({ kubeconfigs: { virtual: virtual.path, host: host.path } });
    await whenConverged(keys, 0);
    for (const proxy of [virtual, host]) resetSome(proxy);
    const rss: number[] = [];
    for (let round = 1; round <= 4; round++) {
      await changeAll(keys, round);
      await whenConverged(keys, round);
      rss.push(rssMiB(daemon));
    }
    for (const proxy of [virtual, host]) delay(proxy, 2000);
    await changeAll(keys, 5);
    await whenConverged(keys, 5);
    for (const proxy of [virtual, host]) proxy.behaviour = {};
    await world.settle(daemon);
    // What 250 changes leave would be seen; a heap that is collected later is not.
    expect(rssMiB(daemon) - (rss[1] ?? 0)).toBeLessThan(64);
  },
  TEST_MAX_MS,
);

/** 5 % of the requests are cut, and a watch loses half of every 100th line. */
function resetSome(proxy: ApiProxy): void {
  let requests = 0;
  let lines = 0;
  proxy.behaviour = {
    decide: () => ({ kind: ++requests % 20 === 0 ? 'cut' : 'pass' }),
    watchLine: (line) => (++lines % 100 === 0 ? [line.slice(0, line.length / 2)] : [line]),
  };
}

function delay(proxy: ApiProxy, delayMs: number): void {
  proxy.behaviour = {
    decide: async () => {
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      return { kind: 'pass' };
    },
  };
}
