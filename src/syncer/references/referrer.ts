/** Which synced object references something: its kind and key in one text. */

import type { ObjectKey, Resource } from '../../kube/object.ts';

/** `endpoints:namespace/name`. */
export type ReferrerId = string;

export function referrerIdOf({ plural }: Resource, key: ObjectKey): ReferrerId {
  return `${plural}:${key}`;
}

export function parseReferrerId(id: ReferrerId): { readonly plural: string; readonly key: ObjectKey } {
  const colon = id.indexOf(':');
  return { plural: id.slice(0, colon), key: id.slice(colon + 1) };
}
