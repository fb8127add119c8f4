/** Replicas of a fleet share its members: each member has at most one holder, and each live replica its share. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/base/logger.ts';
import { MemberLock } from '../../src/fleet/member-lock.ts';
import { replicaOf, Replicas } from '../../src/fleet/replicas.ts';
import { LeaseLock } from '../../src/kube/lease.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { leaseClient, LeaseServer, ProcessClock } from '../support/lease-server.ts';

const MEMBERS = ['a', 'b', 'c', 'd', 'e'];
const TIMES = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 };

/** A replica that holds the Leases of the members that are placed on it, and nothing else. */
class Process {
  readonly clock: ProcessClock;
  readonly replicas: Replicas;
  /** Every lock of this process, those that were given up included. */
  readonly started: { readonly member: string; readonly lock: MemberLock }[] = [];
  readonly #running = new Map<string, () => Promise<void>>();
  readonly #parts: ConstructorParameters<typeof Replicas>[0];
  #isStopped = false;

  constructor(server: LeaseServer, base: FakeClock, { id = 'new', latencyMs = 5, offMs = 0 } = {}) {
    this.clock = new ProcessClock(base, offMs);
    const client = leaseClient(server, this.clock, latencyMs);
    const common = { clock: this.clock, random: () => 0.5, logger: silentLogger };
    this.#parts = { ...TIMES, ...common, client, id, namespace: 'ns', changed: () => this.#place() };
    this.replicas = new Replicas(this.#parts);
  }

  #place(): void {
    if (this.#isStopped) return;
    for (const member of MEMBERS) {
      const isOurs = replicaOf(member, this.replicas.live()) === this.replicas.identity;
      if (isOurs && !this.#running.has(member)) this.#start(member);
      // Placed again when the lock before has been released.
      else if (!isOurs && this.#running.has(member)) void this.#stop(member).then(() => this.#place());
    }
  }

  #start(member: string): void {
    const { replicas } = this;
    const lease = { namespace: 'ns', name: member };
    const lock = new MemberLock({ ...this.#parts, replicas, lease, annotations: () => ({}) });
    const stopping = new AbortController();
    const run = async (): Promise<void> => {
      while (await lock.acquire(stopping.signal)) await lock.hold(stopping.signal);
    };
    const running = run();
    let stopped: Promise<void> | undefined;
    const stop = (): Promise<void> => {
      stopping.abort();
      return (stopped ??= running.then(() => lock.release()));
    };
    this.#running.set(member, stop);
    this.started.push({ member, lock });
  }

  async #stop(member: string): Promise<void> {
    await this.#running.get(member)?.();
    this.#running.delete(member);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.replicas.leave();
    await Promise.all(MEMBERS.map((member) => this.#stop(member)));
  }
}

function world(count: number, options: { latencyMs?: number } = {}) {
  const base = new FakeClock();
  const server = new LeaseServer();
  const processes = Array.from(
    { length: count },
    (_, index) => new Process(server, base, { id: `p${index}`, offMs: index * 3_600_000, ...options }),
  );
  const holdersOf = (member: string): ReadonlySet<string> => {
    const locks = processes.flatMap(({ started }) => started.filter((one) => one.member === member));
    return new Set(locks.filter(({ lock }) => lock.isHeld).map(({ lock }) => lock.identity));
  };
  const placed = (): [string, string[]][] => MEMBERS.map((member) => [member, [...holdersOf(member)]]);
  return { base, server, processes, holdersOf, placed };
}

function wanted(live: readonly Process[]): [string, (string | undefined)[]][] {
  const identities = live.map(({ replicas }) => replicas.identity).toSorted();
  return MEMBERS.map((member) => [member, [replicaOf(member, identities)]]);
}

describe('the replicas of a fleet', () => {
  test('share the members, renew one Lease each, and hand over their share when they end', async () => {
    const { base, server, processes, placed } = world(3);
    await base.advanceAsync(10_000);
    expect(placed()).toEqual(wanted(processes));
    expect(server.stored.size).toBe(MEMBERS.length + 3);
    const versions = (): (string | undefined)[] =>
      MEMBERS.map((member) => server.stored.get(member)?.metadata.resourceVersion);
    const before = versions();
    await base.advanceAsync(600_000);
    expect(versions()).toEqual(before);

    const [first, ...others] = processes;
    const stopped = first?.stop();
    await base.advanceAsync(5000);
    await stopped;
    expect(placed()).toEqual(wanted(others));
    expect(server.stored.size).toBe(MEMBERS.length + 2);
  });

  test('take over the share of one that was killed when its Lease expires and not before, and delete it later', async () => {
    const { base, server, processes, placed } = world(3);
    await base.advanceAsync(10_000);
    const [first, ...others] = processes;
    first?.clock.pause();
    await base.advanceAsync(14_000);
    expect(placed().flatMap(([, holders]) => holders)).not.toContain(first?.replicas.identity);
    await base.advanceAsync(8000);
    expect(placed()).toEqual(wanted(others));
    await base.advanceAsync(600_000);
    expect(server.stored.has(first?.replicas.identity ?? '')).toBe(false);
  });

  test('say so if one was not live for a moment, in which no member was placed on it', async () => {
    const unsaid: number[] = [];
    for (let afterMs = 10_000; afterMs < 20_000; afterMs += 100) {
      const base = new FakeClock();
      const clock = new ProcessClock(base, 0);
      const client = leaseClient(new LeaseServer(), clock, 900);
      const common = { clock, random: () => 0.5, logger: silentLogger, namespace: 'ns', id: 'p' };
      let changes = 0;
      const replicas = new Replicas({ ...TIMES, ...common, client, changed: () => (changes += 1) });
      await base.advanceAsync(afterMs);
      const before = changes;
      clock.pause();
      while (replicas.isLive) await base.advanceAsync(100);
      clock.resume();
      await base.advanceAsync(10_000);
      if (changes === before) unsaid.push(afterMs);
    }
    expect(unsaid).toEqual([]);
  });

  test('give one that comes its share alone', async () => {
    const { base, server, processes, placed } = world(2);
    await base.advanceAsync(10_000);
    const before = placed();
    const third = new Process(server, base);
    processes.push(third);
    await base.advanceAsync(10_000);
    expect(placed()).toEqual(wanted(processes));
    const moved = placed().filter(([, holders], at) => before[at]?.[1][0] !== holders[0]);
    expect(moved.every(([, holders]) => holders[0] === third.replicas.identity)).toBe(true);
  });

  test('leave a member to a sidecar that renews its Lease, and take it when that has ended', async () => {
    const base = new FakeClock();
    const server = new LeaseServer();
    const common = { clock: base, random: () => 0.5, logger: silentLogger, fieldManager: 'test' };
    const lease = { namespace: 'ns', name: 'a' };
    const client = leaseClient(server, base, 5);
    const sidecar = new LeaseLock({ ...TIMES, ...common, client, lease, identity: 'sidecar' });
    const stopping = new AbortController();
    void sidecar.acquire(stopping.signal).then(() => sidecar.hold(stopping.signal));
    await base.advanceAsync(1000);
    const process = new Process(server, base);
    await base.advanceAsync(120_000);
    expect(server.holderOf('a')).toBe('sidecar');
    stopping.abort();
    await base.advanceAsync(20_000);
    expect(server.holderOf('a')).toBe(process.replicas.identity);
    // And the sidecar leaves it to the fleet.
    const again = new LeaseLock({ ...TIMES, ...common, client, lease, identity: 'again' });
    void again.acquire(new AbortController().signal);
    await base.advanceAsync(7_200_000);
    expect(server.holderOf('a')).toBe(process.replicas.identity);
  });

  test('never hold a member twice, while they are suspended and killed and the API server is away; then each has its share', async () => {
    const step = fc.record({
      what: fc.constantFrom('pause', 'resume', 'away', 'back', 'stop', 'add', 'wait'),
      who: fc.nat({ max: 3 }),
      ms: fc.nat({ max: 20_000 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 20 }),
        fc.integer({ min: 1, max: 900 }),
        async (steps, latencyMs) => {
          const { base, server, processes, holdersOf, placed } = world(2, { latencyMs });
          const ended = new Set<Process>();
          for (const { what, who, ms } of steps) {
            const process = processes[who % processes.length];
            if (process === undefined) throw new Error('there is always one');
            if (what === 'pause') process.clock.pause();
            if (what === 'resume') process.clock.resume();
            if (what === 'away' || what === 'back') server.isAway = what === 'away';
            if (what === 'add' && processes.length < 4)
              processes.push(new Process(server, base, { id: `p${processes.length}`, latencyMs }));
            if (what === 'stop' && processes.length - ended.size > 1) {
              ended.add(process);
              void process.stop();
            }
            for (let leftMs = ms; leftMs > 0; leftMs -= 250) {
              await base.advanceAsync(Math.min(250, leftMs));
              for (const member of MEMBERS) expect(holdersOf(member).size).toBeLessThanOrEqual(1);
            }
          }
          server.isAway = false;
          for (const { clock } of processes) clock.resume();
          await base.advanceAsync(60_000);
          expect(placed()).toEqual(wanted(processes.filter((one) => !ended.has(one))));
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('placement', () => {
  test('is the same whatever the order, and moves only the share of the replica that goes', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.string(), { minLength: 2, maxLength: 5 }),
        fc.string(),
        (replicas, member) => {
          const placed = replicaOf(member, replicas);
          expect(replicaOf(member, replicas.toReversed())).toBe(placed);
          const others = replicas.filter((one) => one !== placed);
          for (const gone of others)
            expect(
              replicaOf(
                member,
                replicas.filter((one) => one !== gone),
              ),
            ).toBe(placed);
        },
      ),
    );
    expect(replicaOf('a', [])).toBeUndefined();
  });

  test('is even', () => {
    const replicas = ['r1', 'r2', 'r3'];
    const placed = Array.from({ length: 300 }, (_, at) => replicaOf(`team-${at}/vc`, replicas));
    for (const replica of replicas)
      expect(placed.filter((one) => one === replica).length).toBeGreaterThan(70);
  });
});
