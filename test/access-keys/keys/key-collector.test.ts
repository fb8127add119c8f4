/** Deletion of keys by expiry, grace period and owner references. */

import { KEEP_EXPIRED_MS } from '../../../src/access-keys/keys/stored-key.ts';
import { metadataOf } from '../../../src/kube/object.ts';
import { describe, expect, test } from 'vitest';
import { KEY_STORAGE } from '../../../src/access-keys/keys/key-kind.ts';
import { type JsonObject, type JsonValue, objectField, text } from '../../../src/base/json.ts';
import { MemoryStore } from '../../../src/apiserver/storage/revisioned-store.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { SHORT_LIVED_KEPT_MAX } from '../../../src/access-keys/keys/key-collector.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { LaggingStore } from './lagging-store.ts';
import { at, keyOf, KEYS_PATH, makeKeys, startKeyServer, type KeyServer } from './key-server.ts';

const HOLD = { finalizers: ['example.com/hold'] };

function owned(owners: readonly JsonObject[], isBlocking = false): JsonObject {
  return {
    ownerReferences: owners.map((owner) => ({
      apiVersion: 'management.platform.sh/v1',
      kind: 'OwnedAccessKey',
      name: at(owner, 'metadata.name') ?? '',
      uid: at(owner, 'metadata.uid') ?? '',
      ...(isBlocking ? { blockOwnerDeletion: true } : {}),
    })),
  };
}

async function names(api: KeyServer): Promise<string> {
  const list = (await api.send('GET', KEYS_PATH)).json?.['items'] as JsonValue[]; // a list of the API
  return list.map((item) => text(metadataOf(item as JsonObject), 'name')).join(' ');
}

interface CollectorHarness extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly api: KeyServer;
  /** Lets the collector do what there is to do now. */
  settled(): Promise<string>;
}

async function startCollector(options: Parameters<typeof startKeyServer>[0] = {}): Promise<CollectorHarness> {
  const clock = new FakeClock();
  const api = await startKeyServer({ clock, ...options });
  return {
    clock,
    api,
    settled: async () => {
      for (let i = 0; i < 10; i++) await clock.advanceAsync(0);
      return names(api);
    },
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  };
}

