/** Which keys a caller may create and change, over HTTP. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectField, objectList } from '../../../src/base/json.ts';
import type { Scope } from '../../../src/access-keys/identity.ts';
import { textAt } from '../../support/cases.ts';
import { startAuthorizationServer, part, caller, type AuthorizationServer } from './authorization-server.ts';
import { KEYS_PATH } from '../keys/key-server.ts';

let server: AuthorizationServer;
beforeAll(async () => {
  server = await startAuthorizationServer();
});
afterAll(() => server[Symbol.asyncDispose]());

let count = 0;
const fresh = (): string => `key-${++count}`;

/** The status, and for a refusal what it says after "is forbidden: ". */
async function createKey(as: string, spec: JsonObject): Promise<string> {
  const { status, json } = await server.create(as, fresh(), spec);
  return status === 201
    ? 'created'
    : `${status} ${textAt(json ?? {}, 'message').replace(/^.*? is (forbidden|invalid): /, '')}`;
}

function scoped(name: string, scope: Scope): string {
  const token = `${name}-${++count}`;
  server.callers.set(token, caller(name, [], scope));
  return token;
}

/** A scope that allows creating keys, and reaches project a. */
const MAKER: Scope = {
  projects: [{ project: 'a' }],
  rules: [{ resources: [{ group: 'management.platform.sh', resources: ['ownedaccesskeys'] }] }],
};

describe('new keys', () => {
  test.each<[string, JsonObject, string]>([
    ['alice', { user: 'alice' }, 'created'],
    ['alice', { subject: 'alice' }, 'created'],
    ['alice', { team: 'blue' }, 'created'],
    [
      'alice',
      { user: 'bob' },
      '403 spec.user: only an administrator or "bob" may create access keys of "bob"',
    ],
    [
      'alice',
      { team: 'red' },
      '403 spec.team: only an administrator or a member of the team "red" may create access keys of the team "red"',
    ],
    [
      'alice',
      { subject: 'platform:team:blue' },
      '403 spec.subject: only an administrator or "platform:team:blue" may create access keys of "platform:team:blue"',
    ],
    ['admin', { user: 'bob' }, 'created'],
    ['admin', { user: 'system:admin' }, 'created'],
    ['alice', { user: 'alice', groups: ['platform:team:blue'] }, 'created'],
    [
      'alice',
      { user: 'alice', groups: ['x'] },
      '403 spec.groups: only an administrator may add the group "x": you can add groups that you belong to',
    ],
    [
      'alice',
      { user: 'alice', groups: ['system:masters'] },
      '403 spec.groups: only an administrator may add the group "system:masters": you can add groups that you belong to',
    ],
    [
      'alice',
      { user: 'alice', groups: ['platform:admins'] },
      '403 spec.groups: only an administrator may add the group "platform:admins": you can add groups that you belong to',
    ],
    [
      'alice',
      { user: 'alice', groups: ['system:authenticated'] },
      '403 spec.groups: only an administrator may add the group "system:authenticated": you can add groups that you belong to',
    ],
    [
      'delegator',
      { user: 'cluster-a', groups: ['platform:auth-delegators'] },
      '403 spec.groups: only an administrator may add the group "platform:auth-delegators": you can add groups that you belong to',
    ],
    ['admin', { user: 'bob', groups: ['system:masters', 'platform:admins'] }, 'created'],
    ['alice', { user: 'alice', type: '' }, 'created'],
    [
      'alice',
      { user: 'alice', type: 'Login' },
      '403 spec.type: only an administrator may create access keys of type "Login"',
    ],
    ['admin', { user: 'alice', type: 'Login' }, 'created'],
    ['alice', { user: 'alice', scope: {} }, 'created'],
  ])('%s creates %j', async (as, spec, expected) => {
    const found = await createKey(as, spec);
    expect(found).toBe(expected);
  });

  test('a user with the prefix system: may not create keys for itself', async () => {
    server.callers.set('node', caller('system:node:a'));
    expect(await createKey('node', { user: 'system:node:a' })).toMatch(/^403 spec\.user: /);
  });
});

test('a key without a subject is rejected by validation', async () => {
  expect(await createKey('alice', {})).toMatch(/^422 /);
});

