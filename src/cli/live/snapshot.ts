/** What a command adds to a plan of the engine: the parts of this program, its progress, and the defaults of API servers. */

import type { ConfigProblem } from '../../base/errors.ts';
import type { Config } from '../../syncer/config/config.ts';
import { connect as connectBoth, type Connection } from '../../syncer/rehearsal/connection.ts';
import {
  rehearseSnapshot,
  takeSnapshot,
  type PlanOptions,
  type Snapshot,
  type SnapshotOptions,
  type WorldPlan,
} from '../../syncer/rehearsal/snapshot.ts';
import { programParts } from '../installation.ts';
import { apiDefaults } from '../offline/api-defaults.ts';
import { showProgress } from '../output/terminal.ts';

/** What a command on both clusters runs with. */
export interface LiveConfig {
  readonly config: Config;
  readonly warnings: readonly ConfigProblem[];
  /** The URL to use instead of the one in the Secret of the virtual cluster. */
  readonly serverOf?: (ofSecret: string) => string;
  /** The configuration was read from the host: nothing outside of the namespaces that it maps is written or deleted. */
  readonly isHosted?: boolean;
  /** Which objects of the host it was read from. */
  readonly source?: string;
}

export function connect(
  { config, serverOf, isHosted = false }: Omit<LiveConfig, 'warnings'>,
  giveUpMs?: number,
): Promise<Connection> {
  return connectBoth(config, {
    ...programParts(),
    serverOf,
    isHosted,
    ...(giveUpMs !== undefined && { giveUpMs }),
  });
}

export async function readSnapshot(
  connection: Connection,
  options: Omit<SnapshotOptions, 'progress'> = {},
): Promise<Snapshot> {
  using progress = showProgress('reading');
  return await takeSnapshot(connection, {
    ...options,
    progress: (done, total) => progress.update(done, total),
  });
}

export async function planSnapshot(
  snapshot: Snapshot,
  options: Omit<PlanOptions, 'admit' | 'progress'> = {},
): Promise<WorldPlan> {
  using progress = showProgress('comparing');
  return await rehearseSnapshot(snapshot, {
    ...options,
    admit: apiDefaults(),
    progress: (done, total) => progress.update(done, total),
  });
}
