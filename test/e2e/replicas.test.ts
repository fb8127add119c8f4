/** Three replicas of the API over one namespace of a real kube-apiserver stay consistent, also when a replica or the host crashes. */

import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isJsonObject, type JsonObject } from '../../src/base/json.ts';
import type { RawWatch } from '../contract/raw-client.ts';
import { KEYS_PATH, TOKENS_PATH } from '../access-keys/composed-api.ts';
import { TestCluster } from '../scenarios/cluster-client.ts';
import { ApiProcess } from './api-process.ts';
import { realClusters } from './real-world.ts';
import { suiteClusters } from './suite-clusters.ts';

const namespace = `replicas-${randomBytes(4).toString('hex')}`;
const REVIEWS_PATH = '/apis/authentication.k8s.io/v1/tokenreviews';
const NAMES = ['a', 'b', 'c'];
let folder: string;
let replicas: ApiProcess[] = [];

function start(name: string): Promise<ApiProcess> {
  const { kubeconfigPath: kubeconfig } = suiteClusters().host;
  return ApiProcess.start({ dataDir: join(folder, name), kubeconfig, namespace });
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-replicas-'));
  await using admin = new TestCluster(suiteClusters().host.kubeconfigPath);
  await admin.create('Namespace', { metadata: { name: namespace } });
  ApiProcess.shareMasterKey(NAMES.map((name) => join(folder, name)));
  // Concurrently, over an empty namespace.
  replicas = await Promise.all(NAMES.map(start));
});

afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica[Symbol.asyncDispose]()));
  rmSync(folder, { recursive: true });
  await using admin = new TestCluster(suiteClusters().host.kubeconfigPath);
  await admin.delete('Namespace', '', namespace);
});

function three(): readonly [ApiProcess, ApiProcess, ApiProcess] {
  const [a, b, c] = replicas;
  if (!a || !b || !c) throw new Error('three replicas must run');
  return [a, b, c];
}

/** The status of a request with this key at each replica. */
function statusesOf(key: string): Promise<number[]> {
  return Promise.all(replicas.map((replica) => replica.statusOf(key)));
}

/**
 * Waits until no replica accepts the key. A replica that learns of it first answers 401 and, beyond the limit of failed authentications, 429:
 * waiting for 401 from all of them at the same time would never end while another replica reconnects to its host.
 */
async function waitUntilRefused(key: string): Promise<void> {
  const isAccepted = async (): Promise<boolean> =>
    (await statusesOf(key)).some((status) => status !== 401 && status !== 429);
  await expect.poll(isAccepted, { timeout: 60_000, interval: 50 }).toBe(false);
}

/** The statuses as soon as no replica fails: after a crash of the host, one may answer 503 until its watch has caught up. */
async function statusesWithoutFailure(key: string): Promise<number[]> {
  let statuses: number[] = [];
  const hasFailure = async (): Promise<boolean> => {
    statuses = await statusesOf(key);
    return statuses.some((status) => status >= 500);
  };
  await expect.poll(hasFailure, { timeout: 60_000, interval: 250 }).toBe(false);
  return statuses;
}

function stringAt(object: JsonObject | null, parent: string, field: string): string {
  const inner = object?.[parent];
  const value = isJsonObject(inner) ? inner[field] : undefined;
  if (typeof value !== 'string') throw new Error(`${parent}.${field} is not a string`);
  return value;
}

/** Disables or deletes the key at this replica. */
async function revoke(replica: ApiProcess, name: string, how: 'disable' | 'delete'): Promise<void> {
  const client = await replica.administrator();
  const path = `${KEYS_PATH}/${name}`;
  const headers = { 'content-type': 'application/merge-patch+json' };
  const { status } =
    how === 'delete'
      ? await client.send({ method: 'DELETE', path })
      : await client.send({ method: 'PATCH', path, headers, body: { spec: { disabled: true } } });
  expect(status).toBe(200);
}

async function watchFrom(replica: ApiProcess, resourceVersion: string): Promise<RawWatch> {
  const client = await replica.administrator();
  return client.watch(`${KEYS_PATH}?watch=1&resourceVersion=${resourceVersion}`);
}

async function presentVersion(replica: ApiProcess): Promise<string> {
  const client = await replica.administrator();
  const { json } = await client.send({ method: 'GET', path: KEYS_PATH });
  return stringAt(json, 'metadata', 'resourceVersion');
}

/** The events as `TYPE name@version`, up to that of the object `last`. */
async function eventsUntil(watch: RawWatch, last: string): Promise<string[]> {
  const seen: string[] = [];
  for (let event = await watch.next(); event !== undefined; event = await watch.next()) {
    const { name, resourceVersion } = event.object['metadata'] as Record<string, string>;
    if (event.type !== 'BOOKMARK') seen.push(`${event.type} ${name}@${resourceVersion}`);
    if (name === last) break;
  }
  return seen;
}

