/** Rotation of a key: what the old secret can do until its overlap ends, and what the audit log shows. */

import type { AuditEvent } from '../../src/apiserver/request/request-info.ts';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { ADMINISTRATORS, AUTH_DELEGATORS } from '../../src/access-keys/identity.ts';
import { OVERLAP_SECONDS_MAX, REPLACED_SECRETS_MAX } from '../../src/access-keys/keys/key-kind.ts';
import type { RawAnswer, RawClient } from '../contract/raw-client.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { KEYS_PATH, startComposed, TOKENS_PATH, type Composed, type MadeKey } from './composed-api.ts';
import { at, keyOf } from './keys/key-server.ts';

let clock: FakeClock;
let api: Composed;
/** With a key, because the credential of the local administrator is valid for a minute only. */
let administrator: RawClient;
beforeAll(async () => {
  // Certificates are checked against the clock of this machine.
  clock = new FakeClock(Date.now());
  api = await startComposed({ clock });
  administrator = (await api.key('root', { user: 'root', groups: [ADMINISTRATORS] })).client;
});
afterAll(() => api[Symbol.asyncDispose]());

async function newKey(of: string, spec: JsonObject): Promise<MadeKey> {
  const body = { metadata: { name: of }, spec: { displayName: of, ttl: 0, type: 'User', ...spec } };
  const { json, status: code } = await post(administrator, KEYS_PATH, body);
  expect([of, code]).toEqual([of, 201]);
  const text = keyOf(json ?? {});
  return { text, client: api.as(text) };
}

let count = 0;
let name: string;
let key: MadeKey;
beforeEach(async () => {
  name = `key-${++count}`;
  key = await newKey(name, { user: `user-${count}` });
});

function post(client: RawClient, path: string, body: JsonObject = {}): Promise<RawAnswer> {
  return client.send({ method: 'POST', path, body });
}

const rotate = (client: RawClient, body?: JsonObject, query = ''): Promise<RawAnswer> =>
  post(client, `${KEYS_PATH}/${name}/rotate${query}`, body);

/** The new secret of a rotation that must succeed. */
async function rotated(body?: JsonObject): Promise<string> {
  const answer = await rotate(administrator, body);
  expect([answer.status, answer.headers.get('cache-control')]).toEqual([201, 'no-store']);
  return keyOf(answer.json ?? {});
}

function textOf({ json }: RawAnswer, path: string): string {
  const value = at(json, path);
  return typeof value === 'string' ? value : '';
}

async function status(secret: string): Promise<number | string> {
  const answer = await api.as(secret).send({ method: 'GET', path: `${KEYS_PATH}/${name}` });
  return answer.status === 401 ? `401 ${textOf(answer, 'message')}` : answer.status;
}

const ROTATED = '401 platform access key was rotated. Use its new secret';

