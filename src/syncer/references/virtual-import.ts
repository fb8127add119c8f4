/** A host object, brought into the virtual cluster: its copy there is made, or brought in step. */

import { invariant } from '../../base/errors.ts';
import { keyOf, type KubeObject, type NamespacedName } from '../../kube/object.ts';
import { isAlreadyExists, isConflict } from '../../kube/status-error.ts';
import { needsWrite } from '../reconcile/diff.ts';
import type { ReconcileResult } from '../reconcile/reconciler.ts';
import { leaveContested } from './contested.ts';
import type { ReferenceObservation } from './decide-reference.ts';
import { forgeVirtualImport } from './import-forge.ts';
import { AGAIN_MS, type ImportContext, type ImportJob, type KindWorkplace } from './import-job.ts';
import type { ImportLanes } from './import-lanes.ts';
import { isInStep } from './import-states.ts';
import { isWhole } from './kind-caches.ts';
import { describeReference } from './referenced-kind.ts';
import { refusalOfContent, refusalOfSource } from './refusals.ts';

export class VirtualImporter {
  readonly #context: ImportContext;
  readonly #lanes: ImportLanes;

  constructor(context: ImportContext, lanes: ImportLanes) {
    this.#context = context;
    this.#lanes = lanes;
  }

  async import(job: ImportJob): Promise<ReconcileResult> {
    const { id, work, seen } = job;
    const { source, imported } = seen;
    invariant(source, 'what is imported from the host exists');
    this.#context.tellProblem(id, undefined);
    if (imported !== undefined && isInStep(this.#lanes.state(id), source, imported))
      return { outcome: 'unchanged' };
    const recreationMs = imported === undefined ? this.#lanes.recreationWaitMs(id) : 0;
    const waitMs = Math.max(recreationMs, this.#lanes.contentionWaitMs(id, source));
    if (waitMs > 0) return { outcome: 'waiting', reason: 'import was deleted or contested', waitMs };
    const { namespace = '', name, uid = '' } = source.metadata;
    const full = await work.host.read({ namespace, name }, uid);
    if (full?.metadata.uid !== uid || this.#isRefused(job, full)) {
      this.#context.recheck(id);
      return { outcome: 'waiting', reason: 'source has changed', waitMs: AGAIN_MS };
    }
    return imported === undefined ? this.#create(job, full) : this.#update(job, full, imported);
  }

  /** Looked at once more with all its data, right before it would be copied. */
  #isRefused({ work }: ImportJob, full: KubeObject): boolean {
    const { kind } = work.caches;
    const refusal =
      refusalOfSource(full, kind.host, this.#context.rules) ??
      refusalOfContent(full, kind.host, this.#context.rules);
    work.caches.refuse(full, refusal);
    return refusal !== undefined;
  }

  async #create({ id, work, seen }: ImportJob, full: KubeObject): Promise<ReconcileResult> {
    const { kind } = work.caches;
    const wanted = this.#forged(work, seen, full, undefined);
    try {
      const stored = await work.virtual.create(wanted, 'is referenced');
      if (stored !== undefined) work.caches.rememberImport(stored);
      const source = { namespace: full.metadata.namespace ?? '', name: full.metadata.name };
      this.#context.tellImported(
        id,
        `${describeReference(kind, source)} of the host is imported ` +
          `into the virtual cluster as "${keyOf(seen.virtual)}".`,
      );
      return this.#lanes.remember(id, full, stored ?? wanted, { outcome: 'created' });
    } catch (error) {
      if (isAlreadyExists(error)) await this.#refresh(work, seen.virtual);
      throw error;
    }
  }

  async #update(job: ImportJob, full: KubeObject, imported: KubeObject): Promise<ReconcileResult> {
    const { id, work, seen } = job;
    const uid = imported.metadata.uid ?? '';
    work.caches.rememberImport(imported);
    const isCached = isWhole(work.caches.kind);
    const current = isCached ? imported : await work.virtual.read(seen.virtual, uid);
    if (current?.metadata.uid !== uid)
      return { outcome: 'waiting', reason: 'import has changed', waitMs: AGAIN_MS };
    const wanted = this.#forged(work, seen, full, current);
    if (!needsWrite(wanted, current))
      return this.#lanes.remember(id, full, current, { outcome: 'unchanged' });
    const verdict = this.#lanes.noteWrite(id, full);
    if (verdict !== undefined) return leaveContested(this.#context, job, verdict);
    const reason = 'differs from the host object';
    try {
      const fresh = this.#forged(work, seen, full, undefined);
      const stored = await work.virtual.replace({ actual: current, wanted, fresh }, reason);
      if (stored !== undefined) work.caches.rememberImport(stored);
      return this.#lanes.remember(id, full, stored ?? current, { outcome: 'updated', reason });
    } catch (error) {
      if (isConflict(error) || isAlreadyExists(error)) await this.#refresh(work, seen.virtual);
      throw error;
    }
  }

  #forged(
    { caches }: KindWorkplace,
    { virtual }: ReferenceObservation,
    full: KubeObject,
    current: KubeObject | undefined,
  ): KubeObject {
    return forgeVirtualImport(full, caches.kind, { virtual, current }, this.#context.names.vcluster);
  }

  async #refresh({ caches, virtual }: KindWorkplace, key: NamespacedName): Promise<void> {
    const there = await virtual.read(key, caches.virtual(keyOf(key))?.metadata.uid ?? '');
    if (there !== undefined) caches.virtualCache.observeWrite(there);
  }
}
