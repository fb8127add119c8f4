/** The deadline for connecting ends with it: what a command reads afterwards takes as long as it takes. */

import { expect, test } from 'vitest';
import { commandParts } from '../../../src/cli/live/command-parts.ts';
import { withLiveSync } from '../../../src/syncer/rehearsal/live-sync.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { systemRandom } from '../../../src/base/random.ts';
import { loadConfig } from '../../../src/cli/config/load.ts';
import { startDaemon } from '../../../src/syncer/run.ts';
import { newEmbeddedWorld } from '../../scenarios/embedded-world.ts';
import { eventually } from '../../support/eventually.ts';

/** Passed before the first response. */
const GIVE_UP_MS = 1;

/** Between API servers that respond after the deadline. */
async function slowWorld() {
  const world = await newEmbeddedWorld();
  const paths: Record<string, string> = {};
  for (const cluster of ['virtual', 'host'] as const) {
    const proxy = await world.proxy(cluster);
    paths[cluster] = proxy.path;
    proxy.behaviour = {
      async decide({ atMs }) {
        await eventually(
          () => performance.now(),
          (now) => now > atMs + 10 * GIVE_UP_MS,
        );
        return { kind: 'pass' };
      },
    };
  }
  await world.createVirtual('default/web');
  const file = world.writeConfig(world.configuration({ kubeconfigs: paths }, 0));
  const { config } = await loadConfig({ file, env: {}, flags: {} });
  return { world, config };
}

test('of a command', async () => {
  const { world, config } = await slowWorld();
  await using _ = world;
  const parts = { ...commandParts(), giveUpMs: GIVE_UP_MS };
  const { keys } = await withLiveSync(config, parts, (sync) => sync.differences([], undefined));
  expect(keys).toEqual(['default/web']);
});

test('of run --once; a cluster of which nothing more arrives ends it', async () => {
  const { world, config } = await slowWorld();
  await using _ = world;
  const parts = { clock: systemClock, random: systemRandom, version: '0', logger: silentLogger };
  const { signal } = new AbortController();
  const options = { ...parts, config, isDryRun: true, signal, giveUpMs: GIVE_UP_MS };
  const daemon = await startDaemon(options);
  expect(await daemon.sync.whenCached(signal, 60_000)).toBe(true);
  expect(await daemon.sync.firstPass(signal)).toMatchObject([{ kind: 'Endpoints', action: 'create' }]);
  await daemon.stop();
  const silent = await startDaemon(options);
  expect(await silent.sync.whenCached(signal, 0)).toBe(false);
  await silent.stop();
});
