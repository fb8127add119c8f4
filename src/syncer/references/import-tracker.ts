/** In-memory state of the imports of one direction: the last written versions, and the back-off against other clients. */

import type { KubeObject } from '../../kube/object.ts';
import type { ContentionGuard, DriftVerdict, RecreationBackoff } from '../reconcile/guards.ts';
import type { ReconcileResult } from '../reconcile/controller.ts';
import type { ReferenceId } from './reference-index.ts';

/** Back-off of one direction against other clients that delete or overwrite its copies. */
export interface ImportGuards {
  readonly recreation: RecreationBackoff;
  readonly contention: ContentionGuard;
}

/** Versions of both objects after the last write, to detect without a request that nothing has changed. */
interface ImportState {
  readonly source: string;
  readonly copy: string;
  /** The copy has a status or is immutable, so it must be read before the next write. */
  readonly isReadFirst: boolean;
}

export class ImportTracker {
  readonly #guards: ImportGuards;
  readonly #states = new Map<ReferenceId, ImportState>();

  constructor(guards: ImportGuards) {
    this.#guards = guards;
  }

  has(id: ReferenceId): boolean {
    return this.#states.has(id);
  }

  /** Records that both objects agree. Returns `result`. */
  markSynced(
    id: ReferenceId,
    source: KubeObject,
    copy: KubeObject,
    result: ReconcileResult,
  ): ReconcileResult {
    const isReadFirst = Object.hasOwn(copy, 'status') || copy['immutable'] === true;
    this.#states.set(id, { source: versionOf(source), copy: versionOf(copy), isReadFirst });
    return result;
  }

  /** True when neither object has changed since {@link markSynced}. */
  isSynced(id: ReferenceId, source: KubeObject, copy: KubeObject): boolean {
    return this.isSourceUnchanged(id, source) && this.#states.get(id)?.copy === versionOf(copy);
  }

  /** True when the copy still holds exactly what this process wrote. */
  isCopyUnchanged(id: ReferenceId, copy: KubeObject): boolean {
    const state = this.#states.get(id);
    return state !== undefined && state.copy === versionOf(copy) && !state.isReadFirst;
  }

  isSourceUnchanged(id: ReferenceId, source: KubeObject): boolean {
    return this.#states.get(id)?.source === versionOf(source);
  }

  /** The copy no longer exists. The back-off against other clients is kept. */
  clearState(id: ReferenceId): void {
    this.#states.delete(id);
  }

  forget(id: ReferenceId): void {
    this.#states.delete(id);
    this.#guards.recreation.forget(id);
    this.#guards.contention.forget(id);
  }

  /** Another client deleted the copy. */
  noteDeletion(id: ReferenceId): void {
    if (this.#states.has(id)) this.#guards.recreation.noteDeletion(id);
  }

  recreationWaitMs(id: ReferenceId): number {
    return this.#guards.recreation.waitMs(id);
  }

  /** Only corrections are delayed. Changes of the source are written immediately. */
  contentionWaitMs(id: ReferenceId, source: KubeObject): number {
    return this.isSourceUnchanged(id, source) ? this.#guards.contention.waitMs(id) : 0;
  }

  /** Called before the copy is written. Returns a verdict if another client changed the copy, its source did not change, and the correction
   * has to wait; undefined if it may be written now.
   */
  noteWrite(id: ReferenceId, source: KubeObject): DriftVerdict | undefined {
    if (!this.isSourceUnchanged(id, source)) {
      this.#guards.contention.noteChange(id);
      return undefined;
    }
    const verdict = this.#guards.contention.noteDrift(id);
    return verdict.waitMs > 0 ? verdict : undefined;
  }
}

/** Changes with every write and with every re-creation. */
function versionOf({ metadata: { uid = '', resourceVersion = '' } }: KubeObject): string {
  return `${uid}@${resourceVersion}`;
}
