/**
 * Which Endpoints name which objects, forward and back. It lives in memory only: after a start it is complete once every Endpoints has been
 * decided once, and nothing may be removed for lack of references before.
 */

import type { ObjectKey, Resource } from '../../../kube/object.ts';
import type { ReferenceId } from './reference-id.ts';

/** Reference → key of the host object that the host copy of the Endpoints names for it; '' where the value stayed. */
export type NamedObjects = ReadonlyMap<ReferenceId, ObjectKey>;

const NOTHING: NamedObjects = new Map();
const NOBODY: ReadonlySet<ObjectKey> = new Set();

export class ReferenceIndex {
  readonly #named = new Map<ObjectKey, NamedObjects>();
  readonly #namers = new Map<ReferenceId, Set<ObjectKey>>();
  /** Not decided since the start. */
  readonly #pending = new Set<ObjectKey>();
  /** Decided without success, so that what their copies name is not known. */
  readonly #unknown = new Set<ObjectKey>();
  #isBegun = false;

  /** These are all Endpoints that there are. */
  begin(keys: Iterable<ObjectKey>): void {
    for (const key of keys) this.#pending.add(key);
    this.#isBegun = true;
  }

  /** Every Endpoints has been decided once. */
  get isComplete(): boolean {
    return this.#isBegun && this.#pending.size === 0;
  }

  get unknown(): ReadonlySet<ObjectKey> {
    return this.#unknown;
  }

  /** This Endpoints names exactly these. Answers the references for which something changed. */
  set(key: ObjectKey, named: NamedObjects): readonly ReferenceId[] {
    const before = this.#named.get(key) ?? NOTHING;
    this.#pending.delete(key);
    this.#unknown.delete(key);
    const changed = [...named].filter(([id, hostKey]) => before.get(id) !== hostKey).map(([id]) => id);
    const dropped = [...before.keys()].filter((id) => !named.has(id));
    for (const id of dropped) this.#unlink(id, key);
    for (const id of changed) this.#link(id, key);
    if (named.size === 0) this.#named.delete(key);
    else this.#named.set(key, named);
    return [...changed, ...dropped];
  }

  /** This Endpoints was looked at, whatever came of it; without a success since the start nobody knows what its copy names. */
  settle(key: ObjectKey): void {
    if (this.#pending.delete(key)) this.#unknown.add(key);
  }

  namersOf(id: ReferenceId): ReadonlySet<ObjectKey> {
    return this.#namers.get(id) ?? NOBODY;
  }

  isReferenced(id: ReferenceId): boolean {
    return this.#namers.has(id);
  }

  /** What the copy of this Endpoints names for the reference. */
  writtenBy(key: ObjectKey, id: ReferenceId): ObjectKey | undefined {
    return this.#named.get(key)?.get(id);
  }

  references(): Iterable<ReferenceId> {
    return this.#namers.keys();
  }

  #link(id: ReferenceId, key: ObjectKey): void {
    const namers = this.#namers.get(id);
    if (namers === undefined) this.#namers.set(id, new Set([key]));
    else namers.add(key);
  }

  #unlink(id: ReferenceId, key: ObjectKey): void {
    const namers = this.#namers.get(id);
    namers?.delete(key);
    if (namers?.size === 0) this.#namers.delete(id);
  }
}

/** A synced object that references others: its kind and key, such as `endpoints:namespace/name`. */
export type ReferrerId = string;

export function referrerIdOf({ plural }: Resource, key: ObjectKey): ReferrerId {
  return `${plural}:${key}`;
}

export function parseReferrerId(id: ReferrerId): { readonly plural: string; readonly key: ObjectKey } {
  const colon = id.indexOf(':');
  return { plural: id.slice(0, colon), key: id.slice(colon + 1) };
}
