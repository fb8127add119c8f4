/** When a replica is a standby: its first lists are cached, and its first pass comes only with the lease. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { systemRandom } from '../../src/base/random.ts';
import { startEmbeddedCluster } from '../../src/embedded-cluster/embedded-cluster.ts';
import { startDaemon, type Daemon } from '../../src/syncer/daemon.ts';
import { validConfig } from '../config/setup.ts';

const NEVER = new AbortController().signal;

async function replicas() {
  const stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-standby-'));
  stack.defer(() => rmSync(folder, { recursive: true }));
  const virtual = stack.use(await startEmbeddedCluster({ name: 'virtual' }));
  const host = stack.use(await startEmbeddedCluster({ name: 'host' }));
  for (const { name, kubeconfig } of [virtual, host]) writeFileSync(join(folder, name), kubeconfig);
  const config = validConfig(`
endpointSyncer:
  name: vc
  virtual: {kubeconfig: ${join(folder, 'virtual')}}
  host: {kubeconfig: ${join(folder, 'host')}, namespace: default}
  http: {bindAddress: "127.0.0.1:0"}
  leaderElection: {enabled: true}
`);
  const parts = { clock: systemClock, random: systemRandom, version: '0.0.0', signal: NEVER };
  return {
    start: (): Promise<Daemon> => startDaemon({ config, isDryRun: false, logger: silentLogger, ...parts }),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

test('the replica that does not lead is one, until it takes over', async () => {
  await using world = await replicas();
  const first = await world.start();
  await first.whenLeading(NEVER);
  expect(await first.isStandby(NEVER)).toBe(false);
  const second = await world.start();
  expect(await second.isStandby(NEVER)).toBe(true);
  const [takenOver] = await Promise.all([second.whenLeading(NEVER).then(() => true), first.stop()]);
  expect(takenOver).toBe(true);
  expect(await second.isStandby(NEVER)).toBe(false);
  await second.firstPass(NEVER);
  await second.stop();
});
