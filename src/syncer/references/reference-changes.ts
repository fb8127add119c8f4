/** Maps changes to keys. A change of a referenced object, of an object at its host names, or of the references of a host copy enqueues the
 * reference for the importer. If a copy has to reference another object, its referrer is enqueued for its reconciler.
 */

import type { CacheEvent, ClusterName } from '../../kube/types.ts';
import { keyOf, type NamespacedName, type ObjectKey, parseKey } from '../../kube/object.ts';
import type { NameTranslator } from '../translate/types.ts';
import { type KindId, kindIdOf } from '../translate/last-synced.ts';
import {
  decideReference,
  type ReferenceObservation,
  copiedFrom,
  observeReference,
  sourceKeyOf,
} from './decide-reference.ts';
import type { RefusalRules } from './refusals.ts';
import { isImport } from './import-forge.ts';
import {
  parseReferenceId,
  type ReferenceId,
  referenceIdOf,
  type RecordedReferences,
  type ReferenceIndex,
  type ReferrerId,
} from './reference-index.ts';
import type { KindCaches } from './kind-caches.ts';

export interface ReferenceChangesOptions {
  readonly index: ReferenceIndex;
  readonly names: NameTranslator;
  readonly rules: RefusalRules;
  /** Undefined while the caches of the kind are not in sync. */
  readonly cachesOf: (kind: KindId) => KindCaches | undefined;
  /** Adds a reference to the importer's queue. */
  readonly enqueue: (id: ReferenceId) => void;
  /** Adds a referrer to the queue of its reconciler. */
  readonly enqueueReferrer: (id: ReferrerId) => void;
}

export class ReferenceChanges {
  readonly #options: ReferenceChangesOptions;
  readonly #hostNames: HostNames;

  constructor(options: ReferenceChangesOptions) {
    this.#options = options;
    this.#hostNames = new HostNames(options.names);
  }

  /** The references of a host copy have been recorded. */
  recorded({ referrer, references, changed }: RecordedReferences): void {
    for (const id of changed) {
      this.#linkHostNames(id);
      this.#options.enqueue(id);
    }
    for (const reference of references) {
      // Both clusters may have changed while the patches ran.
      const id = referenceIdOf(kindIdOf(reference), reference);
      const name = this.#nameOf(id);
      if (name !== undefined && name !== this.#options.index.writtenBy(referrer, id))
        this.#decideAgain(referrer);
    }
  }

  /** The references that a cache event affects. */
  affectedBy(caches: KindCaches, cluster: ClusterName, event: CacheEvent): Iterable<ReferenceId> {
    return cluster === 'virtual' ? this.#idsOfVirtual(caches, event) : this.#idsOfHost(caches, event);
  }

  /** Enqueues the reference, and every referrer whose copy has to reference another object. */
  recheck(id: ReferenceId): void {
    const { index, enqueue } = this.#options;
    enqueue(id);
    const name = this.#nameOf(id);
    if (name === undefined) return;
    for (const referrer of index.referrersOf(id))
      if (index.writtenBy(referrer, id) !== name) this.#decideAgain(referrer);
  }

  /** The caches of this kind are in sync. */
  kindOpened({ kind }: KindCaches): void {
    for (const id of this.#referencesTo(kind.id)) {
      this.#linkHostNames(id);
      this.recheck(id);
    }
  }

  /** The caches of this kind may be opened again. */
  kindRetried(kind: KindId): void {
    for (const id of this.#referencesTo(kind))
      for (const referrer of this.#options.index.referrersOf(id)) this.#decideAgain(referrer);
  }

  observe(caches: KindCaches, { namespace, name }: NamespacedName): ReferenceObservation {
    return observeReference(caches, { namespace, name }, this.#options.names);
  }

  #referencesTo(kind: KindId): readonly ReferenceId[] {
    return [...this.#options.index.references()].filter((id) => parseReferenceId(id).kind === kind);
  }

  #idsOfVirtual({ kind }: KindCaches, { key, object, previous }: CacheEvent): Iterable<ReferenceId> {
    const { index, rules } = this.#options;
    const id = referenceIdOf(kind.id, parseKey(key));
    const wasImport = [object, previous].some((one) => one !== undefined && isImport(one, rules.vcluster));
    return wasImport || index.isReferenced(id) ? [id] : [];
  }

  #idsOfHost({ kind }: KindCaches, { key, object, previous }: CacheEvent): Iterable<ReferenceId> {
    const ids = new Set(this.#hostNames.at(kind.id, key));
    for (const state of [object, previous]) {
      const virtual = state && copiedFrom(state, kind, this.#options.names);
      if (virtual !== undefined) ids.add(referenceIdOf(kind.id, virtual));
    }
    return ids;
  }

  #decideAgain(referrer: ReferrerId): void {
    this.#options.index.markStale(referrer);
    this.#options.enqueueReferrer(referrer);
  }

  /** The host object that host copies should reference; undefined while this is unknown, `''` while another virtual object has the name. */
  #nameOf(id: ReferenceId): ObjectKey | undefined {
    const parts = parseReferenceId(id);
    const caches = this.#options.cachesOf(parts.kind);
    if (caches === undefined) return undefined;
    const { name, holder } = decideReference(this.observe(caches, parts), this.#options.rules);
    return holder === undefined ? name && keyOf(name) : '';
  }

  #linkHostNames(id: ReferenceId): void {
    const caches = this.#options.cachesOf(parseReferenceId(id).kind);
    if (caches !== undefined) this.#hostNames.set(id, caches, this.#options.index.isReferenced(id));
  }
}

class HostNames {
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
