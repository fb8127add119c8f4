/** Kubernetes Events about references, recorded on the referrers. */

import type { Logger } from '../../base/logger.ts';
import type { EventRecorder } from '../../kube/types.ts';
import type { KubeObject, Resource } from '../../kube/object.ts';
import type { ReferenceProblem } from './decide-reference.ts';
import type { ReferenceIndex, ReferrerId, ReferenceId } from './reference-index.ts';

/** A synced object that references others. */
export interface Referrer {
  readonly object: KubeObject;
  readonly resource: Resource;
}

export interface NoticesOptions {
  readonly recorder: EventRecorder;
  readonly index: ReferenceIndex;
  readonly referrer: (id: ReferrerId) => Referrer | undefined;
  readonly logger: Logger;
}

interface Reported {
  readonly problem: ReferenceProblem;
  readonly note: string;
  readonly uids: Map<ReferrerId, string>;
}

export class ReferenceNotices {
  readonly #options: NoticesOptions;
  /** Uids of the referrers to which the current problem has been reported; one that is created again gets a report of its own. */
  readonly #reported = new Map<ReferenceId, Reported>();

  constructor(options: NoticesOptions) {
    this.#options = options;
  }

  /** Reports a problem once to each referrer; undefined: the problem is solved. */
  problem(id: ReferenceId, problem: ReferenceProblem | undefined): void {
    if (problem === undefined) {
      this.#reported.delete(id);
      return;
    }
    const { reason, note } = problem.event ?? problem;
    const reported = this.#reported.get(id);
    if (problem.event !== undefined && problem.note !== reported?.problem.note)
      this.#options.logger.info(
        { reason: problem.reason, note: problem.note },
        'a referenced object of the host is refused',
      );
    const uids = reported?.note === note ? reported.uids : new Map<ReferrerId, string>();
    const current = { problem, note, uids };
    this.#reported.set(id, current);
    for (const key of this.#options.index.referrersOf(id)) {
      const uid = this.#options.referrer(key)?.object.metadata.uid ?? '';
      if (current.uids.get(key) === uid) continue;
      current.uids.set(key, uid);
      this.warn(key, reason, note);
    }
  }

  imported(id: ReferenceId, note: string): void {
    for (const key of this.#options.index.referrersOf(id))
      this.#event(key, 'Normal', 'ReferenceImported', note);
  }

  /** Sends a warning to every referrer, without deduplication. */
  alert(id: ReferenceId, reason: string, note: string): void {
    for (const key of this.#options.index.referrersOf(id)) this.warn(key, reason, note);
  }

  warn(key: ReferrerId, reason: string, note: string): void {
    this.#event(key, 'Warning', reason, note);
  }

  #event(key: ReferrerId, type: 'Normal' | 'Warning', reason: string, note: string): void {
    const referrer = this.#options.referrer(key);
    if (referrer !== undefined)
      this.#options.recorder.event(referrer.object, referrer.resource, { type, reason, note });
  }
}
