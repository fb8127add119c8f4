/** The crash test of the served API at full length. */

import { expect, test } from 'vitest';
import { anySeed, seededRandom } from '../store/sqlite/random.ts';
import { temporaryFolder } from '../store/temporary-folder.ts';
import { apiKillRounds } from '../management/kill/api-kill-rounds.ts';

const seed = anySeed();

test(
  `200 times kill -9 between any two requests: nothing answered is lost, nothing is half there (STORE_SEED=${seed})`,
  { timeout: 900_000 },
  async () => {
    using folder = temporaryFolder();
    const report = await apiKillRounds(folder.path, 200, seededRandom(seed));
    expect(report.kills).toBe(200);
    expect(report.acknowledged).toBeGreaterThan(200);
  },
);
