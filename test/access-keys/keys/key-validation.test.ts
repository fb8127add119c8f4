/** What a key may contain, and what of it may change, with warnings and token generations. */

import { describe, expect, test } from 'vitest';
import { KEY_STORAGE } from '../../../src/access-keys/keys/key-kind.ts';
import { isJsonObject, type JsonObject, objectField } from '../../../src/base/json.ts';
import type { RawAnswer } from '../../contract/raw-client.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { at, KEYS_PATH, MINIMAL, startKeyServer } from './key-server.ts';

const SUPPLIED = 'S3cret!S3cret-0123456789abcdefghij';

/** `field reason` of every cause. */
function causes(answer: RawAnswer): string[] {
  const list = at(answer.json, 'details.causes');
  return (Array.isArray(list) ? list.filter(isJsonObject) : [])
    .map(({ field, reason }) => `${JSON.stringify(field)} ${JSON.stringify(reason)}`.replaceAll('"', ''))
    .toSorted();
}

describe('validation of a create', () => {
  const bad: readonly (readonly [string, JsonObject, string[]])[] = [
    [
      'nothing',
      { displayName: '', ttl: null, type: null, user: '' },
      ['displayName', 'ttl', 'type', 'user'].map((field) => `spec.${field} FieldValueRequired`),
    ],
    ['two subjects', { team: 't' }, ['spec FieldValueInvalid']],
    ['three subjects', { team: 't', subject: 's' }, ['spec FieldValueInvalid']],
    ['negative ttl', { ttl: -1 }, ['spec.ttl FieldValueInvalid']],
    ['unknown type', { type: 'Bogus' }, ['spec.type FieldValueNotSupported']],
    ['weak key', { key: 'weak' }, ['spec.key FieldValueInvalid']],
    ['empty group', { groups: ['a', ''] }, ['spec.groups[1] FieldValueInvalid']],
    [
      'too many groups',
      { groups: Array.from({ length: 257 }, (_, i) => `g${i}`) },
      ['spec.groups FieldValueTooMany'],
    ],
    ['line break in a user', { user: 'a\nb' }, ['spec.user FieldValueInvalid']],
    ['space around a user', { user: ' a' }, ['spec.user FieldValueInvalid']],
    ['long user', { user: 'u'.repeat(254) }, ['spec.user FieldValueTooLong']],
    ['long display name', { displayName: 'x'.repeat(1025) }, ['spec.displayName FieldValueTooLong']],
    ['scope', { scope: { roles: [{}] } }, ['spec.scope.roles[0].role FieldValueRequired']],
  ];
  test.each(bad)('%s', async (_what, spec, expected) => {
    await using api = await startKeyServer();
    const answer = await api.send('POST', KEYS_PATH, {
      metadata: { name: 'k1' },
      spec: { ...MINIMAL, ...spec },
    });
    expect(answer.status).toBe(422);
    expect(causes(answer)).toEqual(expected.toSorted());
    expect(answer.text).not.toContain('weak');
  });

  const good: readonly (readonly [string, JsonObject, JsonObject])[] = [
    ['ttl 0 stays', { ttl: 0 }, { ttl: 0 }],
    ['empty type is User', { type: '' }, { type: 'User' }],
    ['team', { user: '', team: 'red' }, { team: 'red' }],
    ['subject', { user: null, subject: 'system:node:a' }, { subject: 'system:node:a' }],
    ['an address', { user: 'ada@example.com' }, { user: 'ada@example.com' }],
    ['empty scope stays', { scope: {} }, { scope: {} }],
    ['a key of the client', { key: SUPPLIED }, { key: SUPPLIED }],
  ];
  test.each(good)('%s', async (_what, spec, expected) => {
    await using api = await startKeyServer();
    const created = await api.create('k1', spec);
    expect(created['spec']).toMatchObject(expected);
  });

  test('a maximum rejects longer and unlimited lifetimes', async () => {
    await using api = await startKeyServer({ maxTtlSeconds: 100 });
    for (const ttl of [0, 101]) {
      const answer = await api.send('POST', KEYS_PATH, {
        metadata: { name: 'k1' },
        spec: { ...MINIMAL, ttl },
      });
      expect(causes(answer)).toEqual(['spec.ttl FieldValueInvalid']);
      expect(answer.text).toContain('must be from 1 to 100');
    }
    await api.create('k1', { ttl: 100 });
    const answer = await api.send('PATCH', `${KEYS_PATH}/k1`, { spec: { ttl: null } });
    expect(causes(answer)).toEqual(['spec.ttl FieldValueRequired']);
  });

  test('warnings name the replacement of deprecated fields', async () => {
    await using api = await startKeyServer();
    const spec = {
      ...MINIMAL,
      parent: 'p',
      oidcLogin: { idToken: 'eA==' },
      scope: { rules: [{ verbs: ['get'] }], allowPlatformCli: true },
    };
    const answer = await api.send('POST', KEYS_PATH, { metadata: { name: 'k1' }, spec });
    const warning = answer.headers.get('warning') ?? '';
    for (const [field, replacement] of [
      ['spec.parent', 'spec.identity'],
      ['spec.oidcLogin', 'spec.identity'],
      ['spec.scope.rules', 'spec.scope.projects'],
      ['spec.scope.allowPlatformCli', 'platformCLI'],
    ]) {
      expect(warning).toMatch(new RegExp(`${field} is deprecated: use [^"]*${replacement}`));
    }
    const empty = await api.send('POST', KEYS_PATH, {
      metadata: { name: 'k2' },
      spec: { ...MINIMAL, scope: {} },
    });
    expect(empty.headers.get('warning')).toContain('spec.scope has no entries and allows nothing');
  });
});

