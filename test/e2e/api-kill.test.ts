/** The crash test of the served API at full length. */

import { expect, test } from 'vitest';
import { anySeed, seededRandom } from '../apiserver/storage/sqlite/random.ts';
import { temporaryFolder } from '../apiserver/storage/temporary-folder.ts';
import { apiKillRounds } from '../access-keys/kill/api-kill-rounds.ts';

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
