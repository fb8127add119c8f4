/** TokenReview, SubjectAccessReview and the reviews of the caller itself, as clusters and kubectl request them. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { failure } from '../../../src/kube/status-error.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import { clusterAudience, EXTRA, TOKEN_AUDIENCE, type Scope } from '../../../src/access-keys/identity.ts';
import { textAt } from '../../support/cases.ts';
import { startAuthorizationServer, part, caller, type AuthorizationServer } from './authorization-server.ts';

let server: AuthorizationServer;
beforeAll(async () => {
  server = await startAuthorizationServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const TOKEN_REVIEWS = '/apis/authentication.k8s.io/v1/tokenreviews';
const ACCESS_REVIEWS = '/apis/authorization.k8s.io/v1/subjectaccessreviews';

let count = 0;
async function newKey(spec: JsonObject = {}): Promise<{ name: string; token: string }> {
  const name = `key-${++count}`;
  const answer = await server.create('admin', name, { user: 'alice', ...spec });
  expect(answer.status).toBe(201);
  return { name, token: textAt(part(answer, 'spec'), 'key') };
}

const noneOf = (asked: string): JsonObject => ({
  authenticated: false,
  error: expect.stringContaining(`the credential is not for the audiences ${asked}`) as string, // a matcher
});

const OF_A = clusterAudience('a');

describe('TokenReview', () => {
  const review = (spec: JsonObject, prefix = ''): Promise<JsonObject> =>
    server.review('delegator', prefix + TOKEN_REVIEWS, spec);
  const UNKNOWN = { authenticated: false, user: {} };

  test('returns the user of the key', async () => {
    const { name, token } = await newKey({ groups: ['x'], scope: { clusters: [{ cluster: 'a' }] } });
    const status = await review({ token });
    const user = status['user'] as { extra: Record<string, string[]> };
    expect(status).toEqual({
      authenticated: true,
      user: {
        username: 'alice',
        groups: ['x', 'system:authenticated'],
        extra: {
          [EXTRA.keyUid]: [expect.stringMatching(/^[0-9a-f-]{36}$/)],
          [EXTRA.keyName]: [name],
          [EXTRA.generation]: ['1'],
          [EXTRA.scope]: ['{"clusters":[{"cluster":"a"}]}'],
        },
      },
    });
    expect(Object.keys(user.extra)).toHaveLength(4);
  });

  test('does not return the token, and the response is not cached', async () => {
    const { token } = await newKey();
    const answer = await server.send('delegator', 'POST', TOKEN_REVIEWS, {
      spec: { token, audiences: ['x'] },
    });
    expect(answer.text).not.toContain(token);
    expect(part(answer, 'spec')).toEqual({ audiences: ['x'] });
    expect(answer.headers.get('cache-control')).toBe('no-store');
  });

  test('returns nothing about text that is not a key', async () => {
    const { token } = await newKey();
    for (const wrong of ['x', 'a.b.c', `${token}x`, token.slice(0, -1), token.toUpperCase()]) {
      expect(await review({ token: wrong })).toEqual(UNKNOWN);
    }
  });

  test('returns the reason for a rejected key if its secret is correct', async () => {
    const disabled = await newKey({ disabled: true });
    expect(await review({ token: disabled.token })).toEqual({
      authenticated: false,
      user: {},
      error: 'platform access key is disabled. Enable it or use another one',
    });
  });

  test('a failure of this API is an error, not "unauthenticated"', async () => {
    await using own = await startAuthorizationServer();
    own.tokens.get = () => {
      throw failure(503, 'ServiceUnavailable', 'later');
    };
    const answer = await own.send('delegator', 'POST', TOKEN_REVIEWS, { spec: { token: 'a.b.c' } });
    expect(answer.status).toBe(503);
  });

  test('needs a token', async () => {
    expect((await server.send('delegator', 'POST', TOKEN_REVIEWS, {})).status).toBe(400);
  });

  test('below a target, a key whose scope does not contain it is not authenticated', async () => {
    const { token } = await newKey({ scope: { clusters: [{ cluster: 'a' }] } });
    expect((await review({ token }, '/kubernetes/cluster/a'))['authenticated']).toBe(true);
    expect(await review({ token }, '/kubernetes/cluster/b')).toEqual(UNKNOWN);
    expect(await review({ token }, '/kubernetes/project/a/space/a')).toEqual(UNKNOWN);
    const everywhere = await newKey();
    expect((await review({ token: everywhere.token }, '/kubernetes/cluster/b'))['authenticated']).toBe(true);
    const nowhere = await newKey({ scope: {} });
    expect(await review({ token: nowhere.token }, '/kubernetes/cluster/b')).toEqual(UNKNOWN);
  });

  test.each<[prefix: string, audiences: string[], expected: JsonObject]>([
    ['', [], { authenticated: true }],
    ['', ['https://kubernetes.default.svc'], noneOf('"https://kubernetes.default.svc"')],
    ['', ['x', 'y'], noneOf('"x", "y"')],
    ['', [OF_A, TOKEN_AUDIENCE, 'x'], { authenticated: true, audiences: [OF_A] }],
    // A verifier that knows only the common audience.
    ['', [TOKEN_AUDIENCE], noneOf(`"${TOKEN_AUDIENCE}"`)],
    ['', [clusterAudience('b')], noneOf(`"${clusterAudience('b')}"`)],
    ['/kubernetes/cluster/a', [], { authenticated: true }],
    [
      '/kubernetes/cluster/a',
      ['https://kubernetes.default.svc', 'x'],
      { authenticated: true, audiences: ['https://kubernetes.default.svc'] },
    ],
    [
      '/kubernetes/cluster/a',
      ['https://kubernetes.default.svc.cluster.local'],
      { authenticated: true, audiences: ['https://kubernetes.default.svc.cluster.local'] },
    ],
    // What a workload in the cluster is for is not for this API to confirm.
    ['/kubernetes/cluster/a', ['vault'], noneOf('"vault"')],
    ['/kubernetes/cluster/a', [TOKEN_AUDIENCE], noneOf(`"${TOKEN_AUDIENCE}"`)],
    ['/kubernetes/cluster/a', [TOKEN_AUDIENCE, OF_A], { authenticated: true, audiences: [OF_A] }],
    ['/kubernetes/cluster/b', [TOKEN_AUDIENCE], { authenticated: false }],
    ['/kubernetes/cluster/b', [OF_A], { authenticated: false }],
  ])('the audiences of tokens and keys, below "%s" for %j', async (prefix, audiences, expected) => {
    server.tokens.set('t.t.t', caller('alice', [], { clusters: [{ cluster: 'a' }] }));
    const key = await newKey({ scope: { clusters: [{ cluster: 'a' }] } });
    for (const token of ['t.t.t', key.token]) {
      const { user: _user, ...status } = await review({ token, audiences }, prefix);
      expect(status).toEqual(expected);
    }
  });

  test.each<[scope: Scope | undefined, audiences: string[]]>([
    [undefined, [TOKEN_AUDIENCE]],
    [{ clusters: [{ cluster: '*' }] }, [TOKEN_AUDIENCE]],
    [{ clusters: [{ cluster: 'b' }, { cluster: 'a' }] }, [clusterAudience('b'), OF_A]],
    [{ rules: [{ cluster: 'a' }] }, [OF_A]],
  ])('with the scope %j the audiences are %j', async (scope, audiences) => {
    server.tokens.set('t.t.t', caller('alice', [], scope));
    const asked = [clusterAudience('b'), OF_A, TOKEN_AUDIENCE];
    for (const prefix of ['', '/kubernetes/cluster/a']) {
      const { user: _user, ...status } = await review({ token: 't.t.t', audiences: asked }, prefix);
      expect(status).toEqual({ authenticated: true, audiences });
    }
  });

  test('only an authenticated key for an accepted audience counts as used', async () => {
    const { token } = await newKey();
    server.used.length = 0;
    await review({ token: `${token}x` });
    await review({ token, audiences: ['x'] });
    await review({ token });
    expect(server.used).toEqual(['alice']);
  });

  test('can only be created', async () => {
    expect((await server.send('delegator', 'GET', TOKEN_REVIEWS)).status).toBe(405);
    expect((await server.send('delegator', 'GET', `/kubernetes/cluster/a${TOKEN_REVIEWS}`)).status).toBe(405);
  });
});

describe('SubjectAccessReview', () => {
  const pods = { resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'n', name: 'x' } };
  const scope = { [EXTRA.scope]: ['{"clusters":[{"cluster":"a"}]}'] };
  const review = (spec: JsonObject, prefix = '/kubernetes/cluster/a'): Promise<JsonObject> =>
    server.review('delegator', prefix + ACCESS_REVIEWS, spec);

  test('inside the scope there is no opinion, outside the request is denied', async () => {
    expect(await review({ user: 'alice', extra: scope, ...pods })).toEqual({ allowed: false });
    expect(await review({ user: 'alice', extra: scope, ...pods }, '/kubernetes/cluster/b')).toEqual({
      allowed: false,
      denied: true,
      reason: 'access key scope does not contain cluster "b"',
    });
    expect(await review({ user: 'kubernetes-admin', groups: ['system:masters'], ...pods })).toEqual({
      allowed: false,
    });
  });

  test('ends with the key: disabled, changed, deleted, expired', async () => {
    const { name, token } = await newKey({ ttl: 60, groups: ['platform:admins'] });
    const { user } = await server.review('delegator', TOKEN_REVIEWS, { token });
    const { username, groups, extra } = user as { username: string; groups: string[]; extra: JsonObject };
    const asked = { user: username, groups, extra, ...pods };
    const path = `/apis/management.platform.sh/v1/ownedaccesskeys/${name}`;
    expect(await review(asked)).toEqual({ allowed: true });
    await server.send('admin', 'PATCH', path, { spec: { disabled: true } });
    await server.keys.index.catchUp();
    expect(await review(asked)).toEqual({
      allowed: false,
      denied: true,
      reason: 'the access key is disabled',
    });
    await server.send('admin', 'PATCH', path, { spec: { disabled: null } });
    await server.keys.index.catchUp();
    const changed = {
      allowed: false,
      denied: true,
      reason: 'the access key has changed: request a new token',
    };
    expect(await review(asked)).toEqual(changed);
    await server.send('admin', 'DELETE', path);
    await server.keys.index.catchUp();
    const gone = { allowed: false, denied: true, reason: 'the access key no longer exists' };
    expect(await review(asked)).toEqual(gone);
  });

  test.each<[JsonObject, string]>([
    [pods, 'spec.user: Required value: at least one of user or group must be specified'],
    [
      { user: 'a' },
      'spec.resourceAttributes: Required value: exactly one of nonResourceAttributes or resourceAttributes must be specified',
    ],
  ])('%j is refused', async (spec, text) => {
    const answer = await server.send('delegator', 'POST', ACCESS_REVIEWS, { spec });
    expect([answer.status, textAt(answer.json ?? {}, 'message')]).toEqual([
      422,
      `SubjectAccessReview.authorization.k8s.io "" is invalid: ${text}`,
    ]);
  });

  test('accepts extra keys that are names of Object.prototype members', async () => {
    const extra = JSON.parse('{"__proto__": ["x"], "constructor": ["y"]}') as JsonObject;
    expect(await review({ user: 'a', extra, ...pods })).toEqual({ allowed: false });
  });
});

describe('reviews of the caller itself', () => {
  test('kubectl auth whoami', async () => {
    const { name, token } = await newKey();
    const answer = await server.send(token, 'POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {});
    expect(part(answer, 'status')['userInfo']).toMatchObject({
      username: 'alice',
      extra: { [EXTRA.keyName]: [name] },
    });
  });

  test.each<[string, string, JsonObject[]]>([
    ['an administrator', 'admin', [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }]],
    [
      'a read-only key',
      'reader',
      [
        {
          verbs: ['get', 'list', 'watch'],
          apiGroups: ['management.platform.sh'],
          resources: ['ownedaccesskeys'],
        },
        { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'] },
        { verbs: ['create'], apiGroups: ['authorization.k8s.io'], resources: ['selfsubjectaccessreviews'] },
        { verbs: ['create'], apiGroups: ['authorization.k8s.io'], resources: ['selfsubjectrulesreviews'] },
      ],
    ],
  ])('kubectl auth can-i --list: %s', async (_what, as, rules) => {
    server.callers.set('reader', caller('alice', [], { roles: [{ role: 'platformCLI' }] }));
    const status = await server.review(as, '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {
      namespace: 'default',
    });
    expect(status).toMatchObject({ resourceRules: rules, incomplete: false });
    expect(status['nonResourceRules']).toMatchObject([{ verbs: ['get'] }]);
  });

  test('a scope with names has an incomplete rules review', async () => {
    const rules = [
      {
        resources: [
          { group: 'management.platform.sh', resources: ['ownedaccesskeys'], resourceNames: ['a'] },
        ],
      },
      { verbs: ['create'] },
    ];
    server.callers.set('named', caller('alice', [], { rules }));
    const status = await server.review('named', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {
      namespace: 'default',
    });
    expect(status['incomplete']).toBe(true);
  });

  test('a SelfSubjectRulesReview needs a namespace, as on a real server', async () => {
    const path = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews';
    const { json } = await server.send('admin', 'POST', path, { spec: {} });
    expect(json).toMatchObject({ code: 400, reason: 'BadRequest', message: 'no namespace on request' });
  });
});

test('INVARIANT: below the prefix of a target only the two authorised reviews are served', () => {
  const served = server.reviews.filter((kind) => kind.isServedUnder('/kubernetes/cluster/a'));
  expect(served.map(({ plural }) => plural).sort()).toEqual(['subjectaccessreviews', 'tokenreviews']);
  expect(server.keys.definition.isServedUnder('/kubernetes/cluster/a')).toBe(false);
});

test('a request below a target returns 403 outside the scope and 404 inside', async () => {
  server.callers.set('project-a', caller('alice', [], { projects: [{ project: 'a' }] }));
  const get = async (path: string): Promise<number> => (await server.send('project-a', 'GET', path)).status;
  expect(await get('/kubernetes/project/b/virtualcluster/v')).toBe(403);
  expect(await get('/kubernetes/project/a/virtualcluster/v')).toBe(404);
  expect(await get('/kubernetes/project/a/virtualcluster/v/api/v1/pods')).toBe(404);
  expect(await get('/kubernetes/cluster/a/metrics')).toBe(403);
  // Discovery is within every scope, and there is none here.
  expect(await get('/kubernetes/cluster/a/version')).toBe(404);
  expect(await get('/kubernetes/nonsense')).toBe(404);
});
