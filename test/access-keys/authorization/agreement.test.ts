/** A review of a request and the request itself agree. */

import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { UserInfo } from '../../../src/apiserver/user.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import { ADMINISTRATORS, AUTH_DELEGATORS, AUTHENTICATED, EXTRA } from '../../../src/access-keys/identity.ts';
import { startAuthorizationServer, part, type AuthorizationServer } from './authorization-server.ts';
import { prefixes, scopes } from './random-scopes.ts';

let server: AuthorizationServer;
beforeAll(async () => {
  server = await startAuthorizationServer();
});
afterAll(() => server[Symbol.asyncDispose]());

/** A request as it is sent, and what it is as an access review says it. */
interface Asked {
  readonly method: string;
  readonly path: string;
  readonly attributes: JsonObject;
}

const MANAGEMENT = 'management.platform.sh';

function onResource(verb: string, group: string, resource: string, subresource = ''): Asked {
  const isCollection = ['list', 'watch', 'create', 'deletecollection'].includes(verb);
  const methods: Record<string, string> = {
    create: 'POST',
    update: 'PUT',
    patch: 'PATCH',
    delete: 'DELETE',
    deletecollection: 'DELETE',
  };
  const name = isCollection ? '' : 'a';
  const object = `/apis/${group}/v1/${resource}${isCollection ? '' : '/a'}`;
  // A watch of a version that is none is refused once it is allowed, and does not stay; a deletion finds nothing.
  const queries: Record<string, string> = {
    watch: '?watch=1&resourceVersion=x',
    deletecollection: '?labelSelector=nothing',
  };
  return {
    method: methods[verb] ?? 'GET',
    path: object + (subresource === '' ? '' : `/${subresource}`) + (queries[verb] ?? ''),
    attributes: { resourceAttributes: { verb, group, version: 'v1', resource, subresource, name } },
  };
}

function onPath(method: string, path: string): Asked {
  return { method, path, attributes: { nonResourceAttributes: { verb: method.toLowerCase(), path } } };
}

/** Every served resource with each of its verbs: other requests are answered before authorization. */
const SERVED: readonly Asked[] = [
  ...['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'].map((verb) =>
    onResource(verb, MANAGEMENT, 'ownedaccesskeys'),
  ),
  ...['get', 'update', 'patch'].map((verb) => onResource(verb, MANAGEMENT, 'ownedaccesskeys', 'status')),
  onResource('create', MANAGEMENT, 'directclusterendpointtokens'),
  onResource('create', 'authentication.k8s.io', 'tokenreviews'),
  onResource('create', 'authentication.k8s.io', 'selfsubjectreviews'),
  onResource('create', 'authorization.k8s.io', 'subjectaccessreviews'),
  onResource('create', 'authorization.k8s.io', 'selfsubjectaccessreviews'),
  onResource('create', 'authorization.k8s.io', 'selfsubjectrulesreviews'),
  onPath('GET', '/version'),
  onPath('GET', '/apis'),
  onPath('GET', '/apis/apps'),
  onPath('GET', '/openapi/v3'),
  onPath('GET', '/metrics'),
  onPath('POST', '/apis'),
];

/** What reviews of others may be about, below the prefix of a target. */
const ELSEWHERE: readonly Asked[] = [
  onResource('create', 'authentication.k8s.io', 'tokenreviews'),
  onResource('create', 'authorization.k8s.io', 'subjectaccessreviews'),
  onResource('get', 'apps', 'pods'),
  onResource('create', 'apps', 'pods'),
  onResource('list', MANAGEMENT, 'ownedaccesskeys'),
  onPath('GET', '/version'),
  onPath('GET', '/metrics'),
];

const users: fc.Arbitrary<UserInfo> = fc
  .record({
    groups: fc.subarray([ADMINISTRATORS, AUTH_DELEGATORS, AUTHENTICATED, 'platform:team:blue']),
    scope: fc.option(scopes, { nil: undefined, freq: 3 }),
    // Of a key that is there, or is not.
    uid: fc.option(fc.boolean(), { nil: undefined, freq: 2 }),
  })
  .map(({ groups, scope, uid }) => ({
    name: 'someone',
    uid: '',
    groups,
    extra: {
      ...(scope === undefined ? {} : { [EXTRA.scope]: [JSON.stringify(scope)] }),
      ...(uid === undefined ? {} : { [EXTRA.keyUid]: [uid ? keyUid() : 'gone'] }),
    },
  }));

const keyUid = (): string => server.callers.get('delegator')?.extra[EXTRA.keyUid]?.[0] ?? '';

const ACCESS_REVIEWS = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
const SELF_REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

function reviewOf(
  { name, groups, extra }: UserInfo,
  { attributes }: Asked,
  prefix = '',
): Promise<JsonObject> {
  const sent = Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]]));
  const spec = { user: name, groups: [...groups], extra: sent, ...attributes };
  return server.review('delegator', prefix + ACCESS_REVIEWS, spec);
}

async function send(user: UserInfo, { method, path }: Asked, prefix = ''): Promise<number> {
  server.callers.set('someone', user);
  const { status } = await server.send('someone', method, prefix + path, method === 'GET' ? undefined : {});
  return status;
}

test('in this API a SelfSubjectAccessReview, a SubjectAccessReview and the request agree', async () => {
  const seen = new Set<boolean>();
  await fc.assert(
    fc.asyncProperty(users, fc.constantFrom(...SERVED), async (user, asked) => {
      const status = await send(user, asked);
      const review = await reviewOf(user, asked);
      expect(status === 403).toBe(review['allowed'] !== true);
      seen.add(review['allowed'] === true);
      const self = await server.send('someone', 'POST', SELF_REVIEWS, { spec: asked.attributes });
      // A caller that may not review itself gets 403, and a review of that right agrees.
      const isAsked = self.status === 201;
      const asking = onResource('create', 'authorization.k8s.io', 'selfsubjectaccessreviews');
      expect((await reviewOf(user, asking))['allowed']).toBe(isAsked);
      expect(isAsked ? part(self, 'status') : review).toEqual(review);
    }),
    { numRuns: 50 },
  );
  expect(seen.size).toBe(2);
});

test('below the prefix of a target only reviews are served; other requests return 403 where they are denied, else 404', async () => {
  const seen = new Set<number>();
  const target = prefixes.filter((prefix) => prefix !== '');
  await fc.assert(
    fc.asyncProperty(users, fc.constantFrom(...ELSEWHERE), target, async (user, asked, prefix) => {
      const status = await send(user, asked, prefix);
      const review = await reviewOf(user, asked, prefix);
      const isServed = /(?:token|subjectaccess)reviews$/.test(asked.path);
      const isRefused = isServed ? review['allowed'] !== true : review['denied'] === true;
      expect(status === 403).toBe(isRefused);
      expect(isServed || status === 403 || status === 404).toBe(true);
      seen.add(status);
    }),
    { numRuns: 50 },
  );
  expect(seen).toContain(403);
  expect(seen).toContain(404);
});
