/** A child that does not start: requests fail instead of waiting, and starts back off. */

import { afterEach, expect, test } from 'vitest';
import { ChildPool } from '../../src/expressions/child-pool.ts';
import { readGuestSource } from '../../src/expressions/guest-source.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { LIMITS, recordingLogger, type LogLine } from './test-sandbox.ts';

const pools: ChildPool[] = [];
afterEach(() => {
  for (const pool of pools.splice(0)) pool.close();
});

test('starts back off, and after several failures requests fail immediately until one succeeds', async () => {
  const clock = new FakeClock();
  const log: LogLine[] = [];
  const source = { ...readGuestSource(), main: 'process.exit(3)' };
  const failures: string[] = [];
  let attempts = 0;
  const pool: ChildPool = new ChildPool(
    { ...LIMITS, source, clock, logger: recordingLogger(log), hasSpare: true },
    {
      ready: () => void pool.active,
      message: () => undefined,
      lost: () => undefined,
      killed: () => void attempts++,
      failed: (message) => void failures.push(message),
    },
  );
  pools.push(pool);
  expect(pool.active).toBeUndefined();
  const delays: number[] = [];
  for (let expected = 1; expected <= 5; expected++) {
    await expect.poll(() => attempts).toBe(expected);
    // Asking does not start one before its time.
    expect(pool.active).toBeUndefined();
    // The other timer is the one that waits for a start.
    delays.push(clock.nextDelayMs ?? 0);
    clock.advance(clock.nextDelayMs ?? 0);
  }
  expect(delays).toEqual([50, 100, 200, 400, 800]);
  expect(failures).toHaveLength(2);
  expect(pool.failure).toBe('the sandbox process does not start: exit code 3');
  expect(log.every(({ message }) => message === 'the sandbox process was ended')).toBe(true);
});
