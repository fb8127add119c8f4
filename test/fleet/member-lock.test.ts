/** The Lease of one member: when its replica may take it, what it writes there, and how it gives it back. Several replicas: {@link ./replicas.test.ts}. */

import { expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { MemberLock } from '../../src/fleet/member-lock.ts';
import { microTime, type KubeObject, type StringMap } from '../../src/kube/object.ts';
import { FakeClock, settle } from '../support/fake-clock.ts';
import { leaseClient, LeaseServer } from '../support/lease-server.ts';
import { NO_PRIMITIVE } from '../support/no-primitive.ts';

const LEASE = { namespace: 'team-a', name: 'endpoint-syncer-a' };
const [OURS, OTHER] = ['endpoint-syncer-replica-ours', 'endpoint-syncer-replica-other'];
const RETRY_MS = 2000;

function setUp(
  stored?: { readonly spec: JsonObject; readonly annotations?: StringMap },
  changed: { isOtherExpired?: boolean; isLive?: boolean } = {},
) {
  const [clock, server, leaving] = [new FakeClock(), new LeaseServer(), new AbortController()];
  const state = { isLive: true, term: 1, isOtherExpired: false, annotations: {} as StringMap, ...changed };
  const replicas = {
    identity: OURS,
    signal: leaving.signal,
    isExpired: () => state.isOtherExpired,
    get isLive() {
      return state.isLive;
    },
    get term() {
      return state.term;
    },
  };
  if (stored !== undefined)
    server.write({
      metadata: { ...LEASE, labels: { kept: 'yes' }, annotations: stored.annotations ?? {} },
      spec: stored.spec,
    });
  const lock = new MemberLock({
    replicas,
    client: leaseClient(server, clock, 1),
    lease: LEASE,
    annotations: () => state.annotations,
    retryPeriodMs: RETRY_MS,
    clock,
    random: () => 0.5,
    logger: silentLogger,
  });
  const holding = new AbortController();
  const hold = async (): Promise<void> => {
    if (await lock.acquire(holding.signal)) await lock.hold(holding.signal);
  };
  const lease = (): KubeObject | undefined => server.stored.get(LEASE.name);
  return { clock, server, state, lock, lease, holding, leaving, running: hold() };
}

function held(holderIdentity: string, seconds: JsonValue = 3600): { readonly spec: JsonObject } {
  return { spec: { holderIdentity, leaseDurationSeconds: seconds, renewTime: microTime(0) } };
}

test.for<
  [string, Parameters<typeof setUp>[0], { isOtherExpired?: boolean; isLive?: boolean }, number, boolean]
>([
  ['there is none', undefined, {}, 5000, true],
  ['no process holds it', held(''), {}, 5000, true],
  ['a replica holds it that is live', held(OTHER), {}, 7_200_000, false],
  ['a replica holds it that has ended', held(OTHER), { isOtherExpired: true }, 5000, true],
  ['it is left of an earlier attempt', held(OURS), {}, 5000, true],
  ['a sidecar holds it, whose time is not over', held('sidecar', 60), {}, 50_000, false],
  ['a sidecar holds it that does not renew it', held('sidecar', 60), {}, 70_000, true],
  ['a sidecar holds it, with a time that is none', held('sidecar', NO_PRIMITIVE), {}, 3_700_000, true],
  ['this replica has lost its own Lease', undefined, { isLive: false }, 60_000, false],
])('%s: taken or not', async ([, stored, changed, ms, isTaken]) => {
  const { clock, lock, server } = setUp(stored, changed);
  await clock.advanceAsync(ms);
  expect([lock.isHeld, server.holderOf(LEASE.name) === OURS]).toEqual([isTaken, isTaken]);
});

test('what others keep there stays, with the annotations of the claim, but not the note of the replica before', async () => {
  const annotations = { kept: 'yes', 'endpoint-syncer/state': `${OTHER} limited: too many objects` };
  const { clock, lease, state } = setUp({ ...held(''), annotations });
  state.annotations = { hash: '1' };
  await clock.advanceAsync(5000);
  expect(lease()?.metadata).toMatchObject({
    labels: { kept: 'yes' },
    annotations: { kept: 'yes', hash: '1', 'endpoint-syncer/state': '' },
  });
});

test('its own note stays, and changed annotations are written soon, nothing else for a quarter of its duration', async () => {
  const note = { 'endpoint-syncer/state': `${OURS} failed: a right is missing` };
  const { clock, lease, server, state } = setUp({ ...held(''), annotations: note });
  await clock.advanceAsync(5000);
  expect(lease()?.metadata.annotations).toEqual(note);
  const version = (): string | undefined => lease()?.metadata.resourceVersion;
  const first = version();
  await clock.advanceAsync(600_000);
  expect(version()).toBe(first);
  state.annotations = { hash: '2' };
  await clock.advanceAsync(2 * RETRY_MS);
  expect(lease()?.metadata.annotations).toEqual({ ...note, hash: '2' });
  const second = version();
  await clock.advanceAsync(910_000);
  expect(version()).not.toBe(second);
  expect(server.holderOf(LEASE.name)).toBe(OURS);
});

test('a later claim of the same replica is that of another lock, and is not released', async () => {
  const { clock, holding, lease, lock, running, server } = setUp();
  await clock.advanceAsync(5000);
  holding.abort();
  await clock.advanceAsync(RETRY_MS);
  const spec = lease()?.['spec'] as JsonObject;
  server.write({ metadata: { ...LEASE }, spec: { ...spec, renewTime: microTime(clock.now()) } });
  const released = lock.release();
  await clock.advanceAsync(5000);
  await Promise.all([released, running]);
  expect(server.holderOf(LEASE.name)).toBe(OURS);
});

test('it is lost in another term of the replica, whose Lease others may have taken in between', async () => {
  const { clock, lock, state, running } = setUp();
  await clock.advanceAsync(5000);
  state.term = 2;
  expect(lock.isHeld).toBe(false);
  await clock.advanceAsync(2 * RETRY_MS);
  await running; // hold has returned
  expect(lock.holder).toBe(OURS);
});

test('it is released however long the server is away, until the replica leaves', async () => {
  const { clock, holding, leaving, lock, running, server } = setUp();
  await clock.advanceAsync(5000);
  server.isAway = true;
  holding.abort();
  await clock.advanceAsync(RETRY_MS);
  await running;
  let isReleased = false;
  const releasing = lock.release().then(() => (isReleased = true));
  expect(lock.isHeld).toBe(false);
  await clock.advanceAsync(600_000);
  expect([isReleased, server.holderOf(LEASE.name)]).toEqual([false, OURS]);
  server.isAway = false;
  await clock.advanceAsync(2 * RETRY_MS);
  await releasing;
  expect(server.holderOf(LEASE.name)).toBe('');

  const other = setUp();
  await other.clock.advanceAsync(5000);
  other.server.isAway = true;
  other.leaving.abort();
  const ended = other.lock.release();
  await other.clock.advanceAsync(10);
  await ended;
  await settle();
  expect([leaving.signal.aborted, other.server.holderOf(LEASE.name)]).toEqual([false, OURS]);
});

test('a Lease that another process has taken meanwhile is not released', async () => {
  const { clock, holding, lease, lock, running, server } = setUp();
  await clock.advanceAsync(5000);
  holding.abort();
  await running;
  const taken = lease();
  if (taken !== undefined) server.write({ ...taken, ...held(OTHER) });
  const releasing = lock.release();
  await clock.advanceAsync(1000);
  await releasing;
  expect(server.holderOf(LEASE.name)).toBe(OTHER);
});
