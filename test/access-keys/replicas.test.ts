/** Replicas of the API over Secrets in one host cluster are consistent. */

import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startEmbeddedCluster, type EmbeddedCluster } from '../../src/embedded-cluster/embedded-cluster.ts';
import { plainAccess } from '../../src/kube/access.ts';
import { TerminalError } from '../../src/base/errors.ts';
import { SECRETS } from '../../src/kube/object.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { SecretNames } from '../../src/apiserver/storage/secrets/secret-codec.ts';
import { MASTER_KEY_PROOF } from '../../src/access-keys/credentials/master-key.ts';
import { SIGNING_KEYS, signingKeyName } from '../../src/access-keys/tokens/key-ring.ts';
import type { StoreKey } from '../../src/apiserver/storage/store.ts';
import { clientOf } from '../apiserver/storage/secrets/replicas.ts';
import { keyOf } from './keys/key-server.ts';
import { KEYS_PATH, startComposed, TOKENS_PATH, type Composed } from './composed-api.ts';

let folder: string;
let host: EmbeddedCluster;
let undo: AsyncDisposableStack;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-replicas-'));
  undo = new AsyncDisposableStack();
  undo.defer(() => rmSync(folder, { recursive: true }));
  host = undo.use(await startEmbeddedCluster({ name: 'host' }));
  writeFileSync(join(folder, 'host.kubeconfig'), host.kubeconfig);
});

afterEach(() => undo.disposeAsync());

/** With the master key of the replica `like`, or with none yet. */
async function start(name: string, like?: string): Promise<Composed> {
  if (like !== undefined) {
    mkdirSync(join(folder, name), { recursive: true });
    copyFileSync(join(folder, like, 'master.key'), join(folder, name, 'master.key'));
  }
  const config = {
    store: { driver: 'kubernetes' },
    host: { kubeconfig: join(folder, 'host.kubeconfig'), context: '', namespace: 'default' },
  } as const;
  return undo.use(await startComposed({ dataDir: join(folder, name), config }));
}

/** The name of the Secret of an object. */
function secretOf(key: StoreKey): { namespace: string; name: string } {
  return { namespace: 'default', name: new SecretNames('management').object(key) };
}

test('a key that one replica created is valid at the other immediately, and rejected once it is revoked there', async () => {
  const one = await start('one');
  await expect(start('stranger')).rejects.toThrow(/master\.key is missing/u);
  const two = await start('two', 'one');

  const { text } = await one.key('shared');
  const there = two.as(text);
  expect((await there.send({ method: 'GET', path: KEYS_PATH })).status).toBe(200);
  // Signing keys are shared as well.
  expect((await there.send({ method: 'POST', path: TOKENS_PATH, body: { spec: {} } })).status).toBe(201);
  const sets = await Promise.all(
    [one, two].map((api) => api.as(undefined).send({ method: 'GET', path: '/openid/v1/jwks' })),
  );
  expect(sets[0]?.text).toBe(sets[1]?.text);

  await two.administrator.send({ method: 'DELETE', path: `${KEYS_PATH}/shared` });
  await expect
    .poll(async () => (await one.as(text).send({ method: 'GET', path: KEYS_PATH })).status, { interval: 10 })
    .toBe(401);
});

test('a secret that is rotated at one replica works at the other until its overlap ends', async () => {
  const one = await start('one');
  const two = await start('two', 'one');
  const { text } = await one.key('rotated');
  const path = `${KEYS_PATH}/rotated/rotate`;
  const get = async (api: Composed, secret: string): Promise<number> =>
    (await api.as(secret).send({ method: 'GET', path: KEYS_PATH })).status;
  const first = await two.administrator.send({ method: 'POST', path, body: { overlapSeconds: 3600 } });
  const second = keyOf(first.json ?? {});
  expect([await get(one, text), await get(one, second), await get(two, text)]).toEqual([200, 200, 200]);
  const last = await one.administrator.send({ method: 'POST', path, body: {} });
  expect(await get(two, keyOf(last.json ?? {}))).toBe(200);
  expect([await get(two, text), await get(two, second)]).toEqual([401, 401]);
});

test('a damaged or deleted Secret is named at the next start, and no new master key replaces the old one', async () => {
  const one = await start('one');
  const { text } = await one.key('good');
  await using client = clientOf(plainAccess(host.url));
  const signingKey = { resource: SIGNING_KEYS, namespace: '', name: signingKeyName(1) };
  const secret = secretOf(signingKey);
  const data = (await client.get(SECRETS, secret))['data'] as JsonObject; // ours has some
  await client.patch(SECRETS, secret, { type: 'merge', body: { data: { object: 'e30=' } } });
  const opening = start('two', 'one');
  await expect(opening).rejects.toThrow(TerminalError);
  await expect(opening).rejects.toThrow(`its Secret ${secret.name} cannot be read`);
  expect((await one.as(text).send({ method: 'GET', path: KEYS_PATH })).status).toBe(200);

  await client.patch(SECRETS, secret, { type: 'merge', body: { data } });
  await client.delete(SECRETS, secretOf(MASTER_KEY_PROOF), {});
  await expect(start('stranger')).rejects.toThrow(/master\.key is missing/u);
  await start('three', 'one');
});
