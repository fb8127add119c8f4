/** Kubernetes Events about references, recorded on the referrers. */

import type { ClusterName, RecordedEvent } from '../../kube/types.ts';
import { keyOf, nameOf, objectKey, type KubeObject, type NamespacedName } from '../../kube/object.ts';
import { describeTermination } from '../../kube/termination.ts';
import { listedPaths } from '../reconcile/object-diff.ts';
import type { ReferenceObservation, ReferenceProblem } from './decide-reference.ts';
import type { ReferenceEnvironment } from './environment.ts';
import { describeReference } from './referenced-kind.ts';
import type { ReferenceIndex, ReferenceId, ReferrerId } from './reference-index.ts';

interface Reported {
  readonly problem: ReferenceProblem;
  readonly note: string;
  readonly uids: Map<ReferrerId, string>;
}

export class ReferenceNotices {
  readonly #environment: Pick<ReferenceEnvironment, 'recorder' | 'logger'>;
  readonly #index: ReferenceIndex;
  /** Uids of the referrers to which the current problem has been reported; one that is created again gets a report of its own. */
  readonly #reported = new Map<ReferenceId, Reported>();

  constructor(environment: Pick<ReferenceEnvironment, 'recorder' | 'logger'>, index: ReferenceIndex) {
    this.#environment = environment;
    this.#index = index;
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
      this.#environment.logger.info(
        { reason: problem.reason, note: problem.note },
        'a referenced object of the host is refused',
      );
    const uids = reported?.note === note ? reported.uids : new Map<ReferrerId, string>();
    const current = { problem, note, uids };
    this.#reported.set(id, current);
    for (const key of this.#index.referrersOf(id)) {
      const uid = this.#index.referrer(key)?.object.metadata.uid ?? '';
      if (current.uids.get(key) === uid) continue;
      current.uids.set(key, uid);
      this.warn(key, reason, note);
    }
  }

  imported(id: ReferenceId, note: string): void {
    for (const key of this.#index.referrersOf(id))
      this.#event(key, { type: 'Normal', reason: 'ReferenceImported', note });
  }

  alert(id: ReferenceId, reason: string, note: string): void {
    for (const key of this.#index.referrersOf(id)) this.warn(key, reason, note);
  }

  warn(key: ReferrerId, reason: string, note: string): void {
    this.#event(key, { type: 'Warning', reason, note });
  }

  #event(key: ReferrerId, event: RecordedEvent): void {
    const referrer = this.#index.referrer(key);
    if (referrer !== undefined) this.#environment.recorder.event(referrer.object, referrer.resource, event);
  }
}

type Referenced = Pick<ReferenceObservation, 'kind' | 'virtual'>;

/** `place`: of the copy that was created on the side `to`. */
export function importedNote(
  { kind, virtual }: Referenced,
  {
    to,
    source,
    place,
  }: { readonly to: ClusterName; readonly source: KubeObject; readonly place: NamespacedName },
): string {
  if (to === 'host')
    return `${describeReference(kind, virtual)} is imported into the host as "${keyOf(place)}".`;
  const what = describeReference(kind, nameOf(source));
  return `${what} of the host is imported into the virtual cluster as "${keyOf(place)}".`;
}

export function replacedNote({ kind, virtual }: Referenced): string {
  return `${describeReference(kind, virtual)} of the virtual cluster replaces the one that was imported from the host.`;
}

export function contestedNote({ kind, virtual }: Referenced, waitMs: number): string {
  return (
    `Another writer keeps overwriting the copy of ${describeReference(kind, virtual)}; ` +
    `it is corrected again in ${waitMs / 1000} s. ` +
    'Stop that writer, or opt the object out with the label vcluster.loft.sh/controlled-by.'
  );
}

/** `paths`: what the side of the copy stores other than it was sent. */
export function alteredNote(
  { kind, virtual }: Referenced,
  to: ClusterName,
  paths: readonly string[],
): string {
  const whose = to === 'host' ? 'host' : 'virtual cluster';
  return (
    `The copy of ${describeReference(kind, virtual)} was changed by the ${whose}'s admission: ` +
    `${listedPaths(paths)}. Exempt the copy from the webhook or policy that changes it.`
  );
}

/** `copy` is being deleted, on the side `to`. */
export function endingNote({ kind, virtual }: Referenced, to: ClusterName, copy: KubeObject): string {
  const where = to === 'host' ? 'on the host' : 'in the virtual cluster';
  return (
    `The copy "${objectKey(copy)}" of ${describeReference(kind, virtual)} ${where} ${describeTermination(copy)}. ` +
    'Until then it gets the changes of its original. It is created again when it is gone. ' +
    'The program that owns a finalizer removes it; if that program is gone, remove the finalizer.'
  );
}
