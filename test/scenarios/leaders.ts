/** Three replicas, updates without a pause, and every failure of a leader: never two writers, and short hand-overs. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { Replicas, type LeaseTimes } from './replicas.ts';
import type { NewWorld, World } from './world.ts';

export interface LeaderTimes extends LeaseTimes {
  /** How long the API server of the host is stopped; at least until the leader has ended. */
  readonly awayMs: number;
  /** Updates that run in all tests together. */
  readonly updatesMin: number;
}

const REPLICAS = 3;
/** Tolerance of asserted times for a loaded machine. */
const SLACK_MS = 5000;
const HANDOVER_MAX_MS = 2000;
const TEST_MAX_MS = 600_000;

/** All tests share the replicas: one that ended is replaced before the next test. */
export function leaderScenarios(newWorld: NewWorld, times: LeaderTimes): void {
  describe('leader election', () => {
    let world: World;
    let replicas: Replicas;
    beforeAll(async () => {
      world = await newWorld();
      world.expectErrors(/stopping because this replica lost the lease/u);
      replicas = await Replicas.start(world, REPLICAS, times);
      await replicas.startUpdates();
    }, TEST_MAX_MS);
    afterAll(async () => {
      await replicas.stopUpdates();
      await world[Symbol.asyncDispose]();
    });

    /** Three replicas, one of which leads and writes; the time from which on writes are checked. */
    const begin = async (): Promise<{ leader: Replicas['leader']; startedMs: number }> => {
      await replicas.refill(REPLICAS);
      const { leader } = replicas;
      const startedMs = performance.now();
      const writes = (): number =>
        replicas.writes().filter(({ atMs, replica }) => replica === leader && atMs > startedMs).length;
      await eventually(writes, (count) => count > 50, { what: 'writes of the leader' });
      return { leader, startedMs };
    };
    const expiryMs = times.leaseDurationMs + times.retryPeriodMs;
    const report = (what: string, ms: number): void => {
      process.stdout.write(`leader election: ${what}: ${Math.round(ms)} ms, ${replicas.updates} updates\n`);
    };

    // These tests measure hand-over times, which only a loaded machine lengthens.
    test(
      'standbys are ready and write nothing; a clean end hands over within 2 s',
      { timeout: TEST_MAX_MS, retry: 2 },
      async () => {
        const { leader, startedMs } = await begin();
        for (const { daemon } of replicas.running) {
          const [role, leads] = daemon === leader.daemon ? ['this replica leads', 1] : ['standby', 0];
          const { status } = await eventually(
            () => daemon.get('/readyz?verbose'),
            ({ text }) => text.includes(role),
            { what: `the role ${role}` },
          );
          expect(status).toBe(200);
          await daemon.whenMetric('leader_election_master_status', (seen) => seen === leads);
        }
        expect(await leader.daemon.terminate()).toEqual({ code: 0, signal: null });
        const endedMs = performance.now();
        const last = replicas.writes().findLast(({ replica }) => replica === leader)?.atMs ?? endedMs;
        const first = await replicas.whenWrittenByAnother(leader, last, 20_000);
        report('clean stop, last write to first write', first.atMs - last);
        expect(first.atMs - endedMs).toBeLessThan(HANDOVER_MAX_MS);
        await replicas.whenConverged();
        expect(replicas.foreignWrites(startedMs)).toEqual([]);
      },
    );

    test('a killed leader is replaced when its lease expires', { timeout: TEST_MAX_MS }, async () => {
      const { leader, startedMs } = await begin();
      await leader.daemon.kill();
      const killedMs = performance.now();
      const first = await replicas.whenWrittenByAnother(leader, killedMs, expiryMs + 20_000);
      report('kill -9 to first write', first.atMs - killedMs);
      expect(first.atMs - killedMs).toBeLessThan(expiryMs + SLACK_MS);
      await replicas.whenConverged();
      expect(replicas.foreignWrites(startedMs)).toEqual([]);
    });

    test(
      'a leader that was stopped past its lease writes nothing when it continues, and ends with 1',
      { timeout: TEST_MAX_MS },
      async () => {
        const { leader, startedMs } = await begin();
        leader.daemon.signal('SIGSTOP');
        const stoppedMs = performance.now();
        const first = await replicas.whenWrittenByAnother(leader, stoppedMs + 100, expiryMs + 20_000);
        report('SIGSTOP to first write', first.atMs - stoppedMs);
        leader.daemon.signal('SIGCONT');
        expect(await leader.daemon.exited).toEqual({ code: 1, signal: null });
        const later = replicas
          .writes()
          .filter(({ atMs, replica }) => replica === leader && atMs > first.atMs);
        expect(later).toEqual([]);
        await replicas.whenConverged();
        expect(replicas.foreignWrites(startedMs)).toEqual([]);
      },
    );

    test(
      'a lease that is deleted has two writers for two retry periods at most, and all converges',
      { timeout: TEST_MAX_MS },
      async () => {
        const name = `endpoint-syncer-${world.vcluster}`;
        for (let round = 0; round < 2; round++) {
          await begin();
          await world.host.delete('Lease', world.hostNamespace, name);
          const deletedMs = performance.now();
          await world.host.when('Lease', [world.hostNamespace, name]);
          const seen = replicas.updates;
          await eventually(
            () => replicas.updates,
            (count) => count > seen + 100,
            { timeoutMs: 60_000, what: '100 updates' },
          );
          // Until then both may write; what they write from then on is checked here, and the next test begins after it.
          const oneWriterMs = deletedMs + 2 * times.retryPeriodMs;
          await passed(oneWriterMs + SLACK_MS - performance.now());
          expect(replicas.foreignWrites(oneWriterMs)).toEqual([]);
        }
        await replicas.whenConverged();
      },
    );

    test(
      'without the API server the leader stops writing in time and ends with 1; a standby leads afterwards',
      { timeout: TEST_MAX_MS },
      async () => {
        const { leader, startedMs } = await begin();
        let isAway = true;
        for (const { proxy } of replicas.running) {
          proxy.behaviour = { ...proxy.behaviour, decide: () => ({ kind: isAway ? 'cut' : 'pass' }) };
          proxy.cutAll();
        }
        const awayMs = performance.now();
        expect(await leader.daemon.exited).toEqual({ code: 1, signal: null });
        const endedAfterMs = performance.now() - awayMs;
        report('API server away to the end of the leader', endedAfterMs);
        expect(endedAfterMs).toBeLessThan(times.leaseDurationMs + SLACK_MS);
        await passed(times.awayMs - endedAfterMs);
        for (const { daemon } of replicas.standbys) expect((await daemon.get('/healthz')).status).toBe(200);
        isAway = false;
        const backMs = performance.now();
        const first = await replicas.whenWrittenByAnother(leader, backMs, expiryMs + 60_000);
        report('API server back to first write', first.atMs - backMs);
        await replicas.whenConverged();
        expect(replicas.foreignWrites(startedMs)).toEqual([]);
        await eventually(
          () => replicas.updates,
          (count) => count > times.updatesMin,
          { what: `${times.updatesMin} updates` },
        );
      },
    );
  });
}

function passed(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
}
