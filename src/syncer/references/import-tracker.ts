/** In-memory state of the imports of one direction: the last written versions, and the back-off against other clients. */

import type { Clock } from '../../base/clock.ts';
import type { KubeObject } from '../../kube/object.ts';
import {
  correctionWaitMs,
  noteChange,
  noteDeletion,
  noteDrift,
  recreationWaitMs,
  type Contest,
  type DriftVerdict,
  type RecreationDelays,
  type Streak,
} from '../reconcile/guards.ts';
import type { ReconcileResult } from '../reconcile/controller.ts';
import type { ReferenceId } from './reference-index.ts';

/** Versions of both objects after the last write, to detect without a request that nothing has changed. */
interface SyncedVersions {
  readonly source: string;
  readonly copy: string;
  /** The copy has a status or is immutable, so it must be read before the next write. */
  readonly isReadFirst: boolean;
}

/** What this process knows of one import. */
interface ImportState {
  /** Undefined: there is no copy. */
  readonly synced?: SyncedVersions | undefined;
  /** Another client overwrites the copy. */
  readonly contest?: Contest | undefined;
  /** Another client deletes the copy. */
  readonly deletions?: Streak | undefined;
}

export class ImportTracker {
  readonly #clock: Clock;
  readonly #recreation: RecreationDelays | undefined;
  readonly #states = new Map<ReferenceId, ImportState>();

  /** `recreation`: delays before a copy that another client deletes is created again; default: those of synced objects. */
  constructor(clock: Clock, recreation?: RecreationDelays) {
    this.#clock = clock;
    this.#recreation = recreation;
  }

  has(id: ReferenceId): boolean {
    return this.#states.get(id)?.synced !== undefined;
  }

  /** Records that both objects agree. Returns `result`. */
  markSynced(
    id: ReferenceId,
    source: KubeObject,
    copy: KubeObject,
    result: ReconcileResult,
  ): ReconcileResult {
    const isReadFirst = Object.hasOwn(copy, 'status') || copy['immutable'] === true;
    this.#set(id, { synced: { source: versionOf(source), copy: versionOf(copy), isReadFirst } });
    return result;
  }

  /** True when neither object has changed since {@link markSynced}. */
  isSynced(id: ReferenceId, source: KubeObject, copy: KubeObject): boolean {
    return this.isSourceUnchanged(id, source) && this.#states.get(id)?.synced?.copy === versionOf(copy);
  }

  /** True when the copy still holds exactly what this process wrote. */
  isCopyUnchanged(id: ReferenceId, copy: KubeObject): boolean {
    const synced = this.#states.get(id)?.synced;
    return synced !== undefined && synced.copy === versionOf(copy) && !synced.isReadFirst;
  }

  isSourceUnchanged(id: ReferenceId, source: KubeObject): boolean {
    return this.#states.get(id)?.synced?.source === versionOf(source);
  }

  /** The copy no longer exists. The back-off against other clients is kept. */
  clearState(id: ReferenceId): void {
    const { contest, deletions } = this.#states.get(id) ?? {};
    if (contest === undefined && deletions === undefined) this.#states.delete(id);
    else this.#states.set(id, { contest, deletions });
  }

  forget(id: ReferenceId): void {
    this.#states.delete(id);
  }

  /** Another client deleted the copy. */
  noteDeletion(id: ReferenceId): void {
    const state = this.#states.get(id);
    if (state?.synced !== undefined)
      this.#set(id, { deletions: noteDeletion(state.deletions, this.#clock.monotonicMs()) });
  }

  recreationWaitMs(id: ReferenceId): number {
    return recreationWaitMs(this.#states.get(id)?.deletions, this.#clock.monotonicMs(), this.#recreation);
  }

  /** Only corrections are delayed. Changes of the source are written immediately. */
  contentionWaitMs(id: ReferenceId, source: KubeObject): number {
    if (!this.isSourceUnchanged(id, source)) return 0;
    return correctionWaitMs(this.#states.get(id)?.contest, this.#clock.monotonicMs());
  }

  /** Called before the copy is written. Returns a verdict if another client changed the copy, its source did not change, and the correction
   * has to wait; undefined if it may be written now.
   */
  noteWrite(id: ReferenceId, source: KubeObject): DriftVerdict | undefined {
    const known = this.#states.get(id)?.contest;
    if (!this.isSourceUnchanged(id, source)) {
      if (known !== undefined) this.#set(id, { contest: noteChange(known) });
      return undefined;
    }
    const { contest, verdict } = noteDrift(known, this.#clock.monotonicMs());
    this.#set(id, { contest });
    return verdict.waitMs > 0 ? verdict : undefined;
  }

  #set(id: ReferenceId, change: ImportState): void {
    this.#states.set(id, { ...this.#states.get(id), ...change });
  }
}

/** Changes with every write and with every re-creation. */
function versionOf({ metadata: { uid = '', resourceVersion = '' } }: KubeObject): string {
  return `${uid}@${resourceVersion}`;
}
