/** One direction of one reference: what was left in step there, and how often others took it away or changed it. */

import type { KubeObject } from '../../kube/object.ts';
import type { ContentionGuard, DriftVerdict } from '../reconcile/contention.ts';
import type { ReconcileResult } from '../reconcile/reconciler.ts';
import type { RecreationBackoff } from '../reconcile/recreation.ts';
import { importState, stateOf, type ImportState } from './import-states.ts';
import type { ReferenceId } from './referenced-kind.ts';

/** What protects one direction from others who work against it. */
export interface LaneGuards {
  readonly recreation: RecreationBackoff;
  readonly contention: ContentionGuard;
}

/** The lanes of one direction. */
export class ImportLanes {
  readonly #guards: LaneGuards;
  readonly #states = new Map<ReferenceId, ImportState>();

  constructor(guards: LaneGuards) {
    this.#guards = guards;
  }

  has(id: ReferenceId): boolean {
    return this.#states.has(id);
  }

  state(id: ReferenceId): ImportState | undefined {
    return this.#states.get(id);
  }

  /** Hands `result` on. */
  remember(id: ReferenceId, source: KubeObject, copy: KubeObject, result: ReconcileResult): ReconcileResult {
    this.#states.set(id, importState(source, copy));
    return result;
  }

  /** Nothing is in step here any more; what others did to it still counts. */
  drop(id: ReferenceId): void {
    this.#states.delete(id);
  }

  forget(id: ReferenceId): void {
    this.#states.delete(id);
    this.#guards.recreation.forget(id);
    this.#guards.contention.forget(id);
  }

  /** Somebody else deleted the copy. */
  noteDeletion(id: ReferenceId): void {
    if (this.#states.has(id)) this.#guards.recreation.noteDeletion(id);
  }

  recreationWaitMs(id: ReferenceId): number {
    return this.#guards.recreation.waitMs(id);
  }

  /** Only corrections wait: a change of the original is written at once. */
  contentionWaitMs(id: ReferenceId, source: KubeObject): number {
    return this.isSourceUnchanged(id, source) ? this.#guards.contention.waitMs(id) : 0;
  }

  /**
   * The copy is about to be written. Undefined: go ahead. A verdict: the copy was changed although its original stayed as it was when we
   * wrote it, and the correction has to wait.
   */
  noteWrite(id: ReferenceId, source: KubeObject): DriftVerdict | undefined {
    if (!this.isSourceUnchanged(id, source)) {
      this.#guards.contention.noteChange(id);
      return undefined;
    }
    const verdict = this.#guards.contention.noteDrift(id);
    return verdict.waitMs > 0 ? verdict : undefined;
  }

  isSourceUnchanged(id: ReferenceId, source: KubeObject): boolean {
    return this.#states.get(id)?.source === stateOf(source);
  }
}
