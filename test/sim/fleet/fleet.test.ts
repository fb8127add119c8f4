/** A few histories of fleets in every test run; `npm run sim -- --fleet` runs any number. */

import { describe, expect, test } from 'vitest';
import { fleetHistory, type FleetAction } from './fleet-history.ts';
import { runFleetHistory } from './fleet-run.ts';

/** What is violated when these happen one after the other, each once the one before has settled. */
function history(actions: readonly FleetAction[], replicas = 3): Promise<string[]> {
  const operations = actions.map((action, at) => ({ ...action, atMs: 10_000 * (at + 1) }));
  return runFleetHistory({ seed: 1, replicas, operations });
}

describe('simulated fleets', () => {
  test('no seed violates an invariant', async () => {
    const violated: Record<number, string[]> = {};
    for (const seed of [1, 2, 3, 4, 5, 6]) {
      const violations = await runFleetHistory(fleetHistory(seed, 40));
      if (violations.length > 0) violated[seed] = violations;
    }
    expect(violated).toEqual({});
  });

  test('a seed repeats a history exactly', async () => {
    const traceOf = async (): Promise<string[]> => {
      const lines: string[] = [];
      await runFleetHistory({ ...fleetHistory(7, 30), trace: (line) => lines.push(line) });
      return lines;
    };
    expect(await traceOf()).toEqual(await traceOf());
  });
});

test('the copies of a vCluster that had left the fleet before it was deleted are deleted', async () => {
  const left = await history([
    { kind: 'put', member: 0, object: 'web' },
    { kind: 'select', member: 0, isSelected: false },
    { kind: 'uninstall', member: 0, secretsAfterMs: 0 },
  ]);
  expect(left).toEqual([]);
});

test('the replica that removes what is left of a deleted vCluster holds its Lease', async () => {
  expect(await history([{ kind: 'uninstall', member: 1, secretsAfterMs: 1000 }])).toEqual([]);
});

test('a replica that comes back, and claims a member before the others have listed it, is its only writer', async () => {
  expect(await runFleetHistory(fleetHistory(30038, 40))).toEqual([]);
});

test('a member that leaves at the moment at which its changed access is applied is stopped', async () => {
  expect(await runFleetHistory(fleetHistory(30618, 40))).toEqual([]);
});

test('the copies of a vCluster are deleted that was deleted while its replica was suspended', async () => {
  expect(await runFleetHistory(fleetHistory(20106, 40))).toEqual([]);
});

test('a member that is selected while its replica is suspended joins, although a late response renews the Lease of the replica', async () => {
  expect(await runFleetHistory(fleetHistory(306815, 40))).toEqual([]);
});

test('the Lease of a deleted vCluster is deleted that a suspended replica took after its removal', async () => {
  expect(await runFleetHistory(fleetHistory(418904, 40))).toEqual([]);
});

test('copies are deleted whose deletion the host rejects at first', async () => {
  expect(await runFleetHistory(fleetHistory(20065, 40))).toEqual([]);
});

test.each([40177, 40666, 40967])(
  'the copies of a vCluster stay that is installed again, asleep or not selected, while its removal is retried: seed %i',
  async (seed) => {
    expect(await runFleetHistory(fleetHistory(seed, 40))).toEqual([]);
  },
);

test('the copies of a vCluster are deleted that was asleep when its replica started', async () => {
  const deleted = await history([
    { kind: 'sleep', member: 0 },
    ...[0, 1, 2].map((replica) => ({ kind: 'crash', replica, afterWrites: 0, downMs: 1000 }) as const),
    { kind: 'uninstall', member: 0, secretsAfterMs: 3000 },
  ]);
  expect(deleted).toEqual([]);
});
