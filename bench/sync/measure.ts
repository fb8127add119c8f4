/** One subject, one round: every phase of the sync benchmark in its own namespaces of the shared clusters. */

import type { RealClusters } from '../../test/e2e/clusters.ts';
import { killGroup, type Guardian } from '../../test/e2e/guardian.ts';
import { TestCluster } from '../../test/scenarios/cluster-client.ts';
import { CopyWatch } from '../copy-watch.ts';
import { costOf } from '../process-cost.ts';
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
import { startSubject, SUBJECTS, type Place, type Subject } from './subjects.ts';

export interface Plan {
  readonly objects: number;
  readonly addresses: number;
  readonly singles: number;
  readonly idleMs: number;
  readonly rounds: number;
  readonly controllers: boolean;
}

export interface Measured extends Bulk, Update, Singles, Idle, Restart {
  readonly rssBytes: number;
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
  const vcluster = `${subject}-${round}`;
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
  let process = await startSubject(subject, place);
  const bulk = await bulkPhase(workload, process);
  const update = await updatePhase(workload, process);
  const singles = await singlePhase(workload, plan.singles);
  const idle = await idlePhase(workload, process, plan.idleMs);
  const { rssBytes, processes } = costOf(process.pid);

  await killGroup(process.child);
  const restart = await restartPhase(workload, async () => (process = await startSubject(subject, place)));
  await killGroup(process.child);
  return { ...bulk, ...update, ...singles, ...idle, rssBytes, processes, ...restart };
}
