/** Namespaces and their content, and deletions with finalizers of the garbage collector. */

import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { TestCluster } from './test-cluster.ts';

const MERGE = { 'content-type': 'application/merge-patch+json' };

/** Resolves when the path returns 404. */
async function gone(cluster: TestCluster, path: string): Promise<void> {
  await eventually(
    () => cluster.send('GET', path),
    ({ status }) => status === 404,
    { what: `${path} is gone` },
  );
}

describe('namespaces', () => {
  test('delete their content, and wait for objects with finalizers', async () => {
    await using cluster = await TestCluster.open();
    await cluster.send('POST', '/api/v1/namespaces', { metadata: { name: 'n' } });
    await cluster.send('POST', '/api/v1/namespaces/n/endpoints', { metadata: { name: 'free' } });
    await cluster.send('POST', '/api/v1/namespaces/n/secrets', {
      metadata: { name: 'held', finalizers: ['a.b/c'] },
    });
    await using watch = await cluster.client.watch(
      '/api/v1/namespaces?watch=1&fieldSelector=metadata.name%3Dn',
    );
    await using content = await cluster.client.watch('/api/v1/namespaces/n/endpoints?watch=1');
    expect(await watch.summary(1)).toEqual(['ADDED n']);
    expect((await cluster.send('DELETE', '/api/v1/namespaces/n')).json).toMatchObject({
      status: { phase: 'Terminating' },
    });
    expect(await watch.summary(1)).toEqual(['MODIFIED n']);
    expect(await content.summary(2)).toEqual(['ADDED free', 'DELETED free']);
    expect(
      (await cluster.send('POST', '/api/v1/namespaces/n/endpoints', { metadata: { name: 'x' } })).status,
    ).toBe(403);
    await cluster.send(
      'PATCH',
      '/api/v1/namespaces/n/secrets/held',
      { metadata: { finalizers: null } },
      MERGE,
    );
    expect(await watch.summary(1)).toEqual(['DELETED n']);
    expect((await cluster.send('GET', '/api/v1/namespaces/n')).status).toBe(404);
  });
});

describe('deletions with finalizers of the garbage collector', () => {
  test.for(['Orphan', 'Foreground'])('%s: end by themselves, for there is none', async (policy) => {
    await using cluster = await TestCluster.open();
    await cluster.send('POST', '/api/v1/namespaces', { metadata: { name: 'n' } });
    for (const [name, finalizers] of [
      ['free', []],
      ['held', ['example.com/hold']],
    ] as const) {
      await cluster.send('POST', '/api/v1/namespaces/n/endpoints', {
        metadata: { name, finalizers: [...finalizers] },
      });
    }
    const path = (name: string): string => `/api/v1/namespaces/n/endpoints/${name}`;
    for (const name of ['free', 'held']) {
      const answer = await cluster.send('DELETE', path(name), { propagationPolicy: policy });
      expect(answer.json).toMatchObject({ metadata: { deletionTimestamp: expect.any(String) as string } });
    }
    await gone(cluster, path('free'));
    const held = (await cluster.send('GET', path('held'))).json;
    expect(held).toMatchObject({ metadata: { finalizers: ['example.com/hold'] } });
    await cluster.send('DELETE', '/api/v1/namespaces/n', { propagationPolicy: policy });
    await cluster.send('PATCH', path('held'), { metadata: { finalizers: null } }, MERGE);
    await gone(cluster, '/api/v1/namespaces/n');
  });
});
