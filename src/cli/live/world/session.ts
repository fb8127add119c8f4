/** One command on both clusters: configuration, connection, snapshot, and what a sync would do with it. */

import type { Command } from 'commander';
import { loadConfig } from '../../../config/load.ts';
import type { Config } from '../../../config/types.ts';
import { reportProblems } from '../../output/config-report.ts';
import { loaderInput } from '../../configuration/config-options.ts';
import { openOfflineSync, type OfflineSync } from '../../offline/offline-sync.ts';
import { showProgress } from '../../output/terminal.ts';
import { syncedKinds } from '../../../syncer/kinds/synced-kinds.ts';
import { createPatchPipeline } from '../../../syncer/patch/pipeline.ts';
import { connect, type Connection } from './connection.ts';
import { ImportPlanner, type ImportPlan } from './import-plan.ts';
import { Planner, type ObjectPlan } from './plan.ts';
import { readSnapshot, type Snapshot } from './snapshot.ts';

/** What a sync would do with a snapshot. */
export interface WorldPlan {
  readonly snapshot: Snapshot;
  readonly objects: readonly ObjectPlan[];
  readonly imports: readonly ImportPlan[];
}

/** Objects that are planned at the same time: their expressions go to the sandbox together. */
const BATCH = 64;

/** The configuration of a command that talks to both clusters, with its warnings reported. Throws a `ConfigError`. */
export async function liveConfig(command: Command): Promise<Config> {
  const { config, warnings } = await loadConfig(loaderInput(command));
  reportProblems(warnings);
  return config;
}

/** Connects for the time of `work`. */
export async function withConnection<T>(
  command: Command,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  await using connection = await connect(await liveConfig(command));
  return await work(connection);
}

export async function readPlan(connection: Connection): Promise<WorldPlan> {
  const snapshot = await readSnapshot(connection);
  await using sync = await openOfflineSync(snapshot.config);
  return await planSnapshot(snapshot, sync);
}

export async function planSnapshot(snapshot: Snapshot, sync: OfflineSync): Promise<WorldPlan> {
  if (syncedKinds(snapshot.config).length === 0) return { snapshot, objects: [], imports: [] };
  const importPlanner = new ImportPlanner(snapshot);
  const work = plannersOf(snapshot, sync, importPlanner).flatMap((planner) =>
    planner.keys().map((key) => ({ planner, key })),
  );
  const objects: ObjectPlan[] = [];
  using progress = showProgress('comparing');
  for (let at = 0; at < work.length; at += BATCH) {
    const batch = work.slice(at, at + BATCH).map(({ planner, key }) => planner.plan(key));
    objects.push(...(await Promise.all(batch)));
    progress.update(objects.length, work.length);
  }
  return { snapshot, objects, imports: importPlanner.plan(objects) };
}

/** One for each synced kind, in the order of their decisions. */
function plannersOf(snapshot: Snapshot, sync: OfflineSync, { lookup }: ImportPlanner): Planner[] {
  const virtual = snapshot.kinds.flatMap((one) => one.virtual);
  return sync.kindsAmong(virtual).map((kind) => {
    const pipeline = createPatchPipeline(sync.pipelineOptionsFor(kind, lookup));
    return new Planner(kind, snapshot, pipeline);
  });
}
