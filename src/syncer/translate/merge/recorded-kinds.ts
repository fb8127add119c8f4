/** The referenced kinds in the sync record of a host copy. */

import type { KubeObject } from '../../../kube/object.ts';
import { LAST_SYNCED } from '../metadata/bookkeeping.ts';
import { decodeLastSynced } from './last-synced.ts';

/** `v1 Secret`, `example.com/v1 Gadget`. */
export type KindId = string;

export function kindIdOf({ apiVersion, kind }: { apiVersion: string; kind: string }): KindId {
  return `${apiVersion} ${kind}`;
}

/** The kinds that a host copy references, according to its sync record. */
export function recordedKinds({ metadata: { annotations } }: KubeObject): readonly KindId[] {
  const { kinds = [] } = decodeLastSynced(annotations?.[LAST_SYNCED]) ?? {};
  return kinds.filter((id) => /^\S+ \S+$/.test(id));
}

/** The record for {@link recordedKinds}. */
export function kindsToRecord(
  references: readonly { apiVersion: string; kind: string }[],
): readonly KindId[] {
  return [...new Set(references.map(kindIdOf))].toSorted();
}
