/** The phases of the sync benchmark, one after another on the same objects. */

import type { KubeObject } from '../../src/kube/object.ts';
import { killGroup } from '../../test/support/guardian.ts';
import type { TestCluster } from '../../test/scenarios/cluster-client.ts';
import type { CopyWatch } from '../copy-watch.ts';
import { pause, type Running } from '../daemon-process.ts';
import { quantile } from '../statistics.ts';
import { inParallel } from '../../test/support/in-parallel.ts';
import { costOf } from '../process-cost.ts';
import { buildObject, FIRST_NODE, withNode, type BenchKind } from './kinds.ts';

/** Times in ms, sizes in bytes. */
export interface Bulk {
  /** From process start to the host event of the first copy. */
  readonly firstCopyMs: number;
  /** The same of the last copy. */
  readonly bulkMs: number;
  readonly bulkWrites: number;
  readonly bulkCpuMsPerObject: number;
}

export interface Update {
  /** Time of the updating client: from sending the first PUT to the response to the last one. */
  readonly updateClientMs: number;
  /** First PUT sent to the host event of the last copy. */
  readonly updateMs: number;
  readonly updateWrites: number;
  readonly updateCpuMsPerObject: number;
}

export interface Singles {
  readonly singleP50Ms: number;
  readonly singleP99Ms: number;
}

export interface Idle {
  readonly idleWrites: number;
  readonly idleCpuMsPerSecond: number;
}

export interface Restart {
  /** Writes after kill -9 and start, besides the one update in between. */
  readonly restartWrites: number;
  /** From process start to the host event of that update. */
  readonly restartFirstMs: number;
}

/** The objects of one subject in one round; `objects` has their newest versions. */
export interface Workload {
  readonly kind: BenchKind;
  readonly virtual: TestCluster;
  readonly copies: CopyWatch;
  readonly objects: KubeObject[];
}

interface BulkOptions {
  readonly startedMs: number;
  readonly firstCopy: Promise<number>;
  readonly writer: () => Promise<Running>;
}

const UPDATE_IN_FLIGHT = 10;
const SINGLE_PAUSE_MS = 8;

export async function createObjects(
  virtual: TestCluster,
  kind: BenchKind,
  { objects: count, ...shape }: { objects: number; addresses: number; namespace: string },
): Promise<KubeObject[]> {
  const objects: KubeObject[] = [];
  await inParallel(count, UPDATE_IN_FLIGHT, async (index) => {
    objects[index] = await virtual.create(kind.kind, buildObject(kind, { ...shape, index }));
  });
  return objects;
}

/** Resolves with the response of the API server. */
export async function update(
  { kind, virtual, objects }: Workload,
  index: number,
  node: string,
): Promise<void> {
  const object = objects[index];
  if (object === undefined) throw new Error(`no object ${index}`);
  objects[index] = await virtual.update(kind.kind, withNode(kind, object, node));
}

/** Resolves with the time at which the copy was seen with that node. */
export function whenCopied({ copies, objects }: Workload, index: number, node: string): Promise<number> {
  return copies.when(objects[index]?.metadata.name ?? '', node);
}

/** `firstCopy`: when it was seen. `writer` is called when all copies are up to date. */
export async function bulkPhase(
  { copies, objects }: Workload,
  { startedMs, firstCopy, writer }: BulkOptions,
): Promise<Bulk> {
  const doneMs = await copies.whenAll(objects.length, FIRST_NODE);
  const { cpuMs } = costOf((await writer()).pid);
  return {
    firstCopyMs: (await firstCopy) - startedMs,
    bulkMs: doneMs - startedMs,
    bulkWrites: copies.events,
    bulkCpuMsPerObject: cpuMs / objects.length,
  };
}

export async function updatePhase(workload: Workload, process: Running): Promise<Update> {
  const { copies, objects } = workload;
  const [writes, { cpuMs }] = [copies.events, costOf(process.pid)];
  const startedMs = performance.now();
  await inParallel(objects.length, UPDATE_IN_FLIGHT, (index) => update(workload, index, 'node-1'));
  const answeredMs = performance.now();
  const doneMs = await copies.whenAll(objects.length, 'node-1');
  return {
    updateClientMs: answeredMs - startedMs,
    updateMs: doneMs - startedMs,
    updateWrites: copies.events - writes,
    updateCpuMsPerObject: (costOf(process.pid).cpuMs - cpuMs) / objects.length,
  };
}

export async function singlePhase(workload: Workload, count: number): Promise<Singles> {
  const latencies: number[] = [];
  for (let i = 0; i < count; i++) {
    const index = (i * 7) % workload.objects.length;
    const node = `single-${i}`;
    const seen = whenCopied(workload, index, node);
    await update(workload, index, node);
    const answeredMs = performance.now();
    latencies.push(Math.max(0, (await seen) - answeredMs));
    await pause(SINGLE_PAUSE_MS);
  }
  latencies.sort((a, b) => a - b);
  return { singleP50Ms: quantile(latencies, 0.5), singleP99Ms: quantile(latencies, 0.99) };
}

export async function idlePhase({ copies }: Workload, process: Running, idleMs: number): Promise<Idle> {
  const [writes, { cpuMs }] = [copies.events, costOf(process.pid)];
  await pause(idleMs);
  return {
    idleWrites: copies.events - writes,
    idleCpuMsPerSecond: ((costOf(process.pid).cpuMs - cpuMs) / idleMs) * 1000,
  };
}

/** Kill -9 and start; one object changes while nothing runs. The process that was started is killed as well. */
export async function restartPhase(
  workload: Workload,
  { child }: Running,
  start: () => Promise<Running>,
): Promise<Restart> {
  const { copies } = workload;
  await killGroup(child);
  const writes = copies.events;
  const seen = whenCopied(workload, 0, 'restarted');
  await update(workload, 0, 'restarted');
  const restarted = await start();
  const seenMs = await seen;
  await pause(2000); // anything else that the start would write
  await killGroup(restarted.child);
  return { restartWrites: copies.events - writes - 1, restartFirstMs: seenMs - restarted.startedMs };
}
