/** The time that reading takes: of all who share the event loop. */

import { expect, test } from 'vitest';
import { TokenBucket } from '../../../src/base/token-bucket.ts';
import { ReadPace } from '../../../src/kube/client/read-pace.ts';
import { FakeClock } from '../../support/fake-clock.ts';

test('the event-loop time of a reader, one that throws too, is charged to the token bucket that others share', () => {
  const clock = new FakeClock();
  const loop = new TokenBucket({ burst: 100, perSecond: 100 }, clock);
  const [one, other] = [1, 2].map(
    () => new ReadPace({ bytes: new TokenBucket({ burst: 10, perSecond: 10 }, clock), loop, clock }),
  );
  if (one === undefined || other === undefined) throw new Error('there is none');
  const takes = (ms: number) => () => clock.advance(ms);
  one.timed(takes(50));
  expect([one.spend(10), other.spend(10)]).toEqual([0, 0]);
  expect(() =>
    one.timed(() => {
      takes(400)();
      throw new Error('malformed');
    }),
  ).toThrow('malformed');
  // The burst of 100 ms and 40 that have come back since are not enough for the 450.
  expect([one.spend(1), other.spend(1)]).toEqual([3100, 3100]);
  clock.advance(3100);
  expect([one.spend(1), other.spend(1)]).toEqual([0, 0]);
});
