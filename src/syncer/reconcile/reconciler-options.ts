/** Dependencies of the reconciler of one kind. */

import type { Backoff } from '../../base/backoff.ts';
import type { ClusterClient, EventRecorder, Informer } from '../../kube/types.ts';
import type { KubeObject, NamespacedName, ObjectKey } from '../../kube/object.ts';
import type { SyncedKind } from '../kinds/kind.ts';
import type { TranslatedReference } from '../patch/types.ts';
import type { Arrivals } from './guards/arrivals.ts';
import type { ContentionGuard, KeyContests } from './guards/contention.ts';
import type { CopyForge } from './copy-forge.ts';
import type { DecideOptions, Observation } from './decide/decide.ts';
import type { FoughtDeletions, RecreationBackoff } from './guards/recreation.ts';
import type { SyncListener } from './environment.ts';
import type { SyncedPairs } from './decide/synced-pairs.ts';
import type { Writer } from './write/writer.ts';

export interface ReconcilerOptions {
  readonly kind: SyncedKind;
  readonly observe: (key: ObjectKey) => Observation;
  readonly decide: DecideOptions;
  readonly onHostDelete: 'recreate' | 'deleteVirtual';
  readonly forge: CopyForge;
  /** An expression towards the host reads `context.hostObject`. */
  readonly readsHostObject: boolean;
  readonly pairs: SyncedPairs;
  readonly host: { readonly client: ClusterClient; readonly cache: Informer; readonly writer: Writer };
  readonly virtual: {
    readonly client: ClusterClient;
    readonly cache: Informer;
    readonly services: Informer;
    readonly writer: Writer;
  };
  /** Objects that are refused because of a host Service, and the key of that Service. */
  readonly awaitedServices: Map<ObjectKey, ObjectKey>;
  readonly arrivals: Arrivals;
  readonly recreation: RecreationBackoff;
  readonly foughtDeletions: FoughtDeletions;
  /** Interval between reads of a host Service that prevents a take-over. */
  readonly takeOverBackoff: Backoff;
  readonly contention: ContentionGuard;
  readonly keyContests: KeyContests;
  readonly recorder: EventRecorder;
  readonly references: ReferenceRecords;
  readonly listener: SyncListener | undefined;
  /** Called when this program has freed a host name that other objects may wait for. Our own deletions cause no event. */
  readonly released: (target: NamespacedName) => void;
  /** With `deleteVirtual`: the virtual object is about to be deleted together with its Service, whose copy was deleted. */
  readonly isDeletedAlong: (key: ObjectKey, target: NamespacedName) => Promise<boolean>;
  /** Called when this program has changed a virtual object, on which objects of other kinds may depend. Our own writes cause no event. */
  readonly patched: (virtual: KubeObject) => void;
}

/** Records which objects the host copies reference. */
export interface ReferenceRecords {
  /** The references of the copy have to be written again, although neither side of the pair changed. */
  isStale(key: ObjectKey): boolean;
  /** Replaces the recorded references of the copy. */
  recordReferences(key: ObjectKey, references: readonly TranslatedReference[]): void;
  /** There is no copy. */
  clearReferences(key: ObjectKey): void;
  /** The key was reconciled, successfully or not. */
  markReconciled(key: ObjectKey): void;
}
