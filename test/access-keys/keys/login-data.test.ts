/** Data of a single sign-on: any text, never returned, and shared with the keys that the user creates. */

import { describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../../src/base/json.ts';
import { KEY_STORAGE } from '../../../src/access-keys/keys/key-kind.ts';
import { startAuthorizationServer, part } from '../authorization/authorization-server.ts';
import { at, keyOf, KEYS_PATH, startKeyServer } from './key-server.ts';

const JWT = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl-_~';

test.each([JWT, 'not base64!', 'ключ ☃', ' ', '{"a": 1}\n', 'x'.repeat(10_000)])(
  'a token may be any text: %.20s',
  async (secret) => {
    await using api = await startKeyServer();
    const spec: JsonObject = {
      oidcLogin: { idToken: secret, accessToken: secret, refreshToken: secret },
      identity: { userId: 'u', connectorData: secret },
    };
    const created = await api.create('k1', spec);
    const again = await api.send('PATCH', `${KEYS_PATH}/k1`, { spec });
    expect(at(again.json, 'metadata.resourceVersion')).toBe(at(created, 'metadata.resourceVersion'));
    const shown = [created, again.json, (await api.send('GET', `${KEYS_PATH}/k1`)).json];
    for (const object of shown) {
      expect([at(object, 'spec.oidcLogin'), at(object, 'spec.identity')]).toEqual([{}, { userId: 'u' }]);
    }
    // A space is in every text; of what is longer nothing is stored as it is.
    const text = secret === ' ' ? JWT : JSON.stringify(secret).slice(1, -1);
    expect(JSON.stringify(await api.store.list({ resource: KEY_STORAGE }))).not.toContain(text);
  },
);

describe('parent', () => {
  const LOGIN: JsonObject = { type: 'Login', oidcLogin: { refreshToken: JWT } };

  async function parentOf(own: JsonObject, spec: JsonObject): Promise<unknown> {
    await using server = await startAuthorizationServer();
    const key = await server.create('admin', 'login', { user: 'alice', ...own });
    expect(key.status).toBe(201);
    await server.keys.index.catchUp();
    const created = await server.create(keyOf(key.json ?? {}), 'new', { user: 'alice', ...spec });
    expect([created.status, created.headers.get('warning')]).toEqual([
      201,
      expect.toSatisfy((text) => text === null || spec['parent'] !== undefined),
    ]);
    const stored = await server.send('admin', 'GET', `${KEYS_PATH}/new`);
    expect(part(stored, 'spec')['parent']).toBe(part(created, 'spec')['parent']);
    return part(created, 'spec')['parent'];
  }

  test.each<[string, JsonObject, JsonObject, string | undefined]>([
    ['the key with OIDC tokens that creates another', LOGIN, {}, 'login'],
    ['a key with data of its OIDC provider', { oidcProvider: { clientId: 'c' } }, {}, 'login'],
    ['an ordinary key', {}, {}, undefined],
    ['a key with an identity alone', { identity: { userId: 'u' } }, {}, undefined],
    ['for keys of another user', { ...LOGIN, groups: ['platform:admins'] }, { user: 'bob' }, undefined],
    ['for keys of the platform', { ...LOGIN, groups: ['platform:admins'] }, { type: 'Other' }, undefined],
  ])('%s', async (_what, own, spec, parent) => {
    expect(await parentOf(own, spec)).toBe(parent);
  });
});

describe('data of a login', () => {
  test.each<[string, JsonValue]>([
    ['identity', { userId: 'ceo' }],
    ['oidcProvider', { clientId: 'c' }],
    ['oidcLogin', { idToken: JWT }],
    ['parent', 'bootstrap-admin'],
  ])('%s is written by administrators alone, on create and on update', async (field, value) => {
    await using server = await startAuthorizationServer();
    const own = keyOf((await server.create('admin', 'own', { user: 'alice' })).json ?? {});
    const refused = await server.create(own, 'new', { user: 'alice', [field]: value });
    expect([refused.status, at(refused.json, 'message')]).toEqual([
      403,
      expect.stringContaining(`spec.${field}: only an administrator may set it`),
    ]);
    expect((await server.create(own, 'new', { user: 'alice' })).status).toBe(201);
    const patch = { spec: { [field]: value } };
    expect((await server.send(own, 'PATCH', `${KEYS_PATH}/new`, patch)).status).toBe(403);
    expect((await server.send('admin', 'PATCH', `${KEYS_PATH}/new`, patch)).status).toBe(200);
    const renamed = await server.send(own, 'PATCH', `${KEYS_PATH}/new`, { spec: { displayName: 'Renamed' } });
    expect(renamed.status).toBe(200);
    expect((await server.send(own, 'PATCH', `${KEYS_PATH}/new`, { spec: { [field]: null } })).status).toBe(
      403,
    );
  });
});

test('a PUT without a resourceVersion is the last write', async () => {
  await using api = await startKeyServer();
  const { metadata: _metadata, ...created } = await api.create('k1');
  const put = (description: string, resourceVersion?: string): ReturnType<typeof api.send> =>
    api.send('PUT', `${KEYS_PATH}/k1`, {
      ...created,
      metadata: { name: 'k1', ...(resourceVersion === undefined ? {} : { resourceVersion }) },
      spec: { displayName: 'D', ttl: 60, type: 'User', user: 'u', description },
    });
  const first = await put('a');
  expect(first.status).toBe(200);
  const version = String(at(first.json, 'metadata.resourceVersion') as string); // of an object
  expect((await put('b')).status).toBe(200);
  const stale = await put('c', version);
  expect([stale.status, at(stale.json, 'reason')]).toEqual([409, 'Conflict']);
  expect(at((await api.send('GET', `${KEYS_PATH}/k1`)).json, 'spec.description')).toBe('b');
});