describe('expiry', () => {
  test('expired keys are deleted a week later, in order, and finalizers keep them as usual', async () => {
    await using collector = await startCollector();
    const { api, clock } = collector;
    for (const [name, ttl] of Object.entries({ a: 30, b: 10, c: 20, never: 0 }))
      await api.create(name, { ttl });
    await api.create('held', { ttl: 20 }, HOLD);
    await clock.advanceAsync(KEEP_EXPIRED_MS + 9_999);
    expect(await collector.settled()).toBe('a b c held never');
    await clock.advanceAsync(1);
    expect(await collector.settled()).toBe('a c held never');
    await clock.advanceAsync(10_000);
    expect(await collector.settled()).toBe('a held never');
    const held = await api.send('GET', `${KEYS_PATH}/held`);
    expect(at(held.json, 'metadata.deletionTimestamp')).toBe('2026-01-08T00:00:20Z');
    await api.send('PATCH', `${KEYS_PATH}/held`, { metadata: { finalizers: null } });
    await clock.advanceAsync(3e9);
    expect(await collector.settled()).toBe('never');
  });

  test('a ttl that changes before the expiry, or within the week after it, applies', async () => {
    await using collector = await startCollector();
    await collector.api.create('longer', { ttl: 10 });
    await collector.api.create('shorter', { ttl: 1_000_000 });
    await collector.clock.advanceAsync(50_000);
    await collector.api.send('PATCH', `${KEYS_PATH}/longer`, { spec: { ttl: 100_000 } });
    await collector.api.send('PATCH', `${KEYS_PATH}/shorter`, { spec: { ttl: 60 } });
    await collector.clock.advanceAsync(KEEP_EXPIRED_MS + 10_000);
    expect(await collector.settled()).toBe('longer');
    await collector.clock.advanceAsync(100_000_000);
    expect(await collector.settled()).toBe('');
  });

  test('keys that expired a week before the start are deleted at the start', async () => {
    const clock = new FakeClock();
    await using store = new MemoryStore();
    await using api = await startKeyServer({ store, clock });
    await api.keys.stop();
    await api.create('k1', { ttl: 10 });
    await api.create('k2', { ttl: 100 });
    clock.advance(KEEP_EXPIRED_MS + 50_000);
    const keys = makeKeys(store, { clock });
    await keys.start();
    await clock.advanceAsync(10);
    expect(await names(api)).toBe('k2');
    await keys.stop();
  });

  test('a start with a clock 91 days ahead deletes no key of 90 days', async () => {
    await using store = new MemoryStore();
    const first = await startKeyServer({ store, clock: new FakeClock() });
    const key = keyOf(await first.create('k1', { ttl: 90 * 86_400 }));
    await first[Symbol.asyncDispose]();
    const ahead = new FakeClock(Date.UTC(2026, 0, 1 + 91));
    const wrong = makeKeys(store, { clock: ahead });
    await wrong.start();
    await ahead.advanceAsync(3_000);
    await wrong.stop();
    await using again = await startKeyServer({ store, clock: new FakeClock() });
    expect(await again.keys.authenticator.authenticate(key)).toMatchObject({ name: 'u' });
  });

  test('a step of the wall clock is logged and pauses the deletion of expired keys for an hour', async () => {
    const lines: object[] = [];
    const logger = { ...silentLogger, warn: (fields: object) => void lines.push(fields) };
    await using collector = await startCollector({ logger });
    const { api, clock } = collector;
    await api.create('k1', { ttl: 10 });
    await api.create('k2', { ttl: 365 * 86_400 });
    clock.step(4 * 60_000);
    await clock.advanceAsync(10 * 60_000);
    expect(lines).toEqual([]);
    clock.step(400 * 86_400_000);
    await clock.advanceAsync(10 * 60_000);
    expect(lines).toEqual([{ stepSeconds: 400 * 86_400 }]);
    await clock.advanceAsync(49 * 60_000);
    expect(await collector.settled()).toBe('k1 k2');
    clock.step(-400 * 86_400_000);
    await clock.advanceAsync(71 * 60_000);
    expect(lines).toHaveLength(2);
    expect(await collector.settled()).toBe('k1 k2');
    // A clock that stays where it is, is right.
    clock.step(400 * 86_400_000);
    await clock.advanceAsync(71 * 60_000);
    expect(await collector.settled()).toBe('');
  });

  test('of very many short-lived keys of a subject, those that expired last are kept', async () => {
    await using store = new MemoryStore();
    await using collector = await startCollector({ store });
    const { api, clock } = collector;
    await api.create('other', { user: 'other', ttl: 10 });
    await api.create('k0', { ttl: 9 });
    const created = await store.get({ resource: KEY_STORAGE, namespace: '', name: 'k0' });
    if (!created) throw new Error('k0 was not created');
    for (let n = 1; n <= SHORT_LIVED_KEPT_MAX + 1; n++) {
      const metadata = { ...metadataOf(created.value), name: `k${n}`, uid: `uid-${n}` };
      const spec = { ...objectField(created.value, 'spec'), ttl: n === 1 ? 8 : 10 };
      await store.create({ ...created.key, name: `k${n}` }, { ...created.value, metadata, spec });
    }
    await clock.advanceAsync(11_000);
    const left = (await collector.settled()).split(' ');
    expect(left).toHaveLength(SHORT_LIVED_KEPT_MAX + 1);
    expect(left).toContain('other');
    expect(left).not.toContain('k0');
    expect(left).not.toContain('k1');
  });

  test('a temporary failure of the store only delays the deletion', async () => {
    const clock = new FakeClock();
    await using memory = new MemoryStore();
    const store = new FailingStore(memory);
    await using api = await startKeyServer({ store, clock });
    await api.create('k1', { ttl: 10 });
    await clock.advanceAsync(KEEP_EXPIRED_MS);
    store.failingDeletes = 3;
    await clock.advanceAsync(10_000);
    expect(await names(api)).toBe('k1');
    await clock.advanceAsync(1_000);
    expect(await names(api)).toBe('');
  });
});

class FailingStore extends LaggingStore {
  failingDeletes = 0;

  override async delete(...args: Parameters<LaggingStore['delete']>): ReturnType<LaggingStore['delete']> {
    if (this.failingDeletes-- > 0) throw new Error('the test says so');
    return super.delete(...args);
  }
}

