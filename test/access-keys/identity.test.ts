/** Users of the API: which requests have a reserve of the limits, and by what a client is counted. */

import { describe, expect, test } from 'vitest';
import { EXTRA, SENDER_RULES } from '../../src/access-keys/identity.ts';
import { parseResourcePath } from '../../src/apiserver/request/request-info.ts';
import { userNamed, type UserInfo } from '../../src/apiserver/user.ts';

function withKey(uid: string): UserInfo {
  return { ...userNamed('ann'), extra: { [EXTRA.keyUid]: [uid] } };
}

test('a client is counted by its key, and without one by the name of the user', () => {
  const clients = [withKey('a'), withKey('b'), userNamed('ann'), userNamed('bob')].map((user) =>
    SENDER_RULES.clientOf(user),
  );
  expect(new Set(clients).size).toBe(4);
  expect(SENDER_RULES.clientOf({ ...withKey('a'), name: 'bob' })).toBe(clients[0]);
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
    expect(SENDER_RULES.isPrivileged(user, path)).toBe(isPrivileged);
  });
});
