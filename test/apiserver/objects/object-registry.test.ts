/** Generated names, and deletions: grace periods, finalizers, and options of another type, which never turn a dry run into a deletion. */

import { describe, expect, test } from 'vitest';
import type { JsonValue } from '../../../src/base/json.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { Keys, MERGE, metadata } from '../key-requests.ts';

describe('graceful deletion', () => {
  test('waits, can be shortened but not extended, and ends at the deadline', async () => {
    const clock = new FakeClock();
    await using keys = await Keys.open({ clock });
    await keys.create('g1');
    const first = await keys.send('DELETE', '/g1?gracePeriodSeconds=30');
    expect(metadata(first)).toMatchObject({
      generation: 2,
      deletionGracePeriodSeconds: 30,
      deletionTimestamp: '2026-01-01T00:00:30Z',
    });
    const shorter = await keys.send('DELETE', '/g1?gracePeriodSeconds=10');
    expect(metadata(shorter)).toMatchObject({
      generation: 2,
      deletionGracePeriodSeconds: 10,
      deletionTimestamp: '2026-01-01T00:00:10Z',
    });
    const longer = await keys.send('DELETE', '/g1?gracePeriodSeconds=60');
    expect(longer.json).toMatchObject({ kind: 'Status', status: 'Success' });
    expect(metadata(await keys.send('GET', '/g1'))).toMatchObject({ deletionGracePeriodSeconds: 10 });
    clock.advance(10_000);
    await settle();
    expect((await keys.send('GET', '/g1')).status).toBe(404);
  });

  test('leaves no timer behind for an object that is removed earlier', async () => {
    const clock = new FakeClock();
    await using keys = await Keys.open({ clock });
    await keys.create('g1');
    // The timer of unread responses.
    expect(clock.nextDelayMs ?? Number.POSITIVE_INFINITY).toBeGreaterThan(30_000);
    await keys.send('DELETE', '/g1?gracePeriodSeconds=30');
    await keys.send('DELETE', '/g1?gracePeriodSeconds=20');
    expect(clock.nextDelayMs).toBe(20_000);
    await keys.send('DELETE', '/g1?gracePeriodSeconds=0');
    expect((await keys.send('GET', '/g1')).status).toBe(404);
    expect(clock.nextDelayMs ?? Number.POSITIVE_INFINITY).toBeGreaterThan(30_000);
  });

  test('of 0 seconds removes immediately', async () => {
    await using keys = await Keys.open({ clock: new FakeClock() });
    await keys.create('g1');
    await keys.send('DELETE', '/g1');
    expect((await keys.send('DELETE', '/g1?gracePeriodSeconds=0')).json).toMatchObject({ status: 'Success' });
    expect((await keys.send('GET', '/g1')).status).toBe(404);
  });

  test('waits for the deadline without finalizers, and for finalizers after the deadline', async () => {
    const clock = new FakeClock();
    await using keys = await Keys.open({ clock });
    await keys.create('g1', { finalizers: ['a.b/c'] });
    await keys.create('g2', { finalizers: ['a.b/c'] });
    await keys.send('DELETE', '/g1?gracePeriodSeconds=5');
    await keys.send('DELETE', '/g2?gracePeriodSeconds=5');
    await keys.send('PATCH', '/g1', { metadata: { finalizers: null } }, MERGE);
    expect((await keys.send('GET', '/g1')).status).toBe(200);
    clock.advance(5000);
    await settle();
    expect((await keys.send('GET', '/g1')).status).toBe(404);
    expect((await keys.send('GET', '/g2')).status).toBe(200);
    await keys.send('PATCH', '/g2', { metadata: { finalizers: null } }, MERGE);
    expect((await keys.send('GET', '/g2')).status).toBe(404);
  });
});

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
    await using keys = await Keys.open();
    await keys.create('k');
    for (const path of ['/k', '']) {
      const answer = await keys.send('DELETE', path, body);
      expect(answer.json).toMatchObject({ kind: 'Status', code: 400, reason: 'BadRequest' });
      expect(answer.json?.['message']).toMatch(/Go struct field (?:DeleteOptions|Preconditions)\./);
    }
    expect((await keys.send('GET', '/k')).status).toBe(200);
  });

  test('null means not set', async () => {
    await using keys = await Keys.open();
    await keys.create('k');
    const body = { dryRun: null, preconditions: null, gracePeriodSeconds: null, propagationPolicy: null };
    expect((await keys.send('DELETE', '/k', body)).status).toBe(200);
    expect((await keys.send('GET', '/k')).status).toBe(404);
  });
});

test.each([
  ['in the query', '?gracePeriodSeconds=2147483648', undefined],
  ['in the query, beyond any date', '?gracePeriodSeconds=9000000000000', undefined],
  ['in the body', '', { gracePeriodSeconds: 253_402_300_800 }],
])('a grace period that is too long %s: 422, and nothing changes', async (_where, query, body) => {
  await using keys = await Keys.open();
  await keys.create('g1');
  const rejected = await keys.send('DELETE', `/g1${query}`, body);
  expect(rejected.json).toMatchObject({
    code: 422,
    message: expect.stringContaining('must be less than or equal to 2147483647') as string,
  });
  expect((await keys.send('GET', '/g1')).text).not.toContain('deletionTimestamp');
  expect((await keys.send('DELETE', '/g1?gracePeriodSeconds=2147483647')).status).toBe(200);
});

test('a continue token with a future revision is 410', async () => {
  await using keys = await Keys.open();
  await keys.create('k');
  const token = { v: 'meta.k8s.io/v1', rv: 1_000_000, start: 'a\0' };
  const text = Buffer.from(JSON.stringify(token)).toString('base64url');
  const answer = await keys.send('GET', `?limit=1&continue=${text}`);
  expect(answer.json).toMatchObject({ code: 410, reason: 'Expired' });
});

describe('names', () => {
  test('that are generated are retried a limited number of times', async () => {
    await using keys = await Keys.open({ random: () => 0 });
    expect((await keys.create('ci-bbbbb')).status).toBe(201);
    const answer = await keys.send('POST', '', { metadata: { generateName: 'ci-' } });
    expect(answer.json).toMatchObject({
      code: 409,
      reason: 'AlreadyExists',
      message:
        'ownedaccesskeys.management.platform.sh "ci-bbbbb" already exists, the server was not able to generate a unique name for the object',
      details: { retryAfterSeconds: 1 },
    });
  });
});
