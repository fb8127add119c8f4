/** A watch ends when its key loses the rights that it was opened with. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { KEYS_PATH, startComposed, type Composed } from '../composed-api.ts';

let api: Composed;
beforeAll(async () => {
  api = await startComposed();
});
afterAll(() => api[Symbol.asyncDispose]());

async function patch(name: string, spec: JsonObject): Promise<void> {
  const answer = await api.administrator.send({
    method: 'PATCH',
    path: `${KEYS_PATH}/${name}`,
    headers: { 'content-type': 'application/merge-patch+json' },
    body: { spec },
  });
  expect(answer.status).toBe(200);
}

const LOSSES: Record<string, (name: string) => Promise<void>> = {
  disabled: (name) => patch(name, { disabled: true }),
  narrowed: (name) => patch(name, { scope: { roles: [{ role: 'platformCLI' }] } }),
  deleted: async (name) => {
    await api.administrator.send({ method: 'DELETE', path: `${KEYS_PATH}/${name}` });
  },
};

describe('the watch of a key', () => {
  test.each(Object.keys(LOSSES))('ends when the key is %s', async (loss) => {
    const { client } = await api.key(loss, { user: `user-of-${loss}` });
    await using watch = await client.watch(`${KEYS_PATH}?watch=1`);
    expect(await watch.summary(1)).toEqual([`ADDED ${loss}`]);
    await LOSSES[loss]?.(loss);
    // The change itself may still be seen, then nothing more.
    expect((await watch.summary(2)).length).toBeLessThan(2);
  });

  test('ends with the grace period of the key, although a finalizer keeps the key', async () => {
    const { client } = await api.key('graceful', { user: 'graceful' });
    await api.administrator.send({
      method: 'PATCH',
      path: `${KEYS_PATH}/graceful`,
      headers: { 'content-type': 'application/merge-patch+json' },
      body: { metadata: { finalizers: ['example.com/hold'] } },
    });
    await using watch = await client.watch(`${KEYS_PATH}?watch=1`);
    expect(await watch.summary(1)).toEqual(['ADDED graceful']);
    const path = `${KEYS_PATH}/graceful`;
    const deletion = await api.administrator.send({ method: 'DELETE', path: `${path}?gracePeriodSeconds=1` });
    expect(deletion.json).toMatchObject({ metadata: { deletionGracePeriodSeconds: 1 } });
    // The deletion is an event; at the end of the grace period the watch ends.
    const events = await watch.summary(3);
    expect([['MODIFIED graceful'], ['MODIFIED graceful', 'MODIFIED graceful']]).toContainEqual(events);
    const { status, json } = await api.administrator.send({ method: 'GET', path });
    expect([status, json]).toMatchObject([200, { metadata: { deletionGracePeriodSeconds: 0 } }]);
  });

  test('ends when the key expires, although it is kept', async () => {
    const { client } = await api.key('expiring', { user: 'expiring', ttl: 2 });
    await using watch = await client.watch(`${KEYS_PATH}?watch=1`);
    expect(await watch.summary(2)).toEqual(['ADDED expiring']);
    const { status } = await api.administrator.send({ method: 'GET', path: `${KEYS_PATH}/expiring` });
    expect(status).toBe(200);
  });

  test('continues when the display name of the key changes', async () => {
    const { client } = await api.key('renamed', { user: 'renamer' });
    await using watch = await client.watch(`${KEYS_PATH}?watch=1`);
    await patch('renamed', { displayName: 'another name' });
    await patch('renamed', { description: 'and a description' });
    expect(await watch.summary(3)).toEqual(['ADDED renamed', 'MODIFIED renamed', 'MODIFIED renamed']);
  });
});
