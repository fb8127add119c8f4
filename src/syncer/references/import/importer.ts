/** One referenced object, once: observe both sides, decide, remove what has no purpose, bring the copy in step. Idempotent. */

import { keyOf, type KubeObject } from '../../../kube/object.ts';
import { SKIP_BACKSYNC } from '../../reconcile/decide.ts';
import type { ReconcileResult } from '../../reconcile/result.ts';
import {
  decideReference,
  hostKeyOf,
  surplusCopies,
  type ReferenceDecision,
  type ReferenceObservation,
} from '../decide/decide-reference.ts';
import { HostImporter } from './host-import.ts';
import type { ImportContext, ImportJob, KindResources } from './import-job.ts';
import { ImportTracker, type ImportGuards } from './import-tracker.ts';
import { observeReference } from '../decide/observe-reference.ts';
import { describeReference } from '../kinds/referenced-kind.ts';
import { parseReferenceId, type ReferenceId } from '../index/reference-id.ts';
import { VirtualImporter } from './virtual-import.ts';

export interface ImporterOptions extends ImportContext {
  readonly resourcesOf: (id: ReferenceId) => KindResources | undefined;
  isReferenced(id: ReferenceId): boolean;
  /** Every Endpoints has been decided since the start. */
  areReferencesKnown(): boolean;
  /** No Endpoints on the host may still name this object, as far as anybody can know. */
  isDispensable(copy: KubeObject): boolean;
  /** The copy of an Endpoints still names this host object for the reference, although it should name another one. */
  isStillWritten(id: ReferenceId, hostKey: string): boolean;
  readonly guards: Readonly<Record<'host' | 'virtual', ImportGuards>>;
}

const NO_PURPOSE = 'nothing references it any more';
/** While Endpoints that cannot be translated may still need an object. */
const DISPENSABLE_RETRY_MS = 5000;
const STILL_IN_USE: ReconcileResult = {
  outcome: 'unchanged',
  reason: 'still in use',
  waitMs: DISPENSABLE_RETRY_MS,
};

export class Importer {
  readonly #options: ImporterOptions;
  readonly #trackers: Readonly<Record<'host' | 'virtual', ImportTracker>>;
  readonly #intoHost: HostImporter;
  readonly #intoVirtual: VirtualImporter;

  constructor(options: ImporterOptions) {
    this.#options = options;
    const { host, virtual } = options.guards;
    this.#trackers = { host: new ImportTracker(host), virtual: new ImportTracker(virtual) };
    this.#intoHost = new HostImporter(options, this.#trackers.host);
    this.#intoVirtual = new VirtualImporter(options, this.#trackers.virtual);
  }

  async reconcile(id: ReferenceId): Promise<ReconcileResult> {
    const resources = this.#options.resourcesOf(id);
    if (resources === undefined) return { outcome: 'ignored', reason: 'kind is not watched' };
    const { namespace, name } = parseReferenceId(id);
    const seen = observeReference(resources.caches, { namespace, name }, this.#options.names);
    const job: ImportJob = { id, resources, seen };
    const isReferenced = this.#options.isReferenced(id);
    // Not every Endpoints has been looked at since the start; what nothing references then is looked at again.
    if (!isReferenced && !this.#options.areReferencesKnown()) return { outcome: 'ignored' };
    const decision: ReferenceDecision = isReferenced
      ? decideReference(seen, this.#options.rules)
      : { name: undefined, action: seen.ours.length > 0 || seen.imported ? 'none' : 'paused' };
    const removed = await this.#removeSurplus(job, decision, isReferenced);
    switch (decision.action) {
      case 'paused':
        this.#options.reportProblem(id, undefined);
        return isReferenced
          ? { outcome: 'ignored', reason: 'controlled by another' }
          : { outcome: 'ignored' };
      case 'none':
        return this.#withoutImport(job, decision, removed);
      case 'to-host':
        return this.#toHost(job, removed);
      case 'to-virtual':
        return this.#intoVirtual.import(job);
    }
  }

  /** Somebody else deleted a copy. */
  noteDeletion(id: ReferenceId, cluster: 'host' | 'virtual'): void {
    this.#trackers[cluster].noteDeletion(id);
  }

  async #toHost(job: ImportJob, removed: ReconcileResult): Promise<ReconcileResult> {
    const { id, seen } = job;
    if (this.#trackers.virtual.has(id)) {
      this.#reportReplaced(id, seen);
      this.#trackers.virtual.forget(id);
    }
    const result = await this.#intoHost.import(job);
    return removed.waitMs === undefined ? result : { ...result, waitMs: removed.waitMs };
  }

  #withoutImport(
    { id, seen }: ImportJob,
    { problem }: ReferenceDecision,
    removed: ReconcileResult,
  ): ReconcileResult {
    if (this.#trackers.virtual.has(id) && seen.object !== undefined) this.#reportReplaced(id, seen);
    this.#trackers.virtual.clearState(id);
    this.#trackers.host.clearState(id);
    this.#options.reportProblem(id, problem);
    if (problem !== undefined) return { outcome: 'refused', reason: problem.reason };
    return removed;
  }

  async #removeSurplus(
    job: ImportJob,
    decision: ReferenceDecision,
    isReferenced: boolean,
  ): Promise<ReconcileResult> {
    const { id, resources, seen } = job;
    const why = isReferenced ? 'is not imported any more' : NO_PURPOSE;
    let result: ReconcileResult = { outcome: 'unchanged' };
    for (const copy of surplusCopies(seen, decision)) {
      if (isSkipped(copy)) continue;
      if (this.#isNeeded(job, copy, decision, isReferenced)) {
        result = STILL_IN_USE;
        continue;
      }
      await resources.host.delete(copy, why);
      this.#trackers.host.forget(id);
      result = { ...result, outcome: 'deleted', reason: NO_PURPOSE };
    }
    const { imported } = seen;
    if (imported === undefined || decision.action === 'to-virtual' || decision.action === 'paused')
      return result;
    if (!isReferenced && !this.#options.isDispensable(imported)) return STILL_IN_USE;
    await resources.virtual.delete(imported, why);
    resources.caches.forgetImport(imported.metadata.uid ?? '');
    this.#trackers.virtual.forget(id);
    return { outcome: 'deleted', reason: NO_PURPOSE };
  }

  /** Some Endpoints on the host may still lead to this copy. */
  #isNeeded(
    { id }: ImportJob,
    copy: KubeObject,
    { name }: ReferenceDecision,
    isReferenced: boolean,
  ): boolean {
    if (!isReferenced) return !this.#options.isDispensable(copy);
    const isMoving = name !== undefined && keyOf(name) !== hostKeyOf(copy);
    return isMoving && this.#options.isStillWritten(id, hostKeyOf(copy));
  }

  #reportReplaced(id: ReferenceId, { kind, virtual }: ReferenceObservation): void {
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
