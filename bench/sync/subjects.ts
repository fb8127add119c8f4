/** The measured programs, each with its kind and how it is started. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'rolldown';
import type { JsonObject } from '../../src/base/json.ts';
import type { RealClusters } from '../../test/e2e/clusters.ts';
import type { Guardian } from '../../test/support/guardian.ts';
import { compileOnce, startDaemon, startNode, type Running } from '../daemon-process.ts';
import { ENDPOINT_SLICES, ENDPOINTS, type BenchKind } from './kinds.ts';

export type Subject =
  | 'ours'
  | 'ours-with-expression'
  | 'loop'
  | 'ours-slices'
  | 'loop-slices'
  | 'ours-replicas';

interface SubjectOptions {
  readonly kind: BenchKind;
  readonly program: 'daemon' | 'loop';
  readonly hasExpression?: boolean;
  /** With leader election if more than one. */
  readonly replicas?: number;
}

export const SUBJECTS: Readonly<Record<Subject, SubjectOptions>> = {
  ours: { kind: ENDPOINTS, program: 'daemon' },
  'ours-with-expression': { kind: ENDPOINTS, program: 'daemon', hasExpression: true },
  loop: { kind: ENDPOINTS, program: 'loop' },
  'ours-slices': { kind: ENDPOINT_SLICES, program: 'daemon' },
  'loop-slices': { kind: ENDPOINT_SLICES, program: 'loop' },
  'ours-replicas': { kind: ENDPOINTS, program: 'daemon', replicas: 3 },
};

/** Where one subject runs in one round. */
export interface Place {
  readonly clusters: RealClusters;
  readonly guardian: Guardian;
  readonly directory: string;
  readonly vcluster: string;
  readonly virtualNamespace: string;
  readonly hostNamespace: string;
}

const LOOP = join(import.meta.dirname, '..', 'peers', 'loop.ts');

/** The bare loop of the same kind. */
export function loopOf(subject: Subject): Subject {
  return SUBJECTS[subject].kind === ENDPOINTS ? 'loop' : 'loop-slices';
}

export function replicasOf(subject: Subject): number {
  return SUBJECTS[subject].replicas ?? 1;
}

/** Starts one replica of the program. */
export async function startReplica(subject: Subject, place: Place): Promise<Running> {
  const { kind, program, hasExpression = false } = SUBJECTS[subject];
  if (program === 'daemon') {
    const settings = { leaderElection: { enabled: replicasOf(subject) > 1 } };
    return startDaemon({ ...place, toHost: toHostOf(kind, hasExpression), settings });
  }
  const files = [place.clusters.virtual.kubeconfigPath, place.clusters.host.kubeconfigPath];
  const bundle = await bundledLoop(place);
  const args = [bundle, ...files, place.vcluster, place.hostNamespace, kind.resource];
  return { ...startNode(place, args), url: '' };
}

/** Bundled and compiled as the daemon is: stripping its types would take 60 MiB and 0.2 s of its own. */
async function bundledLoop(place: Place): Promise<string> {
  const file = join(place.directory, 'loop.mjs');
  if (!existsSync(file)) await build({ input: LOOP, platform: 'node', output: { file } });
  await compileOnce(place, file, [[]]);
  return file;
}

function toHostOf({ nodePath, toHostKey }: BenchKind, hasExpression: boolean): JsonObject {
  const patch = { path: nodePath, expression: 'value + "." + context.vcluster.name' };
  // Endpoints are synced by default.
  return {
    endpoints: { enabled: false },
    [toHostKey]: { enabled: true, patches: hasExpression ? [patch] : [] },
  };
}
