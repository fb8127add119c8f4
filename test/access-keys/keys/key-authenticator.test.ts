/** Authentication with access keys, also of keys from other replicas and while the store is unavailable. */

import { describe, expect, test } from 'vitest';
import { StatusError } from '../../../src/kube/status-error.ts';
import { EXTRA } from '../../../src/access-keys/identity.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { MemoryStore } from '../../../src/apiserver/storage/revisioned-store.ts';
import { LaggingStore } from './lagging-store.ts';
import { at, keyOf, KEYS_PATH, makeKeys, startKeyServer, type KeyServer } from './key-server.ts';

/** The name of the user, `401` with the message, or `unknown`. */
async function outcome(api: Pick<KeyServer, 'keys'>, token: string): Promise<string> {
  try {
    return (await api.keys.authenticator.authenticate(token))?.name ?? 'unknown';
  } catch (error) {
    return error instanceof StatusError ? `${error.code} ${error.reason} ${error.message}` : String(error);
  }
}

const EXPIRED = '401 Unauthorized platform access key expired. Please login again';
const DISABLED = '401 Unauthorized platform access key is disabled. Enable it or use another one';

describe('authentication', () => {
  test('a key authenticates as its subject with its groups, and the extra values that the authorizer needs', async () => {
    await using api = await startKeyServer();
    const created = await api.create('k1', {
      user: '',
      team: 'red',
      groups: ['ci'],
      scope: { projects: [{ project: 'a' }] },
    });
    expect(await api.keys.authenticator.authenticate(keyOf(created))).toEqual({
      name: 'platform:team:red',
      uid: '',
      groups: ['platform:team:red', 'ci', 'system:authenticated'],
      extra: {
        [EXTRA.keyUid]: [at(created, 'metadata.uid')],
        [EXTRA.keyName]: ['k1'],
        [EXTRA.generation]: ['1'],
        [EXTRA.scope]: ['{"projects":[{"project":"a"}]}'],
      },
    });
    const free = await api.keys.authenticator.authenticate(keyOf(await api.create('k2')));
    expect(Object.keys(free?.extra ?? {})).not.toContain(EXTRA.scope);
  });

  test('wrong, foreign, damaged and deleted keys are unknown', async () => {
    await using api = await startKeyServer();
    const key = keyOf(await api.create('k1', {}, { finalizers: ['example.com/hold'] }));
    const foreign = keyOf(await (await startKeyServer()).create('k1'));
    const mixed = key.slice(0, 17) + foreign.slice(17);
    const texts = [
      '',
      'x',
      key.slice(0, -1),
      foreign,
      mixed,
      `${key} `,
      'S3cret!S3cret-0123456789abcdefghij',
    ];
    expect(await Promise.all(texts.map((text) => outcome(api, text)))).toEqual(texts.map(() => 'unknown'));
    expect(await outcome(api, key)).toBe('u');
    await api.send('DELETE', `${KEYS_PATH}/k1`);
    expect((await api.send('GET', `${KEYS_PATH}/k1`)).status).toBe(200);
    expect(await outcome(api, key)).toBe('unknown');
  });

  test('the reason for a disabled or expired key is returned only for its full secret', async () => {
    const clock = new FakeClock();
    await using api = await startKeyServer({ clock });
    const key = keyOf(await api.create('k1', { ttl: 60 }, { finalizers: ['example.com/hold'] }));
    const forged = `${key.slice(0, 17)}${keyOf(await api.create('k2')).slice(17)}`;
    await api.send('PATCH', `${KEYS_PATH}/k1`, { spec: { disabled: true } });
    expect(await outcome(api, key)).toBe(DISABLED);
    await api.send('PATCH', `${KEYS_PATH}/k1`, { spec: { disabled: false } });
    clock.advance(59_999);
    expect(await outcome(api, key)).toBe('u');
    clock.advance(1);
    const first = outcome(api, key);
    expect(await first).toBe(EXPIRED);
    expect(await outcome(api, forged)).toBe('unknown');
  });

  test('ttl 0 never expires; a ttl after the last use restarts with each use', async () => {
    const clock = new FakeClock();
    await using api = await startKeyServer({ clock });
    const forever = keyOf(await api.create('k0', { ttl: 0 }));
    const used = keyOf(await api.create('k1', { ttl: 60, ttlAfterLastActivity: true }));
    for (let i = 0; i < 10; i++) {
      clock.advance(50_000);
      expect((await api.send('GET', KEYS_PATH, undefined, { authorization: `Bearer ${used}` })).status).toBe(
        200,
      );
    }
    clock.advance(60_000);
    expect(await outcome(api, used)).toBe(EXPIRED);
    clock.advance(1e11);
    expect(await outcome(api, forever)).toBe('u');
  });

  test('a key that another replica has just created works immediately', async () => {
    await using store = new MemoryStore();
    await using api = await startKeyServer({ store });
    const lagging = new LaggingStore(store);
    const other = makeKeys(lagging);
    await other.start();
    lagging.hold();
    const key = keyOf(await api.create('k1'));
    expect(other.index.size).toBe(0);
    const answers = Promise.all([outcome({ keys: other }, key), outcome({ keys: other }, key)]);
    await settle();
    lagging.release();
    expect(await answers).toEqual(['u', 'u']);
    await other.stop();
  });

  test('many unknown keys are looked up in the store one at a time, with a rate limit', async () => {
    const clock = new FakeClock();
    await using store = new MemoryStore();
    const lagging = new LaggingStore(store);
    const keys = makeKeys(lagging, { clock });
    await keys.start();
    const before = lagging.revisionsAsked;
    const unknown = 'S3cret!S3cret-0123456789abcdefghij';
    await Promise.all(Array.from({ length: 500 }, () => outcome({ keys }, unknown)));
    expect(lagging.revisionsAsked - before).toBeLessThanOrEqual(2);
    const answers: Promise<string>[] = [];
    for (let i = 0; i < 30; i++) {
      answers.push(outcome({ keys }, unknown));
      await clock.advanceAsync(20);
    }
    await clock.advanceAsync(3000);
    expect(new Set(await Promise.all(answers))).toEqual(new Set(['unknown']));
    // A burst of 20, and 10 a second.
    expect(lagging.revisionsAsked - before).toBeLessThanOrEqual(2 + 20 + 6 + 1);
    await keys.stop();
  });
});

