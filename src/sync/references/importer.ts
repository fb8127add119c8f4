/** One referenced object, once: observe both sides, decide, remove what has no purpose, bring the copy in step. Idempotent. */

import { invariant } from '../../kube/errors.ts';
import { keyOf, type KubeObject, type NamespacedName } from '../../kube/object.ts';
import { isAlreadyExists, isConflict } from '../../kube/status-error.ts';
import { MANAGED_BY_LABEL } from '../../translate/labels.ts';
import type { NameTranslator } from '../../translate/types.ts';
import { needsWrite } from '../../write/diff.ts';
import type { ContentionGuard } from '../contention.ts';
import { SKIP_BACKSYNC } from '../decide.ts';
import type { ReconcileResult } from '../reconciler.ts';
import type { RecreationBackoff } from '../recreation.ts';
import type { CopyWriter } from './copy-writer.ts';
import {
  decideReference,
  hostKeyOf,
  surplusCopies,
  type ReferenceDecision,
  type ReferenceObservation,
} from './decide-reference.ts';
import { forgeHostImport, forgeVirtualImport, type ImportForgeOptions } from './import-forge.ts';
import { importState, isInStep, isUntouched, stateOf, type ImportState } from './import-states.ts';
import { isWhole, type KindCaches } from './kind-caches.ts';
import { observeReference } from './kind-view.ts';
import { describeReference, parseReferenceId, type ReferenceId } from './referenced-kind.ts';
import { refusalOfContent, refusalOfSource, type RefusalRules } from './refusals.ts';

export interface KindWorkplace {
  readonly caches: KindCaches;
  readonly host: CopyWriter;
  readonly virtual: CopyWriter;
}

export interface ImporterOptions {
  readonly workplaceOf: (id: ReferenceId) => KindWorkplace | undefined;
  readonly forge: ImportForgeOptions;
  readonly names: NameTranslator;
  readonly rules: RefusalRules;
  isReferenced(id: ReferenceId): boolean;
  /** No Endpoints on the host may still name this object, as far as anybody can know. */
  isDispensable(copy: KubeObject): boolean;
  /** The copy of an Endpoints still names this host object for the reference, although it should name another one. */
  isStillWritten(id: ReferenceId, hostKey: string): boolean;
  /** The decision may be another one now. */
  recheck(id: ReferenceId): void;
  /** Tells the Endpoints that name the object; each of them once. Undefined: all is well again. */
  tellProblem(id: ReferenceId, problem: ReferenceDecision['problem']): void;
  tellImported(id: ReferenceId, note: string): void;
  /** Something that everybody who names the object must hear of. */
  alert(id: ReferenceId, reason: 'ReferenceImported' | 'Contested', note: string): void;
  readonly recreation: { readonly host: RecreationBackoff; readonly virtual: RecreationBackoff };
  readonly contention: ContentionGuard;
}

const UNCHANGED: ReconcileResult = { outcome: 'unchanged' };
const NO_PURPOSE = 'nothing references it any more';
/** While Endpoints that cannot be translated may still need an object. */
const DISPENSABLE_RETRY_MS = 5000;

/** The cache is behind the API server, or the object is on its way out; events usually come sooner. */
const AGAIN_MS = 500;

/** One direction of one reference: key of states and guards. */
type Lane = `${ReferenceId}>${'host' | 'virtual'}`;

/** What is being done: the reference, and what both sides showed. */
interface Job {
  readonly id: ReferenceId;
  readonly work: KindWorkplace;
  readonly seen: ReferenceObservation;
}

export class Importer {
  readonly #options: ImporterOptions;
  readonly #states = new Map<Lane, ImportState>();

  constructor(options: ImporterOptions) {
    this.#options = options;
  }

