/** The in-memory index of keys: consistency with the store after failures, and expiry times. */

import { describe, expect, test, vi } from 'vitest';
import { startFaultyCluster } from '../../embedded-cluster/faulty-cluster.ts';
import { plainAccess } from '../../../src/kube/access.ts';
import { SECRETS } from '../../../src/kube/object.ts';
import { HeldEvents } from '../../apiserver/storage/secrets/held-events.ts';
import { hurried, openReplica, timeless } from '../../apiserver/storage/secrets/replicas.ts';
import { settle } from '../../support/fake-clock.ts';
import { at, keyOf, KEYS_PATH, makeKeys, startKeyServer, type KeyServer } from './key-server.ts';
import { disconnect } from '../../support/connections.ts';

/** The status of a request with this key. */
async function statusOf(api: KeyServer, key: string): Promise<number> {
  return (await api.send('GET', KEYS_PATH, undefined, { authorization: `Bearer ${key}` })).status;
}

describe('index', () => {
  test('loses no change when the connections to the host break and its history is gone', async () => {
    await using host = await startFaultyCluster({ name: 'host' });
    await using one = await openReplica(plainAccess(host.url), { clock: timeless(50) });
    await using two = await openReplica(plainAccess(host.url), { clock: timeless(50) });
    await using api = await startKeyServer({ store: one.store });
    const other = makeKeys(two.store);
    await other.start();
    const changes: string[] = [];
    other.index.onChange(({ now, before }) => {
      changes.push(`${before?.name ?? ''}>${now?.name ?? ''}`);
    });
    const names = (): string[] => [...other.index.all()].map(({ name }) => name).toSorted();
    await api.create('stays');
    await api.create('goes');
    await api.create('again');
    await vi.waitFor(() => expect(names()).toEqual(['again', 'goes', 'stays']));
    let isAway = true;
    host.intercept(({ verb }) => (verb === 'watch' && isAway ? 'drop' : undefined));
    disconnect(host);
    await api.send('DELETE', `${KEYS_PATH}/goes`);
    await api.send('DELETE', `${KEYS_PATH}/again`);
    const again = await api.create('again');
    await api.create('new');
    await host.expireHistory();
    isAway = false;
    await vi.waitFor(() => expect(names()).toEqual(['again', 'new', 'stays']), 10_000);
    expect(other.index.byName('again')?.uid).toBe(at(again, 'metadata.uid'));
    expect(changes.slice(3).toSorted()).toEqual(['>again', '>new', 'again>', 'goes>']);
    await other.stop();
  });

  test('catching up waits for the events of the host, and lists its objects when none arrive', async () => {
    await using host = await startFaultyCluster({ name: 'host' });
    const events = new HeldEvents();
    await using one = await openReplica(plainAccess(host.url));
    await using two = await openReplica(plainAccess(host.url), { clock: hurried(10) }, events);
    await using api = await startKeyServer({ store: one.store });
    const other = makeKeys(two.store);
    await other.start();
    events.hold();
    const first = await api.create('k1');
    await api.create('goes');
    let isCaughtUp = false;
    const caughtUp = other.index.catchUp().then(() => {
      isCaughtUp = true;
    });
    await settle();
    expect([isCaughtUp, other.index.byName('k1')]).toEqual([false, undefined]);
    events.release();
    await caughtUp;
    expect(other.index.byName('k1')?.uid).toBe(at(first, 'metadata.uid'));
    events.hold();
    await api.create('k2');
    await api.send('DELETE', `${KEYS_PATH}/goes`);
    await api.send('PATCH', `${KEYS_PATH}/k1`, { spec: { disabled: true } });
    await other.index.catchUp();
    const states = [...other.index.all()].map(({ name, isDisabled }) => `${name} ${isDisabled}`);
    expect(states.toSorted()).toEqual(['k1 true', 'k2 false']);
    events.release();
    expect(other.index.byName('goes')).toBeUndefined();
    expect(other.index.byName('k1')?.isDisabled).toBe(true);
    await other.stop();
  });

  test.for(['deleted', 'disabled', 'rotated'])(
    'a key that this process has %s is refused at once, although no event reports it',
    async (how) => {
      await using host = await startFaultyCluster({ name: 'host' });
      const events = new HeldEvents();
      // A deletion waits a second for its event, which is ten milliseconds here.
      await using replica = await openReplica(plainAccess(host.url), { eventWaitMs: 10 }, events);
      await using api = await startKeyServer({ store: replica.store });
      const key = keyOf(await api.create('key', { ttl: 0 }));
      expect(await statusOf(api, key)).toBe(200);
      await vi.waitFor(() => expect(replica.store.condition.phase).toBe('watching'));
      events.hold();
      const path = `${KEYS_PATH}/key`;
      if (how === 'deleted') await api.send('DELETE', path);
      else if (how === 'disabled') await api.send('PATCH', path, { spec: { disabled: true } });
      else await api.send('POST', `${path}/rotate`, {});
      expect(await statusOf(api, key)).toBe(401);
      events.release();
      expect(await statusOf(api, key)).toBe(401);
    },
  );

  test('a key that another replica has disabled is refused once this one has acknowledged that it is disabled', async () => {
    await using host = await startFaultyCluster({ name: 'host' });
    const events = new HeldEvents();
    await using one = await openReplica(plainAccess(host.url));
    await using two = await openReplica(plainAccess(host.url), {}, events);
    await using elsewhere = await startKeyServer({ store: one.store });
    await using api = await startKeyServer({ store: two.store });
    const key = keyOf(await api.create('key', { ttl: 0 }));
    expect(await statusOf(api, key)).toBe(200);
    events.hold();
    const disabled = { spec: { disabled: true } };
    await elsewhere.send('PATCH', `${KEYS_PATH}/key`, disabled);
    // It changes nothing, so nothing is written.
    expect((await api.send('PATCH', `${KEYS_PATH}/key`, disabled)).status).toBe(200);
    expect(await statusOf(api, key)).toBe(401);
  });

  test('an event from before an acknowledged deletion does not bring the key back', async () => {
    await using host = await startFaultyCluster({ name: 'host' });
    const events = new HeldEvents();
    await using one = await openReplica(plainAccess(host.url));
    await using two = await openReplica(plainAccess(host.url), { eventWaitMs: 10 }, events);
    await using elsewhere = await startKeyServer({ store: one.store });
    await using api = await startKeyServer({ store: two.store });
    await api.create('key');
    await api.keys.index.catchUp();
    events.hold();
    await elsewhere.send('PATCH', `${KEYS_PATH}/key`, { spec: { description: 'changed' } });
    expect((await api.send('DELETE', `${KEYS_PATH}/key`)).status).toBe(200);
    const seen: (string | undefined)[] = [];
    api.keys.index.onChange(({ now }) => seen.push(now?.name));
    events.release();
    expect(seen).toEqual([]);
    expect(api.keys.index.byName('key')).toBeUndefined();
  });

  test('an acknowledged write that a restore of the host has undone is undone here too', async () => {
    await using host = await startFaultyCluster({ name: 'host' });
    const events = new HeldEvents();
    await using replica = await openReplica(plainAccess(host.url), { clock: timeless(50) }, events);
    await using api = await startKeyServer({ store: replica.store });
    await api.create('other', { ttl: 0 });
    events.hold();
    const key = keyOf(await api.create('key', { ttl: 0 }));
    expect(await statusOf(api, key)).toBe(200);
    for (const { metadata } of (await replica.client.list(SECRETS, { namespace: 'default' })).items)
      await replica.client.delete(SECRETS, { namespace: 'default', name: metadata.name }, {});
    events.lose();
    // The first event after the lost ones.
    await replica.store.create({ resource: 'things', namespace: '', name: 'later' }, {});
    await expect.poll(() => statusOf(api, key)).toBe(503);
    await expect.poll(() => statusOf(api, key)).toBe(401);
  });

  test('no key is accepted from the detection of a restored host until its keys are listed', async () => {
    await using host = await startFaultyCluster({ name: 'host' });
    const events = new HeldEvents();
    await using replica = await openReplica(plainAccess(host.url), { clock: timeless(50) }, events);
    await using api = await startKeyServer({ store: replica.store });
    const key = keyOf(await api.create('key', { ttl: 0 }));
    expect(await statusOf(api, key)).toBe(200);
    let lists = 0;
    host.intercept(({ verb }) => (verb === 'list' && ++lists > 1 ? 'drop' : undefined));
    events.revision = '1';
    await replica.store.revision();
    expect(await statusOf(api, key)).toBe(503);
    events.revision = undefined;
    host.intercept(undefined);
    await expect.poll(() => statusOf(api, key)).toBe(200);
  });
});
