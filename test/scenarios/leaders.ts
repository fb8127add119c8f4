/** Three replicas, changes without a pause, and everything that can happen to the leader: never two writers, and short hand-overs. */

import { describe, expect, test } from 'vitest';
import { eventually } from './eventually.ts';
import { Replicas, type LeaseTimes } from './replicas.ts';
import type { NewWorld, World } from './world.ts';

/** What a loaded machine adds to a time that is asserted. */
const SLACK_MS = 1500;
const HANDOVER_MAX_MS = 2000;
const TEST_MAX_MS = 180_000;

export function leaderScenarios(newWorld: NewWorld, times: LeaseTimes): void {
  const opened = async (world: World): Promise<Replicas> => {
    const replicas = await Replicas.start(world, 3, times);
    await replicas.startUpdates();
    await eventually(
      () => replicas.writes().length,
      (count) => count > 50,
      { what: 'writes of the leader' },
    );
    return replicas;
  };
  const expiryMs = times.leaseDurationMs + times.retryPeriodMs;
  const report = (what: string, ms: number): void => {
    process.stdout.write(`leader election: ${what}: ${Math.round(ms)} ms\n`);
  };

  describe('leader election', () => {
    test(
      'standbys are ready and write nothing; a clean end hands over within 2 s',
      async () => {
        await using world = await newWorld();
        const replicas = await opened(world);
        const { leader } = replicas;
        for (const { daemon } of replicas.all) {
          const { status, text } = await daemon.get('/readyz?verbose');
          expect(status).toBe(200);
          expect(text).toContain(daemon === leader.daemon ? 'this replica leads' : 'standby');
          const leads = daemon === leader.daemon ? 1 : 0;
          expect(await daemon.metric('leader_election_master_status')).toBe(leads);
        }
        expect(await leader.daemon.terminate()).toEqual({ code: 0, signal: null });
        const endedMs = performance.now();
        const last = replicas.writes().findLast(({ replica }) => replica === leader)?.atMs ?? endedMs;
        const first = await replicas.whenWrittenByAnother(leader, last, 20_000);
        report(`clean stop, last write to first write (${replicas.updates} updates)`, first.atMs - last);
        expect(first.atMs - endedMs).toBeLessThan(HANDOVER_MAX_MS);
        await replicas.whenConverged();
        expect(replicas.foreignWrites()).toEqual([]);
      },
      TEST_MAX_MS,
    );

    test(
      'a killed leader is replaced when its lease expires',
      async () => {
        await using world = await newWorld();
        const replicas = await opened(world);
        const { leader } = replicas;
        await leader.daemon.kill();
        const killedMs = performance.now();
        const first = await replicas.whenWrittenByAnother(leader, killedMs, expiryMs + 20_000);
        report('kill -9 to first write', first.atMs - killedMs);
        expect(first.atMs - killedMs).toBeLessThan(expiryMs + SLACK_MS);
        await replicas.whenConverged();
        expect(replicas.foreignWrites()).toEqual([]);
      },
      TEST_MAX_MS,
    );

    test(
      'a leader that was stopped past its lease writes nothing when it continues, and ends with 1',
      async () => {
        await using world = await newWorld();
        const replicas = await opened(world);
        const { leader } = replicas;
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
        expect(replicas.foreignWrites()).toEqual([]);
      },
      TEST_MAX_MS,
    );

    test(
      'a lease that is deleted has two writers for two retry periods at most, and all converges',
      async () => {
        await using world = await newWorld();
        const replicas = await opened(world);
        const name = `endpoint-syncer-${world.vcluster}`;
        for (let round = 0; round < 3; round++) {
          await world.host.delete('Lease', world.hostNamespace, name);
          const deletedMs = performance.now();
          await world.host.when('Lease', [world.hostNamespace, name], (lease) => lease !== undefined);
          const seen = replicas.updates;
          await eventually(
            () => replicas.updates,
            (count) => count > seen + 100,
          );
          const late = replicas
            .foreignWrites()
            .filter(({ atMs }) => atMs > deletedMs + 2 * times.retryPeriodMs + SLACK_MS);
          expect(late).toEqual([]);
        }
        await replicas.whenConverged();
      },
      TEST_MAX_MS,
    );

    test(
      'without the API server the leader stops writing in time and ends with 1; a standby leads afterwards',
      async () => {
        await using world = await newWorld();
        const replicas = await opened(world);
        const { leader } = replicas;
        let isAway = true;
        for (const { proxy } of replicas.all) {
          proxy.behaviour = { ...proxy.behaviour, decide: () => ({ kind: isAway ? 'cut' : 'pass' }) };
          proxy.cutAll();
        }
        const awayMs = performance.now();
        expect(await leader.daemon.exited).toEqual({ code: 1, signal: null });
        report('API server away to the end of the leader', performance.now() - awayMs);
        expect(performance.now() - awayMs).toBeLessThan(times.leaseDurationMs + SLACK_MS);
        for (const { daemon } of replicas.standbys) expect((await daemon.get('/healthz')).status).toBe(200);
        isAway = false;
        const backMs = performance.now();
        const first = await replicas.whenWrittenByAnother(leader, backMs, expiryMs + 60_000);
        report('API server back to first write', first.atMs - backMs);
        await replicas.whenConverged();
        expect(replicas.foreignWrites()).toEqual([]);
      },
      TEST_MAX_MS,
    );
  });
}
