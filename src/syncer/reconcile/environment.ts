/** What the reconcile loops of synced kinds and those of imported references share. */

import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import type { Config } from '../../config/types.ts';
import type { ServerHistory } from '../../kube/informer/list-watch.ts';
import type { ClusterName, EventRecorder, WatchClient } from '../../kube/types.ts';
import type { DryRun } from './write/dry-run.ts';
import type { OwnerReference } from '../translate/forge.ts';
import type { LabelTranslator, NameTranslator } from '../translate/types.ts';

export interface SyncEnvironment {
  readonly config: Config;
  readonly clients: { readonly virtual: WatchClient; readonly host: WatchClient };
  /** Shared by the caches of a cluster. */
  readonly servers: Readonly<Record<ClusterName, ServerHistory>>;
  readonly names: NameTranslator;
  readonly labels: LabelTranslator;
  /** Owns the copies in the virtual cluster's own host namespace. */
  readonly owner: OwnerReference | undefined;
  readonly recorder: EventRecorder;
  /** Undefined: changes are written. */
  readonly dryRun: DryRun | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}
