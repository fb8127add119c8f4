/** Two replicas of the API over Secrets in one host cluster: what one makes, the other knows. */

import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startEmbeddedCluster } from '../../src/api/embedded-cluster.ts';
import { KEYS_PATH, startComposed, TOKENS_PATH, type Composed } from './composed.ts';

test('a key made at one is taken by the other at once, and refused when it is revoked there', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-replicas-'));
  await using undo = new AsyncDisposableStack();
  undo.defer(() => rmSync(folder, { recursive: true }));
  const host = undo.use(await startEmbeddedCluster({ name: 'host' }));
  const kubeconfig = join(folder, 'host.kubeconfig');
  writeFileSync(kubeconfig, host.kubeconfig);
  const config = {
    store: { driver: 'kubernetes' },
    host: { kubeconfig, context: '', namespace: 'default' },
  } as const;
  const start = async (name: string): Promise<Composed> =>
    undo.use(await startComposed({ dataDir: join(folder, name), config }));
  const one = await start('one');
  await expect(start('stranger')).rejects.toThrow(/master\.key is missing/u);
  mkdirSync(join(folder, 'two'), { recursive: true });
  copyFileSync(join(folder, 'one', 'master.key'), join(folder, 'two', 'master.key'));
  const two = await start('two');

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