  async reconcile(id: ReferenceId): Promise<ReconcileResult> {
    const work = this.#options.workplaceOf(id);
    if (work === undefined) return { outcome: 'ignored', reason: 'kind is not watched' };
    const { namespace, name } = parseReferenceId(id);
    const seen = observeReference(work.caches, { namespace, name }, this.#options.names);
    const job: Job = { id, work, seen };
    const isReferenced = this.#options.isReferenced(id);
    const decision: ReferenceDecision = isReferenced
      ? decideReference(seen, this.#options.rules)
      : { name: undefined, action: seen.ours.length > 0 || seen.imported ? 'none' : 'paused' };
    const removed = await this.#removeSurplus(job, decision, isReferenced);
    switch (decision.action) {
      case 'paused':
        this.#options.tellProblem(id, undefined);
        return isReferenced
          ? { outcome: 'ignored', reason: 'controlled by another' }
          : { outcome: 'ignored' };
      case 'none':
        return this.#withoutImport(job, decision, removed);
      case 'to-host':
        return this.#both(removed, this.#toHost(job));
      case 'to-virtual':
        return this.#toVirtual(job);
    }
  }

  /** Somebody else deleted a copy. */
  noteDeletion(id: ReferenceId, cluster: 'host' | 'virtual'): void {
    const lane: Lane = `${id}>${cluster}`;
    if (!this.#states.has(lane)) return;
    this.#options.recreation[cluster].noteDeletion(lane);
  }

  async #both(removed: ReconcileResult, other: Promise<ReconcileResult>): Promise<ReconcileResult> {
    const result = await other;
    return removed.waitMs === undefined ? result : { ...result, waitMs: removed.waitMs };
  }

  #withoutImport(
    { id, seen }: Job,
    { problem }: ReferenceDecision,
    removed: ReconcileResult,
  ): ReconcileResult {
    const lane: Lane = `${id}>virtual`;
    if (this.#states.has(lane) && seen.object !== undefined) this.#tellTakeover(id, seen);
    this.#states.delete(lane);
    this.#states.delete(`${id}>host`);
    this.#options.tellProblem(id, problem);
    if (problem !== undefined) return { outcome: 'refused', reason: problem.reason };
    return removed;
  }

  // Removing.

  async #removeSurplus(
    job: Job,
    decision: ReferenceDecision,
    isReferenced: boolean,
  ): Promise<ReconcileResult> {
    const { id, work, seen } = job;
    const options = this.#options;
    let result: ReconcileResult = UNCHANGED;
    for (const copy of surplusCopies(seen, decision)) {
      if (isSkipped(copy)) continue;
      const isMoving = decision.name !== undefined && keyOf(decision.name) !== hostKeyOf(copy);
      if (
        isReferenced ? isMoving && options.isStillWritten(id, hostKeyOf(copy)) : !options.isDispensable(copy)
      ) {
        result = { outcome: 'waiting', reason: 'still in use', waitMs: DISPENSABLE_RETRY_MS };
        continue;
      }
      await work.host.delete(copy, isReferenced ? 'is not imported any more' : NO_PURPOSE);
      this.#forget(`${id}>host`);
      result = { ...result, outcome: 'deleted', reason: NO_PURPOSE };
    }
    if (seen.imported === undefined || decision.action === 'to-virtual' || decision.action === 'paused')
      return result;
    if (!isReferenced && !options.isDispensable(seen.imported))
      return { outcome: 'waiting', reason: 'still in use', waitMs: DISPENSABLE_RETRY_MS };
    await work.virtual.delete(seen.imported, isReferenced ? 'is not imported any more' : NO_PURPOSE);
    work.caches.forgetImport(seen.imported.metadata.uid ?? '');
    this.#forget(`${id}>virtual`);
    return { outcome: 'deleted', reason: NO_PURPOSE };
  }

  // Into the host.

  async #toHost(job: Job): Promise<ReconcileResult> {
    const { id, seen, work } = job;
    const { object, target } = seen;
    invariant(object && target, 'what is imported into the host exists and has a place there');
    if (this.#states.has(`${id}>virtual`)) {
      this.#tellTakeover(id, seen);
      this.#forget(`${id}>virtual`);
    }
    const copy = seen.ours.find((one) => hostKeyOf(one) === keyOf(target));
    if (copy === undefined) return this.#createOnHost(job, object, target);
    this.#options.tellProblem(id, undefined);
    const lane: Lane = `${id}>host`;
    const state = this.#states.get(lane);
    if (isInStep(state, object, copy)) return UNCHANGED;
    const waitMs = this.#options.contention.waitMs(lane);
    if (waitMs > 0) return { outcome: 'waiting', reason: 'Contested', waitMs };
    const actual = isUntouched(state, copy) ? copy : await work.host.read(target, copy.metadata.uid ?? '');
    if (actual === undefined || !this.#isStillOurs(actual, copy)) return this.#again(job);
    const forged = (host: KubeObject | undefined) =>
      forgeHostImport(object, work.caches.kind, { target, host }, this.#options.forge);
    const wanted = forged(actual);
    if (actual !== copy && !needsWrite(wanted, actual))
      return this.#remember(lane, object, actual, UNCHANGED);
    if (actual !== copy && this.#isContested(lane, state, object)) return this.#leaveContested(job, lane);
    const reason = 'differs from the virtual object';
    const stored = await this.#guarded(job, () =>
      work.host.replace({ actual, wanted, fresh: forged(undefined) }, reason),
    );
    return this.#remember(lane, object, stored ?? copy, { outcome: 'updated', reason });
  }

  async #createOnHost(job: Job, object: KubeObject, target: NamespacedName): Promise<ReconcileResult> {
    const { id, work } = job;
    const lane: Lane = `${id}>host`;
    const waitMs = this.#options.recreation.host.waitMs(lane);
    if (waitMs > 0) return { outcome: 'waiting', reason: 'host copy was deleted', waitMs };
    const { kind } = work.caches;
    const fresh = forgeHostImport(object, kind, { target, host: undefined }, this.#options.forge);
    try {
      const stored = await work.host.create(fresh, 'is referenced');
      this.#options.tellProblem(id, undefined);
      this.#options.tellImported(
        id,
        `${describeReference(kind, job.seen.virtual)} is imported into the host as "${keyOf(target)}".`,
      );
      return this.#remember(lane, object, stored ?? fresh, { outcome: 'created' });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return this.#nameTaken(job, target, error);
    }
  }

  /** The cache did not know it: either it is ours and the cache is late, or it is not ours. */
  async #nameTaken(job: Job, target: NamespacedName, error: unknown): Promise<ReconcileResult> {
    const { id, work, seen } = job;
    const there = await work.host.read(target, '');
    if (there === undefined) throw error;
    if (there.metadata.labels?.[MANAGED_BY_LABEL] === this.#options.names.vcluster) {
      work.caches.copies.observeWrite(there);
      const again = observeReference(work.caches, seen.virtual, this.#options.names);
      if (again.ours.some((copy) => hostKeyOf(copy) === keyOf(target))) return this.#again(job);
    }
    const { problem } = decideReference({ ...seen, isTargetTaken: true }, this.#options.rules);
    this.#options.tellProblem(id, problem);
    return { outcome: 'refused', reason: problem?.reason ?? 'NotManaged' };
  }

  // Into the virtual cluster.

  async #toVirtual(job: Job): Promise<ReconcileResult> {
    const { id, work, seen } = job;
    const { source, imported } = seen;
    invariant(source, 'what is imported from the host exists');
    this.#options.tellProblem(id, undefined);
    const lane: Lane = `${id}>virtual`;
    const state = this.#states.get(lane);
    if (imported !== undefined && isInStep(state, source, imported)) return UNCHANGED;
    const { recreation, contention } = this.#options;
    const waitMs = Math.max(
      imported === undefined ? recreation.virtual.waitMs(lane) : 0,
      contention.waitMs(lane),
    );
    if (waitMs > 0) return { outcome: 'waiting', reason: 'import was deleted or contested', waitMs };
    const { namespace = '', name, uid = '' } = source.metadata;
    const full = await work.host.read({ namespace, name }, uid);
    if (full?.metadata.uid !== uid || this.#isRefused(job, full)) {
      this.#options.recheck(id);
      return { outcome: 'waiting', reason: 'source has changed', waitMs: AGAIN_MS };
    }
    return imported === undefined ? this.#createImport(job, full) : this.#updateImport(job, full, imported);
  }

  /** Looked at once more with all its data, right before it would be copied. */
  #isRefused({ work }: Job, full: KubeObject): boolean {
    const { kind } = work.caches;
    const refusal =
      refusalOfSource(full, kind.host, this.#options.rules) ?? refusalOfContent(full, kind.host);
    work.caches.refuse(full, refusal);
    return refusal !== undefined;
  }

  async #createImport({ id, work, seen }: Job, full: KubeObject): Promise<ReconcileResult> {
    const { kind } = work.caches;
    const wanted = this.#virtualImport(work, seen, full, undefined);
    try {
      const stored = await work.virtual.create(wanted, 'is referenced');
      if (stored !== undefined) work.caches.rememberImport(stored);
      this.#options.tellImported(
        id,
        `${describeReference(kind, { namespace: full.metadata.namespace ?? '', name: full.metadata.name })} of the host is imported ` +
          `into the virtual cluster as "${keyOf(seen.virtual)}".`,
      );
      return this.#remember(`${id}>virtual`, full, stored ?? wanted, { outcome: 'created' });
    } catch (error) {
      if (isAlreadyExists(error)) await this.#refreshVirtual(work, seen.virtual);
      throw error;
    }
  }

  async #updateImport(job: Job, full: KubeObject, imported: KubeObject): Promise<ReconcileResult> {
    const { id, work, seen } = job;
    const lane: Lane = `${id}>virtual`;
    const uid = imported.metadata.uid ?? '';
    work.caches.rememberImport(imported);
    const isCached = isWhole(work.caches.kind);
    const current = isCached ? imported : await work.virtual.read(seen.virtual, uid);
    if (current?.metadata.uid !== uid)
      return { outcome: 'waiting', reason: 'import has changed', waitMs: AGAIN_MS };
    const wanted = this.#virtualImport(work, seen, full, current);
    if (!needsWrite(wanted, current)) return this.#remember(lane, full, current, UNCHANGED);
    if (this.#isContested(lane, this.#states.get(lane), full)) return this.#leaveContested(job, lane);
    const reason = 'differs from the host object';
    try {
      const fresh = this.#virtualImport(work, seen, full, undefined);
      const stored = await work.virtual.replace({ actual: current, wanted, fresh }, reason);
      if (stored !== undefined) work.caches.rememberImport(stored);
      return this.#remember(lane, full, stored ?? current, { outcome: 'updated', reason });
    } catch (error) {
      if (isConflict(error) || isAlreadyExists(error)) await this.#refreshVirtual(work, seen.virtual);
      throw error;
    }
  }

  #virtualImport(
    { caches }: KindWorkplace,
    { virtual }: ReferenceObservation,
    full: KubeObject,
    current: KubeObject | undefined,
  ): KubeObject {
    return forgeVirtualImport(full, caches.kind, { virtual, current }, this.#options.names.vcluster);
  }

  // Both ways.

  async #refreshVirtual({ caches, virtual }: KindWorkplace, key: NamespacedName): Promise<void> {
    const there = await virtual.read(key, caches.virtual(keyOf(key))?.metadata.uid ?? '');
    if (there !== undefined) caches.virtualCache.observeWrite(there);
  }

  /** After a lost race the cache is behind: read once, so that the next attempt decides on what is there. */
  async #guarded<T>({ work, seen }: Job, write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (seen.target !== undefined && (isConflict(error) || isAlreadyExists(error))) {
        const known = work.caches.copies.get(keyOf(seen.target));
        const there = await work.host.read(seen.target, known?.metadata.uid ?? '');
        if (there?.metadata.labels?.[MANAGED_BY_LABEL] === this.#options.names.vcluster)
          work.caches.copies.observeWrite(there);
      }
      throw error;
    }
  }

  /** Read from the API server, is it still the object that the cache showed as our copy? */
  #isStillOurs(actual: KubeObject, copy: KubeObject): boolean {
    return actual.metadata.uid === copy.metadata.uid && actual.metadata.deletionTimestamp === undefined;
  }

  /** The caches are about to show something else. */
  #again({ id }: Job): ReconcileResult {
    this.#options.recheck(id);
    return { outcome: 'waiting', reason: 'host copy has changed', waitMs: AGAIN_MS };
  }

  /** Somebody changed the copy although its original stayed as it was when we wrote it. */
  #isContested(lane: Lane, state: ImportState | undefined, source: KubeObject): boolean {
    return state?.source === stateOf(source) && this.#options.contention.noteOverwrite(lane);
  }

  #leaveContested({ id, seen }: Job, lane: Lane): ReconcileResult {
    this.#options.alert(
      id,
      'Contested',
      `Somebody keeps overwriting the copy of ${describeReference(seen.kind, seen.virtual)}, so it is left alone for now. ` +
        'Stop that writer, or opt the object out with the label vcluster.loft.sh/controlled-by.',
    );
    return { outcome: 'waiting', reason: 'Contested', waitMs: this.#options.contention.waitMs(lane) };
  }

  #remember(lane: Lane, source: KubeObject, copy: KubeObject, result: ReconcileResult): ReconcileResult {
    this.#states.set(lane, importState(source, copy));
    return result;
  }

  #forget(lane: Lane): void {
    this.#states.delete(lane);
    this.#options.recreation.host.forget(lane);
    this.#options.recreation.virtual.forget(lane);
    this.#options.contention.forget(lane);
  }

  #tellTakeover(id: ReferenceId, { kind, virtual }: ReferenceObservation): void {
    // What is used from now on is another object: more than good news.
    this.#options.alert(
      id,
      'ReferenceImported',
      `${describeReference(kind, virtual)} of the virtual cluster takes the place of the one that was imported from the host.`,
    );
  }
}

function isSkipped({ metadata: { labels, annotations } }: KubeObject): boolean {
  return labels?.[SKIP_BACKSYNC] === 'true' || annotations?.[SKIP_BACKSYNC] === 'true';
}
