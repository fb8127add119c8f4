/** The rows of the sync benchmark's tables, with their targets. */

import type { Measured, Plan } from './measure.ts';
import type { Subject } from './subjects.ts';

export interface Row {
  readonly name: string;
  readonly unit: string;
  /** Undefined: not measured on that subject. */
  readonly value: (measured: Measured) => number | undefined;
  /** Undefined: no target. `base` is `ours`. */
  readonly target?: (subject: Subject, plan: Plan) => Target | undefined;
  /** At most so many times the value of the bare loop in the same round. */
  readonly timesLoop?: Partial<Record<Subject, number>>;
}

export type Target = { readonly atMost: number } | { readonly exactly: number };

const MIB = 2 ** 20;

export const ROWS: readonly Row[] = [
  {
    name: 'process start → first copy',
    unit: 'ms',
    value: (m) => m.firstCopyMs,
    timesLoop: { ours: 1.5 },
  },
  {
    name: 'process start → last copy',
    unit: 'ms',
    value: (m) => m.bulkMs,
    timesLoop: { ours: 1.25, 'ours-with-expression': 1.4 },
  },
  {
    name: 'host writes, start',
    unit: '',
    value: (m) => m.bulkWrites,
    target: (_subject, plan) => ({ exactly: plan.objects }),
  },
  {
    name: 'CPU per object, start included',
    unit: 'ms',
    value: (m) => m.bulkCpuMsPerObject,
    timesLoop: { ours: 1.7, 'ours-with-expression': 2 },
  },
  {
    name: 'all updated once, first PUT → last copy',
    unit: 'ms',
    value: (m) => m.updateMs,
    timesLoop: { ours: 1.1, 'ours-with-expression': 1.3 },
  },
  { name: 'the updating client’s own time', unit: 'ms', value: (m) => m.updateClientMs },
  {
    name: 'host writes, update',
    unit: '',
    value: (m) => m.updateWrites,
  },
  {
    name: 'CPU per object, update',
    unit: 'ms',
    value: (m) => m.updateCpuMsPerObject,
    timesLoop: { ours: 1.9, 'ours-with-expression': 2.2 },
  },
  {
    name: 'one update, PUT answered → host event, p50',
    unit: 'ms',
    value: (m) => m.singleP50Ms,
    timesLoop: { ours: 1.15, 'ours-with-expression': 1.3 },
  },
  {
    name: 'one update, p99',
    unit: 'ms',
    value: (m) => m.singleP99Ms,
    timesLoop: { ours: 1.3, 'ours-with-expression': 1.5 },
  },
  { name: 'host writes while idle', unit: '', value: (m) => m.idleWrites, target: () => ({ exactly: 0 }) },
  { name: 'CPU while idle, per second', unit: 'ms', value: (m) => m.idleCpuMsPerSecond },
  {
    name: 'host writes after kill -9 and start',
    unit: '',
    value: (m) => m.restartWrites,
    target: () => ({ exactly: 0 }),
  },
  {
    name: 'start after kill -9 → first update copied',
    unit: 'ms',
    value: (m) => m.restartFirstMs,
    target: atMost({ ours: 800 }),
  },
  {
    name: 'peak resident memory, all processes',
    unit: 'MiB',
    value: (m) => m.peakBytes / MIB,
    timesLoop: { ours: 1, 'ours-with-expression': 1.4 },
  },
  { name: 'the same at rest', unit: 'MiB', value: (m) => m.rssBytes / MIB },
  { name: 'processes', unit: '', value: (m) => m.processes },
  {
    name: 'resident memory of a standby',
    unit: 'MiB',
    value: (m) => (m.standbyRssBytes === undefined ? undefined : m.standbyRssBytes / MIB),
  },
  {
    name: 'SIGTERM of the leader → update copied by the next',
    unit: 'ms',
    value: (m) => m.stopHandOverMs,
    target: atMost({ 'ours-replicas': 2000 }),
  },
  {
    name: 'kill -9 of the leader → update copied by the next',
    unit: 'ms',
    value: (m) => m.killHandOverMs,
    // The default leaseDuration and retryPeriod.
    target: atMost({ 'ours-replicas': 17_000 }),
  },
];

/** By subject; the others have no target. */
function atMost(limits: Partial<Record<Subject, number>>): (subject: Subject) => Target | undefined {
  return (subject) => {
    const limit = limits[subject];
    return limit === undefined ? undefined : { atMost: limit };
  };
}
