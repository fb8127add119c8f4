/** A token never exceeds the scope or the lifetime of the key that created it, whatever the request asks for. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AccessRequest } from '../../../src/apiserver/request/request-info.ts';
import { StatusError } from '../../../src/kube/status-error.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import { grantsOf } from '../../../src/access-keys/authorization/scope-grants.ts';
import { matchGrants } from '../../../src/access-keys/authorization/grants.ts';
import { scopeOf, type RequestTarget, type Scope } from '../../../src/access-keys/identity.ts';
import { claimsOf, keyRecord, startTokens, tokenOf } from './token-harness.ts';

const NAMES = ['a', 'b'];
const name = fc.constantFrom(...NAMES, '*');
const few = { maxLength: 2 };

const rule = fc.record(
  {
    verbs: fc.subarray(['get', 'list', '*']),
    resources: fc.array(
      fc.record({ group: fc.constantFrom('', 'apps'), resources: fc.subarray(['pods']) }),
      few,
    ),
    namespaces: fc.subarray(['', ...NAMES]),
    requestTargets: fc.subarray(['Management', 'Cluster', 'ProjectSpace']),
    cluster: fc.constantFrom('', ...NAMES),
  },
  { requiredKeys: [] },
);

const scope: fc.Arbitrary<Scope> = fc.record(
  {
    roles: fc.array(fc.record({ role: fc.constant('platformCLI') }), few),
    projects: fc.array(fc.record({ project: name }), few),
    spaces: fc.array(fc.record({ project: name, space: name }), few),
    virtualClusters: fc.array(fc.record({ project: name, virtualCluster: name }), few),
    clusters: fc.array(fc.record({ cluster: name }), few),
    rules: fc.array(rule, few),
    allowPlatformCli: fc.boolean(),
  },
  { requiredKeys: [] },
);

const known = fc.constantFrom(...NAMES);
const target: fc.Arbitrary<RequestTarget> = fc.oneof(
  fc.constant({ kind: 'Management' as const, names: [] }),
  fc.record({ kind: fc.constant('Cluster' as const), names: fc.tuple(known) }),
  fc.record({
    kind: fc.constantFrom('ProjectSpace' as const, 'ProjectVirtualCluster' as const),
    names: fc.tuple(known, known),
  }),
);

const request: fc.Arbitrary<AccessRequest> = fc.record({
  verb: fc.constantFrom('get', 'list', 'create'),
  group: fc.constantFrom('', 'apps', 'management.platform.sh'),
  version: fc.constant('v1'),
  resource: fc.constantFrom('pods', 'ownedaccesskeys'),
  subresource: fc.constantFrom('', 'log'),
  namespace: fc.constantFrom('', ...NAMES),
  name: fc.constantFrom('', ...NAMES),
  path: fc.constant(''),
  prefix: fc.constant(''),
});

const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(value, { nil: undefined });

function reaches(within: Scope | undefined, asked: AccessRequest, where: RequestTarget): boolean {
  return within === undefined || matchGrants(grantsOf(within), asked, where).isAllowed;
}

describe('for any request', () => {
  test('a token has no wider scope and no longer lifetime than its key, in its claims and in its verification', async () => {
    await using harness = await startTokens();
    const nowMs = harness.clock.now();
    let granted = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          keyScope: maybe(scope),
          tokenScope: maybe(scope),
          lifeMs: maybe(fc.integer({ min: -5_000, max: 200_000 })),
          ttl: maybe(fc.integer({ min: -10, max: 700_000 })),
          probes: fc.array(fc.tuple(request, target), { minLength: 20, maxLength: 20 }),
        }),
        async ({ keyScope, tokenScope, lifeMs, ttl, probes }) => {
          const expiresAtMs = lifeMs === undefined ? undefined : nowMs + lifeMs;
          const key = harness.index.set(
            keyRecord({
              ...(keyScope === undefined ? {} : { scope: keyScope }),
              ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
            }),
          );
          const spec: JsonObject = {
            ...(ttl === undefined ? {} : { ttl }),
            ...(tokenScope === undefined ? {} : { scope: tokenScope as JsonObject }),
          };
          const answer = await harness.create(key.user, spec).catch((error: unknown) => error);
          const code = answer instanceof StatusError ? answer.code : 201;
          expect([201, 401, 403, 422]).toContain(code);
          if (code !== 201) return;
          granted++;
          const token = tokenOf(answer as JsonObject);
          const { exp, iat } = claimsOf(token);
          expect(exp * 1000).toBeLessThanOrEqual(expiresAtMs ?? Number.POSITIVE_INFINITY);
          expect(exp - iat).toBeGreaterThan(0);
          expect(exp - iat).toBeLessThanOrEqual(ttl || 86_400);
          const user = await harness.tokens.verify(token);
          const own = user && scopeOf(user);
          expect(own).toEqual(claimsOf(token)['platform.sh'].scope);
          const wider = probes.filter(
            ([asked, where]) => reaches(own, asked, where) && !reaches(keyScope, asked, where),
          );
          expect(wider).toEqual([]);
        },
      ),
      { numRuns: 300 },
    );
    expect(granted).toBeGreaterThan(20);
  });
});
