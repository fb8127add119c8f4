/** Expired keys are reported as Events for an hour, and, when they are deleted, in the audit log. */

import type { AuditEvent } from '../../../src/apiserver/request/request-info.ts';
import { KEEP_EXPIRED_MS } from '../../../src/access-keys/keys/stored-key.ts';
import { expect, test } from 'vitest';
import { MemoryStore } from '../../../src/apiserver/storage/revisioned-store.ts';
import { type JsonObject, objectField, text } from '../../../src/base/json.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { startAuthorizationServer } from '../authorization/authorization-server.ts';
import { EVENTS_PER_SUBJECT_MAX } from '../../../src/access-keys/keys/expiry-events.ts';
import { at, KEYS_PATH, makeKeys, startKeyServer, type KeyServer } from './key-server.ts';

const EVENTS_PATH = '/apis/events.k8s.io/v1/events';
const HOUR_MS = 3_600_000;

/** The objects of the Events, each with its reason. */
async function eventsOf(api: Pick<KeyServer, 'send'>, query = ''): Promise<string[]> {
  const list = (await api.send('GET', `${EVENTS_PATH}${query}`)).json;
  const items = (list?.['items'] ?? []) as JsonObject[]; // a list of the API
  return items.map((event) => `${text(event, 'reason')} ${text(objectField(event, 'regarding'), 'name')}`);
}

/** Lets the collector finish. */
async function settle(clock: FakeClock): Promise<void> {
  for (let round = 0; round < 10; round++) await clock.advanceAsync(0);
}

test.each([`${'a'.repeat(199)}-b`, `${'a'.repeat(199)}.b`, `${'a'.repeat(197)}---b`, 'a'.repeat(253)])(
  'an expired key is reported by an Event, however its name is cut: %s',
  async (name) => {
    const clock = new FakeClock();
    await using api = await startKeyServer({ clock });
    await api.create(name, { ttl: 10 });
    await clock.advanceAsync(10_000);
    await settle(clock);
    expect(await eventsOf(api)).toEqual([`Expired ${name}`]);
  },
);

test('an expired key is reported by an Event, which is kept for an hour, and an audit entry', async () => {
  const [clock, audit] = [new FakeClock(), [] as AuditEvent[]];
  await using api = await startKeyServer({ clock, audit: (event) => audit.push(event) });
  const short = await api.create('short', { ttl: 10 });
  await api.create('other', { ttl: 20 });
  await api.create('deleted', { ttl: 30 });
  await api.send('DELETE', `${KEYS_PATH}/deleted`);
  await clock.advanceAsync(10_000);
  await settle(clock);
  expect(await eventsOf(api)).toEqual(['Expired short']);
  expect(await eventsOf(api, '?fieldSelector=regarding.name%3Dother')).toEqual([]);
  const { json } = await api.send('GET', EVENTS_PATH);
  expect(json?.['items']).toMatchObject([
    {
      metadata: { namespace: 'default' },
      regarding: { kind: 'OwnedAccessKey', name: 'short', uid: at(short, 'metadata.uid') },
      note: 'The access key expired at 2026-01-01T00:00:10Z and will be deleted at 2026-01-08T00:00:10Z',
    },
  ]);
  expect(JSON.stringify(json)).not.toContain('pak_');
  expect(audit).toEqual([]);
  await clock.advanceAsync(10_000);
  await settle(clock);
  expect((await eventsOf(api)).toSorted()).toEqual(['Expired other', 'Expired short']);
  await clock.advanceAsync(HOUR_MS - 10_000);
  await settle(clock);
  expect(await eventsOf(api)).toEqual(['Expired other']);
  await clock.advanceAsync(10_000);
  await settle(clock);
  expect(await eventsOf(api)).toEqual([]);
  await clock.advanceAsync(KEEP_EXPIRED_MS - HOUR_MS - 5_000);
  await settle(clock);
  expect(audit).toMatchObject([
    {
      verb: 'delete',
      user: { username: 'system:apiserver' },
      objectRef: { resource: 'ownedaccesskeys', name: 'short' },
      annotations: { 'platform.sh/expired-at': '2026-01-01T00:00:10Z' },
    },
  ]);
});

test('replicas report a key once, and a start deletes the Events of an hour ago', async () => {
  const [clock, store] = [new FakeClock(), new MemoryStore()];
  const replicas = [makeKeys(store, { clock }), makeKeys(store, { clock })];
  for (const replica of replicas) await replica.start();
  {
    await using api = await startKeyServer({ store, clock });
    await api.create('shared', { ttl: 10 });
    await clock.advanceAsync(10_000);
    await settle(clock);
    expect(await eventsOf(api)).toEqual(['Expired shared']);
  }
  for (const replica of replicas) await replica.stop();
  await clock.advanceAsync(HOUR_MS);
  expect((await store.list({ resource: 'events' })).entries).toHaveLength(1);
  await using later = await startKeyServer({ store, clock });
  await settle(clock);
  expect(await eventsOf(later)).toEqual([]);
});

test('the Events of a subject are limited, those of another subject are not affected', async () => {
  const clock = new FakeClock();
  await using api = await startKeyServer({ clock });
  for (let number = 0; number <= EVENTS_PER_SUBJECT_MAX; number++)
    await api.create(`many-${number}`, { user: 'busy', ttl: 10 });
  await api.create('one', { user: 'other', ttl: 11 });
  await clock.advanceAsync(11_000);
  await settle(clock);
  const events = await eventsOf(api);
  expect(events).toHaveLength(EVENTS_PER_SUBJECT_MAX + 1);
  expect(events).toContain('Expired one');
  await clock.advanceAsync(HOUR_MS);
  await settle(clock);
  await api.create('later', { user: 'busy', ttl: 10 });
  await clock.advanceAsync(10_000);
  await settle(clock);
  expect(await eventsOf(api)).toEqual(['Expired later']);
});

test('Events are read-only for clients', async () => {
  await using api = await startKeyServer();
  expect((await api.send('POST', '/apis/events.k8s.io/v1/namespaces/default/events', {})).status).toBe(405);
  expect((await api.send('DELETE', EVENTS_PATH)).status).toBe(405);
  expect((await api.send('POST', '/api/v1/namespaces/default/events', {})).status).toBe(405);
});

test('a user sees the Events of its own keys and of its teams, an administrator all, in both groups', async () => {
  await using server = await startAuthorizationServer();
  await server.create('admin', 'of-alice', { user: 'alice', ttl: 10 });
  await server.create('admin', 'of-blue', { team: 'blue', ttl: 10 });
  await server.create('admin', 'of-bob', { user: 'bob', ttl: 10 });
  await server.clock.advanceAsync(10_000);
  await settle(server.clock);
  const visible = async (as: string): Promise<string[]> => {
    const send: KeyServer['send'] = (method, path) => server.send(as, method, path);
    const events = (await eventsOf({ send })).toSorted();
    const list = (await send('GET', '/api/v1/events')).json;
    const items = (list?.['items'] ?? []) as JsonObject[]; // a list of the API
    expect(items.map((event) => text(objectField(event, 'involvedObject'), 'name')).toSorted()).toEqual(
      events.map((event) => event.replace('Expired ', '')),
    );
    return events;
  };
  expect(await visible('alice')).toEqual(['Expired of-alice', 'Expired of-blue']);
  expect(await visible('bob')).toEqual(['Expired of-bob']);
  expect(await visible('admin')).toEqual(['Expired of-alice', 'Expired of-blue', 'Expired of-bob']);
});
