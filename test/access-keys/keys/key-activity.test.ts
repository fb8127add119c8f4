/** The last activity of keys: reporting, batched writes, and effect on expiry. */

import { KEEP_EXPIRED_MS } from '../../../src/access-keys/keys/stored-key.ts';
import { describe, expect, test } from 'vitest';
import { MemoryStore } from '../../../src/apiserver/storage/revisioned-store.ts';
import type { Notes } from '../../../src/apiserver/storage/store.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { LaggingStore } from './lagging-store.ts';
import { at, keyOf, KEYS_PATH, makeKeys, startKeyServer, type KeyServer } from './key-server.ts';

/** Counts the writes of notes, and fails some. */
class CountingStore extends LaggingStore {
  readonly written: ReadonlyMap<string, string | undefined>[] = [];
  failingNotes = 0;

  override notes(table: string): Notes {
    const notes = super.notes(table);
    return {
      read: () => notes.read(),
      write: async (changes) => {
        if (this.failingNotes-- > 0) throw new Error('the test says so');
        this.written.push(changes);
        await notes.write(changes);
      },
    };
  }
}

function use(api: Pick<KeyServer, 'keys'>, name: string): void {
  const key = api.keys.index.byName(name);
  if (key) api.keys.activity.recordUse(key);
}

describe('last activity', () => {
  test('is in every response immediately, and does not change the resourceVersion', async () => {
    const clock = new FakeClock();
    await using api = await startKeyServer({ clock });
    const created = await api.create('k1');
    const version = at(created, 'metadata.resourceVersion');
    const first = await api.send('GET', `${KEYS_PATH}/k1`);
    const expiresAt = '2026-01-01T00:01:00Z';
    expect(first.json?.['status']).toEqual({ expiresAt });
    clock.advance(5_000);
    use(api, 'k1');
    const shown = { lastActivity: '2026-01-01T00:00:05Z', expiresAt };
    const got = await api.send('GET', `${KEYS_PATH}/k1`);
    expect([got.json?.['status'], at(got.json, 'metadata.resourceVersion')]).toEqual([shown, version]);
    expect((await api.send('GET', KEYS_PATH)).text).toContain(shown.lastActivity);
    const table = await api.send('GET', KEYS_PATH, undefined, {
      accept: 'application/json;as=Table;g=meta.k8s.io;v=v1',
    });
    clock.advance(2_000);
    expect(table.text).toContain('"0s"');
    const patched = await api.send('PATCH', `${KEYS_PATH}/k1`, { spec: { displayName: 'E' } });
    expect(patched.json?.['status']).toEqual(shown);
    await using watch = await api.client.watch(`${KEYS_PATH}?watch=true&resourceVersion=0`);
    expect((await watch.next())?.object['status']).toEqual(shown);
  });

  test('a write of a key in use does not store it in the object, and a status write persists', async () => {
    const clock = new FakeClock();
    await using api = await startKeyServer({ clock });
    await api.create('k1');
    clock.advance(10_000);
    use(api, 'k1');
    await api.send('PATCH', `${KEYS_PATH}/k1`, { spec: { displayName: 'E' } });
    const stored = async (): Promise<unknown> =>
      (await api.store.get({ resource: api.keys.definition.storage, namespace: '', name: 'k1' }))?.value[
        'status'
      ];
    expect(await stored()).toEqual({});
    await api.send('PATCH', `${KEYS_PATH}/k1/status`, { status: { lastActivity: '2026-01-01T00:00:03Z' } });
    expect(await stored()).toEqual({ lastActivity: '2026-01-01T00:00:03Z' });
    const got = await api.send('GET', `${KEYS_PATH}/k1`);
    expect(at(got.json, 'status.lastActivity')).toBe('2026-01-01T00:00:10Z');
  });

  test('is stored at most once a minute, for many keys in one write, and on stop', async () => {
    const clock = new FakeClock();
    await using memory = new MemoryStore();
    const store = new CountingStore(memory);
    const api = await startKeyServer({ clock, store });
    for (let i = 0; i < 20; i++) await api.create(`k${i}`, { ttl: 0 });
    for (let second = 0; second < 300; second++) {
      for (let i = 0; i < 20; i++) use(api, `k${i}`);
      await clock.advanceAsync(1_000);
    }
    const perKey = new Map<string, number>();
    for (const changes of store.written)
      for (const uid of changes.keys()) perKey.set(uid, (perKey.get(uid) ?? 0) + 1);
    expect(perKey.size).toBe(20);
    expect([Math.min(...perKey.values()), Math.max(...perKey.values())]).toEqual([5, 5]);
    expect(store.written.length).toBeLessThanOrEqual(6);
    use(api, 'k3');
    await api[Symbol.asyncDispose]();
    expect(store.written.at(-1)?.size).toBe(20);
    await using again = await startKeyServer({ clock, store });
    const got = await again.send('GET', `${KEYS_PATH}/k3`);
    expect(at(got.json, 'status.lastActivity')).toBe(new Date(clock.now()).toISOString().replace('.000', ''));
  });

  test('is stored more often for a short ttl, retried after a failure, and dropped for deleted keys', async () => {
    const clock = new FakeClock();
    await using memory = new MemoryStore();
    const store = new CountingStore(memory);
    await using api = await startKeyServer({ clock, store });
    await api.create('k1', { ttl: 20, ttlAfterLastActivity: true });
    store.failingNotes = 1;
    use(api, 'k1');
    await clock.advanceAsync(1_000);
    expect(store.written).toHaveLength(0);
    await clock.advanceAsync(5_000);
    expect(store.written).toHaveLength(1);
    for (let i = 0; i < 20; i++) {
      use(api, 'k1');
      await clock.advanceAsync(500);
    }
    expect(store.written).toHaveLength(6);
    await api.send('DELETE', `${KEYS_PATH}/k1`);
    await clock.advanceAsync(2_000);
    expect((await memory.notes('activity').read()).size).toBe(0);
  });

  test('is deleted at the start for keys that were deleted during a downtime', async () => {
    await using memory = new MemoryStore();
    await memory.notes('activity').write(
      new Map([
        ['gone', '2026-01-01T00:00:00.000Z'],
        ['bad', 'x'],
      ]),
    );
    const clock = new FakeClock();
    await using _room = await startKeyServer({ clock, store: memory });
    await clock.advanceAsync(1_000);
    expect([...(await memory.notes('activity').read()).keys()]).toEqual(['bad']);
  });

  test('at another replica extends the lifetime at this one', async () => {
    const clock = new FakeClock();
    await using memory = new MemoryStore();
    await using here = await startKeyServer({ clock, store: memory });
    const there = makeKeys(memory, { clock });
    await there.start();
    const key = keyOf(await here.create('k1', { ttl: 60, ttlAfterLastActivity: true }));
    await clock.advanceAsync(50_000);
    use({ keys: there }, 'k1');
    await clock.advanceAsync(30_000);
    expect(await here.keys.authenticator.authenticate(key)).toMatchObject({ name: 'u' });
    await clock.advanceAsync(29_000);
    expect(here.keys.index.byName('k1')).toBeDefined();
    await clock.advanceAsync(KEEP_EXPIRED_MS + 60_000);
    expect(here.keys.index.byName('k1')).toBeUndefined();
    await there.stop();
  });
});
