/** The predictions of a few worlds in every test run; `npm run sim` compares that of every seed. */

import { expect, test } from 'vitest';
import { predictionProblems } from './prediction.ts';

test('a rehearsal says what the daemon then writes', async () => {
  const problems: Record<number, string[]> = {};
  for (let seed = 1; seed <= 40; seed++) {
    const found = await predictionProblems(seed, 40);
    if (found.length > 0) problems[seed] = found;
  }
  expect(problems).toEqual({});
});
