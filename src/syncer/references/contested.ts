/** What follows when another writer keeps overwriting an import: its correction waits, and an Event says why. */

import type { DriftVerdict } from '../reconcile/contention.ts';
import type { ReconcileResult } from '../reconcile/reconciler.ts';
import type { ImportContext, ImportJob } from './import-job.ts';
import { describeReference } from './referenced-kind.ts';

export function leaveContested(
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
