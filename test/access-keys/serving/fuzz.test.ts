/** Garbage requests get a valid Status. `FUZZ_SEED` and `FUZZ_COUNT` set the seed and the number of requests. */

import { expect, test } from 'vitest';
import { fuzzApi } from './fuzz-api.ts';

const SEED = Number(process.env['FUZZ_SEED'] ?? 20_261_121);
const COUNT = Number(process.env['FUZZ_COUNT'] ?? 400);
/** More than the noise of a heap, less than what these requests would leave behind. */
const GROWTH_BYTES_MAX = 24 * 1024 * 1024;

test(`${COUNT} garbage requests of seed ${SEED}: each a proper Status, and nothing has changed`, async () => {
  const { faults, codes, grownBytes, before, after } = await fuzzApi(SEED, COUNT);
  expect(faults.slice(0, 10)).toEqual([]);
  expect(grownBytes).toBeLessThan(GROWTH_BYTES_MAX);
  expect(after).toEqual(before);
  expect('polluted' in Object.prototype || 'isAdmin' in Object.prototype).toBe(false);
  // It did not all end at the first check.
  for (const code of [200, 400, 401, 404, 405, 413, 414, 415, 422, 431])
    expect([code, codes.has(code)]).toEqual([code, true]);
  expect(codes.get(0) ?? 0).toBeLessThan(COUNT / 10);
});
