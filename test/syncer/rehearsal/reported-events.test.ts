/** Events that the daemon reported, as the commands read them. */

import { beforeEach, expect, test } from 'vitest';
import { MemoryClient, MemoryCluster } from '../../../src/kube/memory-cluster.ts';
import { EVENTS } from '../../../src/kube/object.ts';
import { readEvents } from '../../../src/syncer/rehearsal/reported-events.ts';
import { LimitedClient } from '../../cli/live/limited-client.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');

let cluster: MemoryCluster;
let client: MemoryClient;

beforeEach(() => {
  cluster = new MemoryCluster({ name: 'virtual', now: () => NOW });
  client = new MemoryClient(cluster, { manager: 'test' });
});

const time = (seconds: number): string => new Date(NOW + seconds * 1000).toISOString();

async function event(name: string, uid: string, more: Record<string, string | object>): Promise<void> {
  const reportingController = 'endpoint-syncer/controller';
  const content = { reportingController, type: 'Warning', reason: name, note: 'n', regarding: { uid } };
  await client.create(EVENTS, { metadata: { name, namespace: 'ns' }, ...content, ...more });
}

test('Events are found by the object, the one that occurred last first', async () => {
  await event('old', 'one', { eventTime: time(1) });
  await event('repeated', 'one', { eventTime: time(0), series: { count: 2, lastObservedTime: time(9) } });
  await event('converted', 'one', { deprecatedLastTimestamp: time(5) });
  await event('timeless', 'one', { eventTime: 'never' });
  await event('other', 'two', { eventTime: time(3) });
  await event('foreign', 'one', { eventTime: time(7), reportingController: 'kubelet' });
  const events = await readEvents(client);
  const reasons = (uid: string) => events.get(uid)?.map(({ reason, lastMs }) => [reason, lastMs]);
  expect(reasons('one')).toEqual([
    ['repeated', NOW + 9000],
    ['converted', NOW + 5000],
    ['old', NOW + 1000],
    ['timeless', 0],
  ]);
  expect(reasons('two')).toEqual([['other', NOW + 3000]]);
});

test('Events that may not be listed are none', async () => {
  await event('a', 'one', {});
  expect(await readEvents(new LimitedClient(cluster, 'events'))).toEqual(new Map());
});
