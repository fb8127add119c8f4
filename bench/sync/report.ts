/** The sync benchmark's numbers as JSON and as tables, each next to its target. */

import type { JsonValue } from '../../src/base/json.ts';
import type { Machine } from '../machine.ts';
import { median, ratioOf, ratioText, type Ratio } from '../statistics.ts';
import type { Measured, Plan } from './measure.ts';
import { ROWS, type Row, type Target } from './rows.ts';
import { loopOf, replicasOf, SUBJECTS, type Subject } from './subjects.ts';

type Rounds = ReadonlyMap<Subject, readonly Measured[]>;

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
  rounds: Rounds,
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
    targets: targetsOf(rounds, plan),
  };
  const tables = TABLES.filter(([{ subject }]) => rounds.has(subject)).map((columns) =>
    tableOf(
      columns.filter(({ subject }) => rounds.has(subject)),
      rounds,
      plan,
    ),
  );
  return { json: JSON.parse(JSON.stringify(json)) as JsonValue, table: tables.join('\n\n') };
}

/** Every round of a subject measures the same. */
function medianOf(rounds: readonly Measured[]): Measured {
  const [first] = rounds;
  if (first === undefined) throw new Error('no rounds');
  const names = Object.keys(first) as (keyof Measured)[];
  const medians = names.map((name) => [name, median(rounds.flatMap((measured) => measured[name] ?? []))]);
  return Object.fromEntries(medians) as unknown as Measured; // the same keys
}

interface Cell {
  readonly value: number;
  /** The value divided by that of the bare loop. */
  readonly timesLoop: Ratio | undefined;
  readonly target: Target | undefined;
}

/** Undefined if it was not measured. */
function cellOf(row: Row, subject: Subject, rounds: Rounds, plan: Plan): Cell | undefined {
  const values = valuesOf(row, subject, rounds);
  if (values.length === 0) return undefined;
  const isOurs = SUBJECTS[subject].program === 'daemon';
  const loops = isOurs && row.timesLoop !== undefined ? valuesOf(row, loopOf(subject), rounds) : [];
  const limit = row.timesLoop?.[subject];
  const target = limit === undefined ? row.target?.(subject, plan) : { atMost: limit };
  return { value: median(values), timesLoop: ratioOf(values, loops), target: isOurs ? target : undefined };
}

function valuesOf({ value }: Row, subject: Subject, rounds: Rounds): number[] {
  return (rounds.get(subject) ?? []).flatMap((measured) => value(measured) ?? []);
}

function targetsOf(rounds: Rounds, plan: Plan): JsonValue {
  return ROWS.flatMap((row) =>
    [...rounds.keys()].flatMap((subject) => {
      const cell = cellOf(row, subject, rounds, plan);
      if (cell?.target === undefined) return [];
      const { value, timesLoop, target } = cell;
      const ratio = timesLoop === undefined ? {} : { timesLoop: { ...timesLoop } };
      const { name, unit } = row;
      return [{ name, subject, unit, value, ...ratio, target: { ...target }, reached: isReached(cell) }];
    }),
  );
}

function isReached({ value, timesLoop, target }: Cell): boolean {
  if (target === undefined) return true;
  return 'atMost' in target ? (timesLoop?.median ?? value) <= target.atMost : value === target.exactly;
}

function titleOf(subject: Subject, { objects, addresses, rounds }: Plan): string {
  const { plural, elements } = SUBJECTS[subject].kind;
  const replicas = replicasOf(subject);
  const programs = replicas === 1 ? '' : `, ${replicas} replicas`;
  return `${objects} ${plural} × ${addresses} ${elements}${programs}, median of ${rounds}`;
}

/** Without the rows that none of its columns has. */
function tableOf(columns: readonly Column[], rounds: Rounds, plan: Plan): string {
  const title = titleOf(columns[0]?.subject ?? 'ours', plan);
  const lines = [[title, ...columns.map(({ title }) => title)]];
  for (const row of ROWS) {
    const cells = columns.map(({ subject }) => cellOf(row, subject, rounds, plan));
    if (cells.every((cell) => cell === undefined)) continue;
    lines.push([row.name, ...cells.map((cell) => (cell === undefined ? '–' : cellText(cell, row.unit)))]);
  }
  return aligned(lines);
}

function cellText(cell: Cell, unit: string): string {
  const { value, timesLoop, target } = cell;
  const ratio = timesLoop === undefined ? [] : [ratioText(timesLoop)];
  const verdict =
    target === undefined ? [] : [`(${targetText(target)} ${isReached(cell) ? 'ok' : 'MISSED'})`];
  const digits = value < 100 ? 2 : 0;
  const number = `${Number.isInteger(value) ? value : value.toFixed(digits)} ${unit}`.trim();
  return [number, ...ratio, ...verdict].join(' ');
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
