/** End to end on real kube-apiservers: syncs Endpoints or EndpointSlices to the host in bulk, then measures bulk updates, single updates, idle
 * cost, and a restart after kill -9; in the same run, the minimal loop of `peers/loop.ts`. Then the same with three replicas with leader
 * election, and two hand-overs instead of the restart.
 *
 *   npm run bench -- sync [--objects 1000] [--addresses 10] [--singles 300] [--idle-seconds 5] [--rounds 3] [--controllers] [--only ours,loop]
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startRealClusters } from '../../test/e2e/clusters.ts';
import { Guardian } from '../../test/support/guardian.ts';
import { thisMachine } from '../machine.ts';
import { measure, type Measured, type Plan } from './measure.ts';
import { report } from './report.ts';
import { SUBJECTS, type Subject } from './subjects.ts';
import type { WriteResult } from '../results.ts';

export async function run(args: readonly string[], writeResult: WriteResult): Promise<void> {
  const plan = planOf(args);
  const machine = thisMachine();
  const directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-bench-'));
  await using guardian = new Guardian([directory]);
  await using clusters = await startRealClusters({ controllers: plan.controllers });
  const rounds = new Map<Subject, Measured[]>();
  for (let round = 0; round < plan.rounds; round++) {
    // In the other order each time, so that the load of a busy machine does not favour one.
    for (const subject of round % 2 === 0 ? plan.subjects : plan.subjects.toReversed()) {
      process.stderr.write(`round ${round + 1} of ${plan.rounds}: ${subject}\n`);
      const measured = await measure(subject, { plan, clusters, guardian, directory, round });
      rounds.set(subject, [...(rounds.get(subject) ?? []), measured]);
    }
  }
  const result = report(rounds, { plan, machine, date: new Date().toISOString().slice(0, 10) });
  writeResult(result.json);
  process.stdout.write(`${result.table}\n`);
  rmSync(directory, { recursive: true, force: true });
}

function planOf(args: readonly string[]): Plan {
  const { values } = parseArgs({
    args: [...args],
    options: {
      objects: { type: 'string', default: '1000' },
      addresses: { type: 'string', default: '10' },
      singles: { type: 'string', default: '300' },
      'idle-seconds': { type: 'string', default: '5' },
      rounds: { type: 'string', default: '3' },
      controllers: { type: 'boolean', default: false },
      only: { type: 'string' },
    },
  });
  const known = Object.keys(SUBJECTS) as Subject[];
  const only = values.only?.split(',');
  return {
    subjects: known.filter((subject) => only?.includes(subject) ?? true),
    objects: Number(values.objects),
    addresses: Number(values.addresses),
    singles: Number(values.singles),
    idleMs: Number(values['idle-seconds']) * 1000,
    rounds: Number(values.rounds),
    controllers: values.controllers,
  };
}
