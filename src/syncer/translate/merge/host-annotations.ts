/** The annotations of the host copy after a merge, including the sync record. */

import type { StringMap } from '../../../kube/object.ts';
import { ownValue } from '../../../base/json.ts';
import {
  isBookkeepingAnnotation,
  LAST_SYNCED,
  MANAGED_ANNOTATIONS,
  printManagedAnnotations,
} from '../metadata/bookkeeping.ts';
import { stringMapOf } from '../metadata/labels.ts';
import { encodeLastSynced, shortHash, type LastSynced } from './last-synced.ts';
import { withRemovals, type MapMerge } from './merge-map.ts';
import { pick, type MergeInput } from './merge-plan.ts';

/** All annotations of one object together may hold this many bytes, keys and values. */
const ANNOTATION_BYTES_MAX = 256 * 1024;

/** The pair, and the record as it was. */
export interface RecordedBefore {
  readonly input: MergeInput;
  readonly record: LastSynced | undefined;
}

export interface NewRecord {
  readonly record: LastSynced;
  /** Values are on their way to the virtual side. */
  readonly isFlowingBack: boolean;
}

/** Bookkeeping always comes from the translation. */
export function hostAnnotations(
  { input, record: before }: RecordedBefore,
  merge: MapMerge,
  { record, isFlowingBack }: NewRecord,
): StringMap {
  const actual = stringMapOf(input.host?.metadata.annotations);
  const desired = stringMapOf(input.desired.metadata.annotations);
  const annotations: StringMap = {
    ...merge.host,
    ...pick(desired, isBookkeepingAnnotation),
  };
  const managed = printManagedAnnotations(merge.managed);
  if (managed === undefined) delete annotations[MANAGED_ANNOTATIONS];
  else annotations[MANAGED_ANNOTATIONS] = managed;
  delete annotations[LAST_SYNCED];
  const text = fittingRecord(record, annotations);
  if (text === undefined) return annotations;
  const isSame =
    before !== undefined &&
    isSameRecord(
      recordedLike(before, record, input),
      before,
      ownValue(actual, LAST_SYNCED) as string | undefined,
    ); // a map of strings
  annotations[LAST_SYNCED] = isSame && !isFlowingBack ? (actual[LAST_SYNCED] ?? text) : text;
  return annotations;
}

/** Records of earlier versions have no labels that come from the translation alone, which does not justify a write either. */
function recordedLike(before: LastSynced, now: LastSynced, { content, virtual }: MergeInput): LastSynced {
  const own = Object.keys(stringMapOf(virtual.metadata.labels)).filter((key) => content?.isOwnLabel(key));
  const added = new Set(own.map(shortHash).filter((key) => !before.labels.has(key)));
  if (added.size === 0) return now;
  return { ...now, labels: new Map([...now.labels].filter(([key]) => !added.has(key))) };
}

/** True if only the version of the virtual object or obsolete entries differ, which does not justify a write. */
function isSameRecord(now: LastSynced, before: LastSynced, text: string | undefined): boolean {
  const record = {
    ...now,
    revision: before.revision,
    annotations: withRemovals(now.annotations, before.annotations),
    labels: withRemovals(now.labels, before.labels),
    paths: withRemovals(now.paths, before.paths),
  };
  return encodeLastSynced(record) === text;
}

/** If the annotations are too large for the whole record, it is written without paths, or not at all. The object is synced in any case. */
function fittingRecord(record: LastSynced, annotations: StringMap): string | undefined {
  let bytesLeft = ANNOTATION_BYTES_MAX - LAST_SYNCED.length;
  for (const [key, value] of Object.entries(annotations)) {
    bytesLeft -= Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  const whole = encodeLastSynced(record);
  if (whole.length <= bytesLeft) return whole;
  const withoutPaths = encodeLastSynced({ ...record, paths: new Map() });
  return withoutPaths.length <= bytesLeft ? withoutPaths : undefined;
}
