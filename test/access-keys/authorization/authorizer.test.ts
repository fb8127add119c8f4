/** Rights within scopes, decided from a UserInfo alone. */

import { describe, expect, test } from 'vitest';
import type { AccessRequest } from '../../../src/apiserver/request/request-info.ts';
import type { UserInfo } from '../../../src/apiserver/user.ts';
import { ManagementAuthorizer } from '../../../src/access-keys/authorization/authorizer.ts';
import {
  ADMINISTRATORS,
  AUTH_DELEGATORS,
  EXTRA,
  type KeyIndex,
  type Scope,
} from '../../../src/access-keys/identity.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { indexOf, caller, record } from './authorization-server.ts';

const clock = new FakeClock();
const authorizerOf = (index: KeyIndex): ManagementAuthorizer =>
  new ManagementAuthorizer({ index, clock, activity: { recordUse: () => undefined } });

function request(verb: string, what: string, prefix = ''): AccessRequest {
  const isPath = what.startsWith('/');
  const [group = '', resource = '', subresource = ''] = isPath ? [] : what.split('|');
  return {
    verb,
    group,
    version: 'v1',
    resource,
    subresource,
    namespace: '',
    name: '',
    path: isPath ? what : '',
    prefix,
  };
}

const KEYS = 'management.platform.sh|ownedaccesskeys';
const STATUS = 'management.platform.sh|ownedaccesskeys|status';
const TOKENS = 'management.platform.sh|directclusterendpointtokens';
const TOKEN_REVIEWS = 'authentication.k8s.io|tokenreviews';
const ACCESS_REVIEWS = 'authorization.k8s.io|subjectaccessreviews';
const SELF = 'authorization.k8s.io|selfsubjectaccessreviews';
const CLUSTER = '/kubernetes/cluster/a';

const alice = caller('alice');
const admin = caller('root', [ADMINISTRATORS]);
const delegator = caller('cluster-a', [AUTH_DELEGATORS]);
const unprivileged: UserInfo = { name: 'unprivileged', uid: '', groups: [], extra: {} };
const plainKey = record({ uid: 'u2' });
const unownedKey = record({ uid: 'u3' });
const adminKey = { ...unownedKey, user: { ...unownedKey.user, groups: admin.groups } };
const keyedAdmin: UserInfo = adminKey.user;
/** The groups of an administrator, which the cluster added to the user of a key without them. */
const unverifiedAdmin: UserInfo = { ...plainKey.user, groups: admin.groups };
/** The same with a key. */
const keyed = (scope?: Scope): UserInfo => ({
  ...plainKey.user,
  groups: delegator.groups,
  extra: { ...plainKey.user.extra, ...caller('', [], scope).extra },
});

