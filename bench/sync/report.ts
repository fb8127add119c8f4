/** The sync benchmark's numbers as JSON and as a table, each next to its target. */

import type { JsonValue } from '../../src/base/json.ts';
import type { Machine } from '../machine.ts';
import type { Measured, Plan } from './measure.ts';
import type { Subject } from './subjects.ts';

type Rounds = Readonly<Record<Subject, readonly Measured[]>>;

interface Row {
  readonly name: string;
  readonly unit: string;
  readonly value: (measured: Measured) => number;
  /** Of our own subjects; undefined: nothing to reach. `base` is ours without an expression. */
  readonly target?: (subject: Subject, base: Measured, plan: Plan) => Target | undefined;
}

type Target = { readonly atMost: number } | { readonly exactly: number };

const MIB = 2 ** 20;
const isPlain = (subject: Subject): boolean => subject === 'ours';

const ROWS: readonly Row[] = [
  {
    name: 'process start → all right on the host',
    unit: 'ms',
    value: (m) => m.bulkMs,
    target: (subject) => (isPlain(subject) ? { atMost: 2500 } : undefined),
  },
  {
    name: 'host writes for that',
    unit: '',
    value: (m) => m.bulkWrites,
    target: (_subject, _base, plan) => ({ exactly: plan.objects }),
  },
  {
    name: 'CPU per object, bulk',
    unit: 'ms',
    value: (m) => m.bulkCpuMsPerObject,
    target: (subject) => (isPlain(subject) ? { atMost: 1.5 } : undefined),
  },
  { name: 'all updated once, first PUT → last copy', unit: 'ms', value: (m) => m.updateMs },
  { name: 'the updating client’s own time', unit: 'ms', value: (m) => m.updateClientMs },
  {
    name: 'ratio of the two',
    unit: '×',
    value: (m) => m.updateMs / m.updateClientMs,
    target: (subject) => (isPlain(subject) ? { atMost: 1.2 } : undefined),
  },
  {
    name: 'host writes for that',
    unit: '',
    value: (m) => m.updateWrites,
  },
  { name: 'CPU per object, update', unit: 'ms', value: (m) => m.updateCpuMsPerObject },
  {
    name: 'one update, PUT answered → host event, p50',
    unit: 'ms',
    value: (m) => m.singleP50Ms,
    target: (subject, base) => ({ atMost: isPlain(subject) ? 3.5 : base.singleP50Ms + 1.5 }),
  },
  {
    name: 'one update, p99',
    unit: 'ms',
    value: (m) => m.singleP99Ms,
    target: (subject) => (isPlain(subject) ? { atMost: 10 } : undefined),
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
    target: (subject) => (isPlain(subject) ? { atMost: 800 } : undefined),
  },
  {
    name: 'resident memory, all processes',
    unit: 'MiB',
    value: (m) => m.rssBytes / MIB,
    target: (subject) => ({ atMost: isPlain(subject) ? 130 : 220 }),
  },
  { name: 'processes', unit: '', value: (m) => m.processes },
];

export function report(
  rounds: Rounds,
  about: { plan: Plan; machine: Machine; date: string },
): { json: JsonValue; table: string } {
  const medians: Record<Subject, Measured> = {
    ours: medianOf(rounds.ours),
    'ours-with-expression': medianOf(rounds['ours-with-expression']),
    loop: medianOf(rounds.loop),
  };
  const plan = { ...about.plan };
  const json = {
    date: about.date,
    machine: about.machine,
    plan,
    results: { ...medians },
    rounds: { ...rounds },
    targets: targetsOf(medians, about.plan),
  };
  return { json: JSON.parse(JSON.stringify(json)) as JsonValue, table: tableOf(medians, about.plan) };
}

function medianOf(rounds: readonly Measured[]): Measured {
  const [first] = rounds;
  if (first === undefined) throw new Error('no rounds');
  const median = (of: (m: Measured) => number): number => {
    const values = rounds.map(of).sort((a, b) => a - b);
    return values[Math.floor(values.length / 2)] ?? 0;
  };
  const names = Object.keys(first) as (keyof Measured)[];
  return Object.fromEntries(names.map((name) => [name, median((m) => m[name])])) as unknown as Measured; // the same keys
}

function targetsOf(medians: Record<Subject, Measured>, plan: Plan): JsonValue {
  return ROWS.flatMap((row) =>
    (['ours', 'ours-with-expression'] as const).flatMap((subject) => {
      const target = row.target?.(subject, medians.ours, plan);
      if (target === undefined) return [];
      const value = row.value(medians[subject]);
      return [
        {
          name: row.name,
          subject,
          unit: row.unit,
          value,
          target: { ...target },
          reached: isReached(value, target),
        },
      ];
    }),
  );
}

function isReached(value: number, target: Target): boolean {
  return 'atMost' in target ? value <= target.atMost : value === target.exactly;
}

function tableOf(medians: Record<Subject, Measured>, plan: Plan): string {
  const head = `${plan.objects} Endpoints × ${plan.addresses} addresses, median of ${plan.rounds}`;
  const lines = [[head, 'ours', 'with an expression per address', 'bare loop']];
  for (const row of ROWS) {
    const cells = (['ours', 'ours-with-expression', 'loop'] as const).map((subject) => {
      const value = row.value(medians[subject]);
      const text =
        `${Number.isInteger(value) ? value : value.toFixed(value < 100 ? 2 : 0)} ${row.unit}`.trim();
      const target = subject === 'loop' ? undefined : row.target?.(subject, medians.ours, plan);
      return target === undefined
        ? text
        : `${text} (${targetText(target)} ${isReached(value, target) ? 'ok' : 'MISSED'})`;
    });
    lines.push([row.name, ...cells]);
  }
  const widths = [0, 1, 2, 3].map((column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function targetText(target: Target): string {
  return 'atMost' in target ? `≤ ${Number(target.atMost.toFixed(2))}` : `= ${target.exactly}`;
}
