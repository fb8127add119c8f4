/** The predictions of a few worlds in every test run; `npm run sim` compares that of every seed. */

import { expect, test } from 'vitest';
import { predictionProblems } from './prediction.ts';

/** In which they differed. */
const FOUND_SEEDS: readonly number[] = [305_410, 320_623];

test('a rehearsal says what the daemon then writes', async () => {
  const problems: Record<number, string[]> = {};
  for (const seed of [...Array.from({ length: 40 }, (_, at) => at + 1), ...FOUND_SEEDS]) {
    const found = await predictionProblems(seed, 40);
    if (found.length > 0) problems[seed] = found;
  }
  expect(problems).toEqual({});
});
