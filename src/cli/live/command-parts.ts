/** What a command adds to a plan of the engine: its progress, and the defaults of API servers. */

import type { CommandParts } from '../../syncer/rehearsal/snapshot.ts';
import { apiDefaults } from '../offline/api-defaults.ts';
import { showProgress } from '../output/terminal.ts';

export function commandParts(): CommandParts {
  return { admit: apiDefaults(), showProgress };
}
