/** Builds the observation of one referenced object from the caches of both clusters. */

import { keyOf, type KubeObject, type NamespacedName, type ObjectKey } from '../../../kube/object.ts';
import { LAST_SYNCED } from '../../translate/metadata/bookkeeping.ts';
import { namedVirtual } from '../../translate/metadata/ownership.ts';
import type { NameTranslator } from '../../translate/types.ts';
import { hostKeyOf, type ReferenceObservation } from './decide-reference.ts';
import { isImport } from '../import/import-forge.ts';
import type { ReferencedKind } from '../kinds/referenced-kind.ts';

/** Read access to the objects of one kind in both clusters. */
export interface KindView {
  readonly kind: ReferencedKind;
  virtual(key: ObjectKey): KubeObject | undefined;
  /** Every virtual object of the kind. */
  virtuals(): Iterable<KubeObject>;
  /** Host objects whose bookkeeping names this virtual object. */
  copiesOf(key: ObjectKey): readonly KubeObject[];
  /** The host object with this key, if lookups are allowed. */
  host(key: ObjectKey): KubeObject | undefined;
  /** Why the content of this object forbids its import; see `refusals.ts`. */
  refusal(object: KubeObject): string | undefined;
  /** This process created this virtual object as an import, even if its labels or annotations were edited since. */
  isKnownImport(object: KubeObject): boolean;
}

export function observeReference(
  view: KindView,
  virtual: NamespacedName,
  names: NameTranslator,
): ReferenceObservation {
  const { kind } = view;
  const key = keyOf(virtual);
  const there = view.virtual(key);
  const isImported = there !== undefined && (isImport(there, names.vcluster) || view.isKnownImport(there));
  const copies = view.copiesOf(key);
  const ours = copies.filter(isMadeHere(kind));
  const [others] = copies.filter((copy) => !ours.includes(copy)).toSorted(byHostKey);
  const target = names.referenceToHost(virtual, kind.host);
  const atTarget = target && view.host(keyOf(target));
  const source = sourceOf(view, virtual, names);
  return {
    kind,
    virtual,
    object: isImported ? undefined : there,
    imported: isImported ? there : undefined,
    othersCopy: others && { namespace: others.metadata.namespace ?? '', name: others.metadata.name },
    ours,
    target,
    isTargetTaken: atTarget !== undefined && !ours.some((copy) => hostKeyOf(copy) === hostKeyOf(atTarget)),
    source,
    isSourceWatched: sourceKeyOf(kind, virtual, names) !== undefined,
    sourceRefusal: source && view.refusal(source),
  };
}

/** Only objects that a patch references and that can be imported are looked up on the host, and only in the virtual cluster's own host
 * namespace. References in a namespace that is mapped elsewhere are not looked up.
 */
export function sourceKeyOf(
  kind: ReferencedKind,
  { namespace, name }: NamespacedName,
  names: NameTranslator,
): ObjectKey | undefined {
  if (!kind.isNamed || !kind.isImportable || names.namespaceToHost(namespace) !== names.hostNamespace)
    return undefined;
  return keyOf({ namespace: names.hostNamespace, name });
}

function sourceOf(view: KindView, virtual: NamespacedName, names: NameTranslator): KubeObject | undefined {
  const key = sourceKeyOf(view.kind, virtual, names);
  const source = key === undefined ? undefined : view.host(key);
  // With unchanged names, our own copy has the name of its original.
  const isOwnCopy =
    source !== undefined && view.copiesOf(keyOf(virtual)).some((copy) => hostKeyOf(copy) === key);
  return isOwnCopy ? undefined : source;
}

/** The virtual object that references on the host name like this: the original of the copy there, or the object whose name translates to
 * this one, although it has not been copied yet. Undefined: there is none.
 */
export function virtualNamed(
  view: KindView,
  host: NamespacedName,
  names: NameTranslator,
): NamespacedName | undefined {
  const { kind } = view;
  const key = keyOf(host);
  const copy = view.host(key);
  const original = copy && copiedFrom(copy, kind, names);
  if (original !== undefined) return original;
  for (const object of view.virtuals()) {
    const { namespace = '', name } = object.metadata;
    const target = names.referenceToHost({ namespace, name }, kind.host);
    const isImported = isImport(object, names.vcluster) || view.isKnownImport(object);
    if (target !== undefined && keyOf(target) === key && !isImported) return { namespace, name };
  }
  return undefined;
}

/** The virtual object that a host object was copied from, according to its bookkeeping. */
export function copiedFrom(
  object: KubeObject,
  kind: ReferencedKind,
  names: NameTranslator,
): NamespacedName | undefined {
  return namedVirtual(object, kind.host, names);
}

/** Only this program writes sync records. Copies of synced kinds (Endpoints) do not belong to the importer. */
function isMadeHere(kind: ReferencedKind): (copy: KubeObject) => boolean {
  return ({ metadata: { annotations } }) => kind.isImportable && annotations?.[LAST_SYNCED] !== undefined;
}

function byHostKey(a: KubeObject, b: KubeObject): number {
  return hostKeyOf(a) < hostKeyOf(b) ? -1 : 1;
}
