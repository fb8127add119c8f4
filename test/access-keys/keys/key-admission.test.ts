/** Admission of key writes: owners, limits per user, and conflicts of supplied keys. */

import { metadataOf } from '../../../src/kube/object.ts';
import { describe, expect, test } from 'vitest';
import type { Authorizer } from '../../../src/apiserver/request/request-info.ts';
import { forbidden } from '../../../src/apiserver/status.ts';
import { type JsonObject, text } from '../../../src/base/json.ts';
import type { RawAnswer } from '../../contract/raw-client.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { KEYS_BYTES_PER_USER_MAX, KEYS_PER_USER_MAX } from '../../../src/access-keys/keys/key-admission.ts';
import { KEY_STORAGE } from '../../../src/access-keys/keys/key-kind.ts';
import { at, KEYS_PATH, MINIMAL, startKeyServer, type KeyServer } from './key-server.ts';

/** A user sees objects whose names begin with its own name, and may delete those that end in `-free`. */
const authorizer: Authorizer = {
  authorize: (_user, { verb, name }) => ({
    isAllowed: verb !== 'delete' || name.endsWith('-free'),
    reason: '',
  }),
  visibleTo: (user) => (object) =>
    user.name === 'nobody' || text(metadataOf(object), 'name').startsWith(user.name),
};

async function child(api: KeyServer, user: string, owner: JsonObject): Promise<RawAnswer> {
  const reference = {
    apiVersion: 'management.platform.sh/v1',
    kind: 'OwnedAccessKey',
    blockOwnerDeletion: true,
    ...owner,
  };
  const body = { metadata: { name: `${user}-child`, ownerReferences: [reference] }, spec: MINIMAL };
  return api.send('POST', KEYS_PATH, body, { authorization: `Bearer ${user}` });
}

describe('blockOwnerDeletion', () => {
  test('requires an owner that the writer can read and delete', async () => {
    await using api = await startKeyServer({ authorizer });
    const uid = async (name: string): Promise<string> =>
      String(at(await api.create(name), 'metadata.uid') as string); // metadata
    const [mine, fixed] = [await uid('ada-free'), await uid('ada-fixed')];
    const refused: readonly (readonly [string, JsonObject])[] = [
      ['ada', { name: 'ada-fixed', uid: fixed }],
      ['ada', { name: 'ada-free', uid: 'another' }],
      ['ada', { name: 'none-free', uid: 'x' }],
      ['ada', { name: 'p-free', uid: 'x', apiVersion: 'v1', kind: 'Pod' }],
      ['bob', { name: 'ada-free', uid: mine }],
    ];
    for (const [user, owner] of refused) {
      const answer = await child(api, user, owner);
      expect(answer.status).toBe(422);
      expect(at(answer.json, 'details.causes')).toEqual([
        {
          reason: 'FieldValueForbidden',
          field: 'metadata.ownerReferences[0].blockOwnerDeletion',
          message: 'Forbidden: requires the permission to delete the owner',
        },
      ]);
    }
    expect((await child(api, 'ada', { name: 'ada-free', uid: mine })).status).toBe(201);
    const again = await api.send('PATCH', `${KEYS_PATH}/ada-child`, { metadata: { labels: { a: 'b' } } });
    expect(again.status).toBe(200);
    expect((await child(api, 'bob', { name: 'ada-free', uid: mine, blockOwnerDeletion: false })).status).toBe(
      201,
    );
  });
});

test('the number of unexpired keys of a user is limited', async () => {
  const clock = new FakeClock();
  await using api = await startKeyServer({ clock });
  await api.create('k1', { user: 'ada', ttl: 86_400 });
  const { store } = api;
  const created = await store.get({ resource: KEY_STORAGE, namespace: '', name: 'k1' });
  if (!created) throw new Error('k1 was not created');
  for (let n = 2; n <= KEYS_PER_USER_MAX; n++) {
    const value = {
      ...created.value,
      metadata: { ...metadataOf(created.value), name: `k${n}`, uid: `uid-${n}` },
    };
    await store.create({ ...created.key, name: `k${n}` }, value);
  }
  const post = (name: string): Promise<RawAnswer> =>
    api.send('POST', KEYS_PATH, { metadata: { name }, spec: { ...MINIMAL, user: 'ada' } });
  expect((await post('one-more')).json).toMatchObject({
    code: 403,
    message: expect.stringContaining(
      `"ada" has ${KEYS_PER_USER_MAX} access keys, which is the limit`,
    ) as string,
  });
  await api.send('DELETE', `${KEYS_PATH}/k7`);
  expect((await post('one-more')).status).toBe(201);
  expect((await post('another')).status).toBe(403);
  clock.advance(86_400_000);
  expect((await post('another')).status).toBe(201);
});

