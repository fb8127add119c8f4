/** Timers of the system clock: long delays and cancellation. */

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';

const DAY_MS = 24 * 60 * 60_000;

describe('the system clock', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('waits longer than the maximum of a Node.js timer', () => {
    const callback = vi.fn<() => void>();
    systemClock.schedule(60 * DAY_MS, callback);
    vi.advanceTimersByTime(60 * DAY_MS - 1);
    expect(callback).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(callback).toHaveBeenCalledOnce();
  });

  test('can be cancelled, also when part of the delay has passed', () => {
    const callback = vi.fn<() => void>();
    const timer = systemClock.schedule(60 * DAY_MS, callback);
    vi.advanceTimersByTime(30 * DAY_MS);
    timer.cancel();
    vi.advanceTimersByTime(60 * DAY_MS);
    expect(callback).not.toHaveBeenCalled();
  });
});
