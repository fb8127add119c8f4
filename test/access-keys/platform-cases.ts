/** The states that cases describe as text, and the checks of these cases beyond fields. */

import { KEEP_EXPIRED_MS } from '../../src/access-keys/keys/stored-key.ts';
import { decodeJwt } from 'jose';
import { expect } from 'vitest';
import { isJsonObject, type JsonObject } from '../../src/base/json.ts';
import { differences, Run, type ManagementCase } from './case-runner.ts';
import { textAt } from '../support/cases.ts';
import type { RawAnswer, RawClient } from '../contract/raw-client.ts';
import { FakeClock } from '../support/fake-clock.ts';
import type { CaseTest } from './auth-cases.ts';
import { completed } from './complete-case.ts';
import { KEYS_PATH, startComposed, TOKENS_PATH, type Composed } from './composed-api.ts';

const SECOND_MS = 1000;
const YEAR_MS = 365 * 86_400_000;

/** Sends the request of the case, completed, and expects its answer; a message that begins with dots is the end of ours. */
async function expectAnswer(client: RawClient, item: ManagementCase): Promise<RawAnswer> {
  const run = new Run(client);
  const answer = await run.send(completed(item.request, false).request);
  const { message = '', fields: _told, ...expected } = item.expect;
  const isEnd = message.startsWith('... ');
  const rest = isEnd || message === '' ? expected : { ...expected, message };
  expect(differences(answer, { ...item, expect: rest }, run)).toEqual([]);
  if (isEnd) expect(textAt(answer.json ?? {}, 'message')).toContain(message.slice('... '.length));
  return answer;
}

function specOf(answer: RawAnswer): JsonObject {
  const spec = answer.json?.['spec'];
  return isJsonObject(spec) ? spec : {};
}

function tokenOf(answer: RawAnswer): string {
  const status = answer.json?.['status'];
  return isJsonObject(status) ? textAt(status, 'token') : '';
}

async function asOwner(item: ManagementCase, dataDir: string, spec: JsonObject): Promise<RawAnswer> {
  await using api = await startComposed({ dataDir });
  return await expectAnswer((await api.key('caller', spec)).client, item);
}

/** A key k1 that has existed for so long, used every so often. */
async function expectAfterTime(item: ManagementCase, dataDir: string, life: Life): Promise<void> {
  const clock = new FakeClock(Date.now());
  await using api = await startComposed({ dataDir, clock });
  const { client } = await api.key('k1', life.spec);
  for (let used = 0; used < (life.uses ?? 0); used++) {
    clock.advance(life.passesMs);
    expect((await client.send({ method: 'GET', path: KEYS_PATH })).status).toBe(200);
  }
  clock.advance(life.passesMs);
  await expectAnswer(client, item);
}

interface Life {
  readonly spec: JsonObject;
  readonly passesMs: number;
  readonly uses?: number;
}

async function expectGone(item: ManagementCase, dataDir: string): Promise<void> {
  const clock = new FakeClock(Date.now());
  await using api = await startComposed({ dataDir, clock });
  await api.key('k1', { ttl: 60 });
  const { client } = await api.key('owner');
  // The case does not say how long it has been expired.
  clock.advance(61 * SECOND_MS + KEEP_EXPIRED_MS);
  await expect
    .poll(async () => (await client.send({ method: 'GET', path: `${KEYS_PATH}/k1` })).status, { interval: 5 })
    .toBe(404);
  await expectAnswer(client, item);
}

/** A key round trip without the key: it must still let in. */
async function expectKeptByPut(api: Composed): Promise<void> {
  const { client } = await api.key('k1');
  const { json } = await api.administrator.send({ method: 'GET', path: `${KEYS_PATH}/k1` });
  const body = { ...json, spec: { ...(json?.['spec'] as JsonObject), displayName: 'other' } }; // an object of the API
  const answer = await api.administrator.send({ method: 'PUT', path: `${KEYS_PATH}/k1`, body });
  expect([answer.status, specOf(answer)['displayName']]).toEqual([200, 'other']);
  expect((await client.send({ method: 'GET', path: KEYS_PATH })).status).toBe(200);
}

/** The nearest thing to a cluster that asks: its TokenReview about a token of a key that has changed. */
async function expectRevoked(api: Composed): Promise<void> {
  const { client } = await api.key('k1', { user: 'alice' });
  const cluster = (await api.key('cluster-a', { user: 'cluster', groups: ['platform:auth-delegators'] }))
    .client;
  const token = tokenOf(await client.send({ method: 'POST', path: TOKENS_PATH, body: { spec: {} } }));
  const review = async (): Promise<unknown> => {
    const { json } = await cluster.send({
      method: 'POST',
      path: '/kubernetes/cluster/cluster-a/apis/authentication.k8s.io/v1/tokenreviews',
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } },
    });
    const status = json?.['status'];
    return isJsonObject(status) && status['authenticated'] === true;
  };
  expect(await review()).toBe(true);
  await api.administrator.send({
    method: 'PATCH',
    path: `${KEYS_PATH}/k1`,
    headers: { 'content-type': 'application/merge-patch+json' },
    body: { spec: { groups: ['other'] } },
  });
  expect(await review()).toBe(false);
}