describe('the response', () => {
  test('contains the new secret, which no other representation of the key contains', async () => {
    const before = await administrator.send({ method: 'GET', path: `${KEYS_PATH}/${name}` });
    const { json } = await rotate(administrator, { overlapSeconds: 60 });
    const secret = keyOf(json ?? {});
    expect(secret).toMatch(/^pak_\w{12}_\w{49}$/);
    expect(secret).not.toBe(key.text);
    expect(at(json, 'kind')).toBe('OwnedAccessKey');
    const after = await administrator.send({ method: 'GET', path: `${KEYS_PATH}/${name}` });
    expect(after.text).not.toContain(secret);
    expect(at(json, 'metadata.resourceVersion')).toBe(at(after.json, 'metadata.resourceVersion'));
    const { resourceVersion: old, ...rest } = at(before.json, 'metadata') as JsonObject; // an object has it
    const { resourceVersion: now, ...same } = at(after.json, 'metadata') as JsonObject;
    expect([same, at(after.json, 'spec')]).toEqual([rest, at(before.json, 'spec')]);
    expect(now).not.toBe(old);
  });

  test('has no warning that the secret is lost, whichever client created the key', async () => {
    const created = await post(administrator, `${KEYS_PATH}?fieldManager=kubectl-create`, {
      metadata: { name: `made-${name}` },
      spec: { displayName: 'x', ttl: 0, type: 'User', user: 'u' },
    });
    expect(created.headers.get('warning')).toContain('keys rotate');
    const answer = await post(administrator, `${KEYS_PATH}/made-${name}/rotate`);
    expect([answer.status, answer.headers.get('warning')]).toEqual([201, null]);
  });

  test('and the object show until when the old secret works', async () => {
    const statusOf = async (): Promise<JsonObject> =>
      at(
        (await administrator.send({ method: 'GET', path: `${KEYS_PATH}/${name}` })).json,
        'status',
      ) as JsonObject; // an object has it
    expect(await statusOf()).not.toHaveProperty('previousSecretExpiresAt');
    const { json } = await rotate(administrator, { overlapSeconds: 3600 });
    const end = `${new Date(clock.now() + 3_600_000).toISOString().slice(0, 19)}Z`;
    expect(at(json, 'status.previousSecretExpiresAt')).toBe(end);
    expect(await statusOf()).toMatchObject({ previousSecretExpiresAt: end });
    // A write of the object neither stores nor removes it.
    const path = `${KEYS_PATH}/${name}`;
    const headers = { 'content-type': 'application/merge-patch+json' };
    await administrator.send({ method: 'PATCH', path, headers, body: { spec: { description: 'x' } } });
    await administrator.send({ method: 'PATCH', path: `${path}/status`, headers, body: { status: null } });
    expect(await statusOf()).toMatchObject({ previousSecretExpiresAt: end });
  });

  test('of a dry run contains no secret, and nothing changes', async () => {
    const { json, status: code } = await rotate(administrator, {}, '?dryRun=All');
    expect([code, keyOf(json ?? {}), await status(key.text)]).toEqual([201, '', 200]);
  });

  test.each<[JsonObject, number, string]>([
    [
      { overlapSeconds: -1 },
      422,
      `overlapSeconds: Invalid value: -1: must be from 0 to ${OVERLAP_SECONDS_MAX} (seconds)`,
    ],
    [{ overlapSeconds: OVERLAP_SECONDS_MAX + 1 }, 422, 'must be from 0 to'],
    [{ overlapSeconds: 'x' }, 400, 'overlapSeconds'],
    [{ kind: 'OwnedAccessKey' }, 400, 'OwnedAccessKey'],
    [{ kind: 'OwnedAccessKeyRotation', apiVersion: 'management.platform.sh/v1' }, 201, ''],
  ])('to %j: %i', async (body, code, text) => {
    const answer = await rotate(administrator, body);
    expect([answer.status, answer.text.includes(text)]).toEqual([code, true]);
  });

  test('warns about an unknown field', async () => {
    const answer = await rotate(administrator, { overlap: 60 }, '?fieldValidation=Warn');
    expect(answer.headers.get('warning')).toContain(String.raw`unknown field \"overlap\"`);
  });

  test('other methods and other objects have no such subresource', async () => {
    const path = `${KEYS_PATH}/${name}/rotate`;
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH'])
      expect((await administrator.send({ method, path })).status).toBe(405);
    expect((await post(administrator, `${KEYS_PATH}/missing/rotate`)).status).toBe(404);
    expect((await post(administrator, `${KEYS_PATH}/${name}/status`)).status).toBe(405);
  });
});

