/** Retry delays with jitter and Retry-After, and when retrying ends. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { boundedRetryAfterMs, retry, RETRY_AFTER_MAX_MS, RetryDelay } from '../../src/base/retry.ts';
import { FakeClock } from '../support/fake-clock.ts';

const LIMITS = { baseMs: 100, maxMs: 1000 };
const anyDelay = fc.oneof(fc.double({ min: 0, noNaN: true }), fc.constantFrom(0, Infinity));
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe('delays', () => {
  test('grow to the limit with full jitter, and restart after a reset', () => {
    const delay = new RetryDelay(() => 0.5, LIMITS);
    const next = (): number => delay.next();
    expect([next(), next(), next(), next(), next(), next()]).toEqual([50, 100, 200, 400, 500, 500]);
    expect(delay.failures).toBe(6);
    delay.reset();
    expect([delay.failures, next()]).toEqual([0, 50]);
  });

  test.each([
    [7000, 7050],
    [0, 50],
    [999_999_999_000, 60_000],
    [Number.NaN, 50],
    [undefined, 50],
  ])('a Retry-After of %s ms gives %s ms', (retryAfterMs, expected) => {
    const error = Number.isNaN(retryAfterMs) ? { retryAfterMs: 'soon' } : { retryAfterMs };
    expect(new RetryDelay(() => 0.5, LIMITS).next({ error })).toBe(expected);
  });

  test('a Retry-After never shortens the back-off and never exceeds a minute', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 60_000, noNaN: true }), anyDelay, (backoffMs, retryAfterMs) => {
        const delayMs = boundedRetryAfterMs(backoffMs, retryAfterMs);
        expect(delayMs).toBeGreaterThanOrEqual(backoffMs);
        expect(delayMs).toBeLessThanOrEqual(RETRY_AFTER_MAX_MS);
      }),
    );
    fc.assert(
      fc.property(random, anyDelay, (sample, retryAfterMs) => {
        const delayMs = new RetryDelay(() => sample, LIMITS).next({ error: { retryAfterMs } });
        expect(delayMs).toBeGreaterThanOrEqual(sample * LIMITS.baseMs);
        expect(delayMs).toBeLessThanOrEqual(RETRY_AFTER_MAX_MS);
      }),
    );
  });
});

describe('retry', () => {
  const clock = new FakeClock();
  const options = (more: object = {}) => ({
    ...LIMITS,
    clock,
    random: () => 0.5,
    signal: new AbortController().signal,
    isRetryable: (error: unknown) => !(error instanceof TypeError),
    ...more,
  });

  /** Fails so often with these errors, then resolves. */
  function failing(...errors: readonly unknown[]) {
    const left = [...errors];
    return () => (left.length === 0 ? Promise.resolve('done') : Promise.reject(left.shift()));
  }

  test('retries until the attempt resolves, and reports each delay', async () => {
    const delays: number[] = [];
    const onRetry = (_: unknown, delayMs: number): void => void delays.push(delayMs);
    const result = retry(failing(new Error('a'), new Error('b')), options({ onRetry }));
    await clock.advanceAsync(1000);
    expect([await result, delays]).toEqual(['done', [50, 100]]);
  });

  test('ends with an error that is final', async () => {
    await expect(retry(failing(new TypeError('no')), options())).rejects.toThrow('no');
  });

  test('ends after the last attempt', async () => {
    const attempt = failing(new Error('1'), new Error('2'), new Error('3'));
    const [result] = await Promise.allSettled([
      retry(attempt, options({ attemptsMax: 2 })),
      clock.advanceAsync(1000),
    ]);
    expect(result).toEqual({ status: 'rejected', reason: new Error('2') });
  });

  test('begins no attempt after its time, and completes one that it has begun', async () => {
    let attempts = 0;
    const attempt = async (): Promise<void> => {
      attempts += 1;
      throw new Error(String(attempts));
    };
    const [result] = await Promise.allSettled([
      retry(attempt, options({ durationMs: 120 })),
      clock.advanceAsync(1000),
    ]);
    // At 0, 50 and, instead of 150, 120 ms.
    expect(result).toEqual({ status: 'rejected', reason: new Error('3') });
    const slow = retry(() => clock.advanceAsync(500).then(() => 'late'), options({ durationMs: 120 }));
    expect(await slow).toBe('late');
  });

  test('ends with the signal, during a delay and before the first attempt', async () => {
    const stop = new AbortController();
    const result = retry(failing(new Error('1')), options({ signal: stop.signal }));
    await Promise.resolve();
    stop.abort(new Error('enough'));
    await expect(result).rejects.toThrow('enough');
    await expect(retry(failing(), options({ signal: stop.signal }))).rejects.toThrow('enough');
  });
});
