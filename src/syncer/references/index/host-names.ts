/** Index from host names to the referenced objects that depend on them. Events at these host names enqueue the references. */

import { keyOf, type ObjectKey } from '../../../kube/object.ts';
import type { NameTranslator } from '../../translate/types.ts';
import type { KindCaches } from '../kinds/kind-caches.ts';
import { sourceKeyOf } from '../decide/observe-reference.ts';
import { parseReferenceId, type ReferenceId } from './reference-id.ts';
import { type KindId } from '../../translate/merge/recorded-kinds.ts';

export class HostNames {
  readonly #names: NameTranslator;
  /** By kind and host key. */
  readonly #ids = new Map<string, Set<ReferenceId>>();

  constructor(names: NameTranslator) {
    this.#names = names;
  }

  at(kind: KindId, hostKey: ObjectKey): Iterable<ReferenceId> {
    return this.#ids.get(placeOf(kind, hostKey)) ?? [];
  }

  /** Adds or removes the host names of the referenced object. */
  set(id: ReferenceId, { kind }: KindCaches, isReferenced: boolean): void {
    for (const hostKey of this.#namesOf(id, kind)) {
      const place = placeOf(kind.id, hostKey);
      const ids = this.#ids.get(place) ?? new Set();
      if (isReferenced) ids.add(id);
      else ids.delete(id);
      if (ids.size > 0) this.#ids.set(place, ids);
      else this.#ids.delete(place);
    }
  }

  /** The host name of its copy, and that of the object to import from the host. */
  #namesOf(id: ReferenceId, kind: KindCaches['kind']): ReadonlySet<ObjectKey> {
    const { namespace, name } = parseReferenceId(id);
    const target = this.#names.referenceToHost({ namespace, name }, kind.host);
    const source = sourceKeyOf(kind, { namespace, name }, this.#names);
    return new Set([target && keyOf(target), source].filter((key) => key !== undefined));
  }
}

function placeOf(kind: KindId, hostKey: ObjectKey): string {
  return `${kind} ${hostKey}`;
}
