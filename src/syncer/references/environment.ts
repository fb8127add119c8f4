/** Dependencies of the import of references. */

import type { ReferenceDecision, ReferenceObservation } from './decide-reference.ts';
import type { Attempt, SyncEnvironment } from '../reconcile/environment.ts';
import type { Discoveries } from './referenced-kind.ts';

/** Learns what is decided for each referenced object, and for each import that no object may reference any more. */
export type ReferenceListener = (
  seen: ReferenceObservation,
  decision: ReferenceDecision,
  isReferenced: boolean,
  attempt: Attempt,
) => void;

/** How long to wait for what some objects need. A request of a command may take a minute, see `COMMAND_LIMITS`. */
export function longestWaitMs(
  { giveUpMs }: Pick<ReferenceEnvironment, 'giveUpMs'>,
  ofDaemonMs: number,
): number {
  return giveUpMs === undefined ? ofDaemonMs : COMMAND_WAIT_MS;
}

const COMMAND_WAIT_MS = 5 * 60_000;

export interface ReferenceEnvironment extends SyncEnvironment {
  readonly discoveries: Discoveries;
  /** Undefined in the daemon, which waits for no kind for long, because only some objects need it. The answer of a command has to be complete. */
  readonly giveUpMs?: number | undefined;
  /** Undefined in the daemon. */
  readonly referenceDecided?: ReferenceListener | undefined;
}