describe('rights', () => {
  test.each<[UserInfo, AccessRequest, 'allowed' | 'denied' | 'no opinion']>([
    [alice, request('list', KEYS), 'allowed'],
    [alice, request('deletecollection', KEYS), 'allowed'],
    [alice, request('get', STATUS), 'allowed'],
    [alice, request('update', STATUS), 'no opinion'],
    [alice, request('*', KEYS), 'no opinion'],
    [alice, request('create', TOKENS), 'allowed'],
    [alice, request('get', TOKENS), 'no opinion'],
    [alice, request('create', SELF), 'allowed'],
    [alice, request('create', TOKEN_REVIEWS), 'no opinion'],
    [alice, request('create', ACCESS_REVIEWS), 'no opinion'],
    [alice, request('get', '/apis/management.platform.sh/v1'), 'allowed'],
    [alice, request('get', '/openapi/v3'), 'allowed'],
    [alice, request('get', '/metrics'), 'no opinion'],
    [alice, request('get', '|pods'), 'no opinion'],
    [alice, request('get', '|pods', CLUSTER), 'no opinion'],
    [unprivileged, request('list', KEYS), 'no opinion'],
    [unprivileged, request('get', '/version'), 'no opinion'],
    [admin, request('*', '*|*'), 'allowed'],
    [admin, request('update', STATUS), 'allowed'],
    [admin, request('get', '/metrics'), 'allowed'],
    [admin, request('get', '|pods', CLUSTER), 'no opinion'],
    [keyedAdmin, request('get', '|pods', CLUSTER), 'allowed'],
    [unverifiedAdmin, request('get', '|pods', CLUSTER), 'no opinion'],
    [unverifiedAdmin, request('create', ACCESS_REVIEWS, CLUSTER), 'no opinion'],
    [delegator, request('create', TOKEN_REVIEWS), 'allowed'],
    [delegator, request('create', ACCESS_REVIEWS, CLUSTER), 'no opinion'],
    [keyed(), request('create', ACCESS_REVIEWS, CLUSTER), 'allowed'],
    [admin, request('create', ACCESS_REVIEWS, CLUSTER), 'no opinion'],
    [keyedAdmin, request('create', ACCESS_REVIEWS, CLUSTER), 'allowed'],
    [delegator, request('get', '|pods', CLUSTER), 'no opinion'],
    [delegator, request('list', KEYS), 'allowed'],
    [caller('x', [], {}), request('list', KEYS), 'denied'],
    [caller('x', [ADMINISTRATORS], {}), request('list', KEYS), 'denied'],
    [caller('x', [], { clusters: [{ cluster: 'a' }] }), request('get', '|pods', CLUSTER), 'no opinion'],
    [caller('x', [], { clusters: [{ cluster: 'b' }] }), request('get', '|pods', CLUSTER), 'denied'],
    [keyed({ clusters: [{ cluster: 'a' }] }), request('create', TOKEN_REVIEWS, CLUSTER), 'allowed'],
    [keyed({ clusters: [{ cluster: 'b' }] }), request('create', TOKEN_REVIEWS, CLUSTER), 'denied'],
    [admin, request('get', '|pods', '/kubernetes/elsewhere'), 'denied'],
  ])('%o: %o', async (user, asked, expected) => {
    const decision = await authorizerOf(indexOf(plainKey, adminKey)).decide(user, asked);
    const found = decision.isAllowed ? 'allowed' : decision.isDenied === true ? 'denied' : 'no opinion';
    expect(found).toBe(expected);
  });

  test('a scope that cannot be read allows nothing', async () => {
    for (const text of ['', 'x', '[]', '{"rules":[{"verbs":"get"}]}']) {
      const user = { ...alice, extra: { [EXTRA.scope]: [text] } };
      expect((await authorizerOf(indexOf()).decide(user, request('list', KEYS))).isDenied).toBe(true);
    }
    const twice = { ...alice, extra: { [EXTRA.scope]: ['{"rules":[{}]}', '{"rules":[{}]}'] } };
    expect((await authorizerOf(indexOf()).decide(twice, request('list', KEYS))).isDenied).toBe(true);
  });
});

describe('the key behind the user', () => {
  const reasonFor = async (index: KeyIndex, user: UserInfo, verb = 'list'): Promise<string> =>
    (await authorizerOf(index).decide(user, request(verb, KEYS))).reason;
  const good = record();

  test.each<[string, KeyIndex, string]>([
    ['is good', indexOf(good), ''],
    ['is gone', indexOf(), 'the access key no longer exists'],
    ['is being deleted', indexOf(record({ isDeleted: true })), 'the access key no longer exists'],
    ['is disabled', indexOf(record({ isDisabled: true })), 'the access key is disabled'],
    ['has ended', indexOf(record({ endMs: clock.now() })), 'the access key has expired'],
    ['ends later', indexOf(record({ endMs: clock.now() + 1 })), ''],
    [
      'has changed',
      indexOf(record({ tokenGeneration: 2 })),
      'the access key has changed: request a new token',
    ],
    ['has a scope that was not handed on', indexOf(record({ scope: {} })), 'access key scope allows nothing'],
  ])('%s', async (_what, index, reason) => {
    expect(await reasonFor(index, good.user)).toBe(reason);
  });

  test('a scope in the extra values restricts in addition to that of the key', async () => {
    const key = record({ scope: { allowPlatformCli: true } });
    const narrower = {
      ...key.user,
      extra: { ...key.user.extra, [EXTRA.scope]: ['{"rules":[{"verbs":["get"]}]}'] },
    };
    expect(await reasonFor(indexOf(key), narrower, 'get')).toBe('');
    expect(await reasonFor(indexOf(key), narrower, 'list')).toBe('access key scope does not allow this verb');
    const wider = { ...key.user, extra: { ...key.user.extra, [EXTRA.scope]: ['{"rules":[{}]}'] } };
    expect(await reasonFor(indexOf(key), wider, 'delete')).toBe('access key scope does not allow this verb');
  });

  test('a key that is not in the index yet is looked up once', async () => {
    let looked = 0;
    const index: KeyIndex = {
      byUid: () => (looked > 0 ? good : undefined),
      expiresAtMs: () => undefined,
      confirmed: () => undefined,
      catchUp: async () => void looked++,
    };
    expect(await reasonFor(index, { ...good.user })).toBe('');
    expect(looked).toBe(1);
  });

  test('two key uids in the extra values match no key', async () => {
    const user = { ...good.user, extra: { ...good.user.extra, [EXTRA.keyUid]: ['u1', 'u1'] } };
    expect(await reasonFor(indexOf(good), user)).toBe('the access key no longer exists');
  });
});
