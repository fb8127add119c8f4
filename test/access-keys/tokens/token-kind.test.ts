/** The response to the creation of a DirectClusterEndpointToken. */

import { describe, expect, onTestFinished, test } from 'vitest';
import { decodeProtectedHeader } from 'jose';
import { StatusError } from '../../../src/kube/status-error.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import { userNamed } from '../../../src/apiserver/user.ts';
import { clusterAudience, TOKEN_AUDIENCE, type Scope } from '../../../src/access-keys/identity.ts';
import { textAt } from '../../support/cases.ts';
import {
  claimsOf,
  keyRecord,
  startTokens,
  tokenOf,
  verifyWith,
  type TokenHarness,
  type TestKey,
} from './token-harness.ts';

const A_AND_B: Scope = { clusters: [{ cluster: 'a' }, { cluster: 'b' }] };

async function refusal(work: Promise<unknown>): Promise<StatusError> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof StatusError) return error;
  throw new Error(`not refused: ${String(error)}`);
}

function causes({ status }: StatusError): string[] {
  return (status.details?.causes ?? []).map(({ reason, field }) => `${reason} ${field}`);
}

async function withKey(overrides: Parameters<typeof keyRecord>[0] = {}): Promise<[TokenHarness, TestKey]> {
  const harness = await startTokens();
  onTestFinished(() => harness[Symbol.asyncDispose]());
  return [harness, harness.index.set(keyRecord(overrides))];
}

describe('a token', () => {
  test('contains its user, audience, lifetime and key', async () => {
    const [harness, key] = await withKey({ scope: A_AND_B, tokenGeneration: 3 });
    const object = await harness.create(key.user, {});
    const token = tokenOf(object);
    const nowSeconds = harness.clock.now() / 1000;
    const { jti, ...claims } = claimsOf(token);
    expect(claims).toEqual({
      iss: 'https://platform.example.com',
      sub: 'alice',
      aud: ['direct-cluster-endpoint.platform.sh/a', 'direct-cluster-endpoint.platform.sh/b'],
      iat: nowSeconds,
      nbf: nowSeconds,
      exp: nowSeconds + 86_400,
      groups: ['platform:team:blue'],
      'platform.sh': {
        uid: 'uid-1',
        name: 'key-1',
        kind: 'OwnedAccessKey',
        gen: 3,
        scope: A_AND_B,
        scopeText: JSON.stringify(A_AND_B),
      },
    });
    const [published] = (await harness.keySet()).keys;
    expect(decodeProtectedHeader(token)).toEqual({ alg: 'ES256', typ: 'dcet+jwt', kid: published?.kid });
    expect(object).toEqual({
      metadata: { name: jti, uid: jti, creationTimestamp: '2026-01-01T00:00:00Z' },
      spec: { ttl: 86_400, scope: A_AND_B },
      status: { token },
    });
    const verified = verifyWith(await harness.keySet(), token, harness.clock.now(), clusterAudience('b'));
    await expect(verified).resolves.toMatchObject({ jti });
  });

  test.each<[spec: JsonObject, accepted: string[]]>([
    [{}, [TOKEN_AUDIENCE]],
    [{ scope: { clusters: [{ cluster: '*' }] } }, [TOKEN_AUDIENCE]],
    [{ scope: { clusters: [{ cluster: 'b' }] } }, [clusterAudience('b')]],
    [{ scope: A_AND_B as JsonObject }, [clusterAudience('a'), clusterAudience('b')]],
  ])('of %j is accepted by a verifier that knows one audience, if it is among %j', async (spec, accepted) => {
    const [harness, key] = await withKey();
    const token = await harness.token(key.user, spec);
    const keySet = await harness.keySet();
    const audiences = [TOKEN_AUDIENCE, ...['a', 'b', 'c'].map(clusterAudience)];
    const found: string[] = [];
    for (const audience of audiences) {
      const verified = verifyWith(keySet, token, harness.clock.now(), audience);
      await verified.then(
        () => found.push(audience),
        () => undefined,
      );
    }
    expect(found).toEqual(accepted);
  });

  test('keeps the metadata of the request, and generates a name from its prefix', async () => {
    const [harness, key] = await withKey();
    const named = await harness.create(key.user, {}, { metadata: { name: 'ci', labels: { a: 'b' } } });
    expect(named['metadata']).toMatchObject({ name: 'ci', labels: { a: 'b' } });
    const generated = await harness.create(key.user, {}, { metadata: { generateName: 'ci-' } });
    expect(textAt(generated['metadata'] as JsonObject, 'name')).toMatch(/^ci-[a-z0-9]{5}$/);
    const wrong = await refusal(harness.create(key.user, {}, { metadata: { name: 'Not A Name' } }));
    expect([wrong.code, causes(wrong)]).toEqual([422, ['FieldValueInvalid metadata.name']]);
  });
});

