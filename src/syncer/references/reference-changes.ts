/** Maps changes to keys: of references, for the importer, and of synced objects whose copies have to name another object. Imports without a reference
 * are enqueued once every reference is known. */

import type { CacheEvent, ClusterName } from '../../kube/types.ts';
import {
  keyOf,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  objectKey,
  parseKey,
} from '../../kube/object.ts';
import type { ObjectReference } from '../patch/types.ts';
import type { NameTranslator } from '../translate/types.ts';
import { type KindId, kindIdOf } from '../translate/last-synced.ts';
import { namedVirtual } from '../translate/bookkeeping.ts';
import { decideReference, observeReference, sourceKeyOf } from './decide-reference.ts';
import type { ReferenceDecision } from './decide-reference.ts';
import type { RefusalRules } from './refusals.ts';
import { isImport } from './import-forge.ts';
import {
  parseReferenceId,
  type ReferenceId,
  referenceIdOf,
  type RecordedReferences,
  type ReferenceIndex,
  type ReferenceObserver,
  type ReferrerId,
  type Referrers,
} from './reference-index.ts';
import type { KindCaches } from './kind-caches.ts';
import type { KindRegistry } from './kind-registry.ts';
import type { ReferenceNotices } from './reference-notices.ts';

export interface ReferenceChangesOptions {
  readonly index: ReferenceIndex;
  readonly names: NameTranslator;
  readonly rules: RefusalRules;
  readonly kinds: KindRegistry;
  readonly notices: ReferenceNotices;
  readonly referrers: Referrers;
  readonly enqueue: (id: ReferenceId) => void;
}

export class ReferenceChanges implements ReferenceObserver {
  readonly #options: ReferenceChangesOptions;
  /** By kind and host key: what has this name on the host, translated or not. */
  readonly #idsByPlace = new Map<string, Set<ReferenceId>>();

  constructor(options: ReferenceChangesOptions) {
    this.#options = options;
  }

  recorded({ referrer, references, changed, wasUnknown }: RecordedReferences): void {
    const { kinds, index, enqueue } = this.#options;
    for (const id of changed) {
      this.#linkHostNames(id);
      enqueue(id);
    }
    for (const reference of references) {
      const kind = kindIdOf(reference);
      if (kinds.caches(kind) === undefined) this.#warnUnavailable(referrer, reference);
      // Both clusters may have changed while the patches ran.
      const id = referenceIdOf(kind, reference);
      const name = this.#nameOf(id);
      if (name !== undefined && name !== index.writtenBy(referrer, id)) this.#decideAgain(referrer);
    }
    if (wasUnknown) this.completed();
  }

  /** An import without referrers is an orphan from now on; unknown references protect all imports. */
  completed(): void {
    if (this.#options.index.isComplete)
      for (const caches of this.#options.kinds.all()) this.#enqueueImportsOf(caches);
  }

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

  kindOpened(caches: KindCaches): void {
    for (const id of this.#referencesTo(caches.kind.id)) {
      this.#linkHostNames(id);
      this.recheck(id);
    }
    if (this.#options.index.isComplete) this.#enqueueImportsOf(caches);
  }

  kindRetried(kind: KindId): void {
    for (const id of this.#referencesTo(kind))
      for (const referrer of this.#options.index.referrersOf(id)) this.#decideAgain(referrer);
  }

  decide(caches: KindCaches, { namespace, name }: NamespacedName): ReferenceDecision {
    const { names, rules } = this.#options;
    return decideReference(observeReference(caches, { namespace, name }, names), rules);
  }

  /** False while the host copy of an object that cannot be translated may reference this import. */
  isDispensable({ metadata: { name } }: KubeObject): boolean {
    const { index, referrers } = this.#options;
    if (!index.isComplete) return false;
    const mayName = (referrer: ReferrerId): boolean =>
      JSON.stringify(referrers.hostCopy(referrer) ?? null).includes(name);
    return ![...index.unknown].some(mayName);
  }

  #enqueueImportsOf({ kind, copies, virtualCache }: KindCaches): void {
    const { names, enqueue } = this.#options;
    for (const copy of copies.list()) {
      const virtual = namedVirtual(copy, kind.host, names);
      if (virtual !== undefined) enqueue(referenceIdOf(kind.id, virtual));
    }
    for (const object of virtualCache.list())
      if (isImport(object, names.vcluster)) enqueue(referenceIdOf(kind.id, parseKey(objectKey(object))));
  }

  #warnUnavailable(referrer: ReferrerId, reference: ObjectReference): void {
    const { kinds, notices } = this.#options;
    const { kind, namespace, name } = reference;
    const id = kindIdOf(reference);
    const why = kinds.whyUnavailable(id);
    const [reason, what] = kinds.isClusterScoped(id)
      ? (['ReferenceNotAllowed', 'so the reference is left as it is'] as const)
      : (['ReferenceNotFound', 'its name is translated, but the object is not imported'] as const);
    notices.warn(referrer, reason, `${kind} "${namespace}/${name}" is referenced, but ${why}; ${what}.`);
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
    const ids = new Set(this.#idsByPlace.get(hostPlace(kind.id, key)));
    for (const state of [object, previous]) {
      const virtual = state && namedVirtual(state, kind.host, this.#options.names);
      if (virtual !== undefined) ids.add(referenceIdOf(kind.id, virtual));
    }
    return ids;
  }

  #decideAgain(referrer: ReferrerId): void {
    this.#options.index.markStale(referrer);
    this.#options.referrers.enqueue(referrer);
  }

  /** The host object that host copies should reference; undefined while this is unknown, `''` while another virtual object has the name. */
  #nameOf(id: ReferenceId): ObjectKey | undefined {
    const parts = parseReferenceId(id);
    const caches = this.#options.kinds.caches(parts.kind);
    if (caches === undefined) return undefined;
    const { name, holder } = this.decide(caches, parts);
    return holder === undefined ? name && keyOf(name) : '';
  }

  #linkHostNames(id: ReferenceId): void {
    const { kinds, index, names } = this.#options;
    const virtual = parseReferenceId(id);
    const kind = kinds.caches(virtual.kind)?.kind;
    if (kind === undefined) return;
    const target = names.referenceToHost(virtual, kind.host);
    for (const hostKey of [target && keyOf(target), sourceKeyOf(kind, virtual, names)]) {
      if (hostKey === undefined) continue;
      const place = hostPlace(kind.id, hostKey);
      const ids = this.#idsByPlace.get(place) ?? new Set();
      if (index.isReferenced(id)) ids.add(id);
      else ids.delete(id);
      if (ids.size > 0) this.#idsByPlace.set(place, ids);
      else this.#idsByPlace.delete(place);
    }
  }
}

function hostPlace(kind: KindId, hostKey: ObjectKey): string {
  return `${kind} ${hostKey}`;
}
