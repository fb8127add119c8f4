/** The in-memory index of keys: consistency with the store after failures, and expiry times. */

import { describe, expect, test } from 'vitest';
import { MemoryStore } from '../../../src/apiserver/storage/memory-store.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { KEY_STORAGE } from '../../../src/access-keys/keys/key-kind.ts';
import { LaggingStore } from './lagging-store.ts';
import { at, keyOf, KEYS_PATH, makeKeys, startKeyServer } from './key-server.ts';

describe('index', () => {
  test('loses no change when its watch ends and lists fail', async () => {
    const clock = new FakeClock();
    await using store = new MemoryStore();
    await using api = await startKeyServer({ store });
    const lagging = new LaggingStore(store);
    const other = makeKeys(lagging, { clock });
    await other.start();
    const changes: string[] = [];
    other.index.onChange(({ now, before }) => {
      changes.push(`${before?.name ?? ''}>${now?.name ?? ''}`);
    });
    const stays = await api.create('stays');
    await api.create('goes');
    await api.create('again');
    lagging.failingLists = 3;
    lagging.endWatches();
    await api.send('DELETE', `${KEYS_PATH}/goes`);
    await api.send('DELETE', `${KEYS_PATH}/again`);
    const again = await api.create('again');
    await api.create('new');
    expect([...other.index.all()].map(({ name }) => name).toSorted()).toEqual(['again', 'goes', 'stays']);
    await clock.advanceAsync(2000);
    expect([...other.index.all()].map(({ name }) => name).toSorted()).toEqual(['again', 'new', 'stays']);
    expect(other.index.byName('again')?.uid).toBe(at(again, 'metadata.uid'));
    expect(changes.slice(3)).toEqual(['goes>', 'again>', '>again', '>new']);
    await api.send('PATCH', `${KEYS_PATH}/stays`, { spec: { disabled: true } });
    await settle();
    expect(other.index.byName('stays')?.isDisabled).toBe(true);
    expect(other.index.byCredential(keyOf(stays).slice(4, 16))).toHaveLength(1);
    await other.stop();
  });

  test('catching up waits for the written revision, and lists again when the watch is stuck', async () => {
    const clock = new FakeClock();
    await using store = new MemoryStore();
    await using api = await startKeyServer({ store });
    const lagging = new LaggingStore(store);
    const other = makeKeys(lagging, { clock });
    await other.start();
    lagging.hold();
    await api.create('k1');
    let isCaughtUp = false;
    const caughtUp = other.index.catchUp().then(() => {
      isCaughtUp = true;
    });
    await clock.advanceAsync(100);
    expect(isCaughtUp).toBe(false);
    lagging.release();
    await clock.advanceAsync(100);
    await caughtUp;
    expect(other.index.byName('k1')).toBeDefined();
    lagging.hold();
    await api.create('k2');
    const again = other.index.catchUp();
    await clock.advanceAsync(1900);
    expect(other.index.byName('k2')).toBeUndefined();
    await clock.advanceAsync(200);
    await again;
    expect(other.index.byName('k2')).toBeDefined();
    await api.create('k3');
    lagging.failingLists = 1000;
    const failed = other.index.catchUp().catch(String);
    await clock.advanceAsync(6000);
    expect(await failed).toContain('the watch of the access keys did not catch up in time');
    await other.stop();
  });

  test.for(['deleted', 'disabled', 'rotated'])(
    'a key that this process has %s is refused at once, although no event reports it',
    async (how) => {
      await using store = new MemoryStore();
      const lagging = new LaggingStore(store);
      await using api = await startKeyServer({ store: lagging });
      const key = keyOf(await api.create('key', { ttl: 0 }));
      const get = async (): Promise<number> =>
        (await api.send('GET', KEYS_PATH, undefined, { authorization: `Bearer ${key}` })).status;
      expect(await get()).toBe(200);
      lagging.hold();
      const path = `${KEYS_PATH}/key`;
      if (how === 'deleted') await api.send('DELETE', path);
      else if (how === 'disabled') await api.send('PATCH', path, { spec: { disabled: true } });
      else await api.send('POST', `${path}/rotate`, {});
      expect(await get()).toBe(401);
      lagging.release();
      expect(await get()).toBe(401);
    },
  );

  test('an event from before an acknowledged deletion does not bring the key back', async () => {
    await using store = new MemoryStore();
    await using elsewhere = await startKeyServer({ store });
    const lagging = new LaggingStore(store);
    await using api = await startKeyServer({ store: lagging });
    await api.create('key');
    lagging.hold();
    await elsewhere.send('PATCH', `${KEYS_PATH}/key`, { spec: { description: 'changed' } });
    await api.send('DELETE', `${KEYS_PATH}/key`);
    const seen: (string | undefined)[] = [];
    api.keys.index.onChange(({ now }) => seen.push(now?.name));
    lagging.release();
    expect(seen).toEqual([]);
    expect(api.keys.index.byName('key')).toBeUndefined();
  });

  test('a list from before an acknowledged deletion does not bring the key back', async () => {
    await using store = new MemoryStore();
    const lagging = new LaggingStore(store);
    await using api = await startKeyServer({ store: lagging });
    await api.create('key');
    const listed = lagging.holdList();
    lagging.endWatches();
    await api.send('DELETE', `${KEYS_PATH}/key`);
    expect(api.keys.index.byName('key')).toBeUndefined();
    listed.release();
    await api.keys.index.confirmed();
    expect(api.keys.index.byName('key')).toBeUndefined();
  });

  test('an acknowledged write that a restore of the store has undone is undone here too', async () => {
    await using store = new MemoryStore();
    const lagging = new LaggingStore(store);
    await using api = await startKeyServer({ store: lagging });
    lagging.hold();
    const key = keyOf(await api.create('key', { ttl: 0 }));
    const get = async (): Promise<number> =>
      (await api.send('GET', KEYS_PATH, undefined, { authorization: `Bearer ${key}` })).status;
    expect(await get()).toBe(200);
    const { entries } = await store.list({ resource: KEY_STORAGE });
    for (const { key: stored, revision } of entries) await store.delete(stored, revision);
    lagging.lose();
    expect(await get()).toBe(401);
  });

  test('after the end of a watch no key is accepted before the keys are listed again', async () => {
    const clock = new FakeClock();
    await using store = new MemoryStore();
    const lagging = new LaggingStore(store);
    await using api = await startKeyServer({ store: lagging, clock });
    const key = keyOf(await api.create('key', { ttl: 0 }));
    const get = async (): Promise<number> =>
      (await api.send('GET', KEYS_PATH, undefined, { authorization: `Bearer ${key}` })).status;
    lagging.failingLists = 1;
    lagging.endWatches();
    expect(await get()).toBe(503);
    await clock.advanceAsync(1000);
    expect(await get()).toBe(200);
  });

  test('no key is accepted from the detection of a restored store until its keys are listed', async () => {
    await using store = new MemoryStore();
    const lagging = new LaggingStore(store);
    await using api = await startKeyServer({ store: lagging });
    const key = keyOf(await api.create('key', { ttl: 0 }));
    const get = async (): Promise<number> =>
      (await api.send('GET', KEYS_PATH, undefined, { authorization: `Bearer ${key}` })).status;
    lagging.isOutdated = true;
    expect(await get()).toBe(503);
    lagging.isOutdated = false;
    await expect.poll(get).toBe(200);
  });

  test('the expiry time of a key', async () => {
    const clock = new FakeClock();
    await using api = await startKeyServer({ clock });
    const { index } = api.keys;
    await api.create('never', { ttl: 0 });
    const created = await api.create('minute', { ttl: 60 });
    await api.create('idle', { ttl: 60, ttlAfterLastActivity: true });
    const ends = (name: string): number | undefined => {
      const record = index.byName(name);
      return record && index.expiresAtMs(record);
    };
    const endMs = Date.parse(String(at(created, 'metadata.creationTimestamp') as string)) + 60_000;
    expect([ends('never'), ends('minute'), ends('idle')]).toEqual([undefined, endMs, endMs]);
    clock.advance(10_000);
    const record = index.byName('idle');
    if (record) api.keys.recordUse(record.user);
    expect([ends('minute'), ends('idle')]).toEqual([endMs, endMs + 10_000]);
    await api.send('DELETE', `${KEYS_PATH}/idle`);
    expect(record && index.expiresAtMs(record)).toBe(0);
  });
});
