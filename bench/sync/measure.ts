/** One subject, one round: every phase of the sync benchmark in its own namespaces of the shared clusters. */

import type { RealClusters } from '../../test/e2e/clusters.ts';
import type { Guardian } from '../../test/support/guardian.ts';
import { TestCluster } from '../../test/scenarios/cluster-client.ts';
import { CopyWatch } from '../copy-watch.ts';
import type { Running } from '../daemon-process.ts';
import { costOf } from '../process-cost.ts';
import { handOverPhase, writerOf, type HandOver } from './hand-over.ts';
import { nodeOf } from './kinds.ts';
import {
  bulkPhase,
  createObjects,
  idlePhase,
  restartPhase,
  singlePhase,
  updatePhase,
  type Bulk,
  type Idle,
  type Restart,
  type Singles,
  type Update,
  type Workload,
} from './phases.ts';
import { replicasOf, startReplica, SUBJECTS, type Place, type Subject } from './subjects.ts';

export interface Plan {
  readonly objects: number;
  readonly addresses: number;
  readonly singles: number;
  readonly idleMs: number;
  readonly rounds: number;
  readonly subjects: readonly Subject[];
  readonly controllers: boolean;
}

/** A single process is restarted; several replicas hand over. */
export interface Measured extends Bulk, Update, Singles, Idle, Partial<Restart>, Partial<HandOver> {
  /** Of the process that writes, and its children. */
  readonly rssBytes: number;
  readonly peakBytes: number;
  readonly processes: number;
}

export interface Bench {
  readonly plan: Plan;
  readonly clusters: RealClusters;
  readonly guardian: Guardian;
  readonly directory: string;
  readonly round: number;
}

export async function measure(subject: Subject, bench: Bench): Promise<Measured> {
  const { clusters, round } = bench;
  // Of one length, because a name is in each object a dozen times.
  const vcluster = `subject-${Object.keys(SUBJECTS).indexOf(subject)}-${round}`;
  const place = {
    ...bench,
    vcluster,
    virtualNamespace: `team-${vcluster}`,
    hostNamespace: `host-${vcluster}`,
  };
  await using virtual = new TestCluster(clusters.virtual.kubeconfigPath);
  await using host = new TestCluster(clusters.host.kubeconfigPath);
  await virtual.ensureNamespace(place.virtualNamespace);
  await host.ensureNamespace(place.hostNamespace);
  const { kind } = SUBJECTS[subject];
  const objects = await createObjects(virtual, kind, { ...bench.plan, namespace: place.virtualNamespace });
  const scope = { kind: kind.kind, namespace: place.hostNamespace };
  await using copies = await CopyWatch.open(host, scope, (copy) => nodeOf(kind, copy));

  const measured = await measurePhases(
    { kind, virtual, copies, objects },
    { subject, place, plan: bench.plan },
  );
  await virtual.deleteAll(kind.kind, place.virtualNamespace);
  await host.deleteAll(kind.kind, place.hostNamespace);
  return measured;
}

async function measurePhases(
  workload: Workload,
  { subject, place, plan }: { subject: Subject; place: Place; plan: Plan },
): Promise<Measured> {
  const start = (): Promise<Running> => startReplica(subject, place);
  const firstCopy = workload.copies.whenChanged();
  const first = await start();
  const processes = [first];
  while (processes.length < replicasOf(subject)) processes.push(await start());
  const bulk = await bulkPhase(workload, {
    startedMs: first.startedMs,
    firstCopy,
    writer: () => writerOf(processes),
  });
  const writer = await writerOf(processes);
  const updates = await updatePhase(workload, writer);
  const singles = await singlePhase(workload, plan.singles);
  const idle = await idlePhase(workload, writer, plan.idleMs);
  const { rssBytes, peakBytes, processes: count } = costOf(writer.pid);
  const ends =
    processes.length === 1
      ? await restartPhase(workload, writer, start)
      : await handOverPhase(workload, processes, start);
  return { ...bulk, ...updates, ...singles, ...idle, rssBytes, peakBytes, processes: count, ...ends };
}
