/** Notes of several replicas, with lost responses and damaged Secrets. */

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type FaultyCluster, startFaultyCluster } from '../../../embedded-cluster/faulty-cluster.ts';
import { plainAccess } from '../../../../src/kube/access.ts';
import { failNext, fast, openReplica } from './replicas.ts';

let cluster: FaultyCluster;

beforeEach(async () => {
  cluster = await startFaultyCluster({ name: 'host' });
});

afterEach(async () => {
  await cluster[Symbol.asyncDispose]();
});

describe('notes', () => {
  test('of several concurrent replicas are all stored', async () => {
    await using a = await openReplica(plainAccess(cluster.url), fast);
    await using b = await openReplica(plainAccess(cluster.url), fast);
    await using c = await openReplica(plainAccess(cluster.url), fast);
    const expected = new Map<string, string>();
    await Promise.all(
      [a, b, c].map(async ({ store }, replica) => {
        for (let round = 0; round < 3; round++) {
          const changes = new Map(Array.from({ length: 20 }, (_, i) => [`${replica}-${i}`, String(round)]));
          for (const key of changes.keys()) expected.set(key, '2');
          await store.notes('seen').write(changes);
        }
      }),
    );
    for (const { store } of [a, b, c]) {
      const notes = await store.notes('seen').read();
      expect(notes).toEqual(expected);
    }
  });

  test('survive lost responses, and removed or damaged Secrets', async () => {
    await using replica = await openReplica(plainAccess(cluster.url), fast);
    const notes = replica.store.notes('seen');
    failNext(cluster, 'reset-after-commit', { status: 500 }, 'drop');
    await notes.write(new Map([['a', '1']]));
    expect(await notes.read()).toEqual(new Map([['a', '1']]));
    for (const entry of (await cluster.store.list({ resource: 'secrets' })).entries) {
      await cluster.store.delete(entry.key, entry.revision);
    }
    await notes.write(new Map([['a', '2']]));
    expect(await notes.read()).toEqual(new Map([['a', '2']]));
    for (const { key, value, revision } of (await cluster.store.list({ resource: 'secrets' })).entries) {
      await cluster.store.update(key, { ...value, data: { notes: 'bm8=' } }, revision);
    }
    expect(await notes.read()).toEqual(new Map());
    await notes.write(new Map([['a', '3']]));
    expect(await notes.read()).toEqual(new Map([['a', '3']]));
  });
});
