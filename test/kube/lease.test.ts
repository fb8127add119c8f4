/** The Lease as a lock: at most one holder, despite pauses, clock differences and failures of the API server. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/base/logger.ts';
import { LeaseLock } from '../../src/kube/lease.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { leaseClient, LeaseServer, ProcessClock } from '../support/lease-server.ts';

const HOUR_MS = 3_600_000;

class Process {
  readonly clock: ProcessClock;
  readonly lock: LeaseLock;
  readonly #stopping = new AbortController();
  isLost = false;
  readonly #running: Promise<void>;

  constructor(server: LeaseServer, base: FakeClock, { name = 'a', offMs = 0, latencyMs = 5 } = {}) {
    this.clock = new ProcessClock(base, offMs);
    this.lock = new LeaseLock({
      client: leaseClient(server, this.clock, latencyMs),
      lease: { namespace: 'ns', name: 'lease' },
      identity: name,
      leaseDurationMs: 15_000,
      renewDeadlineMs: 10_000,
      retryPeriodMs: 2000,
      fieldManager: 'test',
      clock: this.clock,
      random: () => 0.5,
      logger: silentLogger,
    });
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    if (!(await this.lock.acquire(signal))) return;
    await this.lock.hold(signal);
    this.isLost = !signal.aborted;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.lock.release();
  }
}

function world(count: number, options: { latencyMs?: number } = {}) {
  const base = new FakeClock();
  const server = new LeaseServer();
  const processes = Array.from({ length: count }, (_, index) => {
    const offMs = index === 1 ? HOUR_MS : 0;
    return new Process(server, base, { name: `p${index}`, offMs, ...options });
  });
  const holders = (): string[] =>
    processes.filter(({ lock }) => lock.isHeld).map(({ lock }) => lock.identity);
  return { base, server, processes, holders };
}

describe('a lease', () => {
  test('has one holder, is renewed, and is acquired by another process within a second after an orderly end', async () => {
    const { base, server, processes, holders } = world(3);
    await base.advanceAsync(60_000);
    const [first = ''] = holders();
    expect(holders()).toEqual([server.holderOf('lease')]);
    const leader = processes.find(({ lock }) => lock.identity === first);
    const stopped = leader?.stop();
    await base.advanceAsync(1100);
    await stopped;
    expect(holders()).toHaveLength(1);
    expect(holders()).not.toContain(first);
    expect(server.stored.get('lease')?.['spec']).toMatchObject({
      leaseTransitions: 1,
      leaseDurationSeconds: 15,
    });
  });

  test('of a killed process is acquired when it expires and not before, whatever the wall clocks show', async () => {
    const { base, processes, holders } = world(3);
    await base.advanceAsync(5000);
    const leader = processes.find(({ lock }) => lock.isHeld);
    leader?.clock.pause();
    await base.advanceAsync(9000);
    await base.advanceAsync(4000);
    expect(holders()).toEqual([]);
    await base.advanceAsync(4000);
    expect(holders()).toHaveLength(1);
    leader?.clock.resume();
    await base.advanceAsync(100);
    expect([holders().length, leader?.isLost]).toEqual([1, true]);
    expect(holders()).not.toContain(leader?.lock.identity);
  });

  test.each([5, 400, 1100])(
    'of a killed process is acquired within its duration, a retry period and a request, which takes %i ms each way',
    async (latencyMs) => {
      const { base, server, processes, holders } = world(3, { latencyMs });
      await base.advanceAsync(20_000);
      const leader = processes.find(({ lock }) => lock.isHeld);
      const renewed = (): string => JSON.stringify(server.stored.get('lease')?.['spec']);
      // The worst moment: just after a renewal.
      for (const before = renewed(); renewed() === before;) await base.advanceAsync(10);
      leader?.clock.pause();
      await base.advanceAsync(17_000 + latencyMs);
      expect(server.holderOf('lease')).not.toBe(leader?.lock.identity);
      await base.advanceAsync(latencyMs);
      expect(holders()).toEqual([server.holderOf('lease')]);
    },
  );

  test('that cannot be renewed is given up before another process can acquire it', async () => {
    const { base, server, processes, holders } = world(2);
    await base.advanceAsync(5000);
    server.isAway = true;
    await base.advanceAsync(10_100);
    expect(holders()).toEqual([]);
    expect(processes.filter(({ isLost }) => isLost)).toHaveLength(1);
    server.isAway = false;
    await base.advanceAsync(8000);
    expect(holders()).toHaveLength(1);
  });

  test('that is deleted has one holder again within two retry periods', async () => {
    const { base, server, holders } = world(3);
    await base.advanceAsync(5000);
    server.stored.clear();
    await base.advanceAsync(4000);
    expect(holders()).toEqual([server.holderOf('lease')]);
  });

  test('never has two holders, while processes are paused and killed', async () => {
    const step = fc.record({
      what: fc.constantFrom('pause', 'resume', 'away', 'back', 'stop', 'wait'),
      who: fc.nat({ max: 2 }),
      ms: fc.nat({ max: 20_000 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 25 }),
        fc.integer({ min: 1, max: 1500 }),
        async (steps, latencyMs) => {
          const { base, server, processes, holders } = world(3, { latencyMs });
          for (const { what, who, ms } of steps) {
            const process = processes[who];
            if (what === 'pause') process?.clock.pause();
            if (what === 'resume') process?.clock.resume();
            if (what === 'away' || what === 'back') server.isAway = what === 'away';
            if (what === 'stop') void process?.stop();
            for (let leftMs = ms; leftMs > 0; leftMs -= 250) {
              await base.advanceAsync(Math.min(250, leftMs));
              expect(holders().length).toBeLessThanOrEqual(1);
            }
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});
