/** The Lease as a lock: at most one holder, despite pauses, clock differences and failures of the API server. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Clock, type Timer, sleep } from '../../src/base/clock.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { LeaseLock } from '../../src/kube/lease.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { StatusError } from '../../src/kube/status-error.ts';
import { TransportError, type ClusterClient } from '../../src/kube/types.ts';
import { FakeClock } from '../support/fake-clock.ts';

const HOUR_MS = 3_600_000;

/** A Lease on a slow or unavailable API server. */
class LeaseServer {
  stored: KubeObject | undefined;
  isAway = false;
  #version = 0;

  write(object: KubeObject): KubeObject {
    const resourceVersion = String(++this.#version);
    this.stored = { ...object, metadata: { ...object.metadata, resourceVersion } };
    return this.stored;
  }

  get holder(): unknown {
    return (this.stored?.['spec'] as { holderIdentity?: string } | undefined)?.holderIdentity; // a Lease
  }
}

/** The time of one process: its own wall clock, and timers that fire late after a pause. */
class ProcessClock implements Clock {
  readonly #base: FakeClock;
  readonly #offMs: number;
  #withheld: (() => void)[] | undefined;

  constructor(base: FakeClock, offMs: number) {
    this.#base = base;
    this.#offMs = offMs;
  }

  now(): number {
    return this.#base.now() + this.#offMs;
  }

  monotonicMs(): number {
    return this.#base.monotonicMs();
  }

  schedule(delayMs: number, callback: () => void): Timer {
    let isCancelled = false;
    const run = (): void => void (isCancelled || callback());
    const timer = this.#base.schedule(delayMs, () => {
      if (this.#withheld === undefined) run();
      else this.#withheld.push(run);
    });
    return {
      cancel() {
        isCancelled = true;
        timer.cancel();
      },
    };
  }

  pause(): void {
    this.#withheld ??= [];
  }

  resume(): void {
    const due = this.#withheld ?? [];
    this.#withheld = undefined;
    for (const run of due) run();
  }
}

function conflict(code: number, reason: string): StatusError {
  return new StatusError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    reason,
    code,
    message: reason,
  });
}

/** The requests of one process: each takes `latencyMs` in both directions. */
function clientOf(server: LeaseServer, clock: Clock, latencyMs: number): ClusterClient {
  const never = new AbortController().signal;
  const exchange = async (act: () => KubeObject, timeoutMs = Infinity): Promise<KubeObject> => {
    await sleep(clock, latencyMs, never);
    if (2 * latencyMs > timeoutMs) throw new TransportError('no answer in time');
    if (server.isAway) throw new TransportError('no answer');
    const answer = act();
    await sleep(clock, latencyMs, never);
    return answer;
  };
  return {
    get: (_, __, options) =>
      exchange(() => {
        if (server.stored === undefined) throw conflict(404, 'NotFound');
        return server.stored;
      }, options?.timeoutMs),
    create: (_, object) =>
      exchange(() => {
        if (server.stored !== undefined) throw conflict(409, 'AlreadyExists');
        return server.write(object);
      }),
    update: (_, object) =>
      exchange(() => {
        if (server.stored === undefined) throw conflict(404, 'NotFound');
        if (server.stored.metadata.resourceVersion !== object.metadata.resourceVersion)
          throw conflict(409, 'Conflict');
        return server.write(object);
      }),
  } as Partial<ClusterClient> as ClusterClient; // what a lock needs
}

class Process {
  readonly clock: ProcessClock;
  readonly lock: LeaseLock;
  readonly #stopping = new AbortController();
  isLost = false;
  readonly #running: Promise<void>;

  constructor(server: LeaseServer, base: FakeClock, { name = 'a', offMs = 0, latencyMs = 5 } = {}) {
    this.clock = new ProcessClock(base, offMs);
    this.lock = new LeaseLock({
      client: clientOf(server, this.clock, latencyMs),
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
    expect(holders()).toEqual([server.holder]);
    const leader = processes.find(({ lock }) => lock.identity === first);
    const stopped = leader?.stop();
    await base.advanceAsync(1100);
    await stopped;
    expect(holders()).toHaveLength(1);
    expect(holders()).not.toContain(first);
    expect(server.stored?.['spec']).toMatchObject({ leaseTransitions: 1, leaseDurationSeconds: 15 });
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
      const renewed = (): string => JSON.stringify(server.stored?.['spec']);
      // The worst moment: just after a renewal.
      for (const before = renewed(); renewed() === before;) await base.advanceAsync(10);
      leader?.clock.pause();
      await base.advanceAsync(17_000 + latencyMs);
      expect(server.holder).not.toBe(leader?.lock.identity);
      await base.advanceAsync(latencyMs);
      expect(holders()).toEqual([server.holder]);
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
    server.stored = undefined;
    await base.advanceAsync(4000);
    expect(holders()).toEqual([server.holder]);
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
