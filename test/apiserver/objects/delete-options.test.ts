/** Invalid delete options never turn a dry run or a precondition into an unconditional deletion. */

import { describe, expect, test } from 'vitest';
import type { JsonValue } from '../../../src/base/json.ts';
import { accessKeyTable } from '../test-kinds.ts';
import { startTestServer } from '../test-server.ts';

const KEYS = '/apis/management.platform.sh/v1/ownedaccesskeys';

describe('delete options of another type', () => {
  const wrong: Record<string, JsonValue> = {
    'dryRun as text': { dryRun: 'All' },
    'dryRun as a boolean': { dryRun: true },
    'dryRun with a number in it': { dryRun: [1] },
    'preconditions as text': { preconditions: 'uid' },
    'a uid that is a number': { preconditions: { uid: 5 } },
    'a resourceVersion that is a number': { preconditions: { resourceVersion: 5 } },
    'orphanDependents as text': { orphanDependents: 'true' },
    'a policy that is a number': { propagationPolicy: 1 },
    'a grace period as a boolean': { gracePeriodSeconds: true },
  };

  test.each(Object.entries(wrong))('%s: 400, and nothing is deleted', async (_what, body) => {
    await using api = await startTestServer({ table: accessKeyTable() });
    const { client } = api;
    await client.send({ method: 'POST', path: KEYS, body: { metadata: { name: 'k' }, spec: {} } });
    for (const path of [`${KEYS}/k`, KEYS]) {
      const answer = await client.send({ method: 'DELETE', path, body });
      expect(answer.json).toMatchObject({ kind: 'Status', code: 400, reason: 'BadRequest' });
      expect(answer.json?.['message']).toContain('Go struct field DeleteOptions.');
    }
    expect((await client.send({ method: 'GET', path: `${KEYS}/k` })).status).toBe(200);
  });

  test('null means not set', async () => {
    await using api = await startTestServer({ table: accessKeyTable() });
    const { client } = api;
    await client.send({ method: 'POST', path: KEYS, body: { metadata: { name: 'k' }, spec: {} } });
    const body = { dryRun: null, preconditions: null, gracePeriodSeconds: null, propagationPolicy: null };
    expect((await client.send({ method: 'DELETE', path: `${KEYS}/k`, body })).status).toBe(200);
    expect((await client.send({ method: 'GET', path: `${KEYS}/k` })).status).toBe(404);
  });
});

test.each([
  ['in the query', '?gracePeriodSeconds=2147483648', undefined],
  ['in the query, beyond any date', '?gracePeriodSeconds=9000000000000', undefined],
  ['in the body', '', { gracePeriodSeconds: 253_402_300_800 }],
])('a grace period that is too long %s: 422, and nothing changes', async (_where, query, body) => {
  await using api = await startTestServer({ table: accessKeyTable() });
  const { client } = api;
  await client.send({ method: 'POST', path: KEYS, body: { metadata: { name: 'g1' }, spec: {} } });
  const request = { method: 'DELETE', path: `${KEYS}/g1${query}` };
  const rejected = await client.send(body === undefined ? request : { ...request, body });
  expect(rejected.json).toMatchObject({
    code: 422,
    message: expect.stringContaining('must be less than or equal to 2147483647') as string,
  });
  expect((await client.send({ method: 'GET', path: `${KEYS}/g1` })).text).not.toContain('deletionTimestamp');
  const longest = `${KEYS}/g1?gracePeriodSeconds=2147483647`;
  expect((await client.send({ method: 'DELETE', path: longest })).status).toBe(200);
});

test('a continue token with a future revision is 410', async () => {
  await using api = await startTestServer({ table: accessKeyTable() });
  const { client } = api;
  await client.send({ method: 'POST', path: KEYS, body: { metadata: { name: 'k' }, spec: {} } });
  const token = { v: 'meta.k8s.io/v1', rv: 1_000_000, start: 'a\0' };
  const text = Buffer.from(JSON.stringify(token)).toString('base64url');
  const answer = await client.send({ method: 'GET', path: `${KEYS}?limit=1&continue=${text}` });
  expect(answer.json).toMatchObject({ code: 410, reason: 'Expired' });
});
