/** A virtual object, brought into the host: its copy there is made, or brought in step. */

import { invariant } from '../../base/errors.ts';
import { keyOf, type KubeObject, type NamespacedName } from '../../kube/object.ts';
import { isAlreadyExists, isConflict } from '../../kube/status-error.ts';
import { MANAGED_BY_LABEL } from '../translate/metadata/labels.ts';
import { needsWrite } from '../reconcile/diff.ts';
import type { ReconcileResult } from '../reconcile/reconciler.ts';
import { leaveContested } from './contested.ts';
import { decideReference, hostKeyOf } from './decide-reference.ts';
import { forgeHostImport } from './import-forge.ts';
import { AGAIN_MS, isStillOurs, type ImportContext, type ImportJob } from './import-job.ts';
import type { ImportLanes } from './import-lanes.ts';
import { isInStep, isUntouched } from './import-states.ts';
import { observeReference } from './kind-view.ts';
import { describeReference } from './referenced-kind.ts';

export class HostImporter {
  readonly #context: ImportContext;
  readonly #lanes: ImportLanes;

  constructor(context: ImportContext, lanes: ImportLanes) {
    this.#context = context;
    this.#lanes = lanes;
  }

  async import(job: ImportJob): Promise<ReconcileResult> {
    const { id, seen, work } = job;
    const { object, target } = seen;
    invariant(object && target, 'what is imported into the host exists and has a place there');
    const copy = seen.ours.find((one) => hostKeyOf(one) === keyOf(target));
    if (copy === undefined) return this.#create(job, object, target);
    this.#context.tellProblem(id, undefined);
    const state = this.#lanes.state(id);
    if (isInStep(state, object, copy)) return { outcome: 'unchanged' };
    const waitMs = this.#lanes.contentionWaitMs(id, object);
    if (waitMs > 0) return { outcome: 'waiting', reason: 'Contested', waitMs };
    const actual = isUntouched(state, copy) ? copy : await work.host.read(target, copy.metadata.uid ?? '');
    if (actual === undefined || !isStillOurs(actual, copy)) return this.#again(job);
    const forged = (host: KubeObject | undefined) =>
      forgeHostImport(object, work.caches.kind, { target, host }, this.#context.forge);
    const wanted = forged(actual);
    if (actual !== copy) {
      if (!needsWrite(wanted, actual))
        return this.#lanes.remember(id, object, actual, { outcome: 'unchanged' });
      const verdict = this.#lanes.noteWrite(id, object);
      if (verdict !== undefined) return leaveContested(this.#context, job, verdict);
    }
    const reason = 'differs from the virtual object';
    const stored = await this.#guarded(job, () =>
      work.host.replace({ actual, wanted, fresh: forged(undefined) }, reason),
    );
    return this.#lanes.remember(id, object, stored ?? copy, { outcome: 'updated', reason });
  }

  async #create(job: ImportJob, object: KubeObject, target: NamespacedName): Promise<ReconcileResult> {
    const { id, work } = job;
    const waitMs = this.#lanes.recreationWaitMs(id);
    if (waitMs > 0) return { outcome: 'waiting', reason: 'host copy was deleted', waitMs };
    const { kind } = work.caches;
    const fresh = forgeHostImport(object, kind, { target, host: undefined }, this.#context.forge);
    try {
      const stored = await work.host.create(fresh, 'is referenced');
      this.#context.tellProblem(id, undefined);
      this.#context.tellImported(
        id,
        `${describeReference(kind, job.seen.virtual)} is imported into the host as "${keyOf(target)}".`,
      );
      return this.#lanes.remember(id, object, stored ?? fresh, { outcome: 'created' });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return this.#nameTaken(job, target, error);
    }
  }

  /** The cache did not know it: either it is ours and the cache is late, or it is not ours. */
  async #nameTaken(job: ImportJob, target: NamespacedName, error: unknown): Promise<ReconcileResult> {
    const { id, work, seen } = job;
    const { names, rules } = this.#context;
    const there = await work.host.read(target, '');
    if (there === undefined) throw error;
    if (there.metadata.labels?.[MANAGED_BY_LABEL] === names.vcluster) {
      work.caches.copies.observeWrite(there);
      const again = observeReference(work.caches, seen.virtual, names);
      if (again.ours.some((copy) => hostKeyOf(copy) === keyOf(target))) return this.#again(job);
    }
    const { problem } = decideReference({ ...seen, isTargetTaken: true }, rules);
    this.#context.tellProblem(id, problem);
    return { outcome: 'refused', reason: problem?.reason ?? 'NotManaged' };
  }

  /** After a lost race the cache is behind: read once, so that the next attempt decides on what is there. */
  async #guarded<T>({ work, seen }: ImportJob, write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (seen.target !== undefined && (isConflict(error) || isAlreadyExists(error))) {
        const known = work.caches.copies.get(keyOf(seen.target));
        const there = await work.host.read(seen.target, known?.metadata.uid ?? '');
        if (there?.metadata.labels?.[MANAGED_BY_LABEL] === this.#context.names.vcluster)
          work.caches.copies.observeWrite(there);
      }
      throw error;
    }
  }

  /** The caches are about to show something else. */
  #again({ id }: ImportJob): ReconcileResult {
    this.#context.recheck(id);
    return { outcome: 'waiting', reason: 'host copy has changed', waitMs: AGAIN_MS };
  }
}
