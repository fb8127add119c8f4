/** The crash tests of the store and of the served API at full length. */

import { expect, test } from 'vitest';
import { anySeed, seededRandom } from '../support/random.ts';
import { temporaryFolder } from '../apiserver/storage/temporary-folder.ts';
import { ApiCrash } from '../kill/api-crash.ts';
import { killRounds } from '../kill/kill-rounds.ts';
import { StoreCrash } from '../kill/store-crash.ts';

const seed = anySeed();

test.each([
  { what: 'the store', Crash: StoreCrash, rounds: 60 },
  { what: 'the served API', Crash: ApiCrash, rounds: 200 },
])(
  `$rounds times kill -9 of $what: nothing acknowledged is lost, nothing is half there (STORE_SEED=${seed})`,
  // Four seconds a round on a busy machine; this only ends a test that hangs.
  { timeout: 3_600_000 },
  async ({ Crash, rounds }) => {
    using folder = temporaryFolder();
    const crash = new Crash(folder.path, seededRandom(seed));
    await killRounds(crash, rounds);
    expect(crash.acknowledged).toBeGreaterThan(rounds);
  },
);