function readiness(): Promise<number[]> {
  return Promise.all(
    replicas.map(async (replica) => (await replica.as().send({ method: 'GET', path: '/readyz' })).status),
  );
}

/**
 * The last state of a key that a watching client gets: from its watch or, if the host's API server has lost the history of the watch (410),
 * from the API.
 */
async function lastState(replica: ApiProcess, watch: RawWatch, name: string): Promise<JsonObject | null> {
  for (let event = await watch.next(); event !== undefined; event = await watch.next()) {
    if (event.type === 'ERROR') break;
    if (event.type === 'MODIFIED' && stringAt(event.object, 'metadata', 'name') === name) return event.object;
  }
  const client = await replica.administrator();
  return (await client.send({ method: 'GET', path: `${KEYS_PATH}/${name}` })).json;
}

test('replicas that start concurrently in an empty namespace create one signing key and one first key', async () => {
  const sets = await Promise.all(
    replicas.map((replica) => replica.as().send({ method: 'GET', path: '/openid/v1/jwks' })),
  );
  expect(new Set(sets.map(({ text }) => text)).size).toBe(1);
  expect(sets[0]?.json?.['keys']).toHaveLength(1);
  const written = NAMES.map((name) => join(folder, name, 'first.key'))
    .filter((file) => existsSync(file))
    .map((file) => readFileSync(file, 'utf8').trim())
    .filter((text) => text !== '');
  expect(written).toHaveLength(1);
  expect(await statusesOf(written[0] ?? '')).toEqual([200, 200, 200]);
});

test('a key and a token are valid at all replicas after the response of one, and all watches have the same order', async () => {
  const version = await presentVersion(three()[0]);
  const watches = await Promise.all(replicas.map((replica) => watchFrom(replica, version)));
  await Promise.all(
    replicas.map(async (replica, index) => {
      for (let i = 0; i < 5; i++) {
        const name = `key-${index}-${i}`;
        const key = await replica.makeKey(name);
        expect([name, ...(await statusesOf(key))]).toEqual([name, 200, 200, 200]);
        const minted = await replica.as(key).send({ method: 'POST', path: TOKENS_PATH, body: { spec: {} } });
        const token = stringAt(minted.json, 'status', 'token');
        for (const other of replicas) {
          const client = await other.administrator();
          const review = { method: 'POST', path: REVIEWS_PATH, body: { spec: { token } } };
          expect((await client.send(review)).json?.['status']).toMatchObject({ authenticated: true });
        }
        await revoke(replica, name, i % 2 === 0 ? 'disable' : 'delete');
        await waitUntilRefused(key);
      }
    }),
  );
  await three()[1].makeKey('the-last');
  const seen = await Promise.all(watches.map((watch) => eventsUntil(watch, 'the-last')));
  expect(seen[0]).toHaveLength(5 * 3 * 2 + 1);
  expect(seen[1]).toEqual(seen[0]);
  expect(seen[2]).toEqual(seen[0]);
  for (const watch of watches) await watch[Symbol.asyncDispose]();
});

test('after a replica is killed, its watches resume at another without a gap, or list again', async () => {
  const [a, b, c] = three();
  const version = await presentVersion(b);
  const watch = await watchFrom(b, version);
  await a.makeKey('before');
  expect(await eventsUntil(watch, 'before')).toHaveLength(1);
  await b.kill();
  await expect(watch.next()).rejects.toThrow('terminated');
  const key = await a.makeKey('meanwhile');
  await using elsewhere = await watchFrom(c, version);
  expect((await eventsUntil(elsewhere, 'meanwhile')).map((line) => line.split('@')[0])).toEqual([
    'ADDED before',
    'ADDED meanwhile',
  ]);
  replicas = [a, await start('b'), c];
  expect(await three()[1].statusOf(key)).toBe(200);
  await using resumed = await watchFrom(three()[1], version);
  const refusal = resumed.status === 200 ? (await resumed.next())?.object : undefined;
  expect(refusal?.['code'] ?? resumed.status).toBe(410);
});

test('after a crash of the API server of the host, created and revoked keys are consistent at all replicas and in watches', async () => {
  const [a, , c] = three();
  const old = await a.makeKey('old');
  const watch = await watchFrom(c, await presentVersion(c));
  const clusters = realClusters();
  await clusters.stop('host');
  await clusters.start('host');
  // Each replica reconnects with its own backoff.
  await expect.poll(readiness, { timeout: 60_000 }).toEqual([200, 200, 200]);
  const key = await a.makeKey('short-lived');
  expect(await statusesWithoutFailure(key)).toEqual([200, 200, 200]);
  await revoke(a, 'short-lived', 'delete');
  await revoke(a, 'old', 'disable');
  await waitUntilRefused(key);
  await waitUntilRefused(old);
  expect(await lastState(c, watch, 'old')).toMatchObject({ spec: { disabled: true } });
  await watch[Symbol.asyncDispose]();
});