export const PLATFORM_CASES: Record<string, CaseTest> = {
  'platform-key-not-in-get': async (item, dataDir) => {
    await using api = await startComposed({ dataDir });
    await api.key('k1');
    expect(Object.keys(specOf(await expectAnswer(api.administrator, item)))).not.toContain('key');
  },
  'platform-key-immutable': async (item, dataDir) => {
    await using api = await startComposed({ dataDir });
    await api.key('k1');
    await expectAnswer(api.administrator, item);
  },
  'platform-put-without-key-keeps-key': async (_item, dataDir) => {
    await using api = await startComposed({ dataDir });
    await expectKeptByPut(api);
  },
  'platform-expired-401': (item, dataDir) =>
    expectAfterTime(item, dataDir, { spec: { ttl: 60 }, passesMs: 61 * SECOND_MS }),
  'platform-ttl-zero-never-expires': (item, dataDir) =>
    expectAfterTime(item, dataDir, { spec: { ttl: 0 }, passesMs: YEAR_MS }),
  'platform-ttl-after-last-activity': (item, dataDir) =>
    expectAfterTime(item, dataDir, {
      spec: { ttl: 60, ttlAfterLastActivity: true },
      passesMs: 50 * SECOND_MS,
      uses: 5,
    }),
  'platform-expired-key-is-deleted': expectGone,
  'platform-max-ttl': async (item, dataDir) => {
    await using api = await startComposed({ dataDir, config: { maxTtl: '720h' } });
    await expectAnswer(api.administrator, item);
  },
  'platform-other-user-forbidden': async (item, dataDir) => {
    await asOwner(item, dataDir, { user: 'alice' });
  },
  'platform-groups-escalation': async (item, dataDir) => {
    await asOwner(item, dataDir, { user: 'alice' });
  },
  'platform-unscoped-from-scoped': async (item, dataDir) => {
    const scope = { projects: [{ project: 'a' }] };
    const answer = await asOwner(item, dataDir, { user: 'alice', scope });
    expect(decodeJwt(tokenOf(answer))['platform.sh']).toMatchObject({ scope });
  },
  'platform-scope-denies': async (item, dataDir) => {
    await asOwner(item, dataDir, { user: 'alice', scope: { projects: [{ project: 'a' }] } });
  },
  'platform-scope-empty-object': async (item, dataDir) => {
    await using api = await startComposed({ dataDir });
    const answer = await expectAnswer(api.administrator, item);
    expect(answer.headers.get('warning')).toMatch(/spec\.scope/u);
    const { status } = await api.as(textAt(specOf(answer), 'key')).send({ method: 'GET', path: KEYS_PATH });
    expect(status).toBe(403);
  },
  'platform-rules-resourcenames-without-resources': async (item, dataDir) => {
    await asOwner(item, dataDir, { groups: ['platform:admins'] });
  },
  'platform-rules-nonresource-wildcard': async (item, dataDir) => {
    await asOwner(item, dataDir, { groups: ['platform:admins'] });
  },
  'platform-connector-data-write-only': async (item, dataDir) => {
    await using api = await startComposed({ dataDir });
    await api.key('k1', { identity: { userId: 'alice', connectorData: 'c2VjcmV0' } });
    const answer = await expectAnswer(api.administrator, item);
    expect(specOf(answer)['identity']).toEqual({ userId: 'alice' });
  },
  'platform-dcet-exp': async (item, dataDir) => {
    const { exp = 0, iat = 0 } = decodeJwt(tokenOf(await asOwner(item, dataDir, {})));
    expect(exp - iat).toBe(600);
  },
  'platform-dcet-scope-too-large': async (item, dataDir) => {
    const virtualClusters = Array.from({ length: 250 }, (_, index) => ({
      project: `a-project-with-a-name-${index}`,
      virtualCluster: `a-virtual-cluster-${index}`,
    }));
    const body = { metadata: {}, spec: { scope: { virtualClusters } } };
    await asOwner({ ...item, request: { ...item.request, body } }, dataDir, {});
  },
  'platform-dcet-on-management-api': async (item, dataDir) => {
    await using api = await startComposed({ dataDir });
    const { client } = await api.key('k1');
    const token = tokenOf(await client.send({ method: 'POST', path: TOKENS_PATH, body: { spec: {} } }));
    await expectAnswer(api.as(token), item);
  },
  'platform-dcet-revoked-by-generation': async (_item, dataDir) => {
    await using api = await startComposed({ dataDir });
    await expectRevoked(api);
  },
  'status-write-bumps-rv': async (item, dataDir) => {
    await using api = await startComposed({ dataDir });
    const { client } = await api.key('k1');
    const get = { method: 'GET', path: `${KEYS_PATH}/k1` };
    const before = (await api.administrator.send(get)).json?.['metadata'] as JsonObject; // an object of the API
    expect((await client.send(get)).status).toBe(200);
    const used = (await api.administrator.send(get)).json;
    expect(textAt(used?.['status'] as JsonObject, 'lastActivity')).not.toBe('');
    // With what an update must keep.
    const sent = item.request.body as { spec: JsonObject };
    const spec = { ...(used?.['spec'] as JsonObject), ...sent.spec };
    const text = JSON.stringify({ ...sent, spec }).replace('$rv', textAt(before, 'resourceVersion'));
    const answer = await api.administrator.send({
      method: 'PUT',
      path: `${KEYS_PATH}/k1`,
      body: text,
      headers: JSON_TYPE,
    });
    expect(answer.status).toBe(item.ours?.status);
  },
  'blockownerdeletion-admission': async (item, dataDir) => {
    await asOwner(item, dataDir, { user: 'u' });
  },
};

const JSON_TYPE = { 'content-type': 'application/json' };
