/** The predictions of a few worlds in every test run; `npm run sim` compares that of every seed. */

import { expect, test } from 'vitest';
import { predictionProblems } from './prediction.ts';

/** The last one: a Service of the host is deleted and created again under Endpoints that hold a label of another client. */
const SEEDS = [
  ...Array(40)
    .keys()
    .map((at) => at + 1),
  305410,
];

test('a rehearsal says what the daemon then writes', async () => {
  const problems: Record<number, string[]> = {};
  for (const seed of SEEDS) {
    const found = await predictionProblems(seed, 40);
    if (found.length > 0) problems[seed] = found;
  }
  expect(problems).toEqual({});
});
