/** Gives the import of references access to the synced objects of all kinds. The engine adds each kind that it creates. */

import {
  keyOf,
  objectKey,
  parseKey,
  type KubeObject,
  type ObjectKey,
  type Resource,
} from '../kube/object.ts';
import type { Lister } from '../kube/types.ts';
import {
  parseReferrerId,
  referrerIdOf,
  type Referrer,
  type ReferrerId,
  type Referrers,
} from './references/reference-index.ts';
import type { NameTranslator } from './translate/types.ts';

export interface ReferrerKind {
  readonly kind: { readonly resource: Resource };
  readonly virtual: Lister;
  readonly host: Lister;
  enqueue(key: ObjectKey): void;
}

export class SyncedReferrers implements Referrers {
  readonly #names: NameTranslator;
  readonly #kinds = new Map<string, ReferrerKind>();

  constructor(names: NameTranslator) {
    this.#names = names;
  }

  add(kind: ReferrerKind): void {
    this.#kinds.set(kind.kind.resource.plural, kind);
  }

  virtual(id: ReferrerId): Referrer | undefined {
    const { plural, key } = parseReferrerId(id);
    const kind = this.#kinds.get(plural);
    const object = kind?.virtual.get(key);
    return object && kind && { object, resource: kind.kind.resource };
  }

  hostCopy(id: ReferrerId): KubeObject | undefined {
    const { plural, key } = parseReferrerId(id);
    const target = this.#names.toHost(parseKey(key));
    return target && this.#kinds.get(plural)?.host.get(keyOf(target));
  }

  enqueue(id: ReferrerId): void {
    const { plural, key } = parseReferrerId(id);
    this.#kinds.get(plural)?.enqueue(key);
  }

  all(): readonly ReferrerId[] {
    return [...this.#kinds.values()].flatMap(({ kind, virtual }) =>
      [...virtual.list()].map((object) => referrerIdOf(kind.resource, objectKey(object))),
    );
  }
}
