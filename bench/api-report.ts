/** The API benchmark's numbers as JSON and as a table, each next to its target. */

import type { JsonValue } from '../src/base/json.ts';
import type { SubjectName } from './api-servers.ts';
import type { Machine } from './machine.ts';
import { median, ratioOf, ratioText, type Ratio } from './statistics.ts';

/** One server in one round. Times in ms, sizes in bytes, CPU of the server's process per request; the client's in cores. */
export interface Measured {
  readonly getsPerSecond: number;
  readonly getP99Ms: number;
  readonly getBytes: number;
  readonly getCpuMs: number;
  readonly getClientCpu: number;
  readonly listsPerSecond: number;
  readonly listP99Ms: number;
  readonly listBytes: number;
  readonly listClientCpu: number;
  readonly createsPerSecond: number;
  readonly createP99Ms: number;
  readonly createCpuMs: number;
  readonly createClientCpu: number;
  /** Change sent → received, over every event and watcher. */
  readonly deliveryP50Ms: number;
  readonly deliveryP99Ms: number;
  readonly deliveryLastMs: number;
  readonly deliveryWriteMs: number;
  /** Per event, for all watchers. */
  readonly deliveryCpuMs: number;
  readonly deliveryClientCpu: number;
  /** With a tenth of the watchers. */
  readonly rssBytes: number;
  /** With all of them, after the events. */
  readonly usedRssBytes: number;
  /** Growth per watcher: open and idle, and after the events. */
  readonly watcherBytes: number;
  readonly usedWatcherBytes: number;
}

type Round = Partial<Readonly<Record<SubjectName, Measured>>>;

interface Row {
  readonly name: string;
  readonly unit: string;
  readonly digits: number;
  value(measured: Measured): number;
  /** Our value divided by that of kube-apiserver. */
  readonly target?: { readonly atLeast: number } | { readonly atMost: number };
}

const KIB = 1024;

const ROWS: readonly Row[] = [
  { name: 'GET', unit: '/s', digits: 0, value: (m) => m.getsPerSecond, target: { atLeast: 2 } },
  { name: '  p99', unit: 'ms', digits: 1, value: (m) => m.getP99Ms },
  { name: '  server CPU each', unit: 'ms', digits: 3, value: (m) => m.getCpuMs },
  { name: '  client, cores', unit: '', digits: 2, value: (m) => m.getClientCpu },
  { name: 'list of 500', unit: '/s', digits: 1, value: (m) => m.listsPerSecond, target: { atLeast: 2 } },
  { name: '  p99', unit: 'ms', digits: 1, value: (m) => m.listP99Ms },
  { name: '  bytes', unit: 'KiB', digits: 0, value: (m) => m.listBytes / KIB },
  { name: '  client, cores', unit: '', digits: 2, value: (m) => m.listClientCpu },
  { name: 'durable create', unit: '/s', digits: 0, value: (m) => m.createsPerSecond, target: { atLeast: 1 } },
  { name: '  p99', unit: 'ms', digits: 1, value: (m) => m.createP99Ms },
  { name: '  server CPU each', unit: 'ms', digits: 3, value: (m) => m.createCpuMs },
  { name: '  client, cores', unit: '', digits: 2, value: (m) => m.createClientCpu },
  {
    name: 'watch delivery, p99',
    unit: 'ms',
    digits: 1,
    value: (m) => m.deliveryP99Ms,
    target: { atMost: 1 },
  },
  { name: '  p50', unit: 'ms', digits: 1, value: (m) => m.deliveryP50Ms },
  { name: '  the last watcher', unit: 'ms', digits: 1, value: (m) => m.deliveryLastMs },
  { name: '  the write alone', unit: 'ms', digits: 1, value: (m) => m.deliveryWriteMs },
  { name: '  server CPU per event', unit: 'ms', digits: 1, value: (m) => m.deliveryCpuMs },
  { name: '  client, cores', unit: '', digits: 2, value: (m) => m.deliveryClientCpu },
  {
    name: 'memory per watcher',
    unit: 'KiB',
    digits: 1,
    value: (m) => m.watcherBytes / KIB,
    target: { atMost: 1 },
  },
  {
    name: '  after events',
    unit: 'KiB',
    digits: 1,
    value: (m) => m.usedWatcherBytes / KIB,
    target: { atMost: 1 },
  },
  { name: '  resident, all of them', unit: 'MiB', digits: 0, value: (m) => m.usedRssBytes / KIB / KIB },
  { name: '  with a tenth of them', unit: 'MiB', digits: 0, value: (m) => m.rssBytes / KIB / KIB },
];

export function report(
  rounds: readonly Round[],
  about: { plan: object; machine: Machine; date: string },
): { json: JsonValue; table: string } {
  const rows = ROWS.map((row) => {
    const valuesOf = (subject: SubjectName): number[] =>
      rounds.flatMap(({ [subject]: measured }) => (measured ? [row.value(measured)] : []));
    const [ours, theirs] = [valuesOf('ours'), valuesOf('kube-apiserver')];
    return { row, ours: medianOf(ours), theirs: medianOf(theirs), ratio: ratioOf(ours, theirs) };
  });
  const json = {
    date: about.date,
    machine: about.machine,
    plan: about.plan,
    results: rows.map(({ row: { name, unit, target }, ours, theirs, ratio }) => ({
      name: name.trim(),
      unit,
      ours,
      'kube-apiserver': theirs,
      ratio,
      ...(target && ratio ? { target, reached: isReached(target, ratio) } : {}),
    })),
    rounds,
  };
  const lines = rows.map(({ row, ours, theirs, ratio }) => {
    const cells = [ours, theirs].map((value) => `${value?.toFixed(row.digits) ?? '–'} ${row.unit}`.trim());
    return [row.name, ...cells, ratio ? ratioText(ratio) : '–', goal(row.target, ratio)];
  });
  return {
    json: JSON.parse(JSON.stringify(json)) as JsonValue,
    table: aligned([['', 'ours', 'kube-apiserver', 'ratio', 'goal'], ...lines]),
  };
}

function isReached(target: NonNullable<Row['target']>, { median: ratio }: Ratio): boolean {
  return 'atLeast' in target ? ratio >= target.atLeast : ratio <= target.atMost;
}

function goal(target: Row['target'], ratio: Ratio | undefined): string {
  if (!target) return '';
  const text = 'atLeast' in target ? `≥ ${target.atLeast}` : `≤ ${target.atMost}`;
  return ratio === undefined ? text : `${text} ${isReached(target, ratio) ? 'reached' : 'missed'}`;
}

/** Undefined for a subject that did not run. */
function medianOf(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : median(values);
}

function aligned(lines: readonly (readonly string[])[]): string {
  const widths =
    lines[0]?.map((_cell, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? [];
  return lines
    .map((line) =>
      line.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))),
    )
    .map((cells) => cells.join('   ').trimEnd())
    .join('\n');
}
