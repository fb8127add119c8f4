/** The rows of the sync benchmark's tables, with their targets. */

import type { Measured, Plan } from './measure.ts';
import type { Subject } from './subjects.ts';

export interface Row {
  readonly name: string;
  readonly unit: string;
  /** Undefined: not measured on that subject. */
  readonly value: (measured: Measured) => number | undefined;
  /** Undefined: no target. `base` is `ours`. */
  readonly target?: (subject: Subject, base: Measured, plan: Plan) => Target | undefined;
}

export type Target = { readonly atMost: number } | { readonly exactly: number };

const MIB = 2 ** 20;

export const ROWS: readonly Row[] = [
  {
    name: 'process start → last copy',
    unit: 'ms',
    value: (m) => m.bulkMs,
    target: atMost({ ours: 2500 }),
  },
  {
    name: 'host writes, start',
    unit: '',
    value: (m) => m.bulkWrites,
    target: (_subject, _base, plan) => ({ exactly: plan.objects }),
  },
  {
    name: 'CPU per object, bulk',
    unit: 'ms',
    value: (m) => m.bulkCpuMsPerObject,
    target: atMost({ ours: 1.5 }),
  },
  { name: 'all updated once, first PUT → last copy', unit: 'ms', value: (m) => m.updateMs },
  { name: 'the updating client’s own time', unit: 'ms', value: (m) => m.updateClientMs },
  {
    name: 'update, ratio to the client’s own time',
    unit: '×',
    value: (m) => m.updateMs / m.updateClientMs,
    target: atMost({ ours: 1.2 }),
  },
  {
    name: 'host writes, update',
    unit: '',
    value: (m) => m.updateWrites,
  },
  { name: 'CPU per object, update', unit: 'ms', value: (m) => m.updateCpuMsPerObject },
  {
    name: 'one update, PUT answered → host event, p50',
    unit: 'ms',
    value: (m) => m.singleP50Ms,
    target: (subject, base) => atMost({ ours: 3.5, 'ours-with-expression': base.singleP50Ms + 1.5 })(subject),
  },
  {
    name: 'one update, p99',
    unit: 'ms',
    value: (m) => m.singleP99Ms,
    target: atMost({ ours: 10 }),
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
    name: 'resident memory, all processes',
    unit: 'MiB',
    value: (m) => m.rssBytes / MIB,
    target: atMost({ ours: 130, 'ours-with-expression': 220 }),
  },
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
