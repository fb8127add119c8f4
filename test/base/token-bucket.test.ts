/** Token buckets: the rate is never exceeded, and memory is limited. */

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { TokenBucket, TokenBuckets } from '../../src/base/token-bucket.ts';
import { FakeClock } from '../support/fake-clock.ts';

test('never gives more than the burst and the rate times the elapsed time', () => {
  const waits = fc.array(fc.nat(300), { maxLength: 200 });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: 50 }),
      waits,
      (burst, perSecond, delays) => {
        const clock = new FakeClock();
        const bucket = new TokenBucket({ burst, perSecond }, clock);
        let taken = 0;
        for (const delay of delays) {
          clock.advance(delay);
          const waitMs = bucket.take();
          expect(waitMs).toBeLessThanOrEqual(1000 / perSecond + 1e-6);
          if (waitMs === 0) taken++;
        }
        expect(taken).toBeLessThanOrEqual(burst + (clock.monotonicMs() / 1000) * perSecond + 1e-6);
      },
    ),
  );
});

test('the memory for the buckets of many keys is limited', () => {
  const buckets = new TokenBuckets({ burst: 1, perSecond: 1 }, new FakeClock());
  for (let key = 0; key < 50_000; key++) buckets.take(String(key));
  expect(buckets.size).toBe(10_000);
});