describe('the old secret', () => {
  test('expires immediately without an overlap, together with the tokens issued so far', async () => {
    const token = await post(key.client, TOKENS_PATH);
    const secret = await rotated();
    expect([await status(key.text), await status(secret)]).toEqual([ROTATED, 200]);
    expect(await isAuthenticated(textOf(token, 'status.token'))).toBe(false);
  });

  test('works until the overlap ends, then 401', async () => {
    const secret = await rotated({ overlapSeconds: 3600 });
    clock.advance(3_599_999);
    expect([await status(key.text), await status(secret)]).toEqual([200, 200]);
    clock.advance(1);
    expect([await status(key.text), await status(secret)]).toEqual([ROTATED, 200]);
  });

  test('issues tokens until then, which remain valid like those of the new one', async () => {
    const before = await post(key.client, TOKENS_PATH);
    const secret = await rotated({ overlapSeconds: 3600 });
    const created = [before, await post(key.client, TOKENS_PATH), await post(api.as(secret), TOKENS_PATH)];
    expect(created.map((answer) => answer.status)).toEqual([201, 201, 201]);
    clock.advance(3_600_000);
    for (const answer of created) expect(await isAuthenticated(textOf(answer, 'status.token'))).toBe(true);
    expect((await post(key.client, TOKENS_PATH)).status).toBe(401);
  });

  test('is not extended by another rotation, and expires earlier if that has a shorter overlap', async () => {
    const second = await rotated({ overlapSeconds: 100 });
    const third = await rotated({ overlapSeconds: 200 });
    clock.advance(100_000);
    expect([await status(key.text), await status(second), await status(third)]).toEqual([
      expect.any(String),
      200,
      200,
    ]);
    const fourth = await rotated({ overlapSeconds: 10 });
    clock.advance(10_000);
    expect([await status(second), await status(third)]).toEqual([expect.any(String), ROTATED]);
    const fifth = await rotated();
    expect([await status(fourth), await status(fifth)]).toEqual([ROTATED, 200]);
  });

  test('cannot rotate its key; the new secret can', async () => {
    const secret = await rotated({ overlapSeconds: 60 });
    for (const body of [{ overlapSeconds: 60 }, {}]) {
      const answer = await rotate(key.client, body);
      expect([answer.status, textOf(answer, 'message')]).toEqual([
        403,
        expect.stringContaining('an old secret, which is valid only until its overlap ends, cannot rotate'),
      ]);
    }
    expect([await status(key.text), await status(secret)]).toEqual([200, 200]);
    const again = await rotate(api.as(secret), { overlapSeconds: 60 });
    expect([again.status, await status(keyOf(again.json ?? {}))]).toEqual([201, 200]);
  });

  test('creates and extends no key beyond its overlap; the new secret does', async () => {
    const user = `user-${count}`;
    const sibling = await newKey(`sibling-${count}`, { user });
    const secret = await rotated({ overlapSeconds: 60 });
    const create = async (client: RawClient, spec: JsonObject): Promise<string> => {
      const body = {
        metadata: { generateName: 'by-' },
        spec: { displayName: 'x', type: 'User', user, ...spec },
      };
      const answer = await post(client, KEYS_PATH, body);
      return `${answer.status} ${textOf(answer, 'message')}`;
    };
    const rule =
      'an old secret cannot create or extend a key beyond the end of its overlap: use the new secret';
    for (const ttl of [0, 61]) {
      expect(await create(key.client, { ttl })).toContain(
        `spec.ttl: must be from 1 to 60 (seconds): ${rule}`,
      );
    }
    expect(await create(key.client, { ttl: 60, ttlAfterLastActivity: true })).toContain(rule);
    expect(await create(key.client, { ttl: 60 })).toBe('201 ');
    expect(await create(api.as(secret), { ttl: 0 })).toBe('201 ');
    const path = `${KEYS_PATH}/sibling-${count}/rotate`;
    expect(textOf(await post(key.client, path), 'message')).toContain(rule);
    expect((await post(api.as(secret), path)).status).toBe(201);
    expect(await status(sibling.text)).not.toBe(200);
  });

  test('whose key ends before the overlap is limited by the key', async () => {
    const short = await newKey(`short-${count}`, { user: 'short', ttl: 30 });
    const answer = await post(administrator, `${KEYS_PATH}/short-${count}/rotate`, { overlapSeconds: 60 });
    expect(answer.status).toBe(201);
    const spec = { displayName: 'x', type: 'User', user: 'short', ttl: 31 };
    const refused = await post(short.client, KEYS_PATH, { metadata: { name: `long-${count}` }, spec });
    expect(textOf(refused, 'message')).toContain(
      'must be from 1 to 30 (seconds): an access key cannot create',
    );
  });

  test('of concurrent rotations with one secret, one succeeds', async () => {
    const answers = await Promise.all([1, 2, 3].map(() => rotate(key.client, { overlapSeconds: 60 })));
    expect(answers.map((answer) => answer.status).toSorted((a, b) => a - b)).toEqual([201, 403, 403]);
  });

  test('at most eight old secrets are valid', async () => {
    for (let round = 0; round < REPLACED_SECRETS_MAX; round++) await rotated({ overlapSeconds: 60 });
    const answer = await rotate(administrator, { overlapSeconds: 60 });
    expect([answer.status, answer.text]).toEqual([
      422,
      expect.stringContaining('older secrets of the key are still valid'),
    ]);
    await rotated({ overlapSeconds: 0 });
  });

  test('cannot be the secret of another key while it is valid', async () => {
    await rotated({ overlapSeconds: 60 });
    const spec = { displayName: 'D', ttl: 0, type: 'User', user: 'u', key: key.text };
    const answer = await post(administrator, KEYS_PATH, { metadata: { name: `${name}-copy` }, spec });
    expect([answer.status, answer.text]).toEqual([
      422,
      expect.stringContaining('is in use by another object'),
    ]);
  });

  test('a change of the key keeps both secrets', async () => {
    const secret = await rotated({ overlapSeconds: 60 });
    await administrator.send({
      method: 'PATCH',
      path: `${KEYS_PATH}/${name}`,
      headers: { 'content-type': 'application/merge-patch+json' },
      body: { spec: { description: 'x' } },
    });
    expect([await status(key.text), await status(secret)]).toEqual([200, 200]);
  });

  test('ends the watches that were opened with it when it expires', async () => {
    await using before = await key.client.watch(`${KEYS_PATH}?watch=1`);
    const secret = await rotated({ overlapSeconds: 60 });
    await using old = await key.client.watch(`${KEYS_PATH}?watch=1`);
    await using now = await api.as(secret).watch(`${KEYS_PATH}?watch=1`);
    expect(await before.summary(2)).toEqual([`ADDED ${name}`, `MODIFIED ${name}`]);
    for (const watch of [old, now]) expect(await watch.summary(1)).toEqual([`ADDED ${name}`]);
    clock.advance(60_000);
    for (const watch of [before, old]) expect(await watch.summary(1)).toEqual([]);
    await rotate(administrator, { overlapSeconds: 60 });
    expect(await now.summary(1)).toEqual([`MODIFIED ${name}`]);
  });

  test('works after a restart until its overlap ends, and so do the watches that were opened with it', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'endpoint-syncer-rotation-'));
    onTestFinished(() => rmSync(dataDir, { recursive: true }));
    const own = new FakeClock(Date.now());
    const options = { clock: own, dataDir, config: { store: { driver: 'sqlite' } } } as const;
    let [old, secret] = ['', ''];
    {
      await using first = await startComposed(options);
      old = (await first.key('kept', { user: 'keeper' })).text;
      const answer = await post(first.administrator, `${KEYS_PATH}/kept/rotate`, { overlapSeconds: 60 });
      secret = keyOf(answer.json ?? {});
    }
    await using second = await startComposed(options);
    const get = async (text: string): Promise<number> =>
      (await second.as(text).send({ method: 'GET', path: KEYS_PATH })).status;
    await using watch = await second.as(old).watch(`${KEYS_PATH}?watch=1`);
    expect(await watch.summary(1)).toEqual(['ADDED kept']);
    expect([await get(old), await get(secret)]).toEqual([200, 200]);
    own.advance(60_000);
    expect(await watch.summary(1)).toEqual([]);
    expect([await get(old), await get(secret)]).toEqual([401, 200]);
  });
});

