/** What a command adds to the engine: clock and version, its progress, the defaults of API servers, and what daemons say of themselves. */

import { readDaemon } from '../../fleet/hosted/daemon-state.ts';
import { programParts } from '../installation.ts';
import { apiDefaults } from '../offline/api-defaults.ts';
import { showProgress } from '../output/terminal.ts';

export function commandParts() {
  return { ...programParts(), admit: apiDefaults(), showProgress, readDaemon };
}
