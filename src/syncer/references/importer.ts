/** Reconciles one referenced object: observe both sides, decide, remove copies that are no longer needed, import. Idempotent. */

import { invariant } from '../../base/errors.ts';
import { keyOf, type KubeObject, type NamespacedName } from '../../kube/object.ts';
import { isAlreadyExists, isConflict } from '../../kube/status-error.ts';
import { isNamespaceMissing, type ReconcileResult } from '../reconcile/controller.ts';
import { SKIP_BACKSYNC } from '../reconcile/decide.ts';
import { OBJECTION_MS, type DriftVerdict } from '../reconcile/guards.ts';
import { changedPaths, listedPaths } from '../reconcile/object-diff.ts';
import { needsWrite } from '../translate/content.ts';
import { MANAGED_BY_LABEL } from '../translate/labels.ts';
import type { NameTranslator } from '../translate/types.ts';
import {
  decideReference,
  hostKeyOf,
  namespaceNotFound,
  observeReference,
  surplusCopies,
  type ReferenceDecision,
  type ReferenceObservation,
} from './decide-reference.ts';
import type { ReferenceListener } from './environment.ts';
import { forgeHostImport, forgeVirtualImport, type ImportForgeOptions } from './import-forge.ts';
import type { ImportTracker } from './import-tracker.ts';
import { isWhole } from './kind-caches.ts';
import type { KindResources } from './kind-registry.ts';
import { parseReferenceId, type ReferenceId } from './reference-index.ts';
import { describeReference } from './referenced-kind.ts';
import { refusalOfContent, refusalOfSource, type RefusalRules } from './refusals.ts';

export interface ImporterOptions {
  readonly forge: ImportForgeOptions;
  readonly names: NameTranslator;
  readonly rules: RefusalRules;
  /** Enqueues the reference and every referrer whose copy has to reference another object now. */
  recheck(id: ReferenceId): void;
  /** Reports a problem once to each referrer. Undefined: the problem is solved. */
  reportProblem(id: ReferenceId, problem: ReferenceDecision['problem']): void;
  reportImported(id: ReferenceId, note: string): void;
  /** Sends a warning to every referrer, without deduplication. */
  alert(id: ReferenceId, reason: 'ReferenceImported' | 'Contested', note: string): void;
  /** Undefined while the kind is not watched. */
  readonly resourcesOf: (id: ReferenceId) => KindResources | undefined;
  isReferenced(id: ReferenceId): boolean;
  /** Every synced object has been reconciled since the start. */
  areReferencesKnown(): boolean;
  /** False while the host copy of an object that cannot be translated may reference this import. */
  isDispensable(copy: KubeObject): boolean;
  /** Why the copies of objects that are gone must stay for now. */
  readonly objection: () => Promise<string | undefined>;
  /** A host copy still references this host object, although it should reference another one. */
  isStillWritten(id: ReferenceId, hostKey: string): boolean;
  readonly decided: ReferenceListener | undefined;
  readonly trackers: Readonly<Record<'host' | 'virtual', ImportTracker>>;
}

const UNREFERENCED = 'no longer referenced';
/** Retry while a synced object that cannot be translated may still need the import. */
const DISPENSABLE_RETRY_MS = 5000;
const STILL_IN_USE: ReconcileResult = {
  outcome: 'unchanged',
  reason: 'still in use',
  waitMs: DISPENSABLE_RETRY_MS,
};

const OF_ANOTHER_CLUSTER: ReconcileResult = {
  outcome: 'unchanged',
  reason: 'another virtual cluster',
  waitMs: OBJECTION_MS,
};

const DIFFERS_FROM_VIRTUAL = 'differs from the virtual object';
const DIFFERS_FROM_HOST = 'differs from the host object';

/** One reference with the observation that its decision is based on. */
interface ImportJob {
  readonly id: ReferenceId;
  readonly resources: KindResources;
  readonly seen: ReferenceObservation;
}

/** A job with its decision. */
interface DecidedJob extends ImportJob {
  readonly decision: ReferenceDecision;
  readonly isReferenced: boolean;
}

export class Importer {
  readonly #options: ImporterOptions;
  readonly #trackers: Readonly<Record<'host' | 'virtual', ImportTracker>>;

  constructor(options: ImporterOptions) {
    this.#options = options;
    this.#trackers = options.trackers;
  }

