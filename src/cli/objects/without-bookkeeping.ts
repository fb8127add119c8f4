/** Objects as a user reads them: without what this program writes beside the data. */

import type { KubeObject, ObjectMeta, StringMap } from '../../kube/object.ts';
import { isBookkeepingAnnotation, isBookkeepingLabel } from '../../syncer/translate/metadata/bookkeeping.ts';
import { stringMapOf } from '../../syncer/translate/metadata/labels.ts';

/** A copy without the bookkeeping annotations and the marker labels. */
export function withoutBookkeeping(object: KubeObject): KubeObject {
  const metadata: ObjectMeta = { ...object.metadata };
  setOrDelete(metadata, 'annotations', isBookkeepingAnnotation);
  setOrDelete(metadata, 'labels', isBookkeepingLabel);
  return { ...object, metadata };
}

function setOrDelete(
  metadata: ObjectMeta,
  member: 'annotations' | 'labels',
  isHidden: (key: string) => boolean,
): void {
  const kept = Object.entries(stringMapOf(metadata[member])).filter(([key]) => !isHidden(key));
  if (kept.length > 0) metadata[member] = Object.fromEntries(kept) satisfies StringMap;
  else delete metadata[member];
}