describe('scopes', () => {
  test('without a scope, the new key gets that of the key that creates it', async () => {
    const as = scoped('alice', MAKER);
    const name = fresh();
    const answer = await server.create(as, name, { user: 'alice' });
    expect([answer.status, part(answer, 'spec')['scope']]).toEqual([201, MAKER]);
    const stored = await server.send('admin', 'GET', `${KEYS_PATH}/${name}`);
    expect(part(stored, 'spec')['scope']).toEqual(MAKER);
  });

  test('server-side apply creates keys by the same rules', async () => {
    const as = scoped('alice', { rules: [{}] });
    const name = fresh();
    const path = `${KEYS_PATH}/${name}?fieldManager=test`;
    const apply = (spec: JsonObject): ReturnType<AuthorizationServer['send']> =>
      server.send(as, 'PATCH', path, {
        apiVersion: 'management.platform.sh/v1',
        kind: 'OwnedAccessKey',
        metadata: { name },
        spec: { displayName: 'D', ttl: 0, type: 'User', ...spec },
      });
    expect((await apply({ user: 'bob' })).status).toBe(403);
    const answer = await apply({ user: 'alice' });
    expect([answer.status, part(answer, 'spec')['scope']]).toEqual([201, { rules: [{}] }]);
  });

  test.each<[JsonObject, string]>([
    [{ projects: [{ project: 'a' }] }, 'created'],
    [{ spaces: [{ project: 'a', space: 's' }] }, 'created'],
    [{}, 'created'],
    [
      { projects: [{ project: 'b' }] },
      '403 spec.scope.projects[0]: allows more in space "*" of project "b" than the scope of the caller: a key with a scope creates and changes only keys within that scope',
    ],
    [
      { projects: [{ project: 'a' }], clusters: [{ cluster: 'c' }] },
      '403 spec.scope.clusters[0]: allows more in cluster "c" than the scope of the caller: a key with a scope creates and changes only keys within that scope',
    ],
  ])('a key of project a creates one with %j', async (scope, expected) => {
    expect(await createKey(scoped('alice', MAKER), { user: 'alice', scope })).toBe(expected);
  });

  test('administrators are limited to their scope too', async () => {
    server.callers.set('scoped-admin', caller('root', ['platform:admins'], MAKER));
    expect(await createKey('scoped-admin', { user: 'bob', scope: { clusters: [{ cluster: 'c' }] } })).toMatch(
      /^403 spec\.scope\.clusters\[0\]/,
    );
    expect(await createKey('scoped-admin', { user: 'bob' })).toBe('created');
  });

  test('a key with a scope does not change a key with a wider scope', async () => {
    const name = fresh();
    await server.create('alice', name, { user: 'alice' });
    const as = scoped('alice', MAKER);
    const patch = (spec: JsonObject): ReturnType<AuthorizationServer['send']> =>
      server.send(as, 'PATCH', `${KEYS_PATH}/${name}`, { spec });
    const refused = await patch({ description: 'x' });
    expect([refused.status, refused.json?.['message']]).toEqual([
      403,
      `ownedaccesskeys.management.platform.sh "${name}" is forbidden: spec.scope: without a scope there is no restriction: a key with a scope creates and changes only keys within that scope`,
    ]);
    expect((await patch({ scope: { projects: [{ project: 'a' }] } })).status).toBe(403);
  });

  test('a key with a scope may change itself, but not widen its scope', async () => {
    const name = fresh();
    const created = await server.create('alice', name, { user: 'alice', scope: MAKER as JsonObject });
    const token = textAt(part(created, 'spec'), 'key');
    const patch = (spec: JsonObject): ReturnType<AuthorizationServer['send']> =>
      server.send(token, 'PATCH', `${KEYS_PATH}/${name}`, { spec });
    expect((await patch({ description: 'x' })).status).toBe(200);
    expect((await patch({ scope: null })).status).toBe(403);
    expect((await patch({ scope: { clusters: [{ cluster: '*' }] } })).status).toBe(403);
    const current = (await server.send(token, 'GET', `${KEYS_PATH}/${name}`)).json ?? {};
    const { scope: _scope, ...spec } = current['spec'] as JsonObject;
    expect((await server.send(token, 'PUT', `${KEYS_PATH}/${name}`, { ...current, spec })).status).toBe(403);
    expect((await patch({ scope: { projects: null } })).status).toBe(200);
  });
});

