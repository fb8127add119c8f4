/** References between given objects, for `render`: makes the decisions and copies of the importer without clusters. */

import { keyOf, type KubeObject, type NamespacedName, type ObjectKey } from '../../kube/object.ts';
import type { ObjectReference, ReferenceLookup } from '../patch/types.ts';
import { LAST_SYNCED } from '../translate/metadata/bookkeeping.ts';
import { virtualByAnnotations } from '../translate/metadata/ownership.ts';
import { needsWrite } from '../reconcile/write/diff.ts';
import { type KindPolicy, asReferencedKind, type ReferencedKind } from './kinds/referenced-kind.ts';
import { decideReference, hostKeyOf, type ReferenceObservation } from './decide/decide-reference.ts';
import { forgeHostImport, forgeVirtualImport, type ImportForgeOptions } from './import/import-forge.ts';
import { observeReference, virtualNamed, type KindView } from './decide/observe-reference.ts';
import { referenceIdOf } from './index/reference-id.ts';
import { kindIdOf } from '../translate/merge/recorded-kinds.ts';
import { refusalOfContent, type RefusalRules } from './decide/refusals.ts';

export interface OfflineWorld {
  readonly virtual: readonly KubeObject[];
  readonly host: readonly KubeObject[];
}

export interface OfflineOptions {
  readonly policy: KindPolicy;
  readonly rules: RefusalRules;
  readonly forge: ImportForgeOptions;
}

/** The result for one referenced object. */
export type OfflineImport =
  | { readonly kind: 'to-host' | 'to-virtual'; readonly object: KubeObject }
  | { readonly kind: 'refused'; readonly what: string; readonly reason: string };

export interface OfflineReferences {
  readonly lookup: ReferenceLookup;
  /** Each object once, by kind and name. */
  readonly imports: (references: readonly ObjectReference[]) => readonly OfflineImport[];
}

export function createOfflineReferences(world: OfflineWorld, options: OfflineOptions): OfflineReferences {
  const { policy, rules, forge } = options;
  const views = new Map<string, KindView>();
  const viewOf = (reference: ObjectReference): KindView => {
    const id = kindIdOf(reference);
    const view = views.get(id) ?? offlineView(world, kindOf(reference, policy), options);
    views.set(id, view);
    return view;
  };
  const observe = (reference: ObjectReference): ReferenceObservation =>
    observeReference(
      viewOf(reference),
      { namespace: reference.namespace, name: reference.name },
      forge.names,
    );
  return {
    lookup(reference, direction) {
      if (direction === 'toHost') return decideReference(observe(reference), rules).name;
      return virtualNamed(viewOf(reference), reference, forge.names);
    },
    imports(references) {
      const once = new Map(references.map((one) => [referenceIdOf(kindIdOf(one), one), one]));
      const sorted = [...once].toSorted(([a], [b]) => (a < b ? -1 : 1));
      return sorted.flatMap(([, reference]) => importOf(observe(reference), options));
    },
  };
}

function importOf(seen: ReferenceObservation, { rules, forge }: OfflineOptions): OfflineImport[] {
  const { kind, virtual, object, source, target, imported, ours } = seen;
  const { action, problem } = decideReference(seen, rules);
  // An object that is in no file may still exist in a cluster.
  if (problem !== undefined && problem.reason !== 'ReferenceNotFound') {
    const what = `${kind.virtual.kind} ${keyOf(virtual)}`;
    return [{ kind: 'refused', what, reason: `${problem.reason}: ${problem.note}` }];
  }
  if (action === 'to-host' && object !== undefined && target !== undefined) {
    const host = ours.find((copy) => hostKeyOf(copy) === keyOf(target));
    return [{ kind: action, object: forgeHostImport(object, kind, { target, host }, forge) }];
  }
  if (action === 'to-virtual' && source !== undefined) {
    const wanted = forgeVirtualImport(source, kind, { virtual, current: imported }, forge.names.vcluster);
    return [{ kind: action, object: imported && !needsWrite(wanted, imported) ? imported : wanted }];
  }
  return [];
}

function kindOf({ apiVersion, kind }: ObjectReference, policy: KindPolicy): ReferencedKind {
  const [version = '', group = ''] = apiVersion.split('/').toReversed();
  // The plural is unknown without discovery.
  const resource = { group, version, kind, plural: '', isNamespaced: true };
  return asReferencedKind(resource, resource, policy);
}

function offlineView(world: OfflineWorld, kind: ReferencedKind, { rules, forge }: OfflineOptions): KindView {
  const { names } = forge;
  const ofKind = (objects: readonly KubeObject[]): Map<ObjectKey, KubeObject> =>
    new Map(objects.filter((one) => one.kind === kind.host.kind).map((one) => [hostKeyOf(one), one]));
  const [virtual, host] = [ofKind(world.virtual), ofKind(world.host)];
  return {
    kind,
    virtual: (key) => virtual.get(key),
    virtuals: () => virtual.values(),
    host: (key) => host.get(key),
    copiesOf(key) {
      // Objects in files may lack a part of the bookkeeping.
      const named = [...host.values()].filter((one) => isNamed(virtualByAnnotations(one, kind.host), key));
      const slash = key.indexOf('/');
      const target = names.referenceToHost(
        { namespace: key.slice(0, slash), name: key.slice(slash + 1) },
        kind.host,
      );
      const atTarget = target && host.get(keyOf(target));
      return atTarget?.metadata.annotations === undefined && atTarget !== undefined && virtual.has(key)
        ? [...named, asCopy(atTarget)]
        : named;
    },
    refusal: (object) => refusalOfContent(object, kind.host, rules),
    isKnownImport: () => false,
  };
}

/** A host object without annotations counts as the copy. */
function asCopy(object: KubeObject): KubeObject {
  return { ...object, metadata: { ...object.metadata, annotations: { [LAST_SYNCED]: '' } } };
}

function isNamed(virtual: NamespacedName | undefined, key: ObjectKey): boolean {
  return virtual !== undefined && keyOf(virtual) === key;
}
