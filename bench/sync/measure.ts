/** One subject, one round: every phase of the sync benchmark in its own namespaces of the shared clusters. */

import { join } from 'node:path';
import type { KubeObject } from '../../src/kube/object.ts';
import type { JsonValue } from '../../src/base/json.ts';
import type { RealClusters } from '../../test/e2e/clusters.ts';
import { killGroup, type Guardian } from '../../test/e2e/guardian.ts';
import { TestCluster } from '../../test/scenarios/cluster-client.ts';
import { CopyWatch } from '../copy-watch.ts';
import { pause, startDaemon, startNode, type Running } from '../daemon-process.ts';
import { inParallel } from '../in-parallel.ts';
import { costOf, type ProcessCost } from '../process-cost.ts';

export type Subject = 'ours' | 'ours-with-expression' | 'loop';

export interface Plan {
  readonly objects: number;
  readonly addresses: number;
  readonly singles: number;
  readonly idleMs: number;
  readonly rounds: number;
  readonly controllers: boolean;
}

/** Times in ms, sizes in bytes. */
export interface Measured {
  /** From process start to the host event of the last copy. */
  readonly bulkMs: number;
  readonly bulkWrites: number;
  readonly bulkCpuMsPerObject: number;
  /** The updating client's own time: first PUT sent to last PUT answered. */
  readonly updateClientMs: number;
  /** First PUT sent to the host event of the last copy. */
  readonly updateMs: number;
  readonly updateWrites: number;
  readonly updateCpuMsPerObject: number;
  readonly singleP50Ms: number;
  readonly singleP99Ms: number;
  readonly idleWrites: number;
  readonly idleCpuMsPerSecond: number;
  readonly rssBytes: number;
  readonly processes: number;
  /** Writes after kill -9 and start, besides the one update in between. */
  readonly restartWrites: number;
  /** From process start to the host event of that update. */
  readonly restartFirstMs: number;
}

export interface Bench {
  readonly plan: Plan;
  readonly clusters: RealClusters;
  readonly guardian: Guardian;
  readonly directory: string;
  readonly round: number;
}

const UPDATE_IN_FLIGHT = 10;
const SINGLE_PAUSE_MS = 8;
const NODE = 'nodeName';
const LOOP = join(import.meta.dirname, '..', 'peers', 'loop.ts');

export async function measure(subject: Subject, bench: Bench): Promise<Measured> {
  const { plan, clusters, round } = bench;
  const vcluster = `${subject}-${round}`;
  const place = { vcluster, virtualNamespace: `team-${vcluster}`, hostNamespace: `host-${vcluster}` };
  await using virtual = new TestCluster(clusters.virtual.kubeconfigPath);
  await using host = new TestCluster(clusters.host.kubeconfigPath);
  await virtual.ensureNamespace(place.virtualNamespace);
  await host.ensureNamespace(place.hostNamespace);
  const objects = await createObjects(virtual, plan, place.virtualNamespace);
  await using copies = await CopyWatch.open(
    host,
    { kind: 'Endpoints', namespace: place.hostNamespace },
    nodeOf,
  );

  let process = await startSubject(subject, bench, place);
  const bulk = await bulkPhase(process, copies, plan);
  const update = await updatePhase({ virtual, copies, process, objects });
  const singles = await singlePhase({ virtual, copies, objects, count: plan.singles });
  const idle = await idlePhase(process, copies, plan.idleMs);
  const { rssBytes, processes } = costOf(process.pid);

  await killGroup(process.child);
  const restart = await restartPhase({ virtual, copies, objects }, async () => {
    process = await startSubject(subject, bench, place);
    return process.startedMs;
  });
  await killGroup(process.child);
  await virtual.deleteAll('Endpoints', place.virtualNamespace);
  await host.deleteAll('Endpoints', place.hostNamespace);
  return { ...bulk, ...update, ...singles, ...idle, rssBytes, processes, ...restart };
}

interface Place {
  readonly vcluster: string;
  readonly virtualNamespace: string;
  readonly hostNamespace: string;
}

async function startSubject(
  subject: Subject,
  { clusters, directory, guardian }: Bench,
  { vcluster, hostNamespace }: Place,
): Promise<Running> {
  if (subject === 'loop') {
    const files = [clusters.virtual.kubeconfigPath, clusters.host.kubeconfigPath];
    const args = [LOOP, ...files, vcluster, hostNamespace];
    return { ...startNode({ directory, guardian, vcluster }, args), url: '' };
  }
  const expression = {
    path: `subsets[*].addresses[*].${NODE}`,
    expression: 'value + "." + context.vcluster.name',
  };
  const toHost = { endpoints: { enabled: true, patches: subject === 'ours' ? [] : [expression] } };
  return startDaemon({ clusters, directory, guardian, vcluster, hostNamespace, toHost });
}

