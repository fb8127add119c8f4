/** Imports a host object into the virtual cluster: creates its copy there, or updates it. */

import { invariant } from '../../base/errors.ts';
import { keyOf, type KubeObject, type NamespacedName } from '../../kube/object.ts';
import { isAlreadyExists, isConflict } from '../../kube/status-error.ts';
import { isNamespaceMissing, type ReconcileResult } from '../reconcile/controller.ts';
import { needsWrite } from '../translate/content.ts';
import { namespaceNotFound, type ReferenceObservation } from './decide-reference.ts';
import { refusalOfContent, refusalOfSource } from './refusals.ts';
import { isWhole } from './kind-caches.ts';
import { describeReference } from './referenced-kind.ts';
import { forgeVirtualImport } from './import-forge.ts';
import {
  requeued,
  waitWhileContested,
  type ImportContext,
  type ImportJob,
  type KindResources,
} from './import-job.ts';
import type { ImportTracker } from './import-tracker.ts';

const UPDATE_REASON = 'differs from the host object';

export class VirtualImporter {
  readonly #context: ImportContext;
  readonly #tracker: ImportTracker;

  constructor(context: ImportContext, tracker: ImportTracker) {
    this.#context = context;
    this.#tracker = tracker;
  }

  async import(job: ImportJob): Promise<ReconcileResult> {
    const { id, resources, seen } = job;
    const { source, imported } = seen;
    invariant(source, 'an object that is imported from the host exists');
    this.#context.reportProblem(id, undefined);
    if (imported !== undefined && this.#tracker.isSynced(id, source, imported))
      return { outcome: 'unchanged' };
    const recreationMs = imported === undefined ? this.#tracker.recreationWaitMs(id) : 0;
    const waitMs = Math.max(recreationMs, this.#tracker.contentionWaitMs(id, source));
    if (waitMs > 0) return { outcome: 'waiting', reason: 'import was deleted or contested', waitMs };
    const full = await readWhole(resources, source);
    if (full === undefined || this.#recordRefusal(job, full)) {
      this.#context.recheck(id);
      return requeued('source has changed');
    }
    return imported === undefined ? this.#create(job, full) : this.#update(job, full, imported);
  }

  /** Checks the content of a refused source that has changed. The copies keep the name that they reference until it is allowed. */
  async checkAgain(job: ImportJob, source: KubeObject): Promise<void> {
    const full = await readWhole(job.resources, source);
    if (full !== undefined) this.#recordRefusal(job, full);
  }

  /** True if the object is refused. The cache holds metadata only, so the whole object is checked again right before it is copied. */
  #recordRefusal({ resources }: ImportJob, full: KubeObject): boolean {
    const { kind } = resources.caches;
    const refusal =
      refusalOfSource(full, kind.host, this.#context.rules) ??
      refusalOfContent(full, kind.host, this.#context.rules);
    resources.caches.recordRefusal(full, refusal);
    return refusal !== undefined;
  }

  async #create({ id, resources, seen }: ImportJob, full: KubeObject): Promise<ReconcileResult> {
    const { kind } = resources.caches;
    const wanted = this.#forged(resources, seen, full, undefined);
    try {
      const stored = await resources.virtual.create(wanted, 'is referenced');
      if (stored !== undefined) resources.caches.rememberImport(stored);
      const source = { namespace: full.metadata.namespace ?? '', name: full.metadata.name };
      this.#context.reportImported(
        id,
        `${describeReference(kind, source)} of the host is imported ` +
          `into the virtual cluster as "${keyOf(seen.virtual)}".`,
      );
      return this.#tracker.markSynced(id, full, stored ?? wanted, { outcome: 'created' });
    } catch (error) {
      if (isNamespaceMissing(error)) {
        const problem = namespaceNotFound(seen);
        this.#context.reportProblem(id, problem);
        return { outcome: 'refused', reason: problem.reason };
      }
      if (isAlreadyExists(error)) await this.#refresh(resources, seen.virtual);
      throw error;
    }
  }

  async #update(job: ImportJob, full: KubeObject, imported: KubeObject): Promise<ReconcileResult> {
    const { id, resources, seen } = job;
    const uid = imported.metadata.uid ?? '';
    resources.caches.rememberImport(imported);
    const isCached = isWhole(resources.caches.kind);
    const current = isCached ? imported : await resources.virtual.read(seen.virtual, uid);
    if (current?.metadata.uid !== uid) return requeued('import has changed');
    const wanted = this.#forged(resources, seen, full, current);
    if (!needsWrite(wanted, current))
      return this.#tracker.markSynced(id, full, current, { outcome: 'unchanged' });
    const verdict = this.#tracker.noteWrite(id, full);
    if (verdict !== undefined) return waitWhileContested(this.#context, job, verdict);
    try {
      const fresh = this.#forged(resources, seen, full, undefined);
      const stored = await resources.virtual.replace({ actual: current, wanted, fresh }, UPDATE_REASON);
      if (stored !== undefined) resources.caches.rememberImport(stored);
      return this.#tracker.markSynced(id, full, stored ?? current, {
        outcome: 'updated',
        reason: UPDATE_REASON,
      });
    } catch (error) {
      if (isConflict(error) || isAlreadyExists(error)) await this.#refresh(resources, seen.virtual);
      throw error;
    }
  }

  #forged(
    { caches }: KindResources,
    { virtual }: ReferenceObservation,
    full: KubeObject,
    current: KubeObject | undefined,
  ): KubeObject {
    return forgeVirtualImport(full, caches.kind, { virtual, current }, this.#context.names.vcluster);
  }

  /** A tenant may have created the object: an event, because the copies of its referrers name it from now on. */
  async #refresh({ caches, virtual }: KindResources, key: NamespacedName): Promise<void> {
    const existing = await virtual.read(key, caches.virtual(keyOf(key))?.metadata.uid ?? '');
    if (existing !== undefined) caches.virtualCache.observeRead(existing);
  }
}

/** Undefined if another object has taken its place. */
async function readWhole(
  { host }: KindResources,
  { metadata: { namespace = '', name, uid = '' } }: KubeObject,
): Promise<KubeObject | undefined> {
  const full = await host.read({ namespace, name }, uid);
  return full?.metadata.uid === uid ? full : undefined;
}
