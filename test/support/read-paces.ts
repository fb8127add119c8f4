/** Paces of the bytes that are read, without a bound on the time that this takes. */

import type { Clock } from '../../src/base/clock.ts';
import { TokenBucket, type Rate } from '../../src/base/token-bucket.ts';
import { ReadPace, type ReadPaces } from '../../src/kube/client/read-pace.ts';

const UNBOUNDED: Rate = { burst: Infinity, perSecond: 1 };

export function readPace(rate: Rate, clock: Clock, loop: Rate = UNBOUNDED): ReadPace {
  return new ReadPace({ bytes: new TokenBucket(rate, clock), loop: new TokenBucket(loop, clock), clock });
}

export function readPaces(...rates: Parameters<typeof readPace>): ReadPaces {
  const pace = readPace(...rates);
  return { responses: pace, watches: pace };
}
