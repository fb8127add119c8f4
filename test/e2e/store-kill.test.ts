/** A longer run of the store's crash test; the crash test of the API has 200 kills. */

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { killRounds } from '../apiserver/storage/sqlite/kill-rounds.ts';
import { anySeed, seededRandom } from '../apiserver/storage/sqlite/random.ts';
import { temporaryFolder } from '../apiserver/storage/temporary-folder.ts';

const seed = anySeed();

test(
  `60 times kill -9: nothing acknowledged is lost, nothing is half there (STORE_SEED=${seed})`,
  { timeout: 180_000 },
  async () => {
    using folder = temporaryFolder();
    const report = await killRounds(join(folder.path, 'management.db'), 60, seededRandom(seed));
    expect(report.kills).toBe(60);
    expect(report.acknowledged).toBeGreaterThan(60);
  },
);
