/** Field managers: their entries, conflicts, and an apply that changes nothing. */

import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { startEmbeddedCluster } from '../../../src/embedded-cluster/embedded-cluster.ts';
import { type RawAnswer, RawClient } from '../../contract/raw-client.ts';
import { APPLY, JSON_PATCH, Keys, MERGE, TYPE, metadata } from '../key-requests.ts';

describe('field managers', () => {
  test('of updates have ten entries, then the oldest are merged', async () => {
    await using keys = await Keys.open();
    await keys.create('k', {}, { ttl: 1 });
    for (let i = 0; i < 13; i++) {
      await keys.send('PATCH', `/k?fieldManager=u${i}`, { metadata: { labels: { [`l${i}`]: 'x' } } }, MERGE);
    }
    const managed = metadata(await keys.send('GET', '/k'))['managedFields'] as JsonObject[]; // it was written
    expect(managed).toHaveLength(10);
    expect(managed.map(({ manager }) => manager)).toContain('ancient-changes');
    expect(managed.map(({ manager }) => manager)).toContain('u12');
  });

  test('that conflict are all named with their fields', async () => {
    await using keys = await Keys.open();
    await keys.create('k', { labels: { a: 'x' } }, { groups: ['a'], ttl: 1 });
    await keys.send(
      'PATCH',
      '/k',
      [{ op: 'replace', path: '/metadata/managedFields', value: [{}] }],
      JSON_PATCH,
    );
    await keys.send(
      'PATCH',
      '/k?fieldManager=m9',
      { ...TYPE, metadata: { name: 'k' }, spec: { ttl: 1 } },
      APPLY,
    );
    const answer = await keys.apply('k', 'm10', { ttl: 2, groups: ['b'] }, { a: 'y' });
    expect(answer.json).toMatchObject({ code: 409, reason: 'Conflict' });
    expect(answer.json?.['message']).toBe(
      'Apply failed with 4 conflicts: conflicts with "before-first-apply" using management.platform.sh/v1:\n' +
        '- .metadata.labels.a\n- .spec.groups\n- .spec.ttl\nconflicts with "m9":\n- .spec.ttl',
    );
  });

  test('lose the fields that they no longer apply, unless another manager owns them too', async () => {
    await using keys = await Keys.open();
    await keys.apply('k', 'm1', { user: 'u', ttl: 1 }, { a: '1', b: '2' });
    await keys.apply('k', 'm2', { ttl: 1 }, { a: '1' });
    const answer = await keys.apply('k', 'm1', { user: 'u' });
    expect(answer.json).toMatchObject({ metadata: { labels: { a: '1' } }, spec: { user: 'u', ttl: 1 } });
    expect(metadata(answer)['labels']).toEqual({ a: '1' });
  });
});

describe('an apply that changes nothing', () => {
  test('writes nothing, at any later time', async () => {
    const clock = new FakeClock(Date.parse('2026-01-01T00:00:00Z'));
    await using cluster = await startEmbeddedCluster({ name: 'later', clock });
    await using client = new RawClient({ url: cluster.url });
    const apply = (): Promise<RawAnswer> =>
      client.send({
        method: 'PATCH',
        path: '/api/v1/namespaces/default/endpoints/web?fieldManager=m',
        headers: { 'content-type': APPLY },
        body: {
          apiVersion: 'v1',
          kind: 'Endpoints',
          metadata: { name: 'web' },
          // Without the protocol, which the kind fills in.
          subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80 }] }],
        },
      });
    const first = await apply();
    clock.advance(60_000);
    const second = await apply();
    expect([first.status, second.status]).toEqual([201, 200]);
    expect(second.json).toEqual(first.json);
  });
});
