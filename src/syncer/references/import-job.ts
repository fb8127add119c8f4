/** Types and functions that the imports of both directions share. */

import type { KubeObject } from '../../kube/object.ts';
import type { DriftVerdict } from '../reconcile/guards.ts';
import type { ReconcileResult } from '../reconcile/controller.ts';
import type { NameTranslator } from '../translate/types.ts';
import type { ReferenceDecision, ReferenceObservation } from './decide-reference.ts';
import type { RefusalRules } from './refusals.ts';
import type { KindCaches } from './kind-caches.ts';
import { describeReference } from './referenced-kind.ts';
import { type ReferenceId } from './reference-index.ts';
import type { CopyWriter } from './copy-writer.ts';
import type { ImportForgeOptions } from './import-forge.ts';

/** The caches of one referenced kind, and the writers of its copies. */
export interface KindResources {
  readonly caches: KindCaches;
  readonly host: CopyWriter;
  readonly virtual: CopyWriter;
}

/** One reference with the observation that its decision is based on. */
export interface ImportJob {
  readonly id: ReferenceId;
  readonly resources: KindResources;
  readonly seen: ReferenceObservation;
}

/** Dependencies of both directions. */
export interface ImportContext {
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
}

/** The cache is behind the API server, or the object is being deleted; the event usually arrives sooner. */
const REQUEUE_AFTER_MS = 500;

/** The result where an object is no longer what the cache showed: another attempt follows. */
export function requeued(reason: string): ReconcileResult {
  return { outcome: 'waiting', reason, waitMs: REQUEUE_AFTER_MS, isTransient: true };
}

/** True when the object that was read from the API server is still the copy that the cache showed. */
export function isStillOurs(actual: KubeObject, copy: KubeObject): boolean {
  return actual.metadata.uid === copy.metadata.uid && actual.metadata.deletionTimestamp === undefined;
}

/** The result for a contested import: the correction is delayed, and an Event reports the reason. */
export function waitWhileContested(
  context: ImportContext,
  { id, seen }: ImportJob,
  { waitMs, isReportable }: DriftVerdict,
): ReconcileResult {
  if (isReportable) {
    context.alert(
      id,
      'Contested',
      `Another writer keeps overwriting the copy of ${describeReference(seen.kind, seen.virtual)}; ` +
        `it is corrected again in ${waitMs / 1000} s. ` +
        'Stop that writer, or opt the object out with the label vcluster.loft.sh/controlled-by.',
    );
  }
  return { outcome: 'waiting', reason: 'Contested', waitMs };
}
