/** What the reconcile loops of synced kinds and those of imported references share. */

import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import type { Config } from '../../config/types.ts';
import type { ServerHistory } from '../../kube/informer/list-watch.ts';
import type { ObjectKey, Resource } from '../../kube/object.ts';
import type { ClusterName, EventRecorder, WatchClient } from '../../kube/types.ts';
import type { SyncedKind } from '../kinds/kind.ts';
import type { TranslatedReference } from '../patch/types.ts';
import type { Decision, Observation } from './decide/decide.ts';
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
  /** Undefined in the daemon. */
  readonly listener?: SyncListener | undefined;
}

/** Learns what the reconcilers decide and write, to predict a sync. */
export interface SyncListener {
  /** `error`: why the copy cannot be written, usually a `PatchError`. */
  decided(kind: SyncedKind, seen: Observation, decision: Decision, error?: unknown): void;
  /** What the host copy of an object references now. */
  referenced(kind: SyncedKind, key: ObjectKey, references: readonly TranslatedReference[]): void;
  /** `key` is that of the written object. */
  written(cluster: ClusterName, resource: Resource, key: ObjectKey, reason: string): void;
}
