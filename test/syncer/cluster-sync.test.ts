/** A replica is a standby when its first lists are cached and another replica holds the lease. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { systemRandom } from '../../src/base/random.ts';
import { startDaemon, type Daemon } from '../../src/syncer/daemon.ts';
import { validConfig } from '../config/setup.ts';
import { startClusterPair } from '../embedded-cluster/cluster-pair.ts';

const NEVER = new AbortController().signal;

async function replicas() {
  const stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-standby-'));
  stack.defer(() => rmSync(folder, { recursive: true }));
  const clusters = stack.use(await startClusterPair(folder));
  const config = validConfig(`${clusters.section}  leaderElection: {enabled: true}\n`);
  const parts = { clock: systemClock, random: systemRandom, version: '0.0.0', signal: NEVER };
  return {
    start: (): Promise<Daemon> => startDaemon({ config, isDryRun: false, logger: silentLogger, ...parts }),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

test('a replica that does not lead is a standby until it becomes the leader', async () => {
  await using world = await replicas();
  const first = await world.start();
  await first.sync.whenLeading(NEVER);
  expect(await first.sync.isStandby(NEVER)).toBe(false);
  const second = await world.start();
  expect(await second.sync.isStandby(NEVER)).toBe(true);
  await Promise.all([second.sync.whenLeading(NEVER), first.stop()]);
  expect(await second.sync.isStandby(NEVER)).toBe(false);
  await second.sync.firstPass(NEVER);
  await second.stop();
});
