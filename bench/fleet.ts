/** One process for many virtual clusters, compared to as many daemons: memory, idle processor time, the time to join, latency of an update. The host is a
 * real kube-apiserver; embedded API servers in another process stand for the virtual clusters, so that what theirs cost is not in here.
 *
 *   npm run bench -- fleet [--members 1,10,100] [--modes fleet,fleet-with-expression,daemons] [--objects 10] [--updates 200] [--idle 20]
 */

import { parseArgs } from 'node:util';
import { pause, type Running } from './daemon-process.ts';
import { FleetWorld } from './fleet-world.ts';
import { thisMachine } from './machine.ts';
import { costOf, privateBytesOf } from './process-cost.ts';
import type { WriteResult } from './results.ts';
import { quantile } from './statistics.ts';

interface Plan {
  readonly members: readonly number[];
  readonly modes: readonly Mode[];
  readonly objects: number;
  readonly updates: number;
  /** Seconds over which idle processor time is measured. */
  readonly idle: number;
}

/** Times in ms, sizes in bytes, of all processes together. */
interface Row {
  readonly members: number;
  readonly mode: Mode;
  /** From process start to the last copy. */
  readonly startMs: number;
  readonly startCpuMs: number;
  readonly rssBytes: number;
  /** Without pages that processes share. */
  readonly privateBytes: number;
  /** Share of one core. */
  readonly idleShare: number;
  /** From the label to the first copy; for daemons, from the start of another one. */
  readonly joinMs: number;
  readonly updateP50Ms: number;
  readonly updateP99Ms: number;
}

const MODES = ['fleet', 'fleet-with-expression', 'daemons'] as const;
type Mode = (typeof MODES)[number];

const MIB = 2 ** 20;
/** Until delayed work of the start is over. */
const SETTLE_MS = 5000;

export async function run(args: readonly string[], writeResult: WriteResult): Promise<void> {
  const plan = planOf(args);
  const machine = thisMachine();
  const rows: Row[] = [];
  for (const members of plan.members)
    for (const mode of plan.modes) {
      process.stderr.write(`${members} virtual clusters, ${mode}\n`);
      rows.push(await measure(members, mode, plan));
    }
  writeResult({ date: new Date().toISOString().slice(0, 10), machine, objects: plan.objects, rows });
  process.stdout.write(`${table(rows)}\n`);
}

/** With clusters of its own, so that no mode finds what another has left. */
async function measure(members: number, mode: Mode, plan: Plan): Promise<Row> {
  await using world = await FleetWorld.open(members, plan.objects, mode === 'fleet-with-expression');
  const programs = mode === 'daemons' ? [] : [await world.startFleet()];
  const startedMs = programs[0]?.startedMs ?? performance.now();
  if (mode === 'daemons') for (let at = 0; at < members; at++) programs.push(await world.startDaemon(at));
  const copiedMs = await world.copies.whenAll(members * plan.objects, 'created');
  const started = total(programs);
  await pause(SETTLE_MS);
  const idle = await idleShare(programs, plan.idle);
  const { rssBytes, privateBytes } = total(programs);
  const latencies = await world.updates(members, plan.updates);
  return {
    members,
    mode,
    startMs: copiedMs - startedMs,
    startCpuMs: started.cpuMs,
    rssBytes,
    privateBytes,
    idleShare: idle,
    joinMs: await (mode === 'daemons' ? world.joinByDaemon(members) : world.join(members)),
    updateP50Ms: quantile(latencies, 0.5),
    updateP99Ms: quantile(latencies, 0.99),
  };
}

function total(programs: readonly Running[]): { cpuMs: number; rssBytes: number; privateBytes: number } {
  const costs = programs.map(({ pid }) => ({ ...costOf(pid), privateBytes: privateBytesOf(pid) }));
  const sum = (key: 'cpuMs' | 'rssBytes' | 'privateBytes'): number =>
    costs.reduce((all, cost) => all + cost[key], 0);
  return { cpuMs: sum('cpuMs'), rssBytes: sum('rssBytes'), privateBytes: sum('privateBytes') };
}

async function idleShare(programs: readonly Running[], seconds: number): Promise<number> {
  const before = total(programs).cpuMs;
  await pause(seconds * 1000);
  return (total(programs).cpuMs - before) / (seconds * 1000);
}

function table(rows: readonly Row[]): string {
  const mib = (bytes: number): string => `${Math.round(bytes / MIB)} MiB`;
  const cells: readonly (readonly [string, (row: Row) => string])[] = [
    ['virtual clusters', ({ members, mode }) => `${members} ${mode}`],
    ['start to the last copy', ({ startMs }) => `${(startMs / 1000).toFixed(1)} s`],
    ['start, processor time', ({ startCpuMs }) => `${(startCpuMs / 1000).toFixed(1)} s`],
    ['resident memory', ({ rssBytes }) => mib(rssBytes)],
    ['private memory', ({ privateBytes }) => mib(privateBytes)],
    ['idle, share of a core', ({ idleShare: share }) => `${(share * 100).toFixed(1)} %`],
    ['one more, to its first copy', ({ joinMs }) => `${(joinMs / 1000).toFixed(2)} s`],
    ['one update, p50', ({ updateP50Ms }) => `${updateP50Ms.toFixed(1)} ms`],
    ['one update, p99', ({ updateP99Ms }) => `${updateP99Ms.toFixed(1)} ms`],
  ];
  const width = Math.max(...cells.map(([name]) => name.length));
  return cells
    .map(([name, show]) => `${name.padEnd(width)}${rows.map((row) => show(row).padStart(27)).join('')}`)
    .join('\n');
}

function planOf(args: readonly string[]): Plan {
  const { values } = parseArgs({
    args: [...args],
    options: {
      members: { type: 'string', default: '1,10,100' },
      modes: { type: 'string', default: MODES.join() },
      objects: { type: 'string', default: '10' },
      updates: { type: 'string', default: '200' },
      idle: { type: 'string', default: '20' },
    },
  });
  return {
    members: values.members.split(',').map(Number),
    modes: MODES.filter((mode) => values.modes.split(',').includes(mode)),
    objects: Number(values.objects),
    updates: Number(values.updates),
    idle: Number(values.idle),
  };
}