async function createObjects(virtual: TestCluster, plan: Plan, namespace: string): Promise<KubeObject[]> {
  const objects: KubeObject[] = [];
  await inParallel(plan.objects, UPDATE_IN_FLIGHT, async (index) => {
    objects[index] = await virtual.create('Endpoints', {
      metadata: { name: `ep-${index}`, namespace, labels: { app: `app-${index % 20}` } },
      subsets: [
        {
          addresses: Array.from({ length: plan.addresses }, (_, i) => ({
            ip: `10.${(index >> 8) & 255}.${index & 255}.${i + 1}`,
            [NODE]: 'node-0',
            targetRef: { kind: 'Pod', name: `ep-${index}-${i}`, namespace, uid: `uid-${index}-${i}` },
          })),
          ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
        },
      ],
    });
  });
  return objects;
}

/** The same object with every address on another node. */
function moved(object: KubeObject, node: string): KubeObject {
  const subsets = object['subsets'] as { addresses: Record<string, JsonValue>[] }[]; // created by createObjects
  return {
    ...object,
    subsets: subsets.map((subset) => ({
      ...subset,
      addresses: subset.addresses.map((address) => ({ ...address, [NODE]: node })),
    })),
  };
}

function nodeOf(copy: KubeObject): string {
  const subsets = copy['subsets'] as { addresses?: { nodeName?: string }[] }[] | undefined; // an Endpoints object
  // An expression appends a suffix after the first dot.
  return subsets?.[0]?.addresses?.[0]?.nodeName?.split('.')[0] ?? '';
}

async function bulkPhase(
  process: Running,
  copies: CopyWatch,
  plan: Plan,
): Promise<Pick<Measured, 'bulkMs' | 'bulkWrites' | 'bulkCpuMsPerObject'>> {
  const doneMs = await copies.whenAll(plan.objects, 'node-0');
  const { cpuMs } = costOf(process.pid);
  return {
    bulkMs: doneMs - process.startedMs,
    bulkWrites: copies.events,
    bulkCpuMsPerObject: cpuMs / plan.objects,
  };
}

interface Phase {
  readonly virtual: TestCluster;
  readonly copies: CopyWatch;
  readonly objects: KubeObject[];
}

async function updatePhase({
  virtual,
  copies,
  objects,
  process,
}: Phase & { process: Running }): Promise<
  Pick<Measured, 'updateClientMs' | 'updateMs' | 'updateWrites' | 'updateCpuMsPerObject'>
> {
  const before: ProcessCost = costOf(process.pid);
  const writes = copies.events;
  const startedMs = performance.now();
  await inParallel(objects.length, UPDATE_IN_FLIGHT, async (index) => {
    const object = objects[index];
    if (object !== undefined) objects[index] = await virtual.update('Endpoints', moved(object, 'node-1'));
  });
  const answeredMs = performance.now();
  const doneMs = await copies.whenAll(objects.length, 'node-1');
  return {
    updateClientMs: answeredMs - startedMs,
    updateMs: doneMs - startedMs,
    updateWrites: copies.events - writes,
    updateCpuMsPerObject: (costOf(process.pid).cpuMs - before.cpuMs) / objects.length,
  };
}

async function singlePhase({
  virtual,
  copies,
  objects,
  count,
}: Phase & { count: number }): Promise<Pick<Measured, 'singleP50Ms' | 'singleP99Ms'>> {
  const latencies: number[] = [];
  for (let i = 0; i < count; i++) {
    const index = (i * 7) % objects.length;
    const object = objects[index];
    if (object === undefined) continue;
    const node = `single-${i}`;
    const seen = copies.when(object.metadata.name, node);
    objects[index] = await virtual.update('Endpoints', moved(object, node));
    const answeredMs = performance.now();
    latencies.push(Math.max(0, (await seen) - answeredMs));
    await pause(SINGLE_PAUSE_MS);
  }
  latencies.sort((a, b) => a - b);
  const at = (share: number): number =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0;
  return { singleP50Ms: at(0.5), singleP99Ms: at(0.99) };
}

async function idlePhase(
  process: Running,
  copies: CopyWatch,
  idleMs: number,
): Promise<Pick<Measured, 'idleWrites' | 'idleCpuMsPerSecond'>> {
  const [writes, { cpuMs }] = [copies.events, costOf(process.pid)];
  await pause(idleMs);
  return {
    idleWrites: copies.events - writes,
    idleCpuMsPerSecond: ((costOf(process.pid).cpuMs - cpuMs) / idleMs) * 1000,
  };
}

async function restartPhase(
  { virtual, copies, objects }: Phase,
  start: () => Promise<number>,
): Promise<Pick<Measured, 'restartWrites' | 'restartFirstMs'>> {
  const writes = copies.events;
  const [object] = objects;
  if (object === undefined) throw new Error('no objects');
  const seen = copies.when(object.metadata.name, 'restarted');
  objects[0] = await virtual.update('Endpoints', moved(object, 'restarted'));
  const startedMs = await start();
  const seenMs = await seen;
  await pause(2000); // anything else that the start would write
  return { restartWrites: copies.events - writes - 1, restartFirstMs: seenMs - startedMs };
}
