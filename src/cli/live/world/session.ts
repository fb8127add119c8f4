/** One command on both clusters: configuration, connection, snapshot, and what a sync would do with it. */

import type { Command } from 'commander';
import { loadConfig } from '../../../config/load.ts';
import type { Config } from '../../../config/types.ts';
import { reportProblems } from '../../configuration/config-report.ts';
import { loaderInput } from '../../configuration/config-options.ts';
import { openOfflineSync, type OfflineSync } from '../../offline/offline-sync.ts';
import { showProgress } from '../../output/terminal.ts';
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
  if (!snapshot.config.sync.endpoints.enabled) return { snapshot, objects: [], imports: [] };
  const importPlanner = new ImportPlanner(snapshot);
  const planner = new Planner(snapshot, sync, importPlanner.lookup);
  const keys = planner.keys();
  const objects: ObjectPlan[] = [];
  using progress = showProgress('comparing');
  for (let at = 0; at < keys.length; at += BATCH) {
    objects.push(...(await Promise.all(keys.slice(at, at + BATCH).map((key) => planner.plan(key)))));
    progress.update(objects.length, keys.length);
  }
  return { snapshot, objects, imports: importPlanner.plan(objects) };
}
