/** One member, on a clock of the test and with syncs that only remember what became of them. */

import { afterEach, describe, expect, test } from 'vitest';
import { TerminalError } from '../../src/base/errors.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { TokenBucket } from '../../src/base/token-bucket.ts';
import type { Config } from '../../src/syncer/config/config.ts';
import { SharedCaches } from '../../src/fleet/shared-caches.ts';
import { Member, type MemberStatus, type StartOptions } from '../../src/fleet/member.ts';
import type { CacheBudget, CacheLimits } from '../../src/kube/informer/cache-budget.ts';
import { eventually } from '../support/eventually.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { validConfig } from '../cli/config/setup.ts';
import { PlainSync } from './plain-sync.ts';

const MIB = 2 ** 20;

const ended: Member[] = [];
afterEach(() => Promise.all(ended.splice(0).map((member) => member.end())));

interface World {
  readonly member: Member;
  readonly syncs: readonly PlainSync[];
  readonly clock: FakeClock;
  readonly statuses: readonly MemberStatus[];
  /** Of the syncs. */
  readonly budgets: readonly CacheBudget[];
  readonly limits: { now: CacheLimits };
  readonly caches: SharedCaches;
}

/** `start` decides about each start in turn; `pass` is the first pass of each sync. */
function world(
  start: (attempt: number, options: StartOptions) => Promise<void> = async () => undefined,
  pass = Promise.resolve(),
): World {
  const clock = new FakeClock();
  const syncs: PlainSync[] = [];
  const statuses: MemberStatus[] = [];
  const budgets: CacheBudget[] = [];
  const limits = { now: { objectsMax: 100, bytesMax: 1000 * MIB } };
  const caches = new SharedCaches(10 * MIB);
  let attempts = 0;
  const member = new Member({
    limits: () => limits.now,
    caches: {
      create: (of) => caches.budget('team', of),
      release: (budget) => caches.release(budget),
      hasRoom: (bytes) => caches.hasRoom(bytes),
    },
    async startSync(config, options) {
      await start(++attempts, options);
      const sync = new PlainSync(config, pass);
      budgets.push(options.budget);
      void options.budget.exceeded.then(() => sync.fail('too many objects'));
      syncs.push(sync);
      return sync;
    },
    reported: (status) => statuses.push(status),
    changes: new TokenBucket({ burst: 5, perSecond: 0.1 }, clock),
    clock,
    random: () => 1,
    logger: silentLogger,
  });
  ended.push(member);
  return { member, syncs, clock, statuses, budgets, limits, caches };
}

function config(lines = ''): Config {
  return validConfig(`endpointSyncer: {name: vc}\n${lines}`);
}

const PATCHED = `sync: {toHost: {endpoints: {patches: [{path: metadata.annotations.a, expression: '"b"'}]}}}`;
const OTHER = 'endpointSyncer: {name: vc, requireService: true}';

function join(member: Member, of: Config, accessVersion = '1'): void {
  member.follow({ kind: 'joined', config: of, warnings: [] }, accessVersion);
}

async function whenState(member: Member, state: string): Promise<void> {
  await eventually(
    () => member.status.state,
    (now) => now === state,
    { what: state },
  );
}

/** So many syncs were started. */
async function whenStarted(syncs: readonly PlainSync[], count: number): Promise<void> {
  await eventually(
    () => syncs.length,
    (length) => length === count,
    { what: `${count} syncs` },
  );
}

async function whenStopped(sync: PlainSync | undefined): Promise<void> {
  await eventually(
    () => sync?.isStopped,
    (isStopped) => isStopped === true,
  );
}

/** A member that has joined, with its first sync. */
async function joinedWorld(): Promise<World & { readonly first: PlainSync }> {
  const parts = world();
  join(parts.member, config());
  await whenState(parts.member, 'joined');
  const [first] = parts.syncs;
  if (first === undefined) throw new Error('no sync was started');
  return { ...parts, first };
}

