/** What a command adds to a plan of the engine: the parts of this program, its progress, and the defaults of API servers. */

import type { ConfigProblem } from '../../base/errors.ts';
import type { Config } from '../../syncer/config/config.ts';
import { connect as connectBoth, type Connection } from '../../syncer/rehearsal/connection.ts';
import type { CommandParts } from '../../syncer/rehearsal/snapshot.ts';
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

export function commandParts(): CommandParts {
  return { admit: apiDefaults(), showProgress };
}
