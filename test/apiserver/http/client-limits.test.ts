/** One user gets a part of a limit, and the last part is for privileged users; rates by client and by address. */

import { describe, expect, test } from 'vitest';
import { RequestLimits, SharedLimit } from '../../../src/apiserver/http/client-limits.ts';
import { userNamed } from '../../../src/apiserver/user.ts';
import { StatusError } from '../../../src/kube/status-error.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** How many of these each user gets, one after another. */
function takenBy(limit: SharedLimit, names: readonly string[], isPrivileged: boolean): number[] {
  return names.map((name) => {
    let count = 0;
    while (limit.take({ name, isPrivileged })) count++;
    return count;
  });
}

test('a user gets a quarter, all ordinary users seven eighths, and privileged users the rest', () => {
  const limit = new SharedLimit(1000);
  expect(takenBy(limit, ['a', 'b', 'c', 'd', 'e'], false)).toEqual([250, 250, 250, 125, 0]);
  expect(takenBy(limit, ['a', 'root', 'cluster'], true)).toEqual([0, 125, 0]);
});

test('what is released can be taken again, by the same and by another user', () => {
  const limit = new SharedLimit(8);
  const ann = { name: 'ann', isPrivileged: false };
  expect(limit.take(ann, 2)).toBe(true);
  expect(limit.take(ann)).toBe(false);
  limit.release(ann);
  expect(limit.take(ann, 2)).toBe(false);
  expect(limit.take(ann)).toBe(true);
  limit.release(ann, 2);
  expect(takenBy(limit, ['a', 'b', 'c', 'd'], false)).toEqual([2, 2, 2, 1]);
});

const rules = { clientOf: ({ name }: { name: string }) => name, isPrivileged: () => false };

/** How often it works, and what stops it. */
function untilRefused(attempt: () => void): { count: number; error: StatusError } {
  for (let count = 0; ; count++) {
    try {
      attempt();
    } catch (error) {
      if (error instanceof StatusError) return { count, error };
      throw error;
    }
  }
}

describe('requests', () => {
  test('of one key are limited; another key is not affected, and the first one works again a second later', () => {
    const clock = new FakeClock();
    const limits = new RequestLimits(clock, rules);
    const { count, error } = untilRefused(() => limits.admit(userNamed('a'), 'get'));
    expect(count).toBe(20_000);
    expect(error.status).toMatchObject({
      code: 429,
      reason: 'TooManyRequests',
      details: { retryAfterSeconds: 1 },
    });
    expect(error.retryAfterMs).toBe(1000);
    limits.admit(userNamed('b'), 'get');
    limits.admit(userNamed('ann'), 'get');
    clock.advance(1000);
    expect(untilRefused(() => limits.admit(userNamed('a'), 'get')).count).toBe(10_000);
  });

  test('that create have a lower limit', () => {
    const clock = new FakeClock();
    const limits = new RequestLimits(clock, rules, { creates: { burst: 5, perSecond: 1 } });
    expect(untilRefused(() => limits.admit(userNamed('a'), 'create'))).toMatchObject({
      count: 5,
      error: { message: 'too many creates with this key, try again later' },
    });
    limits.admit(userNamed('a'), 'get');
  });
});

describe('failed authentications', () => {
  test('are limited by address, and for IPv6 by network', () => {
    const clock = new FakeClock();
    const limits = new RequestLimits(clock, rules);
    expect(untilRefused(() => limits.refused('192.0.2.1')).count).toBe(100);
    limits.refused('192.0.2.2');
    clock.advance(500);
    expect(untilRefused(() => limits.refused('192.0.2.1')).count).toBe(5);
    expect(untilRefused(() => limits.refused('2001:db8::1')).count).toBe(100);
    expect(untilRefused(() => limits.refused('2001:db8:0:0:ffff::2')).count).toBe(0);
    expect(untilRefused(() => limits.refused('2001:db8:0:1::2')).count).toBe(100);
    expect(untilRefused(() => limits.refused('::ffff:192.0.2.9')).count).toBe(100);
  });
});
