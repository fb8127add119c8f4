/** What a seed means, wherever it is run: the same operations and the same number of daemons. */

import { seededRandom } from '../../apiserver/storage/sqlite/random.ts';
import { createHistory, type Operation } from './operations.ts';

export interface SeededHistory {
  readonly seed: number;
  readonly daemons: number;
  readonly operations: readonly Operation[];
}

/** Every third seed has two daemons. */
export function seededHistory(seed: number, steps: number): SeededHistory {
  const daemons = seed % 3 === 0 ? 2 : 1;
  return { seed, daemons, operations: createHistory(seededRandom(seed), { steps, daemons }) };
}
