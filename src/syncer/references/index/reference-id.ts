/** A referenced object, as the key of the importer's work queue. */

import { keyOf, type NamespacedName } from '../../../kube/object.ts';
import type { KindId } from '../../translate/merge/recorded-kinds.ts';

/** A referenced object by its virtual name: `v1 Secret default/tls`. */
export type ReferenceId = string;

export function referenceIdOf(kind: KindId, virtual: NamespacedName): ReferenceId {
  return `${kind} ${keyOf(virtual)}`;
}

export interface ReferenceParts {
  readonly kind: KindId;
  readonly namespace: string;
  readonly name: string;
}

export function parseReferenceId(id: ReferenceId): ReferenceParts {
  const space = id.lastIndexOf(' ');
  const slash = id.indexOf('/', space);
  return { kind: id.slice(0, space), namespace: id.slice(space + 1, slash), name: id.slice(slash + 1) };
}
