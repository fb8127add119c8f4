/** Imports a virtual object into the host: creates its copy there, or updates it. */

import { invariant } from '../../base/errors.ts';
import { keyOf, type KubeObject, type NamespacedName } from '../../kube/object.ts';
import { isAlreadyExists, isConflict } from '../../kube/status-error.ts';
import { needsWrite } from '../translate/content.ts';
import type { ReconcileResult } from '../reconcile/controller.ts';
import { MANAGED_BY_LABEL } from '../translate/labels.ts';
import { decideReference, hostKeyOf, observeReference } from './decide-reference.ts';
import { describeReference } from './referenced-kind.ts';
import { forgeHostImport } from './import-forge.ts';
import {
  isStillOurs,
  requeued,
  waitWhileContested,
  type ImportContext,
  type ImportJob,
} from './import-job.ts';
import type { ImportTracker } from './import-tracker.ts';

const UPDATE_REASON = 'differs from the virtual object';

export class HostImporter {
  readonly #context: ImportContext;
  readonly #tracker: ImportTracker;

  constructor(context: ImportContext, tracker: ImportTracker) {
    this.#context = context;
    this.#tracker = tracker;
  }

  async import(job: ImportJob): Promise<ReconcileResult> {
    const { id, seen } = job;
    const { object, target } = seen;
    invariant(object && target, 'an object that is imported into the host exists and has a target there');
    const copy = seen.ours.find((one) => hostKeyOf(one) === keyOf(target));
    if (copy === undefined) return this.#create(job, object, target);
    this.#context.reportProblem(id, undefined);
    if (this.#tracker.isSynced(id, object, copy)) return { outcome: 'unchanged' };
    const waitMs = this.#tracker.contentionWaitMs(id, object);
    if (waitMs > 0) return { outcome: 'waiting', reason: 'Contested', waitMs };
    return this.#update(job, { object, target, copy });
  }

  async #update(
    job: ImportJob,
    { object, target, copy }: { object: KubeObject; target: NamespacedName; copy: KubeObject },
  ): Promise<ReconcileResult> {
    const { id, resources } = job;
    const isUnchanged = this.#tracker.isCopyUnchanged(id, copy);
    const actual = isUnchanged ? copy : await resources.host.read(target, copy.metadata.uid ?? '');
    if (actual === undefined || !isStillOurs(actual, copy)) return this.#requeue(job);
    const forged = (host: KubeObject | undefined) =>
      forgeHostImport(object, resources.caches.kind, { target, host }, this.#context.forge);
    const wanted = await forged(actual);
    if (!isUnchanged) {
      if (!needsWrite(wanted, actual))
        return this.#tracker.markSynced(id, object, actual, { outcome: 'unchanged' });
      const verdict = this.#tracker.noteWrite(id, object);
      if (verdict !== undefined) return waitWhileContested(this.#context, job, verdict);
    }
    const states = { actual, wanted, fresh: await forged(undefined) };
    const stored = await this.#refreshOnConflict(job, () => resources.host.replace(states, UPDATE_REASON));
    return this.#tracker.markSynced(id, object, stored ?? copy, {
      outcome: 'updated',
      reason: UPDATE_REASON,
    });
  }

  async #create(job: ImportJob, object: KubeObject, target: NamespacedName): Promise<ReconcileResult> {
    const { id, resources } = job;
    const waitMs = this.#tracker.recreationWaitMs(id);
    if (waitMs > 0) return { outcome: 'waiting', reason: 'host copy was deleted', waitMs };
    const { kind } = resources.caches;
    const fresh = await forgeHostImport(object, kind, { target, host: undefined }, this.#context.forge);
    try {
      const stored = await resources.host.create(fresh, 'is referenced');
      this.#context.reportProblem(id, undefined);
      this.#context.reportImported(
        id,
        `${describeReference(kind, job.seen.virtual)} is imported into the host as "${keyOf(target)}".`,
      );
      return this.#tracker.markSynced(id, object, stored ?? fresh, { outcome: 'created' });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return this.#resolveNameTaken(job, target, error);
    }
  }

  /** The existing object is not in the cache: either it is our copy and the cache is behind, or this program did not create it. */
  async #resolveNameTaken(job: ImportJob, target: NamespacedName, error: unknown): Promise<ReconcileResult> {
    const { id, resources, seen } = job;
    const { names, rules } = this.#context;
    const existing = await resources.host.read(target, '');
    if (existing === undefined) throw error;
    if (existing.metadata.labels?.[MANAGED_BY_LABEL] === names.vcluster) {
      resources.caches.copies.observeRead(existing);
      const current = observeReference(resources.caches, seen.virtual, names);
      if (current.ours.some((copy) => hostKeyOf(copy) === keyOf(target))) return this.#requeue(job);
    }
    const { problem } = decideReference({ ...seen, isTargetTaken: true }, rules);
    this.#context.reportProblem(id, problem);
    return { outcome: 'refused', reason: problem?.reason ?? 'NotManaged' };
  }

  /** After a conflict, the cache is behind. Reads the object once, so that the next attempt uses its current state. */
  async #refreshOnConflict<T>({ resources, seen }: ImportJob, write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (seen.target !== undefined && (isConflict(error) || isAlreadyExists(error))) {
        const known = resources.caches.copies.get(keyOf(seen.target));
        const existing = await resources.host.read(seen.target, known?.metadata.uid ?? '');
        if (existing?.metadata.labels?.[MANAGED_BY_LABEL] === this.#context.names.vcluster)
          resources.caches.copies.observeRead(existing);
      }
      throw error;
    }
  }

  #requeue({ id }: ImportJob): ReconcileResult {
    this.#context.recheck(id);
    return requeued('host copy has changed');
  }
}
