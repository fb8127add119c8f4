/** An object of which no copy is made because of its size: what was copied before stays, other objects are synced, and the object again when it is smaller. */

import { expect, test } from 'vitest';
import { newEmbeddedWorld } from '../scenarios/embedded-world.ts';
import { newFleetMemberWorld } from '../scenarios/fleet-member-world.ts';

/** Keys of the maximum length. */
const PREFIX = `${'p'.repeat(60)}.${'q'.repeat(60)}.${'r'.repeat(60)}.${'s'.repeat(60)}`;
const LABELS = Object.fromEntries(Array.from({ length: 1200 }, (_, at) => [`${PREFIX}/key-${at}`, 'value']));
const NONE = Object.fromEntries(Object.keys(LABELS).map((key) => [key, null]));

test.each([
  ['a daemon', newEmbeddedWorld],
  ['a fleet', newFleetMemberWorld],
])('more bytes of labels than are copied, in %s', async (_what, newWorld) => {
  await using world = await newWorld();
  await world.startSync();
  await world.createVirtual('default/web');
  await world.createVirtual('default/other');
  const copy = await world.whenCopy('default/web');
  await world.mergeVirtual('default/web', { metadata: { labels: LABELS } });
  expect(await world.whenEvent('default/web', 'SyncError')).toMatch(/its labels have more than 262144 bytes/);
  await world.mergeVirtual('default/other', { metadata: { annotations: { note: 'changed' } } });
  await world.whenCopy('default/other', ({ metadata }) => metadata.annotations?.['note'] === 'changed');
  expect(await world.findCopy('default/web')).toEqual(copy);
  await world.mergeVirtual('default/web', { metadata: { labels: NONE, annotations: { note: 'small' } } });
  await world.whenCopy('default/web', ({ metadata }) => metadata.annotations?.['note'] === 'small');
});
