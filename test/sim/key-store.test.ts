/** Revocations in simulated histories of two replicas of the key API. */

import { expect, test } from 'vitest';
import { runKeyHistory } from './key-store.ts';
import { costlyRuns } from '../support/costly-runs.ts';

const SEEDS = Array.from({ length: costlyRuns(40) }, (_, at) => at + 1);
/** Found bugs, which have tests of their own in `key-index.test.ts` and `secret-cache.test.ts`. */
const FOUND = [47, 48, 55, 116, 128, 289, 350, 583];
/** With 80 steps: a restored host is back at exactly the newest revision that was known. */
const LONG = 5070;

test(
  'an acknowledged revocation is final at every replica, whatever was restored',
  { timeout: 120_000 },
  async () => {
    const violated: Record<number, string[]> = {};
    for (const seed of [...SEEDS, ...FOUND, LONG]) {
      const violations = await runKeyHistory(seed, seed === LONG ? 80 : 40);
      if (violations.length > 0) violated[seed] = violations;
    }
    expect(violated).toEqual({});
  },
);
