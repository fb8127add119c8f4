/** Tracking of host changes that are being written to the virtual cluster. */

import { describe, expect, test } from 'vitest';
import { createArrivals } from '../../../src/syncer/reconcile/guards.ts';
import { FakeClock } from '../../support/fake-clock.ts';

describe('the state of values that are being synced back', () => {
  test('is kept for the record on the copy while later writes fail', () => {
    const arrivals = createArrivals(new FakeClock());
    arrivals.note('a', 'shown', 'due');
    for (let attempt = 0; attempt < 50; attempt++) {
      expect(arrivals.of('a', 'shown')).toBe('due');
      arrivals.note('a', `failed ${attempt}`, 'due');
    }
    expect(arrivals.of('a', 'failed 49')).toBe('due');
    expect(arrivals.of('a', 'failed 0')).toBe('unknown');
  });

  test('is empty for the record of another daemon', () => {
    const arrivals = createArrivals(new FakeClock());
    arrivals.note('a', 'ours', 'arrived');
    expect(arrivals.of('a', 'foreign')).toBe('unknown');
    expect(arrivals.of('b', 'ours')).toBe('unknown');
  });

  test('waits two seconds for another daemon, once for each record', () => {
    const clock = new FakeClock();
    const arrivals = createArrivals(clock);
    expect(arrivals.uncertainWaitMs('a', 'r')).toBe(2000);
    clock.advance(1500);
    expect(arrivals.uncertainWaitMs('a', 'r')).toBe(500);
    clock.advance(500);
    expect(arrivals.uncertainWaitMs('a', 'r')).toBe(0);
    expect(arrivals.uncertainWaitMs('a', 'other')).toBe(2000);
  });
});