describe('graceful deletion', () => {
  test('ends at its deadline, also after a restart', async () => {
    const clock = new FakeClock();
    await using store = new MemoryStore();
    const first = await startKeyServer({ store, clock });
    for (const name of ['g1', 'g2']) await first.create(name, { ttl: 0 });
    await first.create('g3', { ttl: 0 }, HOLD);
    for (const name of ['g1', 'g2', 'g3'])
      await first.send('DELETE', `${KEYS_PATH}/${name}?gracePeriodSeconds=30`);
    await first.send('DELETE', `${KEYS_PATH}/g2?gracePeriodSeconds=10`);
    await first[Symbol.asyncDispose]();
    await using second = await startKeyServer({ store, clock });
    await clock.advanceAsync(9_000);
    expect(await names(second)).toBe('g1 g2 g3');
    await clock.advanceAsync(1_100);
    expect(await names(second)).toBe('g1 g3');
    await clock.advanceAsync(20_000);
    expect(await names(second)).toBe('g3');
    const held = await second.send('GET', `${KEYS_PATH}/g3`);
    expect(at(held.json, 'metadata.deletionGracePeriodSeconds')).toBe(0);
  });

  test.each([
    ['of a key that never expires: an hour', { ttl: 0 }, 3600],
    ['of another one: what is left of its lifetime', { ttl: 7200 }, 7200],
  ])('has a maximum, %s', async (_what, spec, seconds) => {
    await using api = await startKeyServer({ clock: new FakeClock() });
    await api.create('k1', spec);
    const answer = await api.send('DELETE', `${KEYS_PATH}/k1?gracePeriodSeconds=2147483647`);
    expect(at(answer.json, 'metadata.deletionGracePeriodSeconds')).toBe(seconds);
  });

  test.each(['', '?gracePeriodSeconds=0', 'the collection'])(
    'of a stolen key does not outlive the deletion by another user: %s',
    async (how) => {
      await using api = await startKeyServer();
      const key = keyOf(await api.create('k1', { ttl: 0 }));
      await api.send('DELETE', `${KEYS_PATH}/k1?gracePeriodSeconds=2147483647`);
      const path = how === 'the collection' ? KEYS_PATH : `${KEYS_PATH}/k1${how}`;
      expect((await api.send('DELETE', path)).status).toBe(200);
      const used = await api.send('GET', KEYS_PATH, undefined, { authorization: `Bearer ${key}` });
      expect(used.status).toBe(401);
      expect((await api.send('GET', `${KEYS_PATH}/k1`)).status).toBe(404);
    },
  );

  test('applies only to requests with a grace period', async () => {
    await using collector = await startCollector();
    await collector.api.create('k1', { ttl: 0 });
    const answer = await collector.api.send('DELETE', `${KEYS_PATH}/k1`);
    expect(answer.json?.['status']).toBe('Success');
    expect(await collector.settled()).toBe('');
  });

  test('the key works until its deadline, which may be shortened and never extended', async () => {
    await using collector = await startCollector();
    const { api, clock } = collector;
    const key = keyOf(await api.create('k1', { ttl: 0 }, HOLD));
    const remove = (seconds: number): ReturnType<KeyServer['send']> =>
      api.send('DELETE', `${KEYS_PATH}/k1`, {
        kind: 'DeleteOptions',
        apiVersion: 'v1',
        gracePeriodSeconds: seconds,
      });
    const use = async (): Promise<number> =>
      (await api.send('GET', KEYS_PATH, undefined, { authorization: `Bearer ${key}` })).status;
    const first = await remove(60);
    expect([
      first.status,
      at(first.json, 'metadata.deletionGracePeriodSeconds'),
      at(first.json, 'metadata.generation'),
    ]).toEqual([200, 60, 2]);
    const deadline = (seconds: number): string =>
      `${new Date(clock.now() + seconds * 1000).toISOString().slice(0, 19)}Z`;
    expect(at(first.json, 'metadata.deletionTimestamp')).toBe(deadline(60));
    const shorter = await remove(30);
    expect(at(shorter.json, 'metadata.deletionTimestamp')).toBe(deadline(30));
    await remove(90);
    const now = await api.send('GET', `${KEYS_PATH}/k1`);
    expect(at(now.json, 'metadata.deletionTimestamp')).toBe(deadline(30));
    await clock.advanceAsync(29_999);
    expect(await use()).toBe(200);
    await clock.advanceAsync(1);
    // Its finalizer holds the object, not the credential.
    expect(await use()).toBe(401);
    expect((await api.send('GET', `${KEYS_PATH}/k1`)).status).toBe(200);
  });
});

