/** Reconciles one referenced object: observe both sides, decide, remove copies that are no longer needed, import. Idempotent. */

import { keyOf, type KubeObject } from '../../kube/object.ts';
import { SKIP_BACKSYNC } from '../reconcile/decide.ts';
import type { ReconcileResult } from '../reconcile/controller.ts';
import {
  decideReference,
  hostKeyOf,
  surplusCopies,
  type ReferenceDecision,
  type ReferenceObservation,
  observeReference,
} from './decide-reference.ts';
import type { ReferenceListener } from './environment.ts';
import { parseReferenceId, type ReferenceId } from './reference-index.ts';
import { describeReference } from './referenced-kind.ts';
import { HostImporter } from './host-import.ts';
import type { ImportContext, ImportJob, KindResources } from './import-job.ts';
import { ImportTracker, type ImportGuards } from './import-tracker.ts';
import { VirtualImporter } from './virtual-import.ts';

export interface ImporterOptions extends ImportContext {
  /** Undefined while the kind is not watched. */
  readonly resourcesOf: (id: ReferenceId) => KindResources | undefined;
  isReferenced(id: ReferenceId): boolean;
  /** Every synced object has been reconciled since the start. */
  areReferencesKnown(): boolean;
  /** False while the host copy of an object that cannot be translated may reference this import. */
  isDispensable(copy: KubeObject): boolean;
  /** A host copy still references this host object, although it should reference another one. */
  isStillWritten(id: ReferenceId, hostKey: string): boolean;
  readonly decided: ReferenceListener | undefined;
  readonly guards: Readonly<Record<'host' | 'virtual', ImportGuards>>;
}

const UNREFERENCED = 'no longer referenced';
/** Retry while a synced object that cannot be translated may still need the import. */
const DISPENSABLE_RETRY_MS = 5000;
const STILL_IN_USE: ReconcileResult = {
  outcome: 'unchanged',
  reason: 'still in use',
  waitMs: DISPENSABLE_RETRY_MS,
};

/** A job with its decision. */
interface DecidedJob extends ImportJob {
  readonly decision: ReferenceDecision;
  readonly isReferenced: boolean;
}

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
    const isReferenced = this.#options.isReferenced(id);
    // References that are still unreferenced when all synced objects have been reconciled are enqueued again.
    if (!isReferenced && !this.#options.areReferencesKnown()) return { outcome: 'ignored' };
    const { namespace, name } = parseReferenceId(id);
    const seen = observeReference(resources.caches, { namespace, name }, this.#options.names);
    const decision = isReferenced ? decideReference(seen, this.#options.rules) : decideUnreferenced(seen);
    this.#options.decided?.(seen, decision, isReferenced);
    const job: DecidedJob = { id, resources, seen, decision, isReferenced };
    if (isReferenced && seen.source !== undefined && resources.caches.isRefusalOutdated(seen.source))
      await this.#intoVirtual.checkAgain(job, seen.source);
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
        return this.#intoVirtual.import(job);
    }
  }

  async #toHost(job: DecidedJob, removed: ReconcileResult): Promise<ReconcileResult> {
    const { id, seen } = job;
    if (this.#trackers.virtual.has(id)) {
      this.#reportReplaced(id, seen);
      this.#trackers.virtual.forget(id);
    }
    const result = await this.#intoHost.import(job);
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
}

function decideUnreferenced(seen: ReferenceObservation): ReferenceDecision {
  return { name: undefined, action: seen.ours.length > 0 || seen.imported ? 'none' : 'paused' };
}

function isSkipped({ metadata: { labels, annotations } }: KubeObject): boolean {
  return labels?.[SKIP_BACKSYNC] === 'true' || annotations?.[SKIP_BACKSYNC] === 'true';
}
