/** The effect of the number of objects: start, restart without changes, single updates, memory, on real kube-apiservers.
 *
 *   npm run bench -- scale [--sizes 1000,10000,50000] [--addresses 10] [--singles 100]
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startRealClusters } from '../test/e2e/clusters.ts';
import { Guardian } from '../test/support/guardian.ts';
import { pause, whenIdle } from './daemon-process.ts';
import { quantile } from './statistics.ts';
import { costOfRunning, SyncedEndpoints, kill } from './synced-endpoints.ts';
import { thisMachine } from './machine.ts';
import type { WriteResult } from './results.ts';

interface Plan {
  readonly sizes: readonly number[];
  readonly addresses: number;
  readonly singles: number;
}

/** Times in ms, sizes in bytes. */
interface Row {
  readonly objects: number;
  /** From process start to the last copy. */
  readonly startMs: number;
  readonly startCpuMs: number;
  readonly startRssBytes: number;
  /** After kill -9: from process start until it is ready and its queue is empty. */
  readonly restartMs: number;
  readonly restartCpuMs: number;
  readonly restartWrites: number;
  readonly restartRssBytes: number;
  /** Of single updates after the restart, from sending the PUT to the host event. */
  readonly updateP50Ms: number;
  readonly updateP99Ms: number;
  readonly updateCpuMs: number;
}

const MIB = 2 ** 20;
const SINGLE_PAUSE_MS = 20;
/** Time for delayed writes after a start. */
const QUIET_MS = 3000;

export async function run(args: readonly string[], writeResult: WriteResult): Promise<void> {
  const plan = planOf(args);
  const machine = thisMachine();
  const rows: Row[] = [];
  for (const objects of plan.sizes) {
    process.stderr.write(`${objects} Endpoints\n`);
    rows.push(await measure(objects, plan));
  }
  const date = new Date().toISOString().slice(0, 10);
  writeResult({ date, machine, addresses: plan.addresses, rows });
  process.stdout.write(`${table(rows)}\n`);
}

/** In separate clusters, so that etcd does not contain the objects of another size. */
async function measure(objects: number, { addresses, singles }: Plan): Promise<Row> {
  const directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-bench-'));
  await using guardian = new Guardian([directory]);
  await using clusters = await startRealClusters({ controllers: false });
  const names = { vcluster: `scale-${objects}`, objects, addresses, secrets: 0 };
  await using synced = await SyncedEndpoints.open({ clusters, guardian, directory, ...names });
  const first = await synced.start();
  const copiedMs = await synced.whenAllCopied();
  const started = costOfRunning(first);
  await kill(first);
  const writesBefore = synced.copies.events;
  const second = await synced.start();
  const idleMs = await whenIdle(second);
  const restarted = costOfRunning(second);
  await pause(QUIET_MS);
  const restartWrites = synced.copies.events - writesBefore;
  const before = costOfRunning(second);
  const latencies = await updates(synced, objects, singles);
  const after = costOfRunning(second);
  await kill(second);
  rmSync(directory, { recursive: true, force: true });
  return {
    objects,
    startMs: copiedMs - first.startedMs,
    startCpuMs: started.cpuMs,
    startRssBytes: started.rssBytes,
    restartMs: idleMs - second.startedMs,
    restartCpuMs: restarted.cpuMs,
    restartWrites,
    restartRssBytes: after.rssBytes,
    updateP50Ms: quantile(latencies, 0.5),
    updateP99Ms: quantile(latencies, 0.99),
    updateCpuMs: (after.cpuMs - before.cpuMs) / singles,
  };
}

/** Latencies of sequential updates, sorted. */
async function updates(
  synced: SyncedEndpoints,
  objects: number,
  singles: number,
): Promise<readonly number[]> {
  const latencies: number[] = [];
  for (let at = 0; at < singles; at++) {
    latencies.push(await synced.update((at * 7919) % objects, `single-${at}`));
    await pause(SINGLE_PAUSE_MS);
  }
  return latencies.toSorted((a, b) => a - b);
}

function table(rows: readonly Row[]): string {
  const mib = (bytes: number): string => `${Math.round(bytes / MIB)} MiB`;
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
  const cells: readonly (readonly [string, (row: Row) => string])[] = [
    ['Endpoints', ({ objects }) => String(objects)],
    ['start to the last copy', ({ startMs }) => seconds(startMs)],
    ['start, CPU per object', ({ startCpuMs, objects }) => `${(startCpuMs / objects).toFixed(2)} ms`],
    ['start, RSS', ({ startRssBytes }) => mib(startRssBytes)],
    ['restart without changes', ({ restartMs }) => seconds(restartMs)],
    ['restart, CPU', ({ restartCpuMs }) => seconds(restartCpuMs)],
    ['restart, writes', ({ restartWrites }) => String(restartWrites)],
    ['RSS after the updates', ({ restartRssBytes }) => mib(restartRssBytes)],
    ['one update, p50', ({ updateP50Ms }) => `${updateP50Ms.toFixed(1)} ms`],
    ['one update, p99', ({ updateP99Ms }) => `${updateP99Ms.toFixed(1)} ms`],
    ['one update, CPU', ({ updateCpuMs }) => `${updateCpuMs.toFixed(2)} ms`],
  ];
  const width = Math.max(...cells.map(([name]) => name.length));
  return cells
    .map(([name, show]) => `${name.padEnd(width)}${rows.map((row) => show(row).padStart(12)).join('')}`)
    .join('\n');
}

function planOf(args: readonly string[]): Plan {
  const { values } = parseArgs({
    args: [...args],
    options: {
      sizes: { type: 'string', default: '1000,10000,50000' },
      addresses: { type: 'string', default: '10' },
      singles: { type: 'string', default: '100' },
    },
  });
  return {
    sizes: values.sizes.split(',').map(Number),
    addresses: Number(values.addresses),
    singles: Number(values.singles),
  };
}