describe('a replica that cannot reach the store', () => {
  test('accepts keys for ten minutes, because another replica may have revoked them, and recovers', async () => {
    const clock = new FakeClock();
    await using store = new MemoryStore();
    await using api = await startKeyServer({ store, clock });
    const lines: string[] = [];
    const note = (_fields: object, message: string): void => void lines.push(message);
    const logger = { ...silentLogger, info: note, warn: note, error: note };
    const lagging = new LaggingStore(store, clock, logger);
    const partitioned = makeKeys(lagging, { clock });
    await partitioned.start();
    const [revoked, kept] = [
      keyOf(await api.create('revoked', { ttl: 0 })),
      keyOf(await api.create('kept', { ttl: 0 })),
    ];
    await settle();
    lagging.hold();
    lagging.isUnreachable = true;
    await api.send('DELETE', `${KEYS_PATH}/revoked`);
    await clock.advanceAsync(599_000);
    expect(await outcome({ keys: partitioned }, kept)).toBe('u');
    await settle();
    expect(partitioned.index.unconfirmedMs).toBe(599_000);
    await clock.advanceAsync(2_000);
    for (const key of [revoked, kept])
      expect(await outcome({ keys: partitioned }, key)).toContain('no response');
    lagging.isUnreachable = false;
    lagging.release();
    await settle();
    expect(await outcome({ keys: partitioned }, kept)).toBe('u');
    expect(await outcome(api, revoked)).toBe('unknown');
    expect(partitioned.index.unconfirmedMs).toBe(0);
    expect(lines.filter((line) => line.startsWith('the store of the access keys'))).toEqual([
      expect.stringContaining('does not respond: keys are accepted as last read, also revoked ones'),
      expect.stringContaining('has not responded for ten minutes: requests get 503'),
      expect.stringContaining('responds again'),
    ]);
    await partitioned.stop();
  });
});