  async reconcile(id: ReferenceId): Promise<ReconcileResult> {
    const resources = this.#options.resourcesOf(id);
    if (resources === undefined) return { outcome: 'ignored', reason: 'kind is not watched' };
    const isReferenced = this.#options.isReferenced(id);
    // References that are still unreferenced when all synced objects have been reconciled are enqueued again.
    if (!isReferenced && !this.#options.areReferencesKnown()) return { outcome: 'ignored' };
    const { namespace, name } = parseReferenceId(id);
    const seen = observeReference(resources.caches, { namespace, name }, this.#options.names);
    const decision = isReferenced ? decideReference(seen, this.#options.rules) : decideUnreferenced(seen);
    this.#options.decided?.(seen, decision, isReferenced);
    const job: DecidedJob = { id, resources, seen, decision, isReferenced };
    if (isReferenced && seen.source !== undefined && resources.caches.isRefusalOutdated(seen.source))
      await this.#checkAgain(job, seen.source);
    return this.#act(job, await this.#removeSurplus(job));
  }

  /** Another client deleted a copy. */
  noteDeletion(id: ReferenceId, cluster: 'host' | 'virtual'): void {
    this.#trackers[cluster].noteDeletion(id);
  }

  /** After a restore from a backup, the same versions may have other content. */
  forgetVersions(id: ReferenceId): void {
    for (const tracker of Object.values(this.#trackers)) tracker.clearState(id);
  }

  async #act(job: DecidedJob, removed: ReconcileResult): Promise<ReconcileResult> {
    switch (job.decision.action) {
      case 'paused':
        this.#options.reportProblem(job.id, undefined);
        return job.isReferenced
          ? { outcome: 'ignored', reason: 'controlled by another' }
          : { outcome: 'ignored' };
      case 'none':
        return this.#withoutImport(job, removed);
      case 'to-host':
        return this.#toHost(job, removed);
      case 'to-virtual':
        return this.#importIntoVirtual(job);
    }
  }

  async #toHost(job: DecidedJob, removed: ReconcileResult): Promise<ReconcileResult> {
    const { id, seen } = job;
    if (this.#trackers.virtual.has(id)) {
      this.#reportReplaced(id, seen);
      this.#trackers.virtual.forget(id);
    }
    const result = await this.#importIntoHost(job);
    return removed.waitMs === undefined ? result : { ...result, waitMs: removed.waitMs };
  }

  #withoutImport({ id, seen, decision: { problem } }: DecidedJob, removed: ReconcileResult): ReconcileResult {
    if (this.#trackers.virtual.has(id) && seen.object !== undefined) this.#reportReplaced(id, seen);
    this.#trackers.virtual.clearState(id);
    this.#trackers.host.clearState(id);
    this.#options.reportProblem(id, problem);
    if (problem !== undefined) return { outcome: 'refused', reason: problem.reason };
    return removed;
  }

  async #removeSurplus(job: DecidedJob): Promise<ReconcileResult> {
    const { id, resources, seen, decision, isReferenced } = job;
    const why = isReferenced ? 'no longer imported' : UNREFERENCED;
    let result: ReconcileResult = { outcome: 'unchanged' };
    for (const copy of surplusCopies(seen, decision)) {
      if (isSkipped(copy)) continue;
      if (this.#isNeeded(job, copy)) {
        result = STILL_IN_USE;
        continue;
      }
      if (seen.object === undefined && (await this.#options.objection()) !== undefined) {
        result = OF_ANOTHER_CLUSTER;
        continue;
      }
      await resources.host.delete(copy, why);
      this.#trackers.host.forget(id);
      result = { ...result, outcome: 'deleted', reason: UNREFERENCED };
    }
    const { imported } = seen;
    if (imported === undefined || decision.action === 'to-virtual' || decision.action === 'paused')
      return result;
    if (!isReferenced && !this.#options.isDispensable(imported)) return STILL_IN_USE;
    await resources.virtual.delete(imported, why);
    resources.caches.forgetImport(imported.metadata.uid ?? '');
    this.#trackers.virtual.forget(id);
    return { outcome: 'deleted', reason: UNREFERENCED };
  }

  /** A synced object on the host may still reference this copy. */
  #isNeeded({ id, decision: { name }, isReferenced }: DecidedJob, copy: KubeObject): boolean {
    if (!isReferenced) return !this.#options.isDispensable(copy);
    const isMoving = name !== undefined && keyOf(name) !== hostKeyOf(copy);
    return isMoving && this.#options.isStillWritten(id, hostKeyOf(copy));
  }

  /** A warning, because the host copies reference another object from now on. */
  #reportReplaced(id: ReferenceId, { kind, virtual }: ReferenceObservation): void {
    this.#options.alert(
      id,
      'ReferenceImported',
      `${describeReference(kind, virtual)} of the virtual cluster replaces the one that was imported from the host.`,
    );
  }

  async #importIntoHost(job: ImportJob): Promise<ReconcileResult> {
    const { id, seen } = job;
    const { object, target } = seen;
    invariant(object && target, 'an object that is imported into the host exists and has a target there');
    const copy = seen.ours.find((one) => hostKeyOf(one) === keyOf(target));
    if (copy === undefined) return this.#createOnHost(job, object, target);
    this.#options.reportProblem(id, undefined);
    if (this.#trackers.host.isSynced(id, object, copy)) return { outcome: 'unchanged' };
    const waitMs = this.#trackers.host.contentionWaitMs(id, object);
    if (waitMs > 0) return { outcome: 'waiting', reason: 'Contested', waitMs };
    return this.#updateOnHost(job, { object, target, copy });
  }

  async #updateOnHost(
    job: ImportJob,
    { object, target, copy }: { object: KubeObject; target: NamespacedName; copy: KubeObject },
  ): Promise<ReconcileResult> {
    const { id, resources } = job;
    const isUnchanged = this.#trackers.host.isCopyUnchanged(id, copy);
    const actual = isUnchanged ? copy : await resources.host.read(target, copy.metadata.uid ?? '');
    if (actual === undefined || !isStillOurs(actual, copy)) return this.#copyHasChanged(job);
    const forged = (host: KubeObject | undefined) =>
      forgeHostImport(object, resources.caches.kind, { target, host }, this.#options.forge);
    const wanted = await forged(actual);
    if (!isUnchanged) {
      if (!needsWrite(wanted, actual))
        return this.#trackers.host.markSynced(id, object, actual, { outcome: 'unchanged' });
      const verdict = this.#trackers.host.noteWrite(id, object);
      if (verdict !== undefined) return this.#waitWhileContested(job, verdict);
    }
    const states = { actual, wanted, fresh: await forged(undefined) };
    const stored = await this.#readCopyOnConflict(job, () =>
      resources.host.replace(states, DIFFERS_FROM_VIRTUAL),
    );
    if (stored !== undefined) this.#reportAltered(job, 'host', await forged(stored), stored);
    return this.#trackers.host.markSynced(id, object, stored ?? copy, {
      outcome: 'updated',
      reason: DIFFERS_FROM_VIRTUAL,
    });
  }

  async #createOnHost(job: ImportJob, object: KubeObject, target: NamespacedName): Promise<ReconcileResult> {
    const { id, resources } = job;
    const waitMs = this.#trackers.host.recreationWaitMs(id);
    if (waitMs > 0) return { outcome: 'waiting', reason: 'host copy was deleted', waitMs };
    const { kind } = resources.caches;
    const fresh = await forgeHostImport(object, kind, { target, host: undefined }, this.#options.forge);
    try {
      const stored = await resources.host.create(fresh, 'is referenced');
      this.#options.reportProblem(id, undefined);
      this.#options.reportImported(
        id,
        `${describeReference(kind, job.seen.virtual)} is imported into the host as "${keyOf(target)}".`,
      );
      if (stored !== undefined) {
        const wanted = await forgeHostImport(object, kind, { target, host: stored }, this.#options.forge);
        this.#reportAltered(job, 'host', wanted, stored);
      }
      return this.#trackers.host.markSynced(id, object, stored ?? fresh, { outcome: 'created' });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return this.#resolveNameTaken(job, target, error);
    }
  }

  /** The existing object is not in the cache: either it is our copy and the cache is behind, or this program did not create it. */
  async #resolveNameTaken(job: ImportJob, target: NamespacedName, error: unknown): Promise<ReconcileResult> {
    const { id, resources, seen } = job;
    const { names, rules } = this.#options;
    const existing = await resources.host.read(target, '');
    if (existing === undefined) throw error;
    if (existing.metadata.labels?.[MANAGED_BY_LABEL] === names.vcluster) {
      resources.caches.copies.observeRead(existing);
      const current = observeReference(resources.caches, seen.virtual, names);
      if (current.ours.some((copy) => hostKeyOf(copy) === keyOf(target))) return this.#copyHasChanged(job);
    }
    const { problem } = decideReference({ ...seen, isTargetTaken: true }, rules);
    this.#options.reportProblem(id, problem);
    return { outcome: 'refused', reason: problem?.reason ?? 'NotManaged' };
  }

  /** After a conflict, the cache is behind. Reads the object once, so that the next attempt uses its current state. */
  async #readCopyOnConflict<T>({ resources, seen }: ImportJob, write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (seen.target !== undefined && (isConflict(error) || isAlreadyExists(error))) {
        const known = resources.caches.copies.get(keyOf(seen.target));
        const existing = await resources.host.read(seen.target, known?.metadata.uid ?? '');
        if (existing?.metadata.labels?.[MANAGED_BY_LABEL] === this.#options.names.vcluster)
          resources.caches.copies.observeRead(existing);
      }
      throw error;
    }
  }

  #copyHasChanged({ id }: ImportJob): ReconcileResult {
    this.#options.recheck(id);
    return requeued('host copy has changed');
  }

  async #importIntoVirtual(job: ImportJob): Promise<ReconcileResult> {
    const { id, resources, seen } = job;
    const { source, imported } = seen;
    invariant(source, 'an object that is imported from the host exists');
    this.#options.reportProblem(id, undefined);
    if (imported !== undefined && this.#trackers.virtual.isSynced(id, source, imported))
      return { outcome: 'unchanged' };
    const recreationMs = imported === undefined ? this.#trackers.virtual.recreationWaitMs(id) : 0;
    const waitMs = Math.max(recreationMs, this.#trackers.virtual.contentionWaitMs(id, source));
    if (waitMs > 0) return { outcome: 'waiting', reason: 'import was deleted or contested', waitMs };
    const full = await readWhole(resources, source);
    if (full === undefined || this.#recordRefusal(job, full)) {
      this.#options.recheck(id);
      return requeued('source has changed');
    }
    return imported === undefined
      ? this.#createInVirtual(job, full)
      : this.#updateInVirtual(job, full, imported);
  }

  /** Checks the content of a refused source that has changed. The copies keep the name that they reference until it is allowed. */
  async #checkAgain(job: ImportJob, source: KubeObject): Promise<void> {
    const full = await readWhole(job.resources, source);
    if (full !== undefined) this.#recordRefusal(job, full);
  }

  /** True if the object is refused. The cache holds metadata only, so the whole object is checked again right before it is copied. */
  #recordRefusal({ resources }: ImportJob, full: KubeObject): boolean {
    const { kind } = resources.caches;
    const refusal =
      refusalOfSource(full, kind.host, this.#options.rules) ??
      refusalOfContent(full, kind.host, this.#options.rules);
    resources.caches.recordRefusal(full, refusal);
    return refusal !== undefined;
  }

  async #createInVirtual(job: ImportJob, full: KubeObject): Promise<ReconcileResult> {
    const { id, resources, seen } = job;
    const { kind } = resources.caches;
    const wanted = this.#forgedImport(resources, seen, full, undefined);
    try {
      const stored = await resources.virtual.create(wanted, 'is referenced');
      if (stored !== undefined) this.#rememberStored(job, full, stored);
      const source = { namespace: full.metadata.namespace ?? '', name: full.metadata.name };
      this.#options.reportImported(
        id,
        `${describeReference(kind, source)} of the host is imported ` +
          `into the virtual cluster as "${keyOf(seen.virtual)}".`,
      );
      return this.#trackers.virtual.markSynced(id, full, stored ?? wanted, { outcome: 'created' });
    } catch (error) {
      if (isNamespaceMissing(error)) {
        const problem = namespaceNotFound(seen);
        this.#options.reportProblem(id, problem);
        return { outcome: 'refused', reason: problem.reason };
      }
      if (isAlreadyExists(error)) await this.#readImport(resources, seen.virtual);
      throw error;
    }
  }

  async #updateInVirtual(job: ImportJob, full: KubeObject, imported: KubeObject): Promise<ReconcileResult> {
    const { id, resources, seen } = job;
    const uid = imported.metadata.uid ?? '';
    resources.caches.rememberImport(imported);
    const isCached = isWhole(resources.caches.kind);
    const current = isCached ? imported : await resources.virtual.read(seen.virtual, uid);
    if (current?.metadata.uid !== uid) return requeued('import has changed');
    const wanted = this.#forgedImport(resources, seen, full, current);
    if (!needsWrite(wanted, current))
      return this.#trackers.virtual.markSynced(id, full, current, { outcome: 'unchanged' });
    const verdict = this.#trackers.virtual.noteWrite(id, full);
    if (verdict !== undefined) return this.#waitWhileContested(job, verdict);
    try {
      const fresh = this.#forgedImport(resources, seen, full, undefined);
      const stored = await resources.virtual.replace({ actual: current, wanted, fresh }, DIFFERS_FROM_HOST);
      if (stored !== undefined) this.#rememberStored(job, full, stored);
      return this.#trackers.virtual.markSynced(id, full, stored ?? current, {
        outcome: 'updated',
        reason: DIFFERS_FROM_HOST,
      });
    } catch (error) {
      if (isConflict(error) || isAlreadyExists(error)) await this.#readImport(resources, seen.virtual);
      throw error;
    }
  }

  #rememberStored(job: ImportJob, full: KubeObject, stored: KubeObject): void {
    const { resources, seen } = job;
    resources.caches.rememberImport(stored);
    this.#reportAltered(job, 'virtual cluster', this.#forgedImport(resources, seen, full, stored), stored);
  }

  /** The copy stays as the API server has stored it until its source changes. */
  #reportAltered({ id, seen }: ImportJob, whose: string, wanted: KubeObject, stored: KubeObject): void {
    if (!needsWrite(wanted, stored)) return;
    this.#options.alert(
      id,
      'Contested',
      `The copy of ${describeReference(seen.kind, seen.virtual)} was changed by the ${whose}'s admission: ` +
        `${listedPaths(changedPaths(wanted, stored))}. Exempt the copy from the webhook or policy that changes it.`,
    );
  }

  #forgedImport(
    { caches }: KindResources,
    { virtual }: ReferenceObservation,
    full: KubeObject,
    current: KubeObject | undefined,
  ): KubeObject {
    return forgeVirtualImport(full, caches.kind, { virtual, current }, this.#options.names.vcluster);
  }

  /** A tenant may have created the object: an event, because the copies of its referrers name it from now on. */
  async #readImport({ caches, virtual }: KindResources, key: NamespacedName): Promise<void> {
    const existing = await virtual.read(key, caches.virtual(keyOf(key))?.metadata.uid ?? '');
    if (existing !== undefined) caches.virtualCache.observeRead(existing);
  }

  /** The correction is delayed, and an Event reports the reason. */
  #waitWhileContested({ id, seen }: ImportJob, { waitMs, isReportable }: DriftVerdict): ReconcileResult {
    if (isReportable) {
      this.#options.alert(
        id,
        'Contested',
        `Another writer keeps overwriting the copy of ${describeReference(seen.kind, seen.virtual)}; ` +
          `it is corrected again in ${waitMs / 1000} s. ` +
          'Stop that writer, or opt the object out with the label vcluster.loft.sh/controlled-by.',
      );
    }
    return { outcome: 'waiting', reason: 'Contested', waitMs };
  }
}

