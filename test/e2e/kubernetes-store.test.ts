/** The driver with Secrets on a real kube-apiserver: the contract, three concurrent replicas, a crash of the server, and permissions. */

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { loadClusterAccess } from '../../src/kube/credentials/kubeconfig.ts';
import type { WatchClient } from '../../src/kube/types.ts';
import { TerminalError } from '../../src/base/errors.ts';
import { NAMESPACES } from '../../src/kube/object.ts';
import { systemClock } from '../../src/base/clock.ts';
import { openKubernetesStore } from '../../src/apiserver/storage/secrets/kubernetes-store.ts';
import { systemRandom } from '../../src/base/random.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { StoreError, type Store } from '../../src/apiserver/storage/store.ts';
import {
  expectHonestAnswers,
  expectNoContradiction,
  expectSameEnd,
  follow,
  keyNamed,
  stateOf,
  write,
  type Fact,
} from '../apiserver/storage/secrets/crowd.ts';
import { clientOf, openReplica, type Replica } from '../apiserver/storage/secrets/replicas.ts';
import { storeContract } from '../apiserver/storage/store-contract.ts';
import { realClusters } from './real-world.ts';
import { seededRandom } from '../support/random.ts';
import { suiteClusters } from './suite-clusters.ts';

const namespace = `store-${randomBytes(4).toString('hex')}`;
let admin: WatchClient;
let stores = 0;

beforeAll(async () => {
  admin = clientOf(hostAccess());
  await admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
});

afterAll(async () => {
  await admin.delete(NAMESPACES, { namespace: '', name: namespace }, {});
  await admin[Symbol.asyncDispose]();
});

function hostAccess(kubeconfig = suiteClusters().host.kubeconfigPath): ReturnType<typeof loadClusterAccess> {
  return loadClusterAccess({ kubeconfig, context: '' }, { clock: systemClock });
}

function newName(): string {
  return `store ${++stores}`;
}

async function threeReplicas(stack: AsyncDisposableStack): Promise<readonly Replica[]> {
  const name = newName();
  const replicas: Replica[] = [];
  for (let i = 0; i < 3; i++) replicas.push(stack.use(await openReplica(hostAccess(), { namespace, name })));
  return replicas;
}

/** All replicas have received the same events in the same order. */
async function expectSameEvents(followed: readonly (readonly Fact[])[], revision: number): Promise<void> {
  for (const facts of followed) {
    await vi.waitFor(() => expect(facts.at(-1)?.revision).toBe(revision), { timeout: 60_000, interval: 5 });
    expect(facts).toEqual(followed[0]);
    const revisions = facts.map((fact) => fact.revision);
    expect(revisions).toEqual([...new Set(revisions)].toSorted((a, b) => a - b));
  }
}

storeContract(
  'kubernetes, on a kube-apiserver',
  (historyLimit) =>
    openKubernetesStore({
      client: admin,
      namespace,
      name: newName(),
      clock: systemClock,
      random: systemRandom,
      logger: silentLogger,
      ...(historyLimit === undefined ? {} : { historyLimit }),
    }),
  { runs: 5, isCounterShared: true },
);

describe('three replicas in one namespace', () => {
  test('write concurrently: every response is correct, and all receive the same events in the same order', async () => {
    await using stack = new AsyncDisposableStack();
    const replicas = await threeReplicas(stack);
    const seed = Math.floor(Math.random() * 1_000_000);
    const followed = await Promise.all(replicas.map(({ store }) => follow(store)));
    const writers = replicas.flatMap(({ store }, r) =>
      [0, 1, 2].map((w) => write(store, `${r}${w}`, 40, seededRandom(seed + r * 3 + w))),
    );
    const attempts = (await Promise.all(writers)).flat();
    const done = attempts.filter(({ outcome }) => outcome === 'done');
    expect(done.length, `seed ${seed}`).toBeGreaterThan(100);
    await expectSameEvents(followed, Math.max(...done.map(({ revision }) => revision)));
    const truth = followed[0] ?? [];
    expect(truth).toHaveLength(done.length);
    expectHonestAnswers(attempts, truth, { hasFaults: false });
    await expectSameEnd(
      replicas.map(({ store }) => store),
      truth,
    );
  });

  test('increment a counter concurrently: no increment is lost', async () => {
    await using stack = new AsyncDisposableStack();
    const replicas = await threeReplicas(stack);
    const key = keyNamed('counter');
    await replicas[0]?.store.create(key, { count: 0 });
    const increment = async (store: Store): Promise<void> => {
      for (;;) {
        const entry = await store.get(key);
        if (entry === undefined) throw new Error('the counter is gone');
        try {
          await store.update(key, { count: Number(entry.value['count']) + 1 }, entry.revision);
          return;
        } catch (error) {
          if (!(error instanceof StoreError) || error.code !== 'conflict') throw error;
        }
      }
    };
    await Promise.all(
      replicas.map(async ({ store }) => {
        for (let i = 0; i < 30; i++) await increment(store);
      }),
    );
    for (const { store } of replicas) expect((await store.get(key))?.value).toEqual({ count: 90 });
  });

  test("read each other's writes immediately", async () => {
    await using stack = new AsyncDisposableStack();
    const [a, b, c] = await threeReplicas(stack);
    for (let i = 0; i < 20; i++) {
      const entry = await a?.store.create(keyNamed(`n${i}`), { i });
      expect(await b?.store.get(keyNamed(`n${i}`))).toEqual(entry);
      expect((await c?.store.list({ resource: 'things' }))?.entries).toHaveLength(i + 1);
    }
  });

  test('a crash of the API server loses no acknowledged write', async () => {
    await using stack = new AsyncDisposableStack();
    const replicas = await threeReplicas(stack);
    const clusters = realClusters();
    const seed = Math.floor(Math.random() * 1_000_000);
    const followed = await Promise.all(replicas.map(({ store }) => follow(store)));
    const writers = replicas.flatMap(({ store }, r) =>
      [0, 1].map((w) => write(store, `${r}${w}`, 60, seededRandom(seed + r * 3 + w))),
    );
    await vi.waitFor(() => expect(followed[0]?.length).toBeGreaterThan(40), { timeout: 60_000 });
    await clusters.stop('host');
    await clusters.start('host');
    const attempts = (await Promise.all(writers)).flat();
    const { entries = [] } = (await replicas[0]?.store.list({ resource: 'things' })) ?? {};
    const end = new Map(entries.map(({ key, value }) => [key.name, value['id']]));
    // The new server has no history: its clients list, and miss intermediate states.
    for (const facts of followed) {
      await vi.waitFor(() => expect(stateOf(facts)).toEqual(end), { timeout: 60_000, interval: 10 });
      const revisions = facts.map(({ revision }) => revision);
      expect(revisions).toEqual(revisions.toSorted((x, y) => x - y));
    }
    expectNoContradiction(attempts, followed);
    expect(attempts.filter(({ outcome }) => outcome === 'done').length, `seed ${seed}`).toBeGreaterThan(100);
  });
});

