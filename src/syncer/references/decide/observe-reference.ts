/** One referenced kind as both clusters show it, and the observation of one object in it. */

import { keyOf, type KubeObject, type NamespacedName, type ObjectKey } from '../../../kube/object.ts';
import { LAST_SYNCED } from '../../translate/metadata/bookkeeping.ts';
import { namedVirtual } from '../../translate/metadata/ownership.ts';
import type { NameTranslator } from '../../translate/types.ts';
import { hostKeyOf, type ReferenceObservation } from './decide-reference.ts';
import { isImport } from '../import/import-forge.ts';
import type { ReferencedKind } from '../kinds/referenced-kind.ts';

/** What is known of the objects of one kind. */
export interface KindView {
  readonly kind: ReferencedKind;
  virtual(key: ObjectKey): KubeObject | undefined;
  /** Host objects whose bookkeeping names this virtual object. */
  copiesOf(key: ObjectKey): readonly KubeObject[];
  /** Whatever is there on the host, as far as it may be looked for. */
  host(key: ObjectKey): KubeObject | undefined;
  /** What a look into this object has shown; see `refusals.ts`. */
  refusal(object: KubeObject): string | undefined;
  /** This process created this virtual object as an import, even if its marks were edited since. */
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
  const target = names.referenceToHost(virtual);
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
    sourceRefusal: source && view.refusal(source),
  };
}

/**
 * Only what a patch names is looked for on the host, and only in the virtual cluster's own host namespace: a namespace that is mapped
 * to another one has nothing to look for there.
 */
export function sourceKeyOf(
  kind: ReferencedKind,
  { namespace, name }: NamespacedName,
  names: NameTranslator,
): ObjectKey | undefined {
  if (!kind.isNamed || names.namespaceToHost(namespace) !== names.hostNamespace) return undefined;
  return keyOf({ namespace: names.hostNamespace, name });
}

function sourceOf(view: KindView, virtual: NamespacedName, names: NameTranslator): KubeObject | undefined {
  const key = sourceKeyOf(view.kind, virtual, names);
  const source = key === undefined ? undefined : view.host(key);
  // Where names are kept, our own copy has the name of its original.
  const isOwnCopy =
    source !== undefined && view.copiesOf(keyOf(virtual)).some((copy) => hostKeyOf(copy) === key);
  return isOwnCopy ? undefined : source;
}

/** The virtual object whose copy a host object is, by its bookkeeping. */
export function copiedFrom(
  object: KubeObject,
  kind: ReferencedKind,
  names: NameTranslator,
): NamespacedName | undefined {
  return namedVirtual(object, kind.host, names);
}

/** Only this program writes a record; what it copies as a whole (Endpoints) is not the importer's. */
function isMadeHere(kind: ReferencedKind): (copy: KubeObject) => boolean {
  return ({ metadata: { annotations } }) => kind.isImportable && annotations?.[LAST_SYNCED] !== undefined;
}

function byHostKey(a: KubeObject, b: KubeObject): number {
  return hostKeyOf(a) < hostKeyOf(b) ? -1 : 1;
}
