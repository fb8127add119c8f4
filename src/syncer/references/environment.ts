/** Dependencies of the import of references. */

import type { Random } from '../../base/random.ts';
import type { ReferenceDecision, ReferenceObservation } from './decide-reference.ts';
import type { SyncEnvironment } from '../reconcile/environment.ts';
import type { Discoveries } from './referenced-kind.ts';

/** Learns what is decided for each referenced object, and for each import that no object may reference any more. */
export type ReferenceListener = (
  seen: ReferenceObservation,
  decision: ReferenceDecision,
  isReferenced: boolean,
) => void;

export interface ReferenceEnvironment extends SyncEnvironment {
  readonly objection: () => Promise<string | undefined>;
  readonly discoveries: Discoveries;
  readonly random: Random;
  /** Undefined in the daemon. */
  readonly referenceDecided?: ReferenceListener | undefined;
}
