/** Back-off of recreations, and delays for contested copies. */

import { describe, expect, test } from 'vitest';
import { createContentionGuard } from '../../../../src/syncer/reconcile/guards/contention.ts';
import { createRecreationBackoff } from '../../../../src/syncer/reconcile/guards/recreation.ts';
import { FakeClock } from '../../../fake-clock.ts';

describe('back-off of recreations', () => {
  test('immediate the first time, then 250 ms × 2ⁿ up to five minutes', () => {
    const clock = new FakeClock();
    const backoff = createRecreationBackoff(clock);
    const waits: number[] = [];
    for (let i = 0; i < 14; i++) {
      backoff.noteDeletion('a');
      waits.push(backoff.waitMs('a'));
    }
    expect(waits.slice(0, 5)).toEqual([0, 250, 500, 1000, 2000]);
    expect(waits.at(-1)).toBe(300_000);
  });

  test('is reset after ten minutes without a deletion', () => {
    const clock = new FakeClock();
    const backoff = createRecreationBackoff(clock);
    backoff.noteDeletion('a');
    backoff.noteDeletion('a');
    clock.advance(10 * 60_000);
    expect(backoff.deletions('a')).toBe(0);
    backoff.noteDeletion('a');
    expect(backoff.waitMs('a')).toBe(0);
  });

  test('the delay expires', () => {
    const clock = new FakeClock();
    const backoff = createRecreationBackoff(clock);
    backoff.noteDeletion('a');
    backoff.noteDeletion('a');
    clock.advance(250);
    expect(backoff.waitMs('a')).toBe(0);
  });
});

describe('contention guard', () => {
  const contested = () => {
    const clock = new FakeClock();
    const guard = createContentionGuard(clock);
    const drift = () => guard.noteDrift('a').waitMs;
    /** Waits until the correction is due, writes it, and has it overwritten. */
    const correctAndDrift = (): number => {
      clock.advance(guard.waitMs('a'));
      expect(drift()).toBe(0);
      return drift();
    };
    return { clock, guard, drift, correctAndDrift };
  };

  test('corrections are delayed from the fifth overwrite within a minute: 1 s × 2ⁿ up to five minutes', () => {
    const { drift, correctAndDrift } = contested();
    expect(Array.from({ length: 5 }, drift)).toEqual([0, 0, 0, 0, 1000]);
    const waits = Array.from({ length: 10 }, correctAndDrift);
    expect(waits).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map((seconds) => seconds * 1000));
  });

  test('several overwrites before one correction do not increase the delay, and are reported once', () => {
    const { clock, guard } = contested();
    const verdicts = Array.from({ length: 30 }, () => {
      clock.advance(10);
      return guard.noteDrift('a');
    });
    expect(verdicts.filter(({ isReportable }) => isReportable)).toHaveLength(1);
    expect(guard.waitMs('a')).toBeLessThanOrEqual(1000);
    clock.advance(1000);
    expect(guard.noteDrift('a').waitMs).toBe(0);
  });

  test('a write of a change corrects the drift, and its overwrite does not increase the delay', () => {
    const { guard, drift, correctAndDrift } = contested();
    Array.from({ length: 5 }, drift);
    expect(correctAndDrift()).toBe(2000);
    for (let i = 0; i < 10; i++) {
      guard.noteChange('a');
      expect(guard.waitMs('a')).toBe(0);
      expect(drift()).toBe(2000);
    }
    expect(correctAndDrift()).toBe(4000);
  });

  test('is reset after ten minutes without a deletion', () => {
    const { clock, drift, correctAndDrift } = contested();
    Array.from({ length: 5 }, drift);
    correctAndDrift();
    clock.advance(10 * 60_000);
    expect(drift()).toBe(0);
  });

  test('slow drift is not contention', () => {
    const clock = new FakeClock();
    const guard = createContentionGuard(clock);
    for (let i = 0; i < 20; i++) {
      expect(guard.noteDrift('a').waitMs).toBe(0);
      clock.advance(20_000);
    }
  });
});
