/** The sync benchmark's numbers as JSON and as tables, each next to its target. */

import type { JsonValue } from '../../src/base/json.ts';
import type { Machine } from '../machine.ts';
import type { Measured, Plan } from './measure.ts';
import { ROWS, type Row, type Target } from './rows.ts';
import { replicasOf, SUBJECTS, type Subject } from './subjects.ts';

type Medians = ReadonlyMap<Subject, Measured>;

interface Column {
  readonly subject: Subject;
  readonly title: string;
}

/** The columns of each table; the first says what the table is about. */
const TABLES: readonly (readonly [Column, ...Column[]])[] = [
  [
    { subject: 'ours', title: 'ours' },
    { subject: 'ours-with-expression', title: 'with an expression per address' },
    { subject: 'loop', title: 'bare loop' },
  ],
  [
    { subject: 'ours-slices', title: 'ours' },
    { subject: 'loop-slices', title: 'bare loop' },
  ],
  [
    { subject: 'ours-replicas', title: 'the leader' },
    { subject: 'ours', title: 'without leader election' },
  ],
];

export function report(
  rounds: ReadonlyMap<Subject, readonly Measured[]>,
  about: { plan: Plan; machine: Machine; date: string },
): { json: JsonValue; table: string } {
  const { plan, machine, date } = about;
  const medians = new Map([...rounds].map(([subject, measured]) => [subject, medianOf(measured)]));
  const json = {
    date,
    machine,
    plan,
    results: Object.fromEntries(medians),
    rounds: Object.fromEntries(rounds),
    targets: targetsOf(medians, plan),
  };
  const tables = TABLES.map((columns) => tableOf(columns, medians, plan));
  return { json: JSON.parse(JSON.stringify(json)) as JsonValue, table: tables.join('\n\n') };
}

/** Every round of a subject measures the same. */
function medianOf(rounds: readonly Measured[]): Measured {
  const [first] = rounds;
  if (first === undefined) throw new Error('no rounds');
  const median = (of: (m: Measured) => number | undefined): number => {
    const values = rounds.flatMap((measured) => of(measured) ?? []).toSorted((a, b) => a - b);
    return values[Math.floor(values.length / 2)] ?? 0;
  };
  const names = Object.keys(first) as (keyof Measured)[];
  return Object.fromEntries(names.map((name) => [name, median((m) => m[name])])) as unknown as Measured; // the same keys
}

interface Cell {
  readonly value: number;
  readonly target: Target | undefined;
}

/** Undefined if it was not measured. */
function cellOf(
  row: Row,
  subject: Subject,
  { medians, plan }: { medians: Medians; plan: Plan },
): Cell | undefined {
  const [measured, base] = [medians.get(subject), medians.get('ours')];
  const value = measured && row.value(measured);
  if (value === undefined || base === undefined) return undefined;
  const isOurs = SUBJECTS[subject].program === 'daemon';
  return { value, target: isOurs ? row.target?.(subject, base, plan) : undefined };
}

function targetsOf(medians: Medians, plan: Plan): JsonValue {
  return ROWS.flatMap((row) =>
    [...medians.keys()].flatMap((subject) => {
      const { value, target } = cellOf(row, subject, { medians, plan }) ?? {};
      if (value === undefined || target === undefined) return [];
      const { name, unit } = row;
      return [{ name, subject, unit, value, target: { ...target }, reached: isReached(value, target) }];
    }),
  );
}

function isReached(value: number, target: Target): boolean {
  return 'atMost' in target ? value <= target.atMost : value === target.exactly;
}

function titleOf(subject: Subject, { objects, addresses, rounds }: Plan): string {
  const { plural, elements } = SUBJECTS[subject].kind;
  const replicas = replicasOf(subject);
  const programs = replicas === 1 ? '' : `, ${replicas} replicas`;
  return `${objects} ${plural} × ${addresses} ${elements}${programs}, median of ${rounds}`;
}

/** Without the rows that none of its columns has. */
function tableOf(columns: readonly [Column, ...Column[]], medians: Medians, plan: Plan): string {
  const lines = [[titleOf(columns[0].subject, plan), ...columns.map(({ title }) => title)]];
  for (const row of ROWS) {
    const cells = columns.map(({ subject }) => cellOf(row, subject, { medians, plan }));
    if (cells.every((cell) => cell === undefined)) continue;
    lines.push([row.name, ...cells.map((cell) => (cell === undefined ? '–' : cellText(cell, row.unit)))]);
  }
  return aligned(lines);
}

function cellText({ value, target }: Cell, unit: string): string {
  const text = `${Number.isInteger(value) ? value : value.toFixed(value < 100 ? 2 : 0)} ${unit}`.trim();
  if (target === undefined) return text;
  return `${text} (${targetText(target)} ${isReached(value, target) ? 'ok' : 'MISSED'})`;
}

function targetText(target: Target): string {
  return 'atMost' in target ? `≤ ${Number(target.atMost.toFixed(2))}` : `= ${target.exactly}`;
}

function aligned(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  const padded = (line: readonly string[]): string =>
    line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ');
  return lines.map((line) => padded(line).trimEnd()).join('\n');
}
