/** The versions of a pair at its last sync, to detect without a translation that nothing has changed. */

import type { KubeObject, ObjectKey } from '../../../kube/object.ts';
import type { Observation } from './decide.ts';

export interface SyncedPair {
  readonly virtualUid: string;
  readonly virtualVersion: string;
  readonly hostUid: string;
  readonly hostVersion: string;
  /** Version of the Service at that time; '' for none. */
  readonly serviceVersion: string;
}

export type SyncedPairs = Map<ObjectKey, SyncedPair>;

/** True when both objects and the Service are exactly those of the last sync. */
export function isPairUnchanged(pair: SyncedPair | undefined, seen: Observation): boolean {
  return (
    pair !== undefined &&
    seen.virtual?.metadata.resourceVersion === pair.virtualVersion &&
    seen.host?.metadata.resourceVersion === pair.hostVersion &&
    seen.virtual.metadata.uid === pair.virtualUid &&
    seen.host.metadata.uid === pair.hostUid &&
    (seen.service?.metadata.resourceVersion ?? '') === pair.serviceVersion
  );
}

export function syncedPair(
  virtual: KubeObject,
  host: KubeObject,
  service: KubeObject | undefined,
): SyncedPair {
  return {
    virtualUid: virtual.metadata.uid ?? '',
    virtualVersion: virtual.metadata.resourceVersion ?? '',
    hostUid: host.metadata.uid ?? '',
    hostVersion: host.metadata.resourceVersion ?? '',
    serviceVersion: service?.metadata.resourceVersion ?? '',
  };
}
