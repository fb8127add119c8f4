/** A short crash test of the served API; `test/e2e/` has the full one. */

import { expect, test } from 'vitest';
import { anySeed, seededRandom } from '../apiserver/storage/sqlite/random.ts';
import { temporaryFolder } from '../apiserver/storage/temporary-folder.ts';
import { apiKillRounds } from './kill/api-kill-rounds.ts';

const seed = anySeed();

test(`kill -9 between any two requests: nothing answered is lost, nothing is half there (STORE_SEED=${seed})`, async () => {
  using folder = temporaryFolder();
  const report = await apiKillRounds(folder.path, 2, seededRandom(seed));
  expect(report.kills).toBe(2);
  expect(report.acknowledged).toBeGreaterThan(0);
});
