/** An import that somebody keeps overwriting is left alone, and everybody who names it hears why. */

import type { ReconcileResult } from '../reconciler.ts';
import type { ImportContext, ImportJob } from './import-job.ts';
import type { ImportLanes } from './import-lanes.ts';
import { describeReference } from './referenced-kind.ts';

export function leaveContested(
  context: ImportContext,
  lanes: ImportLanes,
  { id, seen }: ImportJob,
): ReconcileResult {
  context.alert(
    id,
    'Contested',
    `Somebody keeps overwriting the copy of ${describeReference(seen.kind, seen.virtual)}, so it is left alone for now. ` +
      'Stop that writer, or opt the object out with the label vcluster.loft.sh/controlled-by.',
  );
  return { outcome: 'waiting', reason: 'Contested', waitMs: lanes.contentionWaitMs(id) };
}
