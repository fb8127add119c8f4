/** The note on the Lease of a member: it says why the member is not synced for exactly as long as that is so. */

import { expect, test } from 'vitest';
import { MemberNote, noteOf } from '../../src/fleet/member-note.ts';
import type { MemberStatus } from '../../src/fleet/member.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { leaseClient, LeaseServer } from '../support/lease-server.ts';

const LEASE = { namespace: 'team-a', name: 'endpoint-syncer-a' };
const LIMITED: MemberStatus = { state: 'limited', reason: 'too many objects' };
const STARTING: MemberStatus = { state: 'starting', reason: '' };

function setUp(server = new LeaseServer(), identity = 'replica-1') {
  const [clock, stopping] = [new FakeClock(), new AbortController()];
  const client = leaseClient(server, clock, 1);
  const replicas = { identity, signal: stopping.signal };
  const note = new MemberNote({
    client,
    lease: LEASE,
    annotations: () => ({ 'endpoint-syncer/fleet': 'fleet' }),
    replicas,
    clock,
  });
  const shown = (): ReturnType<typeof noteOf> => noteOf(server.stored.get(LEASE.name));
  return { clock, note, server, shown, stopping };
}

test.for<[string, readonly MemberStatus[], string | undefined]>([
  ['limited', [LIMITED], 'limited: too many objects'],
  ['failed', [{ state: 'failed', reason: 'a right is missing' }], 'failed: a right is missing'],
  ['an attempt has begun', [LIMITED, STARTING], 'limited: too many objects'],
  ['an attempt waits', [LIMITED, { state: 'starting', reason: 'no response' }], undefined],
  ['joined', [LIMITED, { state: 'joined', reason: '' }], undefined],
  ['asleep', [LIMITED, { state: 'asleep', reason: 'scaled to 0 replicas' }], undefined],
  ['never anything to say', [STARTING, { state: 'joined', reason: '' }], undefined],
])('%s', async ([, states, expected]) => {
  const { clock, note, server, shown } = setUp();
  for (const status of states) {
    note.show(status);
    await clock.advanceAsync(1000);
  }
  const found = shown();
  expect(found && `${found.state}: ${found.reason}`).toBe(expected);
  // Only a note creates the Lease, with the annotation by which a deleted vCluster is found.
  const lease = server.stored.get(LEASE.name);
  expect(lease?.metadata.annotations?.['endpoint-syncer/fleet']).toBe(
    states.includes(LIMITED) || expected !== undefined ? 'fleet' : undefined,
  );
});

test('the last state is shown, whatever changed while the server was away', async () => {
  const { clock, note, server, shown } = setUp();
  server.isAway = true;
  note.show(LIMITED);
  await clock.advanceAsync(10_000);
  note.show({ state: 'failed', reason: 'first' });
  note.show({ state: 'failed', reason: 'second' });
  server.isAway = false;
  await clock.advanceAsync(10_000);
  expect(shown()?.reason).toBe('second');
});

test('removal waits for the server, and ends with the replica', async () => {
  const { clock, note, server, shown, stopping } = setUp();
  note.show(LIMITED);
  await clock.advanceAsync(1000);
  server.isAway = true;
  let isRemoved = false;
  void note.remove().then(() => (isRemoved = true));
  await clock.advanceAsync(60_000);
  expect(isRemoved).toBe(false);
  server.isAway = false;
  await clock.advanceAsync(10_000);
  expect([isRemoved, shown()]).toEqual([true, undefined]);

  note.show(LIMITED);
  await clock.advanceAsync(1000);
  server.isAway = true;
  stopping.abort();
  await note.remove();
  // It names a replica that is not live.
  expect(shown()?.replica).toBe('replica-1');
});

test('the note of the replica that syncs the member now stays', async () => {
  const before = setUp();
  before.note.show(LIMITED);
  await before.clock.advanceAsync(1000);
  const now = setUp(before.server, 'replica-2');
  now.note.show({ state: 'failed', reason: 'a right is missing' });
  await now.clock.advanceAsync(1000);
  void before.note.remove();
  await before.clock.advanceAsync(1000);
  expect(now.shown()).toEqual({ replica: 'replica-2', state: 'failed', reason: 'a right is missing' });
});