function decideUnreferenced(seen: ReferenceObservation): ReferenceDecision {
  return { name: undefined, action: seen.ours.length > 0 || seen.imported ? 'none' : 'paused' };
}

function isSkipped({ metadata: { labels, annotations } }: KubeObject): boolean {
  return labels?.[SKIP_BACKSYNC] === 'true' || annotations?.[SKIP_BACKSYNC] === 'true';
}

/** The cache is behind the API server, or the object is being deleted; the event usually arrives sooner. */
const REQUEUE_AFTER_MS = 500;

/** The result where an object is no longer what the cache showed: another attempt follows. */
function requeued(reason: string): ReconcileResult {
  return { outcome: 'again', reason, waitMs: REQUEUE_AFTER_MS };
}

/** True when the object that was read from the API server is still the copy that the cache showed. */
function isStillOurs(actual: KubeObject, copy: KubeObject): boolean {
  return actual.metadata.uid === copy.metadata.uid && actual.metadata.deletionTimestamp === undefined;
}

/** Undefined if another object has taken its place. */
async function readWhole(
  { host }: KindResources,
  { metadata: { namespace = '', name, uid = '' } }: KubeObject,
): Promise<KubeObject | undefined> {
  const full = await host.read({ namespace, name }, uid);
  return full?.metadata.uid === uid ? full : undefined;
}
