/** Hides the annotations and labels that the syncer keeps for itself. */

import type { KubeObject, ObjectMeta, StringMap } from '../../kube/object.ts';
import { isBookkeepingAnnotation, isBookkeepingLabel } from '../../syncer/translate/metadata/bookkeeping.ts';
import { stringMapOf } from '../../syncer/translate/metadata/labels.ts';

/** A copy without the bookkeeping annotations and the marker labels. */
export function withoutBookkeeping(object: KubeObject): KubeObject {
  const metadata: ObjectMeta = { ...object.metadata };
  deleteKeys(metadata, 'annotations', isBookkeepingAnnotation);
  deleteKeys(metadata, 'labels', isBookkeepingLabel);
  return { ...object, metadata };
}

function deleteKeys(
  metadata: ObjectMeta,
  member: 'annotations' | 'labels',
  isHidden: (key: string) => boolean,
): void {
  const kept = Object.entries(stringMapOf(metadata[member])).filter(([key]) => !isHidden(key));
  if (kept.length > 0) metadata[member] = Object.fromEntries(kept) satisfies StringMap;
  else delete metadata[member];
}
