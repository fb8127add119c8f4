/** Writes: their caller, races, and a store that is not available. */

import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { textAt } from '../../support/cases.ts';
import type { RawAnswer } from '../../contract/raw-client.ts';
import { type UserInfo, userNamed } from '../../../src/apiserver/user.ts';
import { MemoryStore } from '../../../src/apiserver/storage/revisioned-store.ts';
import { StoreError } from '../../../src/apiserver/storage/store.ts';
import { Keys, MERGE, metadata } from '../key-requests.ts';

describe('concurrent writes', () => {
  test('all succeed without a resourceVersion; with one, only the first', async () => {
    await using keys = await Keys.open();
    const version = textAt(metadata(await keys.create('k')), 'resourceVersion');
    const patches = Array.from({ length: 20 }, (_, i) =>
      keys.send('PATCH', '/k', { metadata: { labels: { [`l${i}`]: 'x' } } }, MERGE),
    );
    expect((await Promise.all(patches)).map(({ status }) => status)).toEqual(Array(20).fill(200));
    const labels = metadata(await keys.send('GET', '/k'))['labels'] as JsonObject; // labels were set
    expect(Object.keys(labels)).toHaveLength(20);
    const guarded = { metadata: { resourceVersion: version, labels: { late: 'x' } } };
    expect((await keys.send('PATCH', '/k', guarded, MERGE)).status).toBe(409);
  });

  test('of the status change the resourceVersion too', async () => {
    await using keys = await Keys.open();
    const version = textAt(metadata(await keys.create('k')), 'resourceVersion');
    const status = { status: { lastActivity: '2024-01-01T00:00:00Z' } };
    const written = await keys.send('PATCH', '/k/status', status, MERGE);
    expect(written.json).toMatchObject({ metadata: { generation: 1 }, ...status });
    const stale = { metadata: { name: 'k', resourceVersion: version }, spec: { ttl: 9 } };
    expect((await keys.send('PUT', '/k', stale)).status).toBe(409);
  });
});

describe('the caller of a write', () => {
  const sends = async (
    users: readonly string[],
    allows: (user: UserInfo, count: number) => boolean = () => true,
  ): Promise<{ answer: RawAnswer; authorized: readonly string[]; stored: number }> => {
    const authorized: string[] = [];
    let authenticated = 0;
    await using keys = await Keys.open({
      authenticate: () => userNamed(users[authenticated++] ?? users.at(-1) ?? ''),
      authorizer: {
        authorize: (user) => ({ isAllowed: allows(user, authorized.push(user.name)), reason: '' }),
      },
    });
    const answer = await keys.create('k');
    const { entries } = await keys.api.store.list({ resource: 'ownedaccesskeys.management.platform.sh' });
    return { answer, authorized, stored: entries.length };
  };

  test('is authorized again before the store is written', async () => {
    const { answer, authorized, stored } = await sends(['u']);
    expect([answer.status, authorized, stored]).toEqual([201, ['u', 'u'], 1]);
    const denied = await sends(['u'], (_user, count) => count === 1);
    expect([denied.answer.status, denied.stored]).toEqual([403, 0]);
  });

  test('whose rights have changed is another user, for which the request is processed again', async () => {
    const { answer, authorized, stored } = await sends(['u', 'u2']);
    expect([answer.status, authorized, stored]).toEqual([201, ['u', 'u2', 'u2'], 1]);
    const twice = await sends(['u', 'u2', 'u3']);
    expect([twice.answer.status, twice.stored]).toEqual([409, 0]);
  });
});

describe('an unavailable store', () => {
  class AwayStore extends MemoryStore {
    override create(): Promise<never> {
      return Promise.reject(new StoreError('unavailable', 'the disk is full'));
    }
  }

  test('is 503: the request had no effect and may be retried', async () => {
    await using keys = await Keys.open({ store: new AwayStore() });
    const answer = await keys.create('k1');
    expect(answer.json).toMatchObject({
      code: 503,
      reason: 'ServiceUnavailable',
      message: 'the store cannot be used: the disk is full',
      details: { retryAfterSeconds: 1 },
    });
    expect(answer.headers.get('retry-after')).toBe('1');
  });
});