describe('validation of a change', () => {
  const bad: readonly (readonly [string, JsonObject, string[]])[] = [
    ['user', { user: 'v' }, ['spec.user FieldValueInvalid']],
    ['user to team', { user: null, team: 't' }, ['spec.team FieldValueInvalid']],
    ['type', { type: 'Login' }, ['spec.type FieldValueInvalid']],
    ['key', { key: 'other' }, ['spec.key FieldValueInvalid']],
    ['another good key', { key: SUPPLIED }, ['spec.key FieldValueInvalid']],
    ['ttl', { ttl: -5 }, ['spec.ttl FieldValueInvalid']],
    ['ttl beyond a thousand years', { ttl: 31_557_600_001 }, ['spec.ttl FieldValueInvalid']],
    ['ttl beyond every date', { ttl: Number.MAX_SAFE_INTEGER }, ['spec.ttl FieldValueInvalid']],
    ['ttl that is no exact integer', { ttl: 2 ** 53 }, ['spec.ttl FieldValueInvalid']],
    [
      'ttl beyond a thousand years after the last use',
      { ttl: 31_557_600_001, ttlAfterLastActivity: true },
      ['spec.ttl FieldValueInvalid'],
    ],
  ];
  test.each(bad)('%s cannot be changed so', async (_what, spec, expected) => {
    await using api = await startKeyServer();
    await api.create('k1');
    const answer = await api.send('PATCH', `${KEYS_PATH}/k1`, { spec });
    expect(answer.status).toBe(422);
    expect(causes(answer)).toEqual(expected);
    expect(answer.text).not.toContain(SUPPLIED);
  });

  test('what a key of an earlier version has lost does not prevent other changes', async () => {
    await using api = await startKeyServer();
    await api.create('k1');
    const key = { resource: KEY_STORAGE, namespace: '', name: 'k1' };
    const entry = await api.store.get(key);
    const { ttl: _lost, ...spec } = objectField(entry?.value ?? {}, 'spec');
    await api.store.update(key, { ...entry?.value, spec }, entry?.revision ?? 0);
    const answer = await api.send('PATCH', `${KEYS_PATH}/k1`, { spec: { disabled: true } });
    expect([answer.status, at(answer.json, 'spec.disabled')]).toEqual([200, true]);
  });

  test('a ttl that was set before the maximum was lowered may stay', async () => {
    await using api = await startKeyServer({ maxTtlSeconds: 1000 });
    await api.create('k1', { ttl: 900 });
    await using strict = await startKeyServer({ store: api.store, maxTtlSeconds: 100 });
    const answer = await strict.send('PATCH', `${KEYS_PATH}/k1`, { metadata: { labels: { a: 'b' } } });
    expect(answer.status).toBe(200);
    expect((await strict.send('PATCH', `${KEYS_PATH}/k1`, { spec: { ttl: 901 } })).status).toBe(422);
  });

  test('a last use in the future is ignored', async () => {
    const clock = new FakeClock();
    await using api = await startKeyServer({ clock });
    await api.create('k1');
    const write = (lastActivity: string): Promise<RawAnswer> =>
      api.send('PATCH', `${KEYS_PATH}/k1/status`, { status: { lastActivity } });
    expect(causes(await write('2099-01-01T00:00:00Z'))).toEqual(['status.lastActivity FieldValueInvalid']);
    expect(at((await write('2025-06-01T00:00:00Z')).json, 'status.lastActivity')).toBe(
      '2025-06-01T00:00:00Z',
    );
  });

  test('the token generation increases only if the rights of the key change', async () => {
    await using api = await startKeyServer();
    const created = await api.create('k1');
    const uid = String(at(created, 'metadata.uid') as string); // metadata of the API
    const generation = async (patch: JsonObject): Promise<number> => {
      expect((await api.send('PATCH', `${KEYS_PATH}/k1`, patch)).status).toBe(200);
      await api.keys.index.catchUp();
      return api.keys.index.byUid(uid)?.tokenGeneration ?? 0;
    };
    expect(await generation({ spec: { displayName: 'E', description: 'd' } })).toBe(1);
    expect(await generation({ metadata: { labels: { a: 'b' } } })).toBe(1);
    expect(await generation({ spec: { identity: { connectorData: 'eA==' } } })).toBe(1);
    expect(await generation({ spec: { disabled: true } })).toBe(2);
    expect(await generation({ spec: { disabled: true } })).toBe(2);
    expect(await generation({ spec: { groups: ['a'] } })).toBe(3);
    expect(await generation({ spec: { scope: {} } })).toBe(4);
    expect(await generation({ spec: { ttl: 61 } })).toBe(5);
    expect(await generation({ spec: { ttlAfterLastActivity: true } })).toBe(6);
  });
});
