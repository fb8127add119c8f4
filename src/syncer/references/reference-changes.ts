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
  type Resource,
} from '../../kube/object.ts';
import type { ObjectReference, TranslatedReference } from '../patch/types.ts';
import type { ReferenceRecords } from '../reconcile/environment.ts';
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
  type ReferenceIndex,
  type ReferrerId,
  referrerIdOf,
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
  readonly enqueue: (id: ReferenceId) => void;
}

export class ReferenceChanges {
  readonly #options: ReferenceChangesOptions;
  /** By kind and host key: what has this name on the host, translated or not. */
  readonly #idsByPlace = new Map<string, Set<ReferenceId>>();
  #isCompleted = false;

  constructor(options: ReferenceChangesOptions) {
    this.#options = options;
  }

  /** For the reconciler of a synced kind. */
  recordsOf(resource: Resource): ReferenceRecords {
    const { index } = this.#options;
    const idOf = (key: ObjectKey): ReferrerId => referrerIdOf(resource, key);
    return {
      isStale: (key) => index.isStale(idOf(key)),
      recordReferences: (key, references) => this.#record(idOf(key), references),
      clearReferences: (key) => this.#record(idOf(key), []),
      markReconciled: (key) => {
        index.markReconciled(idOf(key));
        this.#completeOnce();
      },
    };
  }

  begin(): void {
    this.#options.index.begin();
    this.#completeOnce();
  }

  #record(referrer: ReferrerId, references: readonly TranslatedReference[]): void {
    const { kinds, index, enqueue } = this.#options;
    const { changed, wasUnknown } = index.record(referrer, references);
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
      if (name !== undefined && name !== index.writtenBy(referrer, id)) index.decideAgain(referrer);
    }
    if (wasUnknown) this.recheckImports();
    this.#completeOnce();
  }

  /** Every synced object has been reconciled since the start: an import without referrers is an orphan from now on. */
  #completeOnce(): void {
    if (this.#isCompleted || !this.#options.index.isComplete) return;
    this.#isCompleted = true;
    this.recheckImports();
  }

  /** Unknown references protect all imports. */
  recheckImports(): void {
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
      if (index.writtenBy(referrer, id) !== name) index.decideAgain(referrer);
  }

  kindOpened(caches: KindCaches): void {
    for (const id of this.#referencesTo(caches.kind.id)) {
      this.#linkHostNames(id);
      this.recheck(id);
    }
    if (this.#options.index.isComplete) this.#enqueueImportsOf(caches);
  }

  kindRetried(kind: KindId): void {
    const { index } = this.#options;
    for (const id of this.#referencesTo(kind))
      for (const referrer of index.referrersOf(id)) index.decideAgain(referrer);
  }

  decide(caches: KindCaches, { namespace, name }: NamespacedName): ReferenceDecision {
    const { names, rules } = this.#options;
    return decideReference(observeReference(caches, { namespace, name }, names), rules);
  }

  /** False while the host copy of an object that cannot be translated may reference this import. */
  isDispensable({ metadata: { name } }: KubeObject): boolean {
    const { index } = this.#options;
    if (!index.isComplete) return false;
    const mayName = (referrer: ReferrerId): boolean =>
      JSON.stringify(index.hostCopy(referrer) ?? null).includes(name);
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
