/** The bookkeeping of a merge on the copy: the record of the sync, and the list of managed annotations, as far as they fit. */

import type { KubeObject, StringMap } from '../../kube/object.ts';
import { ownValue } from '../../base/json.ts';
import {
  isBookkeepingAnnotation,
  LAST_SYNCED,
  MANAGED_ANNOTATIONS,
  printManagedAnnotations,
} from './bookkeeping.ts';
import { pick, stringMapOf } from './labels.ts';
import { encodeLastSynced, shortHash, type LastSynced } from './last-synced.ts';
import { beforeArrivals, type MapMerge } from './merge-map.ts';
import type { ContentRules } from './types.ts';

/** All annotations of one object together may hold this many bytes, keys and values. */
const ANNOTATION_BYTES_MAX = 256 * 1024;

interface MergedObjects {
  readonly virtual: KubeObject;
  readonly host: KubeObject | undefined;
  readonly desired: KubeObject;
  readonly content?: ContentRules;
}

interface RecordChange {
  /** As read from the host copy. */
  readonly before: LastSynced | undefined;
  readonly record: LastSynced;
  /** Some value is on its way to the virtual side. */
  readonly isFlowingBack: boolean;
}

/** The annotations of the host copy, record included. Bookkeeping always comes from the translation. */
export function hostAnnotations(
  input: MergedObjects,
  merge: MapMerge,
  { before, record, isFlowingBack }: RecordChange,
): StringMap {
  const actual = stringMapOf(input.host?.metadata.annotations);
  const desired = stringMapOf(input.desired.metadata.annotations);
  const annotations: StringMap = {
    ...merge.host,
    ...pick(desired, isBookkeepingAnnotation),
  };
  delete annotations[LAST_SYNCED];
  delete annotations[MANAGED_ANNOTATIONS];
  const { text, managed } = fittingBookkeeping(record, printManagedAnnotations(merge.managed), annotations);
  if (managed !== undefined) annotations[MANAGED_ANNOTATIONS] = managed;
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
function recordedLike(before: LastSynced, now: LastSynced, { content, virtual }: MergedObjects): LastSynced {
  const own = Object.keys(stringMapOf(virtual.metadata.labels)).filter((key) => content?.isOwnLabel(key));
  const added = new Set(own.map(shortHash).filter((key) => !before.labels.has(key)));
  if (added.size === 0) return now;
  return { ...now, labels: new Map([...now.labels].filter(([key]) => !added.has(key))) };
}

/** True if only the version of the virtual object differs, or what has arrived there, which does not justify a write. */
function isSameRecord(now: LastSynced, before: LastSynced, text: string | undefined): boolean {
  const record = {
    ...now,
    revision: before.revision,
    isOwn: before.isOwn === true,
    annotations: beforeArrivals(now.annotations, before.annotations),
    labels: beforeArrivals(now.labels, before.labels),
    paths: beforeArrivals(now.paths, before.paths),
  };
  return encodeLastSynced(record) === text;
}

/**
 * What fits beside the annotations, which are synced in any case: the list of their keys is left out first, because the record proves more, then
 * the paths of the record, then all of it.
 */
function fittingBookkeeping(
  record: LastSynced,
  managed: string | undefined,
  annotations: StringMap,
): { readonly text?: string; readonly managed?: string } {
  const bytesLeft = ANNOTATION_BYTES_MAX - bytesOf(annotations);
  const list = managed === undefined ? {} : { managed };
  const listBytes = managed === undefined ? 0 : bytesOf({ [MANAGED_ANNOTATIONS]: managed });
  const text = encodeLastSynced(record);
  const textBytes = bytesOf({ [LAST_SYNCED]: text });
  if (textBytes + listBytes <= bytesLeft) return { text, ...list };
  if (textBytes <= bytesLeft) return { text };
  const shorter = encodeLastSynced({ ...record, paths: new Map() });
  return bytesOf({ [LAST_SYNCED]: shorter }) <= bytesLeft ? { text: shorter } : {};
}

/** As an API server counts them. */
function bytesOf(annotations: StringMap): number {
  return Object.entries(annotations).reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
    0,
  );
}