describe('a key that expires', () => {
  /** The bearer token of a key of alice that lives a minute, and its name. */
  async function short(spec: JsonObject = {}): Promise<{ name: string; token: string }> {
    const name = fresh();
    const answer = await server.create('admin', name, { user: 'alice', ttl: 60, ...spec });
    await server.keys.index.catchUp();
    return { name, token: textAt(part(answer, 'spec'), 'key') };
  }
  const RULE = 'an access key cannot create a key that outlives it or extend a key beyond its own end';
  const TTL = `403 spec.ttl: must be from 1 to 60 (seconds): ${RULE}`;
  const IDLE = `403 spec.ttlAfterLastActivity: each use would extend the life of the key: ${RULE}`;

  test.each<[JsonObject, string]>([
    [{ ttl: 60 }, 'created'],
    [{ ttl: 1 }, 'created'],
    [{ ttl: 61 }, TTL],
    [{ ttl: 0 }, TTL],
    [{ ttl: 60, ttlAfterLastActivity: true }, IDLE],
    [{ ttl: 0, ttlAfterLastActivity: true }, TTL],
    [{ ttl: 60, disabled: true }, 'created'],
    [{ ttl: 0, disabled: true }, TTL],
  ])('creates none that outlives it: %j', async (spec, expected) => {
    for (const life of [{}, { ttlAfterLastActivity: true }, { groups: ['platform:admins'] }]) {
      const { token } = await short(life);
      expect([life, await createKey(token, { user: 'alice', ...spec })]).toEqual([life, expected]);
    }
  });

  test('can create a key only with a lifetime up to its own expiry', async () => {
    const { token } = await short();
    server.clock.advance(20_000);
    expect(await createKey(token, { user: 'alice', ttl: 41 })).toBe(TTL.replace('60', '40'));
    expect(await createKey(token, { user: 'alice', ttl: 40 })).toBe('created');
  });

  test.each<[JsonObject, number]>([
    [{ ttl: 0 }, 403],
    [{ ttl: 61 }, 403],
    [{ ttlAfterLastActivity: true }, 403],
    [{ ttl: 60, description: 'x' }, 200],
    [{ ttl: 30 }, 200],
  ])('does not extend itself or another key of its user by %j: %i', async (spec, status) => {
    const [caller, other] = [await short(), await short()];
    for (const { name } of [other, caller]) {
      const answer = await server.send(caller.token, 'PATCH', `${KEYS_PATH}/${name}`, { spec });
      expect([answer.status, answer.text.includes(RULE)]).toEqual([status, status === 403]);
    }
  });

  test('may change other fields of a key that expires later', async () => {
    const [{ token }, lasting] = [await short(), await short({ ttl: 0 })];
    const patch = async (spec: JsonObject): Promise<number> =>
      (await server.send(token, 'PATCH', `${KEYS_PATH}/${lasting.name}`, { spec })).status;
    expect(await patch({ description: 'x' })).toBe(200);
    expect(await patch({ ttl: 3600 })).toBe(200);
    expect(await patch({ ttl: 3601 })).toBe(403);
  });

  test.each<[string, JsonObject, JsonObject]>([
    ['spec.groups', {}, { groups: ['ops'] }],
    ['spec.scope', { scope: {} }, { scope: null }],
    ['spec.scope.projects[0]', { scope: {} }, { scope: { projects: [{ project: 'a' }] } }],
    ['spec.disabled', { disabled: true }, { disabled: false }],
  ])('gives no more rights to a key that expires later: %s', async (field, spec, change) => {
    for (const groups of [['ops'], ['ops', 'platform:admins']]) {
      const { token } = await short({ groups });
      const [lasting, ending] = [await short({ ttl: 0, ...spec }), await short({ ttl: 30, ...spec })];
      const answers = [];
      for (const { name } of [lasting, ending]) {
        const { status, json } = await server.send(token, 'PATCH', `${KEYS_PATH}/${name}`, { spec: change });
        answers.push([status, textAt(json ?? {}, 'message').replace(/^.*? is forbidden: /, '')]);
      }
      const why = `${field}: an access key cannot give more rights to a key that outlives it`;
      expect(answers).toEqual([
        [403, why],
        [200, ''],
      ]);
    }
  });

  test('takes rights from a key that expires later', async () => {
    const { token } = await short({ groups: ['ops'] });
    const { name } = await short({ ttl: 0, groups: ['ops'] });
    for (const change of [{ groups: [] }, { scope: {} }, { disabled: true }]) {
      const { status } = await server.send(token, 'PATCH', `${KEYS_PATH}/${name}`, { spec: change });
      expect([change, status]).toEqual([change, 200]);
    }
  });

  test('the rule applies to PUT and server-side apply', async () => {
    const { name, token } = await short();
    const current = (await server.send(token, 'GET', `${KEYS_PATH}/${name}`)).json ?? {};
    const spec = { ...objectField(current, 'spec'), ttl: 0 };
    expect((await server.send(token, 'PUT', `${KEYS_PATH}/${name}`, { ...current, spec })).status).toBe(403);
    const applied = { apiVersion: 'management.platform.sh/v1', kind: 'OwnedAccessKey', metadata: { name } };
    const path = `${KEYS_PATH}/${name}?fieldManager=test&force=true`;
    expect((await server.send(token, 'PATCH', path, { ...applied, spec: { ttl: 0 } })).status).toBe(403);
  });

  test('the lifetime of an idle key counts from its last use', async () => {
    const { token } = await short({ ttlAfterLastActivity: true });
    server.clock.advance(50_000);
    server.authorizer.recordUse((await server.keys.authenticator.authenticate(token)) ?? caller('nobody'));
    expect(await createKey(token, { user: 'alice', ttl: 60 })).toBe('created');
    expect(await createKey(token, { user: 'alice', ttl: 61 })).toMatch(/^403 spec\.ttl/);
  });
});

