/** Events about references, on the Endpoints that name the objects. */

import type { EventRecorder } from '../../cluster/types.ts';
import { ENDPOINTS, type KubeObject, type ObjectKey } from '../../kube/object.ts';
import type { ReferenceProblem } from './decide-reference.ts';
import type { ReferenceIndex } from './reference-index.ts';
import type { ReferenceId } from './referenced-kind.ts';

export interface NoticesOptions {
  readonly recorder: EventRecorder;
  readonly index: ReferenceIndex;
  readonly endpoints: (key: ObjectKey) => KubeObject | undefined;
}

export class ReferenceNotices {
  readonly #options: NoticesOptions;
  /** Who has been told of the present problem: each Endpoints hears of it once. */
  readonly #told = new Map<ReferenceId, { readonly note: string; readonly keys: Set<ObjectKey> }>();

  constructor(options: NoticesOptions) {
    this.#options = options;
  }

  /** Undefined: all is well (again). */
  problem(id: ReferenceId, problem: ReferenceProblem | undefined): void {
    if (problem === undefined) {
      this.#told.delete(id);
      return;
    }
    const told = this.#told.get(id);
    const current = told?.note === problem.note ? told : { note: problem.note, keys: new Set<ObjectKey>() };
    this.#told.set(id, current);
    for (const key of this.#options.index.namersOf(id)) {
      if (current.keys.has(key)) continue;
      current.keys.add(key);
      this.warn(key, problem.reason, problem.note);
    }
  }

  imported(id: ReferenceId, note: string): void {
    for (const key of this.#options.index.namersOf(id)) this.#event(key, 'Normal', 'ReferenceImported', note);
  }

  /** Something that every Endpoints must hear of, each time: Warnings are never dropped. */
  alert(id: ReferenceId, reason: string, note: string): void {
    for (const key of this.#options.index.namersOf(id)) this.warn(key, reason, note);
  }

  warn(key: ObjectKey, reason: string, note: string): void {
    this.#event(key, 'Warning', reason, note);
  }

  #event(key: ObjectKey, type: 'Normal' | 'Warning', reason: string, note: string): void {
    const regarding = this.#options.endpoints(key);
    if (regarding !== undefined) this.#options.recorder.event(regarding, ENDPOINTS, { type, reason, note });
  }
}
