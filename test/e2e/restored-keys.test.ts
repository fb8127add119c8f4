/** etcd of the host is restored from a snapshot under two replicas of the API: a key that is revoked afterwards is dead at both. */

import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { KEYS_PATH } from '../access-keys/composed-api.ts';
import { TestCluster } from '../scenarios/cluster-client.ts';
import { ApiProcess } from './api-process.ts';
import { startRealClusters } from './clusters.ts';

const NAMESPACE = 'restored-keys';
const NAMES = ['a', 'b'];
/** From the response to a revocation until the other replica refuses the key. */
const BOUND_MS = 60_000;

test.for([
  ['is behind the last known revision', 0],
  // As on a busy cluster: the watches would resume, and would receive events.
  ['has passed the last known revision', 500],
] as const)('the restored etcd %s at the next contact', { timeout: 600_000 }, async ([_what, usedUp]) => {
  await using undo = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-restored-'));
  undo.defer(() => rmSync(folder, { recursive: true }));
  const clusters = undo.use(await startRealClusters({ host: false }));
  const { kubeconfigPath: kubeconfig } = clusters.virtual;
  await using admin = new TestCluster(kubeconfig);
  await admin.create('Namespace', { metadata: { name: NAMESPACE } });
  ApiProcess.shareMasterKey(NAMES.map((name) => join(folder, name)));
  const start = async (name: string): Promise<ApiProcess> =>
    undo.use(await ApiProcess.start({ dataDir: join(folder, name), kubeconfig, namespace: NAMESPACE }));
  const [a, b] = [await start('a'), await start('b')];
  const [deleted, disabled] = [await a.makeKey('deleted'), await b.makeKey('disabled')];

  const snapshot = join(folder, 'snapshot');
  await clusters.withoutEtcd((dataDir) => cpSync(dataDir, snapshot, { recursive: true }));
  await expect.poll(() => makesKey(a, 'after-the-snapshot'), { timeout: 60_000 }).toBe(true);
  for (let i = 0; i < 20; i++) await b.makeKey(`later-${i}`);
  const lost = await b.makeKey('lost');
  await clusters.stop('virtual');
  await clusters.withoutEtcd((dataDir) => {
    rmSync(dataDir, { recursive: true });
    cpSync(snapshot, dataDir, { recursive: true });
  });
  await expect.poll(() => clusters.useUpRevisions(usedUp).then(() => true), { timeout: 60_000 }).toBe(true);
  await clusters.start('virtual');

  const revokeAt = async (replica: ApiProcess, name: string, change: 'DELETE' | 'PATCH'): Promise<number> => {
    const client = await replica.administrator();
    const headers = { 'content-type': 'application/merge-patch+json' };
    const body = change === 'PATCH' ? { spec: { disabled: true } } : undefined;
    const answer = client.send({
      method: change,
      path: `${KEYS_PATH}/${name}`,
      headers,
      ...(body && { body }),
    });
    return (await answer).status;
  };
  // A replica waits to reconnect to its host.
  await expect.poll(() => revokeAt(a, 'deleted', 'DELETE'), { timeout: 60_000 }).toBe(200);
  const startedMs = performance.now();
  expect(await a.statusOf(deleted)).not.toBe(200);
  await expect.poll(() => revokeAt(b, 'disabled', 'PATCH'), { timeout: 60_000 }).toBe(200);
  expect(await b.statusOf(disabled)).not.toBe(200);
  for (const [replica, key] of [
    [b, deleted],
    [a, disabled],
    [a, deleted],
    [b, disabled],
  ] as const) {
    await expect.poll(() => replica.statusOf(key), { timeout: BOUND_MS, interval: 50 }).toBe(401);
  }
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  console.log(`both revoked keys are refused at both replicas ${seconds} s after the first revocation`);
  // A key that the snapshot does not have is gone.
  for (const replica of [a, b])
    await expect.poll(() => replica.statusOf(lost), { timeout: BOUND_MS, interval: 50 }).toBe(401);
  const restored = await a.makeKey('after-the-snapshot');
  await expect.poll(() => b.statusOf(restored), { timeout: BOUND_MS }).toBe(200);
});

async function makesKey(replica: ApiProcess, name: string): Promise<boolean> {
  await replica.makeKey(name);
  return true;
}