describe('the rights of the store', () => {
  const rule = { apiGroups: [''], resources: ['secrets'] };
  const verbs = ['get', 'list', 'watch', 'create', 'patch', 'delete'];

  async function openAs(granted: readonly string[]): Promise<void> {
    const kubeconfig = await realClusters().userKubeconfig('host', [{ namespace, ...rule, verbs: granted }]);
    const folder = mkdtempSync(join(tmpdir(), 'store-rights-'));
    try {
      const file = join(folder, 'kubeconfig');
      writeFileSync(file, kubeconfig);
      await using replica = await openReplica(hostAccess(file), { namespace, name: newName() });
      const { store } = replica;
      const { revision } = await store.create(keyNamed('a'), {});
      const updated = await store.update(keyNamed('a'), { x: 1 }, revision);
      await store.delete(keyNamed('a'), updated.revision);
      await store.notes('t').write(new Map([['a', 'b']]));
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  test('of the documented Role are sufficient', async () => {
    await expect(openAs(verbs)).resolves.toBeUndefined();
  });

  test('are named when they are missing', async () => {
    const opening = openAs(['get', 'list', 'watch']);
    await expect(opening).rejects.toThrow(TerminalError);
    await expect(opening).rejects.toThrow(`cannot create, patch, delete secrets in namespace "${namespace}"`);
  });
});

describe('the Secrets of the store', () => {
  test('store objects that are nearly as large as a Secret may be', async () => {
    await using replica = await openReplica(hostAccess(), { namespace, name: newName() });
    const value = { noise: randomBytes(950_000).toString('base64') };
    const { revision } = await replica.store.create(keyNamed('large'), value);
    expect(await replica.store.get(keyNamed('large'))).toEqual({ key: keyNamed('large'), value, revision });
    const tooLarge = replica.store.update(keyNamed('large'), { noise: value.noise.repeat(2) }, revision);
    await expect(tooLarge).rejects.toMatchObject({ code: 413 });
  });

  test('are backed up and restored with kubectl, as in docs/keys/store.md', async () => {
    const { kubectl, host } = suiteClusters();
    await using replica = await openReplica(hostAccess(), { namespace, name: 'backup' });
    const { store } = replica;
    const things = { resource: 'things' };
    await store.create(keyNamed('a'), { x: 1 });
    await store.create(keyNamed('b'), { text: 'long '.repeat(10_000) });
    await store.notes('seen').write(new Map([['a', 'today']]));
    const before = (await store.list(things)).entries.map(({ value }) => value);
    const run = (args: readonly string[], input = ''): string =>
      execFileSync(kubectl, ['--kubeconfig', host.kubeconfigPath, '-n', namespace, ...args], {
        input,
      }).toString();
    const ours = ['-l', 'app.kubernetes.io/managed-by=endpoint-syncer,endpoint-syncer/store=backup'];
    const backup = run(['get', 'secrets', ...ours, '-o', 'yaml']);
    run(['delete', 'secrets', ...ours]);
    expect((await store.list(things)).entries).toEqual([]);
    run(['create', '-f', '-'], backup);
    expect((await store.list(things)).entries.map(({ value }) => value)).toEqual(before);
    expect(await store.notes('seen').read()).toEqual(new Map([['a', 'today']]));
  });
});