describe('owners', () => {
  test('an object is deleted with the last of its owners, and its dependents with it', async () => {
    await using collector = await startCollector();
    const { api } = collector;
    const [a, b] = [await api.create('a', { ttl: 0 }), await api.create('b', { ttl: 0 })];
    const c = await api.create('c', { ttl: 0 }, owned([a, b]));
    await api.create('d', { ttl: 0 }, owned([c]));
    await api.send('DELETE', `${KEYS_PATH}/a`);
    expect(await collector.settled()).toBe('b c d');
    const left = await api.send('GET', `${KEYS_PATH}/c`);
    expect(at(left.json, 'metadata.ownerReferences')).toMatchObject([{ name: 'b' }]);
    await api.send('DELETE', `${KEYS_PATH}/b`);
    expect(await collector.settled()).toBe('');
  });

  test('owners of other kinds count as existing, owners with a wrong name or uid as deleted', async () => {
    await using collector = await startCollector();
    const { api } = collector;
    const a = await api.create('a', { ttl: 0 });
    const reference = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u1' };
    await api.create('pod', { ttl: 0 }, { ownerReferences: [reference] });
    const wrongName = { metadata: { name: 'b', uid: at(a, 'metadata.uid') ?? '' } };
    const wrongUid = { metadata: { name: 'a', uid: 'u2' } };
    await api.create('name', { ttl: 0 }, owned([wrongName]));
    await api.create('uid', { ttl: 0 }, owned([wrongUid]));
    expect(await collector.settled()).toBe('a pod');
  });

  test('orphan: the owner is deleted, its dependents stay without the owner reference', async () => {
    await using collector = await startCollector();
    const { api } = collector;
    const a = await api.create('a', { ttl: 0 });
    await api.create('b', { ttl: 0 }, owned([a]));
    const answer = await api.send('DELETE', `${KEYS_PATH}/a?propagationPolicy=Orphan`);
    expect(at(answer.json, 'metadata.finalizers')).toEqual(['orphan']);
    expect(await collector.settled()).toBe('b');
    const left = await api.send('GET', `${KEYS_PATH}/b`);
    expect(at(left.json, 'metadata.ownerReferences')).toBeUndefined();
    expect(at(left.json, 'metadata.generation')).toBe(1);
  });

  test('foreground: blocking dependents are deleted first, at every level', async () => {
    await using collector = await startCollector();
    const { api } = collector;
    const a = await api.create('a', { ttl: 0 });
    const b = await api.create('b', { ttl: 0 }, owned([a], true));
    await api.create('c', { ttl: 0 }, { ...owned([b], true), ...HOLD });
    await api.create('free', { ttl: 0 }, { ...owned([a]), ...HOLD });
    await api.send('DELETE', `${KEYS_PATH}/a?propagationPolicy=Foreground`);
    expect(await collector.settled()).toBe('a b c free');
    for (const name of ['a', 'b', 'c', 'free']) {
      const { json } = await api.send('GET', `${KEYS_PATH}/${name}`);
      expect(at(json, 'metadata.deletionTimestamp')).toBeDefined();
    }
    await api.send('PATCH', `${KEYS_PATH}/c`, { metadata: { finalizers: null } });
    expect(await collector.settled()).toBe('free');
  });

  test('foreground with another owner: the dependent stays with the other owner reference', async () => {
    await using collector = await startCollector();
    const { api } = collector;
    const [a, b] = [await api.create('a', { ttl: 0 }), await api.create('b', { ttl: 0 })];
    await api.create('c', { ttl: 0 }, owned([a, b], true));
    await api.send('DELETE', `${KEYS_PATH}/a?propagationPolicy=Foreground`);
    expect(await collector.settled()).toBe('b c');
    expect(at((await api.send('GET', `${KEYS_PATH}/c`)).json, 'metadata.ownerReferences')).toMatchObject([
      { name: 'b' },
    ]);
  });

  test('foreground with a cycle of owners ends', async () => {
    await using collector = await startCollector();
    const { api } = collector;
    const a = await api.create('a', { ttl: 0 });
    const b = await api.create('b', { ttl: 0 }, owned([a], true));
    await api.send('PATCH', `${KEYS_PATH}/a`, { metadata: owned([b], true) });
    await api.send('DELETE', `${KEYS_PATH}/a?propagationPolicy=Foreground`);
    expect(await collector.settled()).toBe('');
  });

  test('a stale index deletes no object that has an owner', async () => {
    const clock = new FakeClock();
    await using memory = new MemoryStore();
    await using api = await startKeyServer({ store: memory, clock });
    const lagging = new LaggingStore(memory);
    const other = makeKeys(lagging, { clock });
    await other.start();
    const a = await api.create('a', { ttl: 0 });
    await api.create('b', { ttl: 0 }, owned([a]));
    await clock.advanceAsync(100);
    expect(await names(api)).toBe('a b');
    await other.stop();
  });

  test('three concurrent replicas delete each object once', async () => {
    const clock = new FakeClock();
    await using store = new MemoryStore();
    await using api = await startKeyServer({ store, clock });
    const others = [makeKeys(store, { clock }), makeKeys(store, { clock })];
    for (const other of others) await other.start();
    const a = await api.create('a', { ttl: 30 });
    for (let i = 0; i < 10; i++) await api.create(`b${i}`, { ttl: i }, i % 2 === 0 ? owned([a], true) : {});
    await api.send('DELETE', `${KEYS_PATH}/a?propagationPolicy=Foreground`);
    await clock.advanceAsync(KEEP_EXPIRED_MS + 5_500);
    expect(await names(api)).toBe('b7 b9');
    await clock.advanceAsync(10_000);
    expect(await names(api)).toBe('');
    for (const other of others) await other.stop();
  });
});