async function isAuthenticated(token: string): Promise<boolean> {
  const path = '/apis/authentication.k8s.io/v1/tokenreviews';
  const { json } = await post(administrator, path, { spec: { token } });
  return at(json, 'status.authenticated') === true;
}

describe('the right to rotate', () => {
  test('the key itself, its user and an administrator may rotate, no other caller', async () => {
    const other = await newKey(`${name}-other`, { user: 'stranger' });
    expect((await rotate(other.client)).status).toBe(404);
    const sibling = await newKey(`${name}-sibling`, { user: `user-${count}` });
    expect((await rotate(key.client, { overlapSeconds: 60 })).status).toBe(201);
    expect((await rotate(sibling.client)).status).toBe(201);
  });

  test.each<[string, JsonObject, JsonObject]>([
    ['reaches further', { scope: { rules: [{}], clusters: [{ cluster: 'a' }] } }, {}],
    ['outlives it', { ttl: 60 }, {}],
    ['has a group that it has not', {}, { groups: ['x'] }],
    ['is managed by the platform', {}, { type: 'Login' }],
    ['lives from its last use', { ttl: 60 }, { ttl: 60, ttlAfterLastActivity: true }],
  ])('not a key of the same user that %s', async (_what, own, others) => {
    const target = { ...others, user: `user-${count}` };
    name = `${name}-target`;
    await newKey(name, { ...target, ...(others['ttl'] === undefined ? { ttl: 0 } : {}) });
    const limited = await newKey(`${name}-limited`, { user: `user-${count}`, ...own });
    expect((await rotate(limited.client)).status).toBe(403);
  });

  test('a key with a scope rotates itself where the scope allows that', async () => {
    const user = `user-${count}`;
    const rule = (resource: string): JsonObject => ({
      scope: { rules: [{ resources: [{ group: 'management.platform.sh', resources: [resource] }] }] },
    });
    for (const [resource, code] of [
      ['ownedaccesskeys', 403],
      ['ownedaccesskeys/rotate', 201],
    ] as const) {
      name = `scoped-${count}-${code}`;
      const scoped = await newKey(name, { user, ...rule(resource) });
      expect((await rotate(scoped.client)).status).toBe(code);
    }
  });
});

