/** Delegated authentication with an embedded cluster as the host. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  startEmbeddedCluster,
  type EmbeddedCluster,
} from '../../../src/embedded-cluster/embedded-cluster.ts';
import { META_TYPES, TypeTable } from '../../../src/apiserver/schema/object-schema.ts';
import { REVIEW_TYPES } from '../../../src/apiserver/access-review.ts';
import {
  defineResource,
  type ResourceDefinition,
} from '../../../src/apiserver/objects/resource-definition.ts';
import { failure } from '../../../src/kube/status-error.ts';
import { userNamed, type UserInfo } from '../../../src/apiserver/user.ts';
import { plainAccess } from '../../../src/kube/access.ts';
import { RestClient } from '../../../src/kube/client/client.ts';
import type { WatchClient } from '../../../src/kube/types.ts';
import { type JsonObject, objectField } from '../../../src/base/json.ts';
import {
  DelegatedAuth,
  UNKNOWN_TOKEN_RATE,
  type HostReviews,
  hostReviews,
} from '../../../src/access-keys/authorization/delegated-auth.ts';
import { EXTRA } from '../../../src/access-keys/identity.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { textAt } from '../../support/cases.ts';
import { eventually } from '../../support/eventually.ts';
import { startAuthorizationServer, part, type AuthorizationServer } from './authorization-server.ts';
import { KEYS_PATH } from '../keys/key-server.ts';

/** Tokens of the host's users. */
const HOST_USERS: Record<string, JsonObject> = {
  'ops-token-of-the-host': { username: 'ops', groups: ['ops', 'platform:admins', 'system:authenticated'] },
  'viewer-token-of-the-host': {
    username: 'alice',
    uid: 'u',
    groups: ['system:authenticated'],
    extra: { 'example.com/x': ['y'] },
  },
  'token-that-is-really-ours': { username: 'eve', extra: { [EXTRA.keyUid]: ['u1'] } },
  'token-of-nobody-on-the-host': { username: '' },
};

/** `user verb resource name` that the host allows; a missing name is any. */
const HOST_RIGHTS = [
  /^ops (get|list|create|update|patch) ownedaccesskeys /,
  /^ops impersonate users (bob|system:x|platform:team:ops)$/,
  /^ops impersonate groups (platform:team:red|staff|system:masters)$/,
  /^alice list ownedaccesskeys /,
];

let host: EmbeddedCluster;
let client: WatchClient;
let server: AuthorizationServer;
const asked: string[] = [];
let refusal: number | undefined;

beforeAll(async () => {
  host = await startEmbeddedCluster({ name: 'host', kinds: hostKinds() });
  client = new RestClient({
    cluster: 'host',
    access: plainAccess(host.url),
    clock: new FakeClock(),
    metrics: { requested: () => undefined },
    userAgent: 'test/1',
  });
  server = await startAuthorizationServer({ host: client });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await client[Symbol.asyncDispose]();
  await host[Symbol.asyncDispose]();
});

function hostKinds(): ResourceDefinition[] {
  const types = new TypeTable([META_TYPES, REVIEW_TYPES]);
  const shared = {
    version: 'v1',
    isNamespaced: false,
    verbs: ['create'],
    checkName: () => undefined,
  } as const;
  const answered = (what: string): void => {
    asked.push(what);
    if (refusal !== undefined) throw failure(refusal, 'Forbidden', 'no');
  };
  return [
    defineResource({
      ...shared,
      group: 'authentication.k8s.io',
      kind: 'TokenReview',
      plural: 'tokenreviews',
      singular: 'tokenreview',
      schema: types.get('authentication.TokenReview'),
      respond: (review) => {
        const token = textAt(objectField(review, 'spec'), 'token');
        answered(`token ${token}`);
        const user = HOST_USERS[token];
        return { ...review, status: user ? { authenticated: true, user } : { authenticated: false } };
      },
    }),
    defineResource({
      ...shared,
      group: 'authorization.k8s.io',
      kind: 'SubjectAccessReview',
      plural: 'subjectaccessreviews',
      singular: 'subjectaccessreview',
      schema: types.get('authorization.SubjectAccessReview'),
      respond: (review) => {
        const spec = objectField(review, 'spec');
        const {
          verb = '',
          resource = '',
          name = '',
        } = objectField(spec, 'resourceAttributes') as Record<string, string>;
        const what = `${textAt(spec, 'user')} ${verb} ${resource} ${name}`;
        answered(JSON.stringify(objectField(spec, 'extra')) + what);
        return { ...review, status: { allowed: HOST_RIGHTS.some((right) => right.test(what)) } };
      },
    }),
  ];
}

async function revision(): Promise<string> {
  return textAt(part(await server.send('admin', 'GET', KEYS_PATH), 'metadata'), 'resourceVersion');
}

const OPS = 'ops-token-of-the-host';
const VIEWER = 'viewer-token-of-the-host';