describe('the size of keys', () => {
  test.each<[string, JsonObject, string]>([
    ['a description', { description: 'x'.repeat(4097) }, 'spec.description'],
    ['connector data', { identity: { connectorData: 'x'.repeat(65_537) } }, 'spec.identity.connectorData'],
    ['extra claims', { identity: { extraClaims: { a: 'x'.repeat(65_537) } } }, 'spec.identity.extraClaims'],
    ['a token', { oidcLogin: { idToken: 'x'.repeat(65_537) } }, 'spec.oidcLogin.idToken'],
  ])('is limited: %s', async (_what, spec, field) => {
    await using api = await startKeyServer();
    const body = { metadata: { name: 'k1' }, spec: { ...MINIMAL, ...spec } };
    const answer = await api.send('POST', KEYS_PATH, body);
    expect(at(answer.json, 'details.causes')).toMatchObject([{ field, reason: 'FieldValueTooLong' }]);
  });

  test('is limited for all keys of a subject together, and a smaller one is no growth', async () => {
    await using api = await startKeyServer();
    const annotations = { large: 'x'.repeat(250_000) };
    const post = async (n: number): Promise<number> =>
      (await api.send('POST', KEYS_PATH, { metadata: { name: `k${n}`, annotations }, spec: MINIMAL })).status;
    const found = [];
    for (let n = 0; n < 20; n++) found.push(await post(n));
    const count = found.indexOf(403);
    expect([count, found.slice(count).every((status) => status === 403)]).toEqual([16, true]);
    const answer = await api.send('POST', KEYS_PATH, {
      metadata: { name: 'k99', annotations },
      spec: MINIMAL,
    });
    expect(answer.text).toContain(`${KEYS_BYTES_PER_USER_MAX} is the limit: delete keys that are not used`);
    const patch = (name: string, large: string | null): Promise<RawAnswer> =>
      api.send('PATCH', `${KEYS_PATH}/${name}`, { metadata: { annotations: { large } } });
    await api.create('small');
    expect((await patch('small', annotations.large)).status).toBe(403);
    expect((await patch('k1', null)).status).toBe(200);
    expect(await post(16)).toBe(201);
  });
});

test('403 comes before validation errors', async () => {
  const group = { group: 'management.platform.sh', resource: 'ownedaccesskeys' };
  await using api = await startKeyServer({
    authorizeWrite: async ({ next }) => {
      throw forbidden(group, text(metadataOf(next), 'name'), 'the test says so');
    },
  });
  const answer = await api.send('POST', KEYS_PATH, { metadata: { name: 'k1' }, spec: { ttl: -1 } });
  expect([answer.status, answer.json?.['reason']]).toEqual([403, 'Forbidden']);
});

describe('a key that clients choose', () => {
  const key = 'a-key-of-my-own-0123456789-abcdefghij';

  test('is stored in one object when several clients create it concurrently', async () => {
    await using api = await startKeyServer({});
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        api.send('POST', KEYS_PATH, { metadata: { name: `same-${n}` }, spec: { ...MINIMAL, key } }),
      ),
    );
    expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([
      201,
      ...Array.from({ length: 9 }, () => 422),
    ]);
    expect(await api.keys.authenticator.authenticate(key)).toMatchObject({ name: 'u' });
    for (const { status, text } of answers)
      expect([status, text.includes(key)]).toEqual([status, status === 201]);
  });

  test('is free again after a dry run or a failed create', async () => {
    await using api = await startKeyServer({});
    const body = { metadata: { name: 'tried' }, spec: { ...MINIMAL, key } };
    expect((await api.send('POST', `${KEYS_PATH}?dryRun=All`, body)).status).toBe(201);
    const wrong = { ...body, metadata: { name: 'again' }, spec: { ...MINIMAL, key, ttl: -1 } };
    expect((await api.send('POST', KEYS_PATH, wrong)).status).toBe(422);
    const right = { ...body, metadata: { name: 'again' } };
    expect((await api.send('POST', KEYS_PATH, right)).status).toBe(201);
  });
});