test('the audit log has the user of each rotation, and the secret id of each request', async () => {
  const secret = await rotated({ overlapSeconds: 60 });
  await status(key.text);
  await status(secret);
  clock.advance(1_000);
  const idOf = (text: string): string => text.split('_')[1] ?? '';
  const events = await eventsOf(name);
  const seen = events.map(({ verb, objectRef, user }) => [
    verb,
    objectRef?.subresource,
    user.extra?.['platform.sh/credential-id']?.[0],
  ]);
  expect(seen).toContainEqual(['create', 'rotate', undefined]);
  expect(seen).toContainEqual(['get', undefined, idOf(key.text)]);
  expect(seen).toContainEqual(['get', undefined, idOf(secret)]);
});

async function eventsOf(object: string): Promise<AuditEvent[]> {
  const read = (): AuditEvent[] =>
    readFileSync(join(api.dataDir, 'audit.log'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as AuditEvent) // our own lines
      .filter(({ objectRef }) => objectRef?.name === object);
  await expect.poll(() => read().length, { interval: 20 }).toBeGreaterThanOrEqual(3);
  return read();
}

test('OpenAPI contains the subresource', async () => {
  const path = '/openapi/v3/apis/management.platform.sh/v1';
  const document = (await administrator.send({ method: 'GET', path })).json;
  const paths = at(document, 'paths') as Record<string, JsonObject>;
  const operation = paths['/apis/management.platform.sh/v1/ownedaccesskeys/{name}/rotate']?.['post'];
  expect(JSON.stringify(operation)).toContain(
    '#/components/schemas/io.k8s.api.management.v1.OwnedAccessKeyRotation',
  );
  const schemas = at(document, 'components.schemas') as Record<string, JsonObject>;
  expect(schemas['io.k8s.api.management.v1.OwnedAccessKeyRotation']).toMatchObject({
    properties: { overlapSeconds: { type: 'integer', format: 'int64' } },
    'x-kubernetes-group-version-kind': [{ kind: 'OwnedAccessKeyRotation' }],
  });
});

test('a TokenReview by a delegator contains the id of the secret', async () => {
  const delegator = await newKey(`${name}-delegator`, { subject: 'cluster-a', groups: [AUTH_DELEGATORS] });
  const secret = await rotated({ overlapSeconds: 60 });
  const { json } = await post(delegator.client, '/apis/authentication.k8s.io/v1/tokenreviews', {
    spec: { token: secret },
  });
  const extra = at(json, 'status.user.extra') as JsonObject; // of a UserInfo
  expect(extra['platform.sh/credential-id']).toEqual([secret.split('_')[1]]);
});

test('after the overlap, a cluster that still knows the user of the old secret is denied', async () => {
  const config = { clusters: [{ cluster: 'a' }] };
  const scoped = await newKey(`${name}-scoped`, { user: 'u', groups: [ADMINISTRATORS], scope: config });
  const delegator = await newKey(`${name}-delegator`, { subject: 'cluster-a', groups: [AUTH_DELEGATORS] });
  const rotation = { overlapSeconds: 60 };
  const current = keyOf(
    (await post(administrator, `${KEYS_PATH}/${name}-scoped/rotate`, rotation)).json ?? {},
  );
  const review = async (kind: string, spec: JsonObject): Promise<JsonObject> => {
    const { json } = await post(delegator.client, `/kubernetes/cluster/a/apis/${kind}`, { spec });
    return at(json, 'status') as JsonObject; // of a review
  };
  const users: JsonObject[] = [];
  for (const token of [scoped.text, current])
    users.push((await review('authentication.k8s.io/v1/tokenreviews', { token }))['user'] as JsonObject); // UserInfo
  const verdicts = (): Promise<JsonObject[]> =>
    Promise.all(
      users.map((user) => {
        const resourceAttributes = { verb: 'get', resource: 'pods' };
        const { username = '', groups = [], extra = {} } = user;
        const spec = { user: username, groups, extra, resourceAttributes };
        return review('authorization.k8s.io/v1/subjectaccessreviews', spec);
      }),
    );
  expect(await verdicts()).toMatchObject([{ allowed: true }, { allowed: true }]);
  clock.advance(60_000);
  const reason = 'the secret of the access key was rotated';
  expect(await verdicts()).toMatchObject([{ allowed: false, denied: true, reason }, { allowed: true }]);
});
