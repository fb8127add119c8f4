/** Rate limits by key and by address, each with its own token bucket. */

import { describe, expect, test } from 'vitest';
import { parseResourcePath } from '../../../src/apiserver/request/request-info.ts';
import { userNamed, type UserInfo } from '../../../src/apiserver/user.ts';
import { StatusError } from '../../../src/kube/status-error.ts';
import { EXTRA } from '../../../src/access-keys/identity.ts';
import { RequestLimits } from '../../../src/access-keys/serving/request-limits.ts';
import { FakeClock } from '../../support/fake-clock.ts';

function withKey(uid: string): UserInfo {
  return { ...userNamed('ann'), extra: { [EXTRA.keyUid]: [uid] } };
}

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
    const limits = new RequestLimits(clock);
    const { count, error } = untilRefused(() => limits.admit(withKey('a'), 'get'));
    expect(count).toBe(20_000);
    expect(error.status).toMatchObject({
      code: 429,
      reason: 'TooManyRequests',
      details: { retryAfterSeconds: 1 },
    });
    expect(error.retryAfterMs).toBe(1000);
    limits.admit(withKey('b'), 'get');
    limits.admit(userNamed('ann'), 'get');
    clock.advance(1000);
    expect(untilRefused(() => limits.admit(withKey('a'), 'get')).count).toBe(10_000);
  });

  test('that create have a lower limit', () => {
    const clock = new FakeClock();
    const limits = new RequestLimits(clock, { creates: { burst: 5, perSecond: 1 } });
    expect(untilRefused(() => limits.admit(withKey('a'), 'create'))).toMatchObject({
      count: 5,
      error: { message: 'too many creates with this key, try again later' },
    });
    limits.admit(withKey('a'), 'get');
  });
});

describe('failed authentications', () => {
  test('are limited by address, and for IPv6 by network', () => {
    const clock = new FakeClock();
    const limits = new RequestLimits(clock);
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

describe('the reserve of the limits that all users share', () => {
  const reviews = parseResourcePath('/apis/authentication.k8s.io/v1/tokenreviews');
  const keys = parseResourcePath('/apis/management.platform.sh/v1/ownedaccesskeys');

  test.each([
    ['an administrator', userNamed('root', ['platform:admins']), keys, true],
    ['the webhook of a cluster', userNamed('cluster', ['platform:auth-delegators']), reviews, true],
    ['a review with a token of the host cluster', userNamed('system:apiserver'), reviews, true],
    ['a review with an ordinary key', withKey('a'), reviews, false],
    ['another request with a token of the host cluster', userNamed('system:apiserver'), keys, false],
    ['an ordinary key', withKey('a'), keys, false],
    ['a non-resource request', withKey('a'), undefined, false],
  ])('is for %s: %#', (_who, user, path, isPrivileged) => {
    expect(new RequestLimits(new FakeClock()).isPrivileged(user, path)).toBe(isPrivileged);
  });
});