describe('spec.ttl', () => {
  test.each<[string, JsonObject, number]>([
    ['absent: the default', {}, 86_400],
    ['0: the default', { ttl: 0 }, 86_400],
    ['as asked', { ttl: 600 }, 600],
    ['the maximum', { ttl: 604_800 }, 604_800],
  ])('%s', async (_what, spec, seconds) => {
    const [harness, key] = await withKey();
    const { iat, exp } = claimsOf(await harness.token(key.user, spec));
    expect(exp - iat).toBe(seconds);
  });

  test.each([
    ['negative', -1, 'must be greater than or equal to 0'],
    ['above the maximum', 604_801, 'must not be more than 604800 seconds'],
  ])('%s: refused', async (_what, ttl, words) => {
    const [harness, key] = await withKey();
    const error = await refusal(harness.create(key.user, { ttl }));
    expect([error.code, causes(error)]).toEqual([422, ['FieldValueInvalid spec.ttl']]);
    expect(error.message).toContain(words);
  });

  test('kubectl, which prints no token by itself, is told where it is', async () => {
    await using harness = await startTokens();
    const key = harness.index.set(keyRecord());
    for (const [manager, isDryRun, count] of [
      ['kubectl-create', false, 1],
      ['kubectl-create', true, 0],
      ['endpoint-syncer', false, 0],
    ] as const) {
      const warnings: string[] = [];
      await harness.create(key.user, {}, { manager, isDryRun, warnings });
      expect(warnings.filter((text) => text.includes("-o jsonpath='{.status.token}'"))).toHaveLength(count);
    }
  });

  test('is reduced to the remaining lifetime of the key, with a warning if the request had a ttl', async () => {
    const harness = await startTokens();
    const expiresAtMs = harness.clock.now() + 90_500;
    const key = harness.index.set(keyRecord({ expiresAtMs }));
    const warnings: string[] = [];
    const asked = await harness.create(key.user, { ttl: 600 }, { warnings });
    expect(claimsOf(tokenOf(asked)).exp).toBe(Math.floor(expiresAtMs / 1000));
    expect(warnings).toEqual([
      'spec.ttl: reduced from 600 to 90 seconds: the token expires with the access key that creates it',
    ]);
    await harness.create(key.user, {}, { warnings });
    expect(warnings).toHaveLength(1);
  });
});

