/** Dependencies of the import of references. */

import type { InformerMetrics } from '../../kube/informer/informer.ts';
import type { ClusterName, EventRecorder, WatchClient } from '../../kube/types.ts';
import type { Config } from '../../config/types.ts';
import type { Resource } from '../../kube/object.ts';
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { Logger } from '../../base/logger.ts';
import type { QueueMetrics } from '../../kube/work-queue.ts';
import type { OwnerReference } from '../translate/forge.ts';
import type { LabelTranslator, NameTranslator } from '../translate/types.ts';
import type { WriteMetrics } from '../reconcile/write/writer.ts';
import type { DryRun } from '../reconcile/write/dry-run.ts';
import type { ControllerMetrics } from '../reconcile/controller.ts';
import type { Discoveries } from './kinds/referenced-kind.ts';

export interface ReferenceMetrics {
  readonly queue: QueueMetrics;
  readonly writes: WriteMetrics;
  readonly controller: ControllerMetrics;
  informer(cluster: ClusterName, resource: Resource): InformerMetrics;
}

export interface ReferenceEnvironment {
  readonly config: Config;
  readonly clients: { readonly virtual: WatchClient; readonly host: WatchClient };
  readonly discoveries: Discoveries;
  readonly names: NameTranslator;
  readonly labels: LabelTranslator;
  /** Owns the copies in the virtual cluster's own host namespace. */
  readonly owner: OwnerReference | undefined;
  readonly recorder: EventRecorder;
  readonly dryRun: DryRun | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: ReferenceMetrics;
}