describe('changes', () => {
  test('keys of another user are not found', async () => {
    const name = fresh();
    await server.create('bob', name, { user: 'bob' });
    expect((await server.send('alice', 'GET', `${KEYS_PATH}/${name}`)).status).toBe(404);
    expect((await server.send('alice', 'PATCH', `${KEYS_PATH}/${name}`, {})).status).toBe(404);
    expect((await server.send('alice', 'DELETE', `${KEYS_PATH}/${name}`)).status).toBe(404);
    expect((await server.send('admin', 'GET', `${KEYS_PATH}/${name}`)).status).toBe(200);
  });

  test('a list has the keys of the caller and of its teams', async () => {
    await using own = await startAuthorizationServer();
    await own.create('admin', 'b', { user: 'bob' });
    await own.create('admin', 'a', { user: 'alice' });
    await own.create('admin', 't', { team: 'blue' });
    const names = async (as: string): Promise<unknown> => {
      const { json } = await own.send(as, 'GET', KEYS_PATH);
      return objectList(json ?? {}, 'items').map((item) => textAt(objectField(item, 'metadata'), 'name'));
    };
    expect(await names('alice')).toEqual(['a', 't']);
    expect(await names('bob')).toEqual(['b']);
    expect(await names('admin')).toEqual(['a', 'b', 'delegator', 't']);
    expect((await own.send('alice', 'DELETE', KEYS_PATH)).status).toBe(200);
    expect(await names('admin')).toEqual(['b', 'delegator']);
  });

  describe('of a key with a group that its owner does not belong to', () => {
    const patch = (name: string, spec: JsonObject): ReturnType<AuthorizationServer['send']> =>
      server.send('alice', 'PATCH', `${KEYS_PATH}/${name}`, { spec });
    const given: JsonObject = {
      user: 'alice',
      groups: ['x'],
      ttl: 60,
      disabled: true,
      scope: { projects: [{ project: 'a' }] },
    };
    test.each<[JsonObject, number]>([
      [{ description: 'x' }, 200],
      [{ ttl: 30 }, 200],
      [{ groups: null }, 200],
      [{ groups: ['x', 'platform:team:blue'] }, 200],
      [{ scope: {} }, 200],
      [{ scope: { projects: [] } }, 200],
      [{ disabled: false }, 403],
      [{ ttl: 61 }, 403],
      [{ ttl: 0 }, 403],
      [{ ttlAfterLastActivity: true }, 403],
      [{ scope: null }, 403],
      [{ scope: { clusters: [{ cluster: 'c' }] } }, 403],
      [{ groups: ['x', 'y'] }, 403],
    ])('%j: %i', async (spec, status) => {
      const name = fresh();
      expect((await server.create('admin', name, given)).status).toBe(201);
      expect((await patch(name, spec)).status).toBe(status);
    });
  });

  test('only administrators may write the status', async () => {
    const name = fresh();
    await server.create('alice', name, { user: 'alice' });
    const body = { status: { lastActivity: '2026-01-01T00:00:00Z' } };
    const path = `${KEYS_PATH}/${name}/status`;
    expect((await server.send('alice', 'PATCH', path, body)).status).toBe(403);
    expect((await server.send('admin', 'PATCH', path, body)).status).toBe(200);
  });
});

test('blockOwnerDeletion may not be set where the scope does not allow the deletion', async () => {
  const as = scoped('alice', { rules: [{ verbs: ['create', 'get'] }] });
  const name = fresh();
  const uid = textAt(part(await server.create('admin', name, { user: 'alice' }), 'metadata'), 'uid');
  const owner = { apiVersion: 'management.platform.sh/v1', kind: 'OwnedAccessKey', name, uid };
  const metadata = { name: fresh(), ownerReferences: [{ ...owner, blockOwnerDeletion: true }] };
  const body = { metadata, spec: { displayName: 'D', ttl: 0, type: 'User', user: 'alice' } };
  const statuses = [];
  for (const user of [as, 'alice']) statuses.push((await server.send(user, 'POST', KEYS_PATH, body)).status);
  expect(statuses).toEqual([422, 201]);
});
