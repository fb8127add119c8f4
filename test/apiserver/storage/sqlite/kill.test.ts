/** A store that is killed in the middle of its writes. The cluster suite does the same 200 times. */

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../temporary-folder.ts';
import { killRounds } from './kill-rounds.ts';
import { anySeed, seededRandom } from './random.ts';

const seed = anySeed();

test(`kill -9 loses no acknowledged write and leaves no partial write (STORE_SEED=${seed})`, async () => {
  using folder = temporaryFolder();
  const report = await killRounds(join(folder.path, 'management.db'), 12, seededRandom(seed));
  expect(report.acknowledged).toBeGreaterThan(20);
});
