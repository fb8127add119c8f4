/** Dependencies of the import of references. */

import type { InformerMetrics } from '../../kube/informer/informer.ts';
import type { ClusterName } from '../../kube/types.ts';
import type { Resource } from '../../kube/object.ts';
import type { Random } from '../../base/random.ts';
import type { QueueMetrics } from '../../kube/work-queue.ts';
import type { ReferenceDecision, ReferenceObservation } from './decide-reference.ts';
import type { SyncEnvironment } from '../reconcile/environment.ts';
import type { WriteMetrics } from '../reconcile/writer.ts';
import type { ControllerMetrics } from '../reconcile/controller.ts';
import type { Discoveries } from './referenced-kind.ts';

export interface ReferenceMetrics {
  readonly queue: QueueMetrics;
  readonly writes: WriteMetrics;
  readonly controller: ControllerMetrics;
  kindsMissing(count: number): void;
  informer(cluster: ClusterName, resource: Resource): InformerMetrics;
}

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
  readonly metrics: ReferenceMetrics;
  /** Undefined in the daemon. */
  readonly referenceDecided?: ReferenceListener | undefined;
}
