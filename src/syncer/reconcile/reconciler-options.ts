/** What the reconciler of one kind works with. */

import type { Backoff } from '../../base/backoff.ts';
import type { ClusterClient, EventRecorder, Informer } from '../../kube/types.ts';
import type { NamespacedName, ObjectKey } from '../../kube/object.ts';
import type { SyncedKind } from '../kinds/kind.ts';
import type { TranslatedReference } from '../patch/types.ts';
import type { Arrivals } from './guards/arrivals.ts';
import type { ContentionGuard } from './guards/contention.ts';
import type { CopyForge } from './copy-forge.ts';
import type { DecideOptions, Observation } from './decide/decide.ts';
import type { RecreationBackoff } from './guards/recreation.ts';
import type { SyncedPairs } from './decide/synced-pairs.ts';
import type { Writer } from './write/writer.ts';

export interface ReconcilerOptions {
  readonly kind: SyncedKind;
  readonly observe: (key: ObjectKey) => Observation;
  readonly decide: DecideOptions;
  readonly onHostDelete: 'recreate' | 'deleteVirtual';
  readonly forge: CopyForge;
  /** An expression on the way to the host reads `context.hostObject`. */
  readonly readsHostObject: boolean;
  readonly pairs: SyncedPairs;
  readonly host: { readonly client: ClusterClient; readonly cache: Informer; readonly writer: Writer };
  readonly virtual: {
    readonly client: ClusterClient;
    readonly cache: Informer;
    readonly services: Informer;
    readonly writer: Writer;
  };
  readonly arrivals: Arrivals;
  readonly recreation: RecreationBackoff;
  /** Between two reads of a host Service that forbids a take-over. */
  readonly takeOverBackoff: Backoff;
  readonly contention: ContentionGuard;
  readonly recorder: EventRecorder;
  readonly references: ReferenceRecords;
  /** A copy is about to be deleted and created again. */
  readonly replacing: (target: NamespacedName) => void;
  /** This program freed a host name. Its own deletions cause no event, and other objects may wait for the name. */
  readonly released: (target: NamespacedName) => void;
}

/** Where the reconciler records what the host copies of its objects name. */
export interface ReferenceRecords {
  /** The copy should name other objects now, although neither side of it changed. */
  isStale(key: ObjectKey): boolean;
  /** The copy names exactly these objects. */
  recordReferences(key: ObjectKey, references: readonly TranslatedReference[]): void;
  /** There is no copy, or none any more. */
  clearReferences(key: ObjectKey): void;
  /** The key was decided, with or without success. */
  markReconciled(key: ObjectKey): void;
}