describe('over HTTP', () => {
  test('the host authenticates and authorizes its users', async () => {
    expect((await server.send(OPS, 'GET', KEYS_PATH)).status).toBe(200);
    expect((await server.send(VIEWER, 'GET', KEYS_PATH)).status).toBe(200);
    expect((await server.send(VIEWER, 'DELETE', `${KEYS_PATH}/x`)).status).toBe(403);
    expect((await server.send(OPS, 'DELETE', `${KEYS_PATH}/x`)).status).toBe(403);
    expect((await server.send('token-that-nobody-knows', 'GET', KEYS_PATH)).status).toBe(401);
  });

  test('the host gets the identity of a user exactly as it returned it', async () => {
    server.clock.advance(60_000);
    asked.length = 0;
    await server.send(VIEWER, 'GET', KEYS_PATH);
    expect(asked).toEqual([`token ${VIEWER}`, '{"example.com/x":["y"]}alice list ownedaccesskeys ']);
  });

  test('a user of the host is not the user of this API with the same name, and sees what the host allows', async () => {
    await server.create('alice', 'of-alice', { user: 'alice' });
    await server.create('bob', 'of-bob', { user: 'bob' });
    const { text } = await server.send(VIEWER, 'GET', KEYS_PATH);
    expect(text).toContain('of-bob');
    expect((await server.send(VIEWER, 'GET', `${KEYS_PATH}/of-alice`)).status).toBe(403);
    expect((await server.send(OPS, 'GET', `${KEYS_PATH}/of-bob`)).status).toBe(200);
  });

  test('groups with rights in this API are not accepted from the host', async () => {
    const answer = await server.send(OPS, 'POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {});
    expect(part(answer, 'status')['userInfo']).toMatchObject({
      username: 'ops',
      groups: ['ops', 'system:authenticated'],
    });
  });

  test('a token of this API that the host trusts is not accepted as a token of the host', async () => {
    for (const token of ['token-that-is-really-ours', 'token-of-nobody-on-the-host']) {
      expect((await server.send(token, 'GET', KEYS_PATH)).status).toBe(401);
    }
  });

  test.each<[JsonObject, number]>([
    [{ user: 'bob' }, 201],
    [{ user: 'carol' }, 403],
    [{ team: 'red' }, 201],
    [{ team: 'blue' }, 403],
    [{ user: 'system:x' }, 403],
    [{ user: 'platform:team:ops' }, 422],
    [{ user: 'bob', groups: ['system:masters'] }, 403],
    [{ user: 'bob', groups: ['staff'] }, 201],
    [{ user: 'bob', groups: ['platform:admins'] }, 403],
    [{ user: 'bob', type: 'Login' }, 403],
  ])('creating a key for another user needs the right to impersonate it: %j is %i', async (spec, status) => {
    expect(
      (await server.create(OPS, `k-${JSON.stringify(spec).replaceAll(/[^a-z]+/g, '')}`, spec)).status,
    ).toBe(status);
  });

  test('every user of the host may review itself', async () => {
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
    const spec = (verb: string): JsonObject => ({
      resourceAttributes: { verb, group: 'management.platform.sh', resource: 'ownedaccesskeys' },
    });
    expect(await server.review(VIEWER, path, spec('list'))).toEqual({ allowed: true });
    expect(await server.review(VIEWER, path, spec('create'))).toEqual({ allowed: false });
    expect((await server.send(VIEWER, 'GET', '/apis')).status).toBe(200);
  });

  test('a review with the mark of a user of the host does not ask the host', async () => {
    asked.length = 0;
    const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
    const resourceAttributes = { verb: 'list', group: 'management.platform.sh', resource: 'ownedaccesskeys' };
    const spec = { user: 'ops', extra: { [EXTRA.delegated]: ['host'] }, resourceAttributes };
    await server.review('admin', path, spec);
    expect(asked.filter((what) => what.includes('ops list'))).toEqual([]);
  });

  test.each(['account', 'right'])('a watch ends when the %s of its user is gone', async (loss) => {
    const token = `watcher-without-${loss}`;
    const user = { username: `watcher-${loss}`, groups: ['system:authenticated'] };
    const right = new RegExp(`^watcher-${loss} (list|watch) ownedaccesskeys `);
    HOST_USERS[token] = user;
    HOST_RIGHTS.push(right);
    await using watch = await server.watch(token, `${KEYS_PATH}?watch=1&resourceVersion=${await revision()}`);
    for (let turn = 0; turn < 3; turn++) await server.clock.advanceAsync(10_000);
    await server.create('bob', `seen-without-${loss}`, { user: 'bob' });
    expect(await watch.summary(1)).toEqual([`ADDED seen-without-${loss}`]);
    if (loss === 'account') Reflect.deleteProperty(HOST_USERS, token);
    else HOST_RIGHTS.splice(HOST_RIGHTS.indexOf(right), 1);
    let last: unknown = 'open';
    void watch.next().then((event) => (last = event));
    await eventually(
      async () => {
        await server.clock.advanceAsync(10_000);
        return last;
      },
      (event) => event === undefined,
      { what: 'the end of the watch' },
    );
  });

  test('a host that denies the review is a 503 without its message', async () => {
    server.clock.advance(60_000);
    refusal = 403;
    const answer = await server.send(OPS, 'GET', KEYS_PATH);
    refusal = undefined;
    expect([answer.status, textAt(answer.json ?? {}, 'message')]).toEqual([
      503,
      'the host cluster did not review the request: this program may not create a TokenReview there; bind the ClusterRole system:auth-delegator',
    ]);
    expect((await server.send(OPS, 'GET', KEYS_PATH)).status).toBe(200);
  });
});

test('an unreachable host is a 503', async () => {
  const gone = new RestClient({
    cluster: 'host',
    access: plainAccess('http://127.0.0.1:1'),
    clock: new FakeClock(),
    metrics: { requested: () => undefined },
    userAgent: 'test/1',
  });
  const answer = hostReviews(gone).reviewToken('x');
  await expect(answer).rejects.toMatchObject({ code: 503, retryAfterMs: 1000 });
  await gone[Symbol.asyncDispose]();
});

describe('caching of host responses', () => {
  const user: UserInfo = userNamed('ops');
  const request = {
    verb: 'get',
    group: '',
    version: 'v1',
    resource: 'pods',
    subresource: '',
    namespace: '',
    name: '',
    path: '',
    prefix: '',
  };
  function counted(answers: Partial<HostReviews>): {
    auth: DelegatedAuth;
    clock: FakeClock;
    calls: () => number;
  } {
    let calls = 0;
    const clock = new FakeClock();
    const host: HostReviews = {
      reviewToken: (token) => (calls++, answers.reviewToken?.(token) ?? Promise.resolve(userNamed(token))),
      reviewAccess: (who, what) => (
        calls++,
        answers.reviewAccess?.(who, what) ?? Promise.resolve({ isAllowed: true, reason: '' })
      ),
    };
    return { auth: new DelegatedAuth(host, clock), clock, calls: () => calls };
  }

  test('a TokenReview is cached for ten seconds, and concurrent requests share one', async () => {
    const { auth, clock, calls } = counted({});
    await Promise.all([auth.authenticate('a'), auth.authenticate('a')]);
    clock.advance(9_999);
    await auth.authenticate('a');
    expect(calls()).toBe(1);
    await auth.authenticate('b');
    expect(calls()).toBe(2);
    clock.advance(1);
    await auth.authenticate('a');
    expect(calls()).toBe(3);
  });

  test.each([
    [true, 10_000],
    [false, 5_000],
  ])('of a right that is %s for %i ms', async (isAllowed, forMs) => {
    const { auth, clock, calls } = counted({
      reviewAccess: () => Promise.resolve({ isAllowed, reason: '' }),
    });
    await auth.reviewAccess(user, request);
    clock.advance(forMs - 1);
    await auth.reviewAccess(user, request);
    expect(calls()).toBe(1);
    await auth.reviewAccess(user, { ...request, verb: 'list' });
    await auth.reviewAccess(userNamed('other'), request);
    expect(calls()).toBe(3);
    clock.advance(1);
    await auth.reviewAccess(user, request);
    expect(calls()).toBe(4);
  });

  test('a failure is not cached', async () => {
    let fails = true;
    const { auth, calls } = counted({
      reviewToken: (token) =>
        fails ? Promise.reject(new Error('later')) : Promise.resolve(userNamed(token)),
    });
    await expect(auth.authenticate('a')).rejects.toThrow('later');
    fails = false;
    expect((await auth.authenticate('a'))?.name).toBe('a');
    expect(calls()).toBe(2);
  });

  test('unknown tokens of one address are rate limited; tokens that are known already still work', async () => {
    const { auth, clock, calls } = counted({
      reviewToken: (token) => Promise.resolve(token.startsWith('good') ? userNamed(token) : undefined),
    });
    const address = '2001:db8::1';
    for (let n = 0; n < 500; n++)
      expect((await auth.authenticate(`good-${n}`, address))?.name).toBe(`good-${n}`);
    const { burst } = UNKNOWN_TOKEN_RATE;
    for (let n = 0; n < burst; n++) expect(await auth.authenticate(`bad-${n}`, address)).toBeUndefined();
    const before = calls();
    await expect(auth.authenticate('bad', '2001:db8::2')).rejects.toMatchObject({ code: 429 });
    await expect(auth.authenticate('good-new', address)).rejects.toMatchObject({ code: 429 });
    expect(calls()).toBe(before);
    clock.advance(10_000 - 1);
    expect((await auth.authenticate('good-499', address))?.name).toBe('good-499');
    expect(calls()).toBe(before);
    clock.advance(1);
    expect((await auth.authenticate('good-499', address))?.name).toBe('good-499');
    expect((await auth.authenticate('good-elsewhere', '192.0.2.1'))?.name).toBe('good-elsewhere');
    expect((await auth.authenticate('good-new', address))?.name).toBe('good-new');
  });

  test('text that cannot be a token is not sent to the host', async () => {
    const { auth, calls } = counted({});
    expect(await auth.authenticate('')).toBeUndefined();
    expect(await auth.authenticate('x'.repeat(20_000))).toBeUndefined();
    expect(calls()).toBe(0);
  });
});
