/** A replica is a standby when its first lists are cached and another replica holds the lease. A stop leaves no sandbox behind. */

import type { Sandbox } from '../../src/expressions/types.ts';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { systemRandom } from '../../src/base/random.ts';
import { startDaemon, type Daemon, type DaemonOptions } from '../../src/syncer/run.ts';
import { validConfig } from '../cli/config/setup.ts';
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
    section: clusters.section,
    start: (options: Partial<DaemonOptions> = {}): Promise<Daemon> =>
      startDaemon({ config, isDryRun: false, logger: silentLogger, ...parts, ...options }),
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

test('a reload that the stop interrupts leaves no sandbox', async () => {
  await using world = await replicas();
  const configOf = (value: string) =>
    validConfig(
      `${world.section}sync: {toHost: {endpoints: {patches: [{path: metadata.labels.a, expression: '"${value}"'}]}}}\n`,
    );
  let open = 0;
  const prepared = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<void>();
  const createSandbox = async (): Promise<Sandbox> => {
    open += 1;
    if (open === 2) {
      prepared.resolve();
      await stopped.promise;
    }
    return {
      pids: [],
      define: () => undefined,
      forget: () => undefined,
      evaluate: () => Promise.reject(new Error('there are no objects')),
      [Symbol.asyncDispose]: async () => void (open -= 1),
    };
  };
  const daemon = await world.start({ config: configOf('a'), createSandbox });
  const reloading = daemon.sync.reload(configOf('b')).catch((error: unknown) => error);
  await prepared.promise;
  const stopping = daemon.stop();
  stopped.resolve();
  expect(await reloading).toBeInstanceOf(DOMException);
  await stopping;
  expect(open).toBe(0);
});
