/** The in-memory index of keys: consistency with the store after failures, and expiry times. */

import { describe, expect, test } from 'vitest';
import { MemoryStore } from '../../../../src/apiserver/storage/memory-store.ts';
import { FakeClock, settle } from '../../../fake-clock.ts';
import { LaggingStore } from './lagging-store.ts';
import { at, keyOf, KEYS_PATH, makeKeys, startKeyServer } from '../key-server.ts';

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
