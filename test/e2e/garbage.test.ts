/** Ten thousand garbage requests, other ones each time: the seed of a failure is in its name. */

import { expect, test } from 'vitest';
import { fuzzApi } from '../access-keys/serving/fuzz-api.ts';

const COUNT = 10_000;
const SEED = Number(process.env['FUZZ_SEED'] ?? Date.now() % 1_000_000_000);

test(`${COUNT} garbage requests of seed ${SEED} leave the API as it was`, { timeout: 600_000 }, async () => {
  const { faults, grownBytes, before, after, codes } = await fuzzApi(SEED, COUNT);
  expect(faults.slice(0, 10)).toEqual([]);
  expect(after).toEqual(before);
  expect(grownBytes).toBeLessThan(32 * 1024 * 1024);
  expect([...codes.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(COUNT);
});
