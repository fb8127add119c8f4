/** A key is revoked while its requests wait: nothing that it sent is committed afterwards. */

import { metadataOf } from '../../src/kube/object.ts';
import { connect } from 'node:tls';
import { once } from 'node:events';
import { text as readAll } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { isJsonObject, type JsonObject, text } from '../../src/base/json.ts';
import type { StoredEntry, StoreKey } from '../../src/apiserver/storage/store.ts';
import { MemoryStore } from '../../src/apiserver/storage/revisioned-store.ts';
import {
  KEYS_PATH,
  startComposed,
  TOKENS_PATH,
  type Composed,
  type MadeKey,
} from '../access-keys/composed-api.ts';
import { keyOf, startKeyServer } from '../access-keys/keys/key-server.ts';
import type { RawAnswer, RawRequest } from '../contract/raw-client.ts';

let api: Composed;
let attacker: MadeKey;
let administrator: MadeKey;
/** By how much the clock of the API is ahead. */
let aheadMs: number;

beforeEach(async () => {
  aheadMs = 0;
  api = await startComposed({ clock: { ...systemClock, now: () => systemClock.now() + aheadMs } });
  attacker = await api.key('attacker', { ttl: 3600 });
  administrator = await api.key('administrator', { groups: ['platform:admins'] });
  for (const name of ['updated', 'applied', 'rotated', 'deleted']) await api.key(name, { ttl: 60 });
});

afterEach(() => api[Symbol.asyncDispose]());

interface Write {
  readonly method: string;
  readonly path: string;
  readonly type?: string;
  readonly body: JsonObject;
}

/** A request that was authenticated and whose body is being read. */
interface WaitingWrite {
  /** Sends the rest. Resolves with the status. */
  complete(): Promise<number>;
}

async function startWrite({ method, path, type = 'application/json', body }: Write): Promise<WaitingWrite> {
  const { hostname, port } = new URL(api.api.url);
  const text = JSON.stringify(body);
  const socket = connect({ host: hostname, port: Number(port), ca: api.ca });
  socket.write(
    `${method} ${path}?fieldManager=test${type.startsWith('application/apply') ? '&force=true' : ''} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${attacker.text}\r\n` +
      `Content-Type: ${type}\r\nContent-Length: ${text.length}\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n`,
  );
  // The interim response.
  await once(socket, 'data');
  socket.write(text.slice(0, 1));
  return {
    async complete() {
      socket.write(text.slice(1));
      return Number(/^HTTP\/1\.1 (\d+) /u.exec(await readAll(socket))?.[1]);
    },
  };
}

function keyFields(name: string, spec: JsonObject = {}): JsonObject {
  return { metadata: { name }, spec: { displayName: name, user: 'u', type: 'User', ttl: 60, ...spec } };
}

/** One write of each kind, and a token, which is never stored. */
const WRITES: readonly Write[] = [
  { method: 'POST', path: KEYS_PATH, body: keyFields('created') },
  {
    method: 'PUT',
    path: `${KEYS_PATH}/updated`,
    body: keyFields('updated', { description: 'changed' }),
  },
  {
    method: 'PATCH',
    path: `${KEYS_PATH}/applied`,
    type: 'application/apply-patch+yaml',
    body: {
      apiVersion: 'management.platform.sh/v1',
      kind: 'OwnedAccessKey',
      ...keyFields('applied', { description: 'changed' }),
    },
  },
  { method: 'POST', path: `${KEYS_PATH}/rotated/rotate`, body: { overlapSeconds: 60 } },
  { method: 'DELETE', path: `${KEYS_PATH}/deleted`, body: {} },
  { method: 'POST', path: TOKENS_PATH, body: { spec: {} } },
];

const asAdministrator = (request: RawRequest): Promise<RawAnswer> => administrator.client.send(request);
const attackerPath = `${KEYS_PATH}/attacker`;
const merge = (spec: JsonObject): Promise<RawAnswer> =>
  asAdministrator({
    method: 'PATCH',
    path: attackerPath,
    headers: { 'content-type': 'application/merge-patch+json' },
    body: { spec },
  });

/** Each ends the rights of the attacker's credential. */
const REVOCATIONS: Readonly<Record<string, () => Promise<RawAnswer>>> = {
  deleted: () => asAdministrator({ method: 'DELETE', path: attackerPath }),
  disabled: () => merge({ disabled: true }),
  expired: async () => {
    aheadMs = 2 * 3_600_000;
    return asAdministrator({ method: 'GET', path: KEYS_PATH });
  },
  rotated: () => asAdministrator({ method: 'POST', path: `${attackerPath}/rotate`, body: {} }),
  'restricted by a scope': () => merge({ scope: {} }),
};

/** Names and resourceVersions of all keys but the attacker's. */
async function stored(): Promise<string[]> {
  const { json } = await asAdministrator({ method: 'GET', path: KEYS_PATH });
  const items = Array.isArray(json?.['items']) ? json['items'] : [];
  return items
    .map((item) => metadataOf(isJsonObject(item) ? item : {}))
    .filter((metadata) => text(metadata, 'name') !== 'attacker')
    .map((metadata) => `${text(metadata, 'name')}@${text(metadata, 'resourceVersion')}`);
}

test.for(Object.keys(REVOCATIONS))('writes of each kind wait while their key is %s', async (how) => {
  const waiting = await Promise.all(WRITES.map(startWrite));
  const revoked = await REVOCATIONS[how]?.();
  expect(revoked?.status).toBeLessThan(300);
  const before = await stored();
  const statuses = await Promise.all(waiting.map((write) => write.complete()));
  expect(await stored()).toEqual(before);
  for (const status of statuses) expect(status).toBeOneOf([401, 403]);
});

test('writes of each kind that wait are committed while their key stands', async () => {
  const waiting = await Promise.all(WRITES.map(startWrite));
  const statuses = await Promise.all(waiting.map((write) => write.complete()));
  expect(statuses).toEqual([201, 200, 200, 201, 200, 201]);
});

test('a write waits for the store while its key is disabled', async () => {
  const store = new GatedStore();
  await using server = await startKeyServer({ store });
  const secret = keyOf(await server.create('attacker', { ttl: 0 }));
  await server.create('updated');
  const waiting = store.hold('updated');
  const body = { spec: { description: 'changed' } };
  const write = server.send('PATCH', `${KEYS_PATH}/updated`, body, { authorization: `Bearer ${secret}` });
  await waiting;
  await server.send('PATCH', attackerPath, { spec: { disabled: true } });
  store.release();
  expect((await write).status).toBe(401);
  expect((await server.send('GET', `${KEYS_PATH}/updated`)).text).not.toContain('changed');
});

/** Reads of one name wait. */
class GatedStore extends MemoryStore {
  #name = '';
  #isWaiting = Promise.withResolvers<void>();
  #gate = Promise.withResolvers<void>();

  /** Resolves when a read waits. */
  hold(name: string): Promise<void> {
    this.#name = name;
    return this.#isWaiting.promise;
  }

  release(): void {
    this.#name = '';
    this.#gate.resolve();
  }

  override async get(key: StoreKey): Promise<StoredEntry | undefined> {
    const entry = await super.get(key);
    if (key.name !== this.#name) return entry;
    this.#isWaiting.resolve();
    await this.#gate.promise;
    return entry;
  }
}
