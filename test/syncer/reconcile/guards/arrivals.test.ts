import { describe, expect, test } from 'vitest';
import { createArrivals } from '../../../../src/syncer/reconcile/guards/arrivals.ts';
import { FakeClock } from '../../../fake-clock.ts';

describe('the state of values on their way', () => {
  test('is kept for the record that the copy shows, however many later writes fail', () => {
    const arrivals = createArrivals(new FakeClock());
    arrivals.note('a', 'shown', 'due');
    for (let attempt = 0; attempt < 50; attempt++) {
      expect(arrivals.of('a', 'shown')).toBe('due');
      arrivals.note('a', `failed ${attempt}`, 'due');
    }
    expect(arrivals.of('a', 'failed 49')).toBe('due');
    expect(arrivals.of('a', 'failed 0')).toBe('unknown');
  });

  test('is nothing for the record of another daemon', () => {
    const arrivals = createArrivals(new FakeClock());
    arrivals.note('a', 'ours', 'arrived');
    expect(arrivals.of('a', 'foreign')).toBe('unknown');
    expect(arrivals.of('b', 'ours')).toBe('unknown');
  });

  test('another daemon is waited for two seconds, once for each record', () => {
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
