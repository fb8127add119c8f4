/** The OwnedAccessKey kind: recorded documents of a real server, warnings of kubectl, columns. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../../src/base/json.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { keyOf, KEYS_PATH, MINIMAL, startKeyServer } from './key-server.ts';
import { withoutExpiry } from '../complete-case.ts';
import { KEY_STORAGE, keyColumns } from '../../../src/access-keys/keys/key-kind.ts';

function golden(name: string): JsonObject {
  return JSON.parse(
    readFileSync(join(import.meta.dirname, '..', '..', 'golden', 'management', name), 'utf8'),
  ) as JsonObject; // our own file
}

/** The shape of a document: its fields, with what changes from run to run blanked out. */
function blanked(value: JsonValue): JsonValue {
  const text = JSON.stringify(value, (key, part: JsonValue) =>
    ['uid', 'resourceVersion', 'creationTimestamp', 'time', 'manager'].includes(key) ? '…' : part,
  );
  return JSON.parse(text) as JsonValue; // was JSON
}

describe('documents of a real server', () => {
  test('the created object is equal except for the key', async () => {
    await using api = await startKeyServer();
    const spec = { displayName: 'My Access Key', ttl: 1728000, type: 'User', user: 'my-user' };
    const created = await api.create('my-access-key', spec);
    expect(keyOf(created)).toMatch(/^[A-Za-z0-9_]{40,}$/);
    const wanted = golden('create.json');
    const { key: _key, ...shown } = created['spec'] as JsonObject; // an object of the API
    const comparable = withoutExpiry({ ...created, spec: shown });
    expect(JSON.stringify(blanked(comparable))).toBe(JSON.stringify(blanked(wanted)));
    const list = (await api.send('GET', KEYS_PATH)).json ?? {};
    const items = (list['items'] as JsonObject[]).map(withoutExpiry); // a list of the API
    expect(JSON.stringify(blanked({ ...list, items }))).toBe(JSON.stringify(blanked(golden('list.json'))));
    const deleted = await api.send('DELETE', `${KEYS_PATH}/my-access-key`);
    expect(blanked(deleted.json ?? {})).toEqual(blanked(golden('delete.Status.json')));
  });
});

describe('kubectl apply', () => {
  const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
  const ONCE = 'which kubectl apply does not print: run endpoint-syncer keys rotate';

  test('that creates a key, client-side or server-side, warns that the response with the secret is not printed', async () => {
    await using api = await startKeyServer();
    const metadata = { name: 'k1', annotations: { [LAST_APPLIED]: '{}' } };
    const body = { metadata, spec: MINIMAL };
    const type = { apiVersion: 'management.platform.sh/v1', kind: 'OwnedAccessKey' };
    const applied = { ...type, metadata: { name: 'k2' }, spec: MINIMAL };
    const apply = (): ReturnType<typeof api.send> =>
      api.send('PATCH', `${KEYS_PATH}/k2?fieldManager=test`, applied, {
        'content-type': 'application/apply-patch+yaml',
      });
    const dryRun = await api.send('POST', `${KEYS_PATH}?dryRun=All`, body);
    const answers = [await api.send('POST', KEYS_PATH, body), await apply()];
    expect(answers.map(({ status, headers }) => [status, headers.get('warning')])).toEqual([
      [201, expect.stringContaining(`${ONCE} k1 for a new one`)],
      [201, expect.stringContaining(`${ONCE} k2 for a new one`)],
    ]);
    const plain = await api.send('POST', KEYS_PATH, { metadata: { name: 'k3' }, spec: MINIMAL });
    const later = await api.send('PATCH', `${KEYS_PATH}/k1`, { spec: { description: 'x' } });
    for (const answer of [dryRun, plain, later, await apply()])
      expect(answer.headers.get('warning')).toBeNull();
  });
});

test('kubectl create warns, because without -o it does not print the response', async () => {
  await using api = await startKeyServer();
  const create = (name: string, manager: string): ReturnType<typeof api.send> =>
    api.send('POST', `${KEYS_PATH}?fieldManager=${manager}`, { metadata: { name }, spec: MINIMAL });
  const warning = (await create('k1', 'kubectl-create')).headers.get('warning');
  expect(warning).toContain("kubectl prints it with -o jsonpath='{.spec.key}'");
  expect(warning).toContain('otherwise run endpoint-syncer keys rotate k1 for a new one');
  expect((await create('k2', 'endpoint-syncer')).headers.get('warning')).toBeNull();
});

describe('the expiry in the status', () => {
  test('is that of the ttl, of the last use with ttlAfterLastActivity, and absent without a ttl', async () => {
    const clock = new FakeClock();
    await using api = await startKeyServer({ clock });
    const statusOf = async (name: string): Promise<unknown> =>
      (await api.send('GET', `${KEYS_PATH}/${name}`)).json?.['status'];
    const created = await api.create('k1', { ttl: 60 });
    expect(created['status']).toEqual({ expiresAt: '2026-01-01T00:01:00Z' });
    const patched = await api.send('PATCH', `${KEYS_PATH}/k1`, { spec: { ttl: 120 } });
    expect(patched.json?.['status']).toEqual({ expiresAt: '2026-01-01T00:02:00Z' });
    expect((await api.create('k2', { ttl: 0 }))['status']).toEqual({});
    await api.create('k3', { ttl: 60, ttlAfterLastActivity: true });
    const activity = { status: { lastActivity: '2026-01-01T00:00:00Z', expiresAt: '2030-01-01T00:00:00Z' } };
    await api.send('PATCH', `${KEYS_PATH}/k3/status`, activity);
    expect(await statusOf('k3')).toEqual({
      lastActivity: '2026-01-01T00:00:00Z',
      expiresAt: '2026-01-01T00:01:00Z',
    });
    const stored = await api.store.list({ resource: KEY_STORAGE });
    expect(JSON.stringify(stored.entries.map(({ value }) => value['status']))).not.toContain('expiresAt');
  });
});

// The table column of a scope.

function shown(column: string, spec: JsonObject): unknown {
  const found = keyColumns().find(({ name }) => name === column);
  return found?.value({ metadata: {}, spec, status: {} }, Date.now());
}

describe('the column SCOPE', () => {
  test.each<[JsonObject, string]>([
    [{}, 'all'],
    [{ scope: {} }, 'nothing'],
    [{ scope: { clusters: [] } }, 'nothing'],
    [{ scope: { clusters: [{ cluster: 'a' }] } }, '1 cluster'],
    [{ scope: { virtualClusters: [{}], spaces: [{}, {}] } }, '1 virtualCluster, 2 spaces'],
    [{ scope: { allowPlatformCli: true, rules: [{}] } }, 'allowPlatformCli, 1 rule'],
  ])('%j is %s', (spec, text) => {
    expect(shown('Scope', spec)).toBe(text);
  });
});
