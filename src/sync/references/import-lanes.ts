/** One direction of one reference: what was left in step there, and how often others took it away or changed it. */

import type { KubeObject } from '../../kube/object.ts';
import type { ContentionGuard } from '../contention.ts';
import type { ReconcileResult } from '../reconciler.ts';
import type { RecreationBackoff } from '../recreation.ts';
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

  contentionWaitMs(id: ReferenceId): number {
    return this.#guards.contention.waitMs(id);
  }

  /** The copy was changed although its original stayed as it was when we wrote it. True: it has become contested now. */
  noteOverwrite(id: ReferenceId, source: KubeObject): boolean {
    return this.#states.get(id)?.source === stateOf(source) && this.#guards.contention.noteOverwrite(id);
  }
}