describe('spec.scope', () => {
  test('absent: that of the key', async () => {
    const [harness, key] = await withKey({ scope: A_AND_B });
    expect(claimsOf(await harness.token(key.user))['platform.sh'].scope).toEqual(A_AND_B);
  });

  test('narrower than the key’s, or any where the key has none', async () => {
    const [harness, key] = await withKey({ scope: A_AND_B });
    const onlyA = { clusters: [{ cluster: 'a' }] };
    expect(claimsOf(await harness.token(key.user, { scope: onlyA }))['platform.sh'].scope).toEqual(onlyA);
    expect(claimsOf(await harness.token(key.user, { scope: {} }))['platform.sh'].scope).toEqual({});
    const free = harness.index.set(keyRecord({ uid: 'uid-2' }));
    expect(claimsOf(await harness.token(free.user, { scope: onlyA }))['platform.sh'].scope).toEqual(onlyA);
    expect(claimsOf(await harness.token(free.user))['platform.sh']).not.toHaveProperty('scope');
  });

  test('wider than the key’s: 403 that names the entry', async () => {
    const [harness, key] = await withKey({ scope: A_AND_B });
    const scope = { clusters: [{ cluster: 'a' }, { cluster: 'c' }] };
    const error = await refusal(harness.create(key.user, { scope }));
    expect([error.code, error.reason]).toEqual([403, 'Forbidden']);
    expect(error.message).toContain('spec.scope.clusters[1]');
  });

  test('invalid: 422 with every field', async () => {
    const [harness, key] = await withKey();
    const scope = { clusters: [{}], roles: [{ role: 'emperor' }] };
    const error = await refusal(harness.create(key.user, { scope, ttl: -5 }));
    expect(causes(error)).toEqual([
      'FieldValueInvalid spec.ttl',
      'FieldValueNotSupported spec.scope.roles[0].role',
      'FieldValueRequired spec.scope.clusters[0].cluster',
    ]);
  });

  test('too large for a header: 422, also where it is the key’s', async () => {
    const virtualClusters = Array.from({ length: 250 }, (_, index) => ({
      project: 'project-of-some-length',
      virtualCluster: `virtual-cluster-${index}`,
    }));
    const [harness, key] = await withKey({ scope: { virtualClusters } });
    for (const spec of [{ scope: { virtualClusters } }, {}]) {
      const error = await refusal(harness.create(key.user, spec));
      expect(causes(error)).toEqual(['FieldValueTooMany spec.scope']);
      expect(error.message).toContain('of which 8192 are allowed');
    }
    const some = { virtualClusters: virtualClusters.slice(0, 30) };
    expect((await harness.token(key.user, { scope: some })).length).toBeLessThanOrEqual(8192);
  });
});

test('a token that is too large because of the clusters in its scope, which are audiences too, names the scope', async () => {
  await using harness = await startTokens();
  const clusters = Array.from({ length: 60 }, (_, index) => ({ cluster: `cluster-${index}` }));
  const { user, ...record } = keyRecord({ scope: { clusters } });
  // More than the scope as claim and as text, less than these and the audiences.
  const groups = Array.from({ length: 200 }, (_, index) => `group-of-a-name-${index}`);
  const key = harness.index.set({ ...record, user: { ...user, groups } });
  expect(causes(await refusal(harness.create(key.user, {})))).toEqual(['FieldValueTooMany spec.scope']);
});

test('a token that is too large because of the groups of its key is a 422', async () => {
  await using harness = await startTokens();
  const { user, ...record } = keyRecord({ scope: A_AND_B });
  const groups = Array.from({ length: 250 }, (_, index) => `group-with-a-long-name-${index}`);
  const key = harness.index.set({ ...record, user: { ...user, groups } });
  const error = await refusal(harness.create(key.user, {}));
  expect(causes(error)).toEqual(['FieldValueTooMany spec']);
  expect(error.message).toContain('a key with fewer groups');
});

describe('the creator of a token', () => {
  test('a caller without a key gets 403 with the next step', async () => {
    const [harness] = await withKey();
    const error = await refusal(harness.create(userNamed('host-user'), {}));
    expect([error.code, error.message]).toEqual([403, expect.stringContaining('with an access key')]);
  });

  test.each<[string, Parameters<typeof keyRecord>[0] | undefined]>([
    ['deleted', undefined],
    ['disabled', { isDisabled: true }],
    ['being deleted', { isDeleted: true }],
    ['over', { expiresAtMs: Date.UTC(2025, 0, 1) }],
    ['over within this second', { expiresAtMs: Date.UTC(2026, 0, 1) + 500 }],
    ['changed', { tokenGeneration: 2 }],
  ])('a key that is %s by now: 401', async (_what, change) => {
    const [harness, key] = await withKey();
    harness.index.keys.clear();
    if (change) harness.index.set(keyRecord(change));
    expect((await refusal(harness.create(key.user, {}))).code).toBe(401);
  });
});
