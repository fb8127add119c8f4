/** The cases of `test/cases` about keys, as requests; those that are described as text have separate tests. */

import { KEEP_EXPIRED_MS } from '../../../src/access-keys/keys/stored-key.ts';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { keyOf, KEYS_PATH, MINIMAL, startKeyServer, type KeyServer } from './key-server.ts';

interface PlatformCase {
  id: string;
  group: string;
  request: { method?: string; path: string; body?: JsonValue; headers?: Record<string, string> };
  expect: {
    status: number;
    reason?: string;
    message?: string;
    causes?: { reason: string; field: string }[];
    fields?: Record<string, JsonValue>;
  };
}

const CASES = (
  parse(readFileSync(join(import.meta.dirname, '..', '..', 'cases', 'management.yaml'), 'utf8')) as {
    cases: PlatformCase[];
  }
).cases.filter(({ group }) => group === 'platform'); // our own file

/** Creates the objects that exist before the request of a case, and returns the key if there is one. */
const BEFORE: Record<string, (api: KeyServer, clock: FakeClock) => Promise<string | undefined>> = {
  'platform-key-generated': async () => undefined,
  'platform-key-not-in-get': async (api) => keyOf(await api.create('k1')),
  'platform-key-supplied-by-client': async () => undefined,
  'platform-key-immutable': async (api) => void (await api.create('k1')),
  'platform-put-without-key-keeps-key': async (api) => keyOf(await api.create('k1')),
  'platform-expired-401': async (api, clock) => {
    const key = keyOf(await api.create('k1', {}, { finalizers: ['example.com/hold'] }));
    await api.keys.stop();
    clock.advance(61_000);
    return key;
  },
  'platform-ttl-zero-never-expires': async (api, clock) => {
    const key = keyOf(await api.create('k1', { ttl: 0 }));
    await clock.advanceAsync(1e10);
    return key;
  },
  'platform-ttl-after-last-activity': async (api, clock) => {
    const key = keyOf(await api.create('k1', { ttl: 60, ttlAfterLastActivity: true }));
    for (let i = 0; i < 5; i++) {
      await clock.advanceAsync(50_000);
      await api.send('GET', KEYS_PATH, undefined, { authorization: `Bearer ${key}` });
    }
    return key;
  },
  'platform-expired-key-is-deleted': async (api, clock) => {
    await api.create('k1');
    // The case does not say how long it has been expired.
    await clock.advanceAsync(61_000 + KEEP_EXPIRED_MS);
    return undefined;
  },
  'platform-max-ttl': async () => undefined,
  'platform-type-enum': async () => undefined,
  'platform-two-subjects': async () => undefined,
  'platform-scope-empty-object': async () => undefined,
  'platform-rules-resourcenames-without-resources': async () => undefined,
  'platform-rules-nonresource-wildcard': async () => undefined,
  'platform-connector-data-write-only': async (api) =>
    void (await api.create('k1', { identity: { connectorData: 'eA==' } })),
};

/** Cases about authorization, tokens and other servers, which other tests run. */
const ELSEWHERE =
  /^platform-(dcet-.*|other-user-forbidden|groups-escalation|unscoped-from-scoped|scope-denies)$/;

describe('cases about keys in test/cases', () => {
  test('are complete', () => {
    const ids = CASES.map(({ id }) => id).filter((id) => !ELSEWHERE.test(id));
    expect(Object.keys(BEFORE).toSorted()).toEqual(ids.toSorted());
  });

  test.each(CASES.filter(({ id }) => Object.hasOwn(BEFORE, id)).map((item) => [item.id, item] as const))(
    '%s',
    async (id, { request, expect: expected }) => {
      const clock = new FakeClock();
      await using api = await startKeyServer({
        clock,
        ...(id === 'platform-max-ttl' ? { maxTtlSeconds: 2_592_000 } : {}),
      });
      const key = await BEFORE[id]?.(api, clock);
      const body = await bodyOf(api, request.body, id);
      const isCaller = expected.status === 401 || /ttl-(zero|after)/.test(id);
      const headers = isCaller ? { authorization: `Bearer ${key}` } : {};
      const answer = await api.send(request.method ?? 'GET', request.path, body, {
        ...lowerCase(request.headers),
        ...headers,
      });
      expect(answer.status).toBe(expected.status);
      expect(answer.json).toMatchObject({
        ...(expected.reason === undefined ? {} : { reason: expected.reason }),
        ...(expected.causes ? { details: { causes: expected.causes } } : {}),
      });
      expect(answer.text).toContain((expected.message ?? '').replace('... ', ''));
      const pattern = expected.fields?.['spec.key'] ?? { regex: '' };
      const text = isJsonObject(pattern) ? String(pattern['regex'] as string) : '^$'; // our own file
      expect(keyOf(answer.json ?? {})).toMatch(new RegExp(text));
      const isKept =
        id !== 'platform-put-without-key-keeps-key' || (await api.keys.authenticator.authenticate(key ?? ''));
      expect(isKept).toBeTruthy();
    },
  );
});

/** The case's body, with what a create needs besides where the case is about something else. */
async function bodyOf(
  api: KeyServer,
  body: JsonValue | undefined,
  id: string,
): Promise<JsonValue | undefined> {
  if (id === 'platform-put-without-key-keeps-key') {
    const { json } = await api.send('GET', `${KEYS_PATH}/k1`);
    return { ...json, spec: { ...MINIMAL, displayName: 'Other' } };
  }
  if (!isJsonObject(body) || !isJsonObject(body['spec']) || id === 'platform-key-immutable') return body;
  const { user: _user, ...needed } = MINIMAL;
  const spec: JsonObject = { ...needed, ...body['spec'] };
  return { ...body, spec };
}

function lowerCase(headers: Record<string, string> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
