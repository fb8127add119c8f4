/** Pairs as they were at their last sync, to detect without a translation what has changed since. */

import { jsonEquals, type JsonObject } from '../../../base/json.ts';
import type { KubeObject, ObjectKey, StringMap } from '../../../kube/object.ts';
import { isBookkeepingAnnotation } from '../../translate/metadata/bookkeeping.ts';
import type { Observation } from './decide.ts';

/** A pair at its last sync. The objects are those of the caches, so they take no memory of their own. */
export interface SyncedPair {
  readonly virtual: KubeObject;
  readonly host: KubeObject;
  /** Version of the Service at that time; '' for none. */
  readonly serviceVersion: string;
  /** Both objects when they were in step last; another pair of objects only while something of another syncer is left in `virtual`. */
  readonly agreed: { readonly virtual: KubeObject; readonly host: KubeObject } | undefined;
  /** Something is left to do once a delay has passed. */
  readonly isOpen: boolean;
}

export type SyncedPairs = Map<ObjectKey, SyncedPair>;

/** True when both objects and the Service are exactly those of the last sync. */
export function isPairUnchanged(pair: SyncedPair | undefined, seen: Observation): boolean {
  return (
    pair !== undefined &&
    !pair.isOpen &&
    isSameVersion(pair.virtual, seen.virtual) &&
    isSameVersion(pair.host, seen.host) &&
    (seen.service?.metadata.resourceVersion ?? '') === pair.serviceVersion
  );
}

export function isSameVersion(a: KubeObject, b: KubeObject | undefined): boolean {
  return a.metadata.resourceVersion === b?.metadata.resourceVersion && a.metadata.uid === b?.metadata.uid;
}

/**
 * True if the virtual object differs from that of the last sync only by what another syncer has copied back from the host copy: that is no
 * change of a user.
 */
export function isEchoOnly(pair: SyncedPair, { metadata, ...content }: KubeObject): boolean {
  const { metadata: before, ...contentBefore } = pair.virtual;
  if (metadata.uid !== before.uid || !jsonEquals(content as JsonObject, contentBefore as JsonObject))
    return false;
  return (
    isMapEcho(metadata.annotations, [before.annotations, pair.host.metadata.annotations]) &&
    isMapEcho(metadata.labels, [before.labels, pair.host.metadata.labels])
  );
}

function isMapEcho(
  now: StringMap = {},
  [before = {}, host = {}]: readonly [StringMap | undefined, StringMap | undefined],
): boolean {
  const keys = new Set([...Object.keys(now), ...Object.keys(before)]);
  return [...keys].every(
    (key) => now[key] === before[key] || isBookkeepingAnnotation(key) || now[key] === host[key],
  );
}
