/** A token never exceeds the scope or the lifetime of the key that created it, whatever the request asks for. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { StatusError } from '../../../src/kube/status-error.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import { grantsOf } from '../../../src/access-keys/authorization/scope-grants.ts';
import { matchGrants, targetOf } from '../../../src/access-keys/authorization/grants.ts';
import type { AccessRequest } from '../../../src/apiserver/request/request-info.ts';
import { scopeOf, type Scope } from '../../../src/access-keys/identity.ts';
import { requests, scopes } from '../authorization/random-scopes.ts';
import { claimsOf, keyRecord, startTokens, tokenOf } from './token-harness.ts';

const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(value, { nil: undefined });

function reaches(within: Scope | undefined, asked: AccessRequest): boolean {
  const target = targetOf(asked.prefix) ?? { kind: 'Management', names: [] };
  return within === undefined || matchGrants(grantsOf(within), asked, target).isAllowed;
}

describe('for any request', () => {
  test('a token has no wider scope and no longer lifetime than its key, in its claims and in its verification', async () => {
    await using harness = await startTokens();
    const nowMs = harness.clock.now();
    let granted = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          keyScope: maybe(scopes),
          tokenScope: maybe(scopes),
          lifeMs: maybe(fc.integer({ min: -5_000, max: 200_000 })),
          ttl: maybe(fc.integer({ min: -10, max: 700_000 })),
          probes: fc.array(requests, { minLength: 20, maxLength: 20 }),
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
          const wider = probes.filter((asked) => reaches(own, asked) && !reaches(keyScope, asked));
          expect(wider).toEqual([]);
        },
      ),
      { numRuns: 300 },
    );
    expect(granted).toBeGreaterThan(20);
  });
});
