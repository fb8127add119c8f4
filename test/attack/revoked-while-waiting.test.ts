/** A key is revoked while its requests wait: nothing that it sent is committed afterwards. */

import { connect } from 'node:tls';
import { once } from 'node:events';
import { text as readAll } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { isJsonObject, type JsonObject } from '../../src/base/json.ts';
import type { StoredEntry, StoreKey } from '../../src/apiserver/storage/store.ts';
import { metadataOf, text } from '../../src/apiserver/metadata.ts';
import { MemoryStore } from '../../src/apiserver/storage/memory-store.ts';
import {
  KEYS_PATH,
  startComposed,
  TOKENS_PATH,
  type Composed,
  type MadeKey,
} from '../access-keys/composed-api.ts';
import { keyOf, startKeyServer } from '../access-keys/keys/key-server.ts';
import type { RawAnswer, RawRequest } from '../contract/raw-client.ts';

/** Creates of one key that wait at the same time, as in the attack. */
const CREATES = 12;
/** The parser needs a tenth of a second or more for this many values; meanwhile the other requests arrive. */
const SLOW_VALUES = 8000;

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
  for (const name of ['updated', 'applied', 'rotated', 'deleted']) await api.key(name);
});

afterEach(() => api[Symbol.asyncDispose]());

/** YAML that waits for the parser, and keeps it busy. */
function slowYaml(fields: JsonObject): string {
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return [...lines, `unknown: [${'a,'.repeat(SLOW_VALUES)}]`].join('\n');
}

function write(method: string, path: string, fields: JsonObject, type = 'application/yaml'): RawRequest {
  const body = slowYaml(fields);
  return {
    method,
    path: `${path}?fieldValidation=Ignore&fieldManager=test`,
    headers: { 'content-type': type },
    body,
  };
}

function keyFields(name: string, spec: JsonObject = {}): JsonObject {
  return { metadata: { name }, spec: { displayName: name, user: 'u', type: 'User', ttl: 60, ...spec } };
}

/** One write of each kind, and at the end a token, which is never stored. */
const WRITES: readonly RawRequest[] = [
  write('POST', KEYS_PATH, keyFields('created')),
  write('PUT', `${KEYS_PATH}/updated`, keyFields('updated', { description: 'changed' })),
  write(
    'PATCH',
    `${KEYS_PATH}/applied`,
    {
      apiVersion: 'management.platform.sh/v1',
      kind: 'OwnedAccessKey',
      ...keyFields('applied', { description: 'changed' }),
    },
    'application/apply-patch+yaml',
  ),
  write('POST', `${KEYS_PATH}/rotated/rotate`, { overlapSeconds: 60 }),
  write('DELETE', `${KEYS_PATH}/deleted`, {}),
  write('POST', TOKENS_PATH, { spec: {} }),
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

test(`${CREATES} YAML creates wait for the parser while their key is disabled: none is committed`, async () => {
  const busy = attacker.client.send(write('POST', TOKENS_PATH, { spec: {} }));
  const creates = Array.from({ length: CREATES }, (_, index) =>
    attacker.client.send(write('POST', KEYS_PATH, keyFields(`made-${index}`))),
  );
  await busy;
  expect((await merge({ disabled: true })).status).toBe(200);
  const before = await stored();
  const startedMs = performance.now();
  const answers = await Promise.all(creates);
  const after = await stored();
  const committed = after.filter((key) => !before.includes(key)).length;
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  console.log(`${committed} of ${CREATES} creates committed within ${seconds} s after the revocation`);
  expect(committed).toBe(0);
  expect(answers.map(({ status }) => status)).toContain(401);
});

test.for(Object.keys(REVOCATIONS))('writes of each kind wait while their key is %s', async (how) => {
  // The first keeps the parser busy until all others have been authorized.
  const busy = attacker.client.send(write('POST', TOKENS_PATH, { spec: {} }));
  const waiting = Promise.all(WRITES.map((request) => attacker.client.send(request)));
  const revoked = await busy.then(REVOCATIONS[how]);
  expect(revoked?.status).toBeLessThan(300);
  const before = await stored();
  const answers = await waiting;
  expect(await stored()).toEqual(before);
  // The first ones may have been committed before.
  expect(answers.at(-1)?.status).toBeOneOf([401, 403]);
});

test('a body is sent so slowly that its key is rotated before it is complete', async () => {
  const { hostname, port } = new URL(api.api.url);
  const body = JSON.stringify(keyFields('slow'));
  const socket = connect({ host: hostname, port: Number(port), ca: api.ca });
  socket.write(
    `POST ${KEYS_PATH} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${attacker.text}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`,
  );
  // The interim response: the request was authenticated, and its body is being read.
  await once(socket, 'data');
  socket.write(body.slice(0, 10));
  await REVOCATIONS['rotated']?.();
  socket.end(body.slice(10));
  expect(await readAll(socket)).toMatch(/^HTTP\/1\.1 40[13] /u);
  expect(await stored()).not.toContainEqual(expect.stringContaining('slow@'));
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
