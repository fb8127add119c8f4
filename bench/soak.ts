/**
 * Updates at a steady rate for a long time, with patches and references: latency, CPU and memory over time, as numbers and as an SVG.
 *
 *   npm run bench -- soak [--minutes 10] [--objects 10000] [--addresses 10] [--rate 50] [--secrets 200]
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startRealClusters } from '../test/e2e/clusters.ts';
import { Guardian } from '../test/support/guardian.ts';
import { pause, whenIdle, type Running } from './daemon-process.ts';
import { quantile } from './statistics.ts';
import { costOfRunning, SyncedEndpoints, kill } from './synced-endpoints.ts';
import { lineChart } from './line-chart.ts';
import { thisMachine } from './machine.ts';
import type { WriteResult } from './results.ts';

interface Plan {
  readonly minutes: number;
  readonly objects: number;
  readonly addresses: number;
  /** Updates per second. */
  readonly rate: number;
  readonly secrets: number;
}

/** One window of the run. */
interface Sample {
  /** Since the first update. */
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly updates: number;
  readonly cpuPercent: number;
  readonly rssMiB: number;
}

const MIB = 2 ** 20;
const WINDOW_MS = 5000;
/** Maximum number of updates without a copy yet; above it, updates are delayed. */
const PENDING_MAX = 2000;

export async function run(args: readonly string[], writeResult: WriteResult): Promise<void> {
  const plan = planOf(args);
  const machine = thisMachine();
  const directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-bench-'));
  await using guardian = new Guardian([directory]);
  await using clusters = await startRealClusters({ controllers: false });
  const { objects, addresses, secrets } = plan;
  const names = { vcluster: 'soak', objects, addresses, secrets };
  await using synced = await SyncedEndpoints.open({ clusters, guardian, directory, ...names });
  const daemon = await synced.start();
  await synced.whenAllCopied();
  await whenIdle(daemon);
  const { samples, latencies } = await soak(synced, daemon, plan);
  await kill(daemon);
  rmSync(directory, { recursive: true, force: true });
  const summary = summaryOf(samples, latencies);
  const date = new Date().toISOString().slice(0, 10);
  writeResult({ date, machine, plan, summary, samples }, { 'soak.svg': chart(samples) });
  process.stdout.write(
    `${Object.entries(summary)
      .map(([name, value]) => `${name.padEnd(18)}${value}`)
      .join('\n')}\n`,
  );
}

async function soak(
  synced: SyncedEndpoints,
  daemon: Running,
  { minutes, objects, rate }: Plan,
): Promise<{ samples: readonly Sample[]; latencies: readonly number[] }> {
  const samples: Sample[] = [];
  const all: number[] = [];
  const startedMs = performance.now();
  const pending = new Set<Promise<void>>();
  let [window, windowStartedMs]: [number[], number] = [[], startedMs];
  let { cpuMs } = costOfRunning(daemon);
  for (let sent = 0; performance.now() < startedMs + minutes * 60_000; sent++) {
    if (pending.size > PENDING_MAX) await Promise.race(pending);
    const update = synced.update((sent * 7919) % objects, `u-${sent}`).then((latency) => {
      window.push(latency);
      all.push(latency);
      pending.delete(update);
    });
    pending.add(update);
    await pause(Math.max(0, startedMs + ((sent + 1) * 1000) / rate - performance.now()));
    const nowMs = performance.now();
    if (nowMs < windowStartedMs + WINDOW_MS) continue;
    const cost = costOfRunning(daemon);
    const sorted = window.toSorted((a, b) => a - b);
    samples.push({
      seconds: Math.round((nowMs - startedMs) / 1000),
      p50Ms: quantile(sorted, 0.5),
      p99Ms: quantile(sorted, 0.99),
      updates: sorted.length,
      cpuPercent: ((cost.cpuMs - cpuMs) / (nowMs - windowStartedMs)) * 100,
      rssMiB: cost.rssBytes / MIB,
    });
    ({ cpuMs } = cost);
    [window, windowStartedMs] = [[], nowMs];
  }
  await Promise.all(pending);
  return { samples, latencies: all.toSorted((a, b) => a - b) };
}

function summaryOf(samples: readonly Sample[], latencies: readonly number[]) {
  const rss = samples.map(({ rssMiB }) => rssMiB);
  const round = (value: number): number => Math.round(value * 10) / 10;
  return {
    updates: latencies.length,
    p50Ms: round(quantile(latencies, 0.5)),
    p99Ms: round(quantile(latencies, 0.99)),
    cpuPercent: round(samples.reduce((sum, { cpuPercent }) => sum + cpuPercent, 0) / samples.length),
    rssFirstMiB: round(rss[0] ?? 0),
    rssLastMiB: round(rss.at(-1) ?? 0),
    rssMaxMiB: round(Math.max(...rss)),
  };
}

function chart(samples: readonly Sample[]): string {
  const points = (of: (sample: Sample) => number) =>
    samples.map((sample) => [sample.seconds / 60, of(sample)] as const);
  return lineChart({
    xLabel: 'minutes',
    panels: [
      {
        label: 'latency, ms',
        lines: [
          { label: 'p99', color: '#d95f02', points: points(({ p99Ms }) => p99Ms) },
          { label: 'p50', color: '#1b9e77', points: points(({ p50Ms }) => p50Ms) },
        ],
      },
      {
        label: 'CPU, % of a core',
        lines: [{ label: '', color: '#7570b3', points: points(({ cpuPercent }) => cpuPercent) }],
      },
      { label: 'RSS, MiB', lines: [{ label: '', color: '#666666', points: points(({ rssMiB }) => rssMiB) }] },
    ],
  });
}

function planOf(args: readonly string[]): Plan {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '10' },
      objects: { type: 'string', default: '10000' },
      addresses: { type: 'string', default: '10' },
      rate: { type: 'string', default: '50' },
      secrets: { type: 'string', default: '200' },
    },
  });
  return {
    minutes: Number(values.minutes),
    objects: Number(values.objects),
    addresses: Number(values.addresses),
    rate: Number(values.rate),
    secrets: Number(values.secrets),
  };
}
