/** The metrics of the key and token API. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { keyState } from '../../src/access-keys/identity.ts';
import { SeriesRegistry } from '../../src/base/metrics/series.ts';
import { KEYS_PATH, startComposed, TOKENS_PATH, type Composed } from './composed-api.ts';
import { indexOf, record } from './authorization/authorization-server.ts';

let api: Composed;
const registry = new SeriesRegistry();
let initial: string;
beforeAll(async () => {
  api = await startComposed({ metrics: registry });
  initial = await registry.text();
});
afterAll(() => api[Symbol.asyncDispose]());

/** The sorted lines of these families, without help and type. */
function linesOf(text: string, ...families: string[]): string[] {
  return text
    .split('\n')
    .filter((line) => families.some((name) => line.startsWith(`${name}{`) || line.startsWith(`${name} `)))
    .toSorted();
}

test('all series exist from the start', () => {
  expect(
    linesOf(
      initial,
      'endpoint_syncer_access_keys',
      'endpoint_syncer_access_keys_unconfirmed_seconds',
      'endpoint_syncer_tokens_issued_total',
      'authentication_attempts',
    ),
  ).toEqual([
    'authentication_attempts{result="error"} 0',
    'authentication_attempts{result="failure"} 0',
    'authentication_attempts{result="success"} 0',
    'endpoint_syncer_access_keys_unconfirmed_seconds 0',
    'endpoint_syncer_access_keys{state="active"} 0',
    'endpoint_syncer_access_keys{state="deleting"} 0',
    'endpoint_syncer_access_keys{state="disabled"} 0',
    'endpoint_syncer_access_keys{state="expired"} 0',
    'endpoint_syncer_tokens_issued_total 0',
  ]);
  for (const family of [
    'apiserver_request_total',
    'apiserver_current_inflight_requests',
    'endpoint_syncer_store_request_duration_seconds_count',
  ])
    expect(linesOf(initial, family).length).toBeGreaterThan(1);
});

test('keys by state, issued tokens without dry runs, and authentication results', async () => {
  const { client } = await api.key('active', { user: 'ann' });
  await api.key('disabled', { disabled: true });
  await api.administrator.send({
    method: 'POST',
    path: KEYS_PATH,
    body: {
      metadata: { name: 'deleting', finalizers: ['example.com/hold'] },
      spec: { displayName: 'D', ttl: 0, type: 'User', user: 'u' },
    },
  });
  await api.administrator.send({ method: 'DELETE', path: `${KEYS_PATH}/deleting` });
  const post = (path: string) => client.send({ method: 'POST', path, body: { metadata: {}, spec: {} } });
  expect((await post(TOKENS_PATH)).status).toBe(201);
  expect((await post(`${TOKENS_PATH}?dryRun=All`)).status).toBe(201);
  expect((await api.as('wrong').send({ method: 'GET', path: KEYS_PATH })).status).toBe(401);
  const text = await registry.text();
  expect(
    linesOf(text, 'endpoint_syncer_access_keys', 'endpoint_syncer_tokens_issued_total').map((line) =>
      line.replace(/^endpoint_syncer_/u, ''),
    ),
  ).toEqual([
    'access_keys{state="active"} 1',
    'access_keys{state="deleting"} 1',
    'access_keys{state="disabled"} 1',
    'access_keys{state="expired"} 0',
    'tokens_issued_total 1',
  ]);
  expect(linesOf(text, 'authentication_attempts')[1]).toBe('authentication_attempts{result="failure"} 1');
});

test('a key that has expired or is deleted counts as such, even if it is disabled', () => {
  const keys = [
    record({ uid: '1', endMs: 10 }),
    record({ uid: '2', endMs: 11 }),
    record({ uid: '3', endMs: 10, isDisabled: true }),
    record({ uid: '4', isDisabled: true }),
    record({ uid: '5', endMs: 10, isDeleted: true }),
  ];
  const states = keys.map((key) => keyState(key, indexOf(...keys), 10));
  expect(states).toEqual(['expired', 'active', 'expired', 'disabled', 'deleting']);
});