describe('a member', () => {
  test('is starting until its first pass is over', async () => {
    const pass = Promise.withResolvers<void>();
    const { member } = world(undefined, pass.promise);
    expect(member.isStarting).toBe(false);
    join(member, config());
    expect(member.isStarting).toBe(true);
    await whenState(member, 'joined');
    expect(member.isStarting).toBe(true);
    pass.resolve();
    await eventually(
      () => member.isStarting,
      (isStarting) => !isStarting,
    );
  });

  test('is not starting while it waits for another attempt', async () => {
    const { member } = world(async () => Promise.reject(new TerminalError('no right')));
    join(member, config());
    await whenState(member, 'failed');
    expect(member.isStarting).toBe(false);
  });

  test('reloads changes of sync, restarts for others, and does neither for none', async () => {
    const { member, syncs, first } = await joinedWorld();
    join(member, config());
    join(member, config(PATCHED));
    await eventually(
      () => first.config.sync.endpoints.patches.length,
      (count) => count === 1,
    );
    expect(syncs).toHaveLength(1);
    join(member, validConfig(OTHER));
    await whenStarted(syncs, 2);
    expect(syncs.map(({ isStopped }) => isStopped)).toEqual([true, false]);
    await whenState(member, 'joined');
  });

  test('a start that fails is tried again with back-off, and at once when something else is wanted', async () => {
    const { member, syncs, clock, statuses } = world(async (attempt) => {
      if (attempt <= 2) throw new TerminalError(`no ${attempt}`);
    });
    join(member, config());
    await whenState(member, 'failed');
    expect(clock.nextDelayMs).toBe(1000);
    clock.advance(1000);
    await eventually(
      () => member.status.reason,
      (reason) => reason === 'no 2',
    );
    expect(clock.nextDelayMs).toBe(2000);
    join(member, config(), '2');
    await whenState(member, 'joined');
    expect(syncs).toHaveLength(1);
    expect(statuses.map(({ state }) => state)).toEqual([
      'starting',
      'failed',
      'starting',
      'failed',
      'starting',
      'joined',
    ]);
  });

  test('a start that hangs delays neither a change nor the end', async () => {
    const { member, syncs } = world(async (attempt, { signal, onWait }) => {
      if (attempt === 2) return;
      onWait('no response');
      await new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new Error('aborted')));
      });
    });
    join(member, config());
    await eventually(
      () => member.status,
      ({ state, reason }) => state === 'starting' && reason === 'no response',
    );
    join(member, config(), '2');
    await whenState(member, 'joined');
    join(member, validConfig(OTHER));
    await whenStopped(syncs[0]);
    await member.end();
    expect(syncs).toHaveLength(1);
  });

  test('a reload that hangs is superseded by the next change: the sync is restarted with it', async () => {
    const { member, syncs, first } = await joinedWorld();
    first.gate = new Promise(() => undefined);
    join(member, config(PATCHED));
    await eventually(
      () => first.reloads,
      (count) => count === 1,
    );
    join(member, config(PATCHED), '2');
    await whenStarted(syncs, 2);
    expect(first.isStopped).toBe(true);
    expect(syncs[1]?.config.sync.endpoints.patches).toHaveLength(1);
  });

  test('a reload that fails leaves the sync running, and is tried again', async () => {
    const { member, clock, first } = await joinedWorld();
    first.problem = 'a right is missing';
    join(member, config(PATCHED));
    await whenState(member, 'failed');
    expect(member.status.reason).toBe('the changed configuration is not applied: a right is missing');
    expect(first.isStopped).toBe(false);
    first.problem = undefined;
    clock.advance(1000);
    await whenState(member, 'joined');
    expect(first.config.sync.endpoints.patches).toHaveLength(1);
  });

  test('a sync that loses its Lease is restarted', async () => {
    const { member, syncs, clock, first } = await joinedWorld();
    first.fail('the lease was lost to another');
    await whenState(member, 'failed');
    expect(member.status.reason).toBe('the lease was lost to another');
    expect(first.isStopped).toBe(true);
    clock.advance(1000);
    await whenState(member, 'joined');
    expect(syncs).toHaveLength(2);
  });

  test('what becomes invalid runs on, what falls asleep stops, and both join again', async () => {
    const { member, syncs, first } = await joinedWorld();
    member.follow({ kind: 'invalid', reason: 'no YAML' }, '1');
    expect(member.status).toEqual({
      state: 'invalid',
      reason: 'no YAML; the configuration before is still in use',
    });
    expect(member.isSyncing).toBe(true);
    member.follow({ kind: 'waiting', reason: 'no Secret' }, '');
    expect(member.status.state).toBe('joined');
    member.follow({ kind: 'asleep', reason: 'scaled to 0 replicas' }, '1');
    await whenStopped(first);
    expect(member.status).toEqual({ state: 'asleep', reason: 'scaled to 0 replicas' });
    join(member, config());
    await whenStarted(syncs, 2);
    await whenState(member, 'joined');
  });

  test('with too many objects is limited, and joins when it has less than the limit by a margin', async () => {
    const { member, syncs, first, budgets, clock, statuses } = await joinedWorld();
    budgets[0]?.listed(101);
    await whenState(member, 'limited');
    expect(first.isStopped).toBe(true);
    expect(member.status.reason).toBe(
      'at least 101 objects in its caches, endpointSyncer.fleet.limits.objects is 100 objects: not synced, its copies stay; ' +
        'delete objects of the virtual cluster, or in its host namespace, until 90 objects are enough, or raise the limit',
    );
    expect(clock.nextDelayMs).toBe(30_000);
    const before = statuses.length;
    clock.advance(30_000);
    await whenStarted(syncs, 2);
    await whenState(member, 'joined');
    // It is limited until then: neither log nor alert shows each attempt.
    expect(statuses.slice(before).map(({ state }) => state)).toEqual(['joined']);
    budgets[1]?.listed(100);
    expect(budgets[1]?.excess).toBeUndefined();
  });

  test('that is limited still has too many objects with less than the margin: the next attempt is later', async () => {
    const { member, syncs, clock, limits } = world(async (attempt, { budget }) => {
      budget.listed(attempt < 4 ? 91 : 90);
    });
    limits.now = { ...limits.now, objectsMax: 90 };
    join(member, config());
    await whenState(member, 'limited');
    limits.now = { ...limits.now, objectsMax: 100 };
    for (const delayMs of [30_000, 60_000]) {
      await eventually(
        () => clock.nextDelayMs,
        (next) => next === delayMs,
      );
      clock.advance(delayMs);
    }
    await eventually(
      () => clock.nextDelayMs,
      (next) => next === 120_000,
    );
    expect(member.status.state).toBe('limited');
    expect(syncs.map(({ isStopped }) => isStopped)).toEqual([true, true, true]);
    clock.advance(120_000);
    await whenState(member, 'joined');
  });

  test('is limited when all members hold too much and its namespace most, and joins when there is room for what it held', async () => {
    const { member, syncs, budgets, caches, clock, limits } = await joinedWorld();
    expect(caches.hasRoom(10 * MIB)).toBe(false); // its configuration counts
    const other = caches.budget('other', limits.now);
    other.share().hold('x'.repeat(4 * MIB));
    budgets[0]?.share().hold('x'.repeat(7 * MIB));
    await whenState(member, 'limited');
    expect(member.status.reason).toMatch(
      /^the caches of all members need more than 10 MiB, 40 % of the memory/u,
    );
    expect(other.excess).toBeUndefined();
    await eventually(
      () => clock.nextDelayMs,
      (next) => next === 30_000,
    );
    clock.advance(30_000);
    await eventually(
      () => clock.nextDelayMs,
      (next) => next === 60_000,
    );
    expect(syncs).toHaveLength(1);
    caches.release(other);
    clock.advance(60_000);
    await whenState(member, 'joined');
    expect(caches.hasRoom(9 * MIB)).toBe(true);
  });

  test('that is limited is tried again when the limit is raised, and a lowered one applies at once', async () => {
    const { member, syncs, budgets, limits } = await joinedWorld();
    budgets[0]?.listed(150);
    await whenState(member, 'limited');
    limits.now = { objectsMax: 200, bytesMax: 1000 * MIB };
    member.limitsChanged();
    await whenState(member, 'joined');
    expect(syncs).toHaveLength(2);
    limits.now = { objectsMax: 200, bytesMax: -1 };
    member.limitsChanged();
    await whenState(member, 'limited');
  });

  test('of which the values change all the time is restarted now and then', async () => {
    const { member, syncs, clock } = world();
    for (let at = 0; at < 20; at++) {
      const before = syncs.length;
      join(member, at % 2 === 0 ? config() : validConfig(OTHER));
      await eventually(
        () => [syncs.length > before, clock.nextDelayMs],
        ([isStarted, delayMs]) => isStarted === true || delayMs === 10_000,
      );
    }
    expect(syncs).toHaveLength(5);
    clock.advance(10_000);
    await whenStarted(syncs, 6);
    await whenState(member, 'joined');
  });
});
