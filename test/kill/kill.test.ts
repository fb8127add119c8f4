/** Short crash tests of the store and of the served API; `test/e2e/kill.test.ts` has the full ones. */

import { expect, test } from 'vitest';
import { anySeed, seededRandom } from '../support/random.ts';
import { temporaryFolder } from '../apiserver/storage/temporary-folder.ts';
import { ApiCrash } from './api-crash.ts';
import { killRounds } from './kill-rounds.ts';
import { StoreCrash } from './store-crash.ts';

const seed = anySeed();

test.each([
  { what: 'the store', Crash: StoreCrash, rounds: 12, acknowledgedMin: 21 },
  { what: 'the served API', Crash: ApiCrash, rounds: 2, acknowledgedMin: 1 },
])(
  `kill -9 of $what loses no acknowledged write and leaves no partial write (STORE_SEED=${seed})`,
  async ({ Crash, rounds, acknowledgedMin }) => {
    using folder = temporaryFolder();
    const crash = new Crash(folder.path, seededRandom(seed));
    await killRounds(crash, rounds);
    expect(crash.acknowledged).toBeGreaterThanOrEqual(acknowledgedMin);
  },
);
