import { describe, expect, test } from 'vitest';
import { createContentionGuard } from '../../src/sync/contention.ts';
import { createRecreationBackoff } from '../../src/sync/recreation.ts';
import { FakeClock } from '../fake-clock.ts';

describe('re-creation back-off', () => {
  test('at once the first time, then 250 ms × 2ⁿ up to five minutes', () => {
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

  test('is forgotten after ten quiet minutes', () => {
    const clock = new FakeClock();
    const backoff = createRecreationBackoff(clock);
    backoff.noteDeletion('a');
    backoff.noteDeletion('a');
    clock.advance(10 * 60_000);
    expect(backoff.deletions('a')).toBe(0);
    backoff.noteDeletion('a');
    expect(backoff.waitMs('a')).toBe(0);
  });

  test('the wait runs out', () => {
    const clock = new FakeClock();
    const backoff = createRecreationBackoff(clock);
    backoff.noteDeletion('a');
    backoff.noteDeletion('a');
    clock.advance(250);
    expect(backoff.waitMs('a')).toBe(0);
  });
});

describe('contention guard', () => {
  test('five overwrites within a minute make an object contested, once', () => {
    const clock = new FakeClock();
    const guard = createContentionGuard(clock);
    const verdicts = Array.from({ length: 5 }, () => guard.noteOverwrite('a'));
    expect(verdicts).toEqual([false, false, false, false, true]);
    expect(guard.waitMs('a')).toBe(300_000);
    clock.advance(300_000);
    expect(guard.waitMs('a')).toBe(0);
  });

  test('slow drift is not contention', () => {
    const clock = new FakeClock();
    const guard = createContentionGuard(clock);
    for (let i = 0; i < 20; i++) {
      expect(guard.noteOverwrite('a')).toBe(false);
      clock.advance(20_000);
    }
  });
});
