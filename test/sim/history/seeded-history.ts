/** The history of a seed: always the same operations, daemons and configuration. */

import { seededRandom } from '../../apiserver/storage/sqlite/random.ts';
import type { Settings } from '../daemon/sim-config.ts';
import { drawHistory } from './draw.ts';
import type { Operation } from './operations.ts';

export interface SeededHistory {
  readonly seed: number;
  readonly daemons: number;
  /** Another daemon runs beside them, with `--dry-run`. */
  readonly hasDryRun: boolean;
  readonly settings: Settings;
  readonly isCalm: boolean;
  readonly operations: readonly Operation[];
}

export function seededHistory(seed: number, steps: number): SeededHistory {
  const isCalm = seed % 10 === 0;
  const daemons = !isCalm && seed % 3 === 0 ? 2 : 1;
  const settings: Settings = {
    isPatched: true,
    areEndpointsSynced: seed % 11 !== 5,
    areSlicesSynced: seed % 2 === 1 || seed % 11 === 5,
    areServicesSynced: seed % 3 === 1,
    hasReferences: seed % 4 >= 2,
    hasLeaderElection: seed % 6 === 3 || seed % 13 === 1,
    hasOwner: seed % 9 === 4,
    requiresService: seed % 17 === 3,
    deletesVirtual: seed % 7 === 4,
    isMapped: seed % 8 === 5,
    naming: seed % 7 === 2 ? 'long' : 'short',
  };
  const operations = drawHistory(seededRandom(seed), { steps, daemons, settings, isCalm });
  return { seed, daemons, hasDryRun: seed % 16 === 9, settings, isCalm, operations };
}
