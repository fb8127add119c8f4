/** Observes one referenced object, and decides which name is written for it, and whether and in which direction it is imported. Pure. */

import {
  keyOf,
  nameOf,
  objectKey,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
} from '../../kube/object.ts';
import { isOptedOut, SKIP_BACKSYNC } from '../reconcile/decide.ts';
import { describeReference, type ReferencedKind } from './referenced-kind.ts';
import { refusalOfSource, refusalOfVirtual, type RefusalRules } from './refusals.ts';
import { LAST_SYNCED, namedVirtual } from '../translate/bookkeeping.ts';
import { MANAGED_BY_LABEL } from '../translate/labels.ts';
import type { NameTranslator } from '../translate/types.ts';
import { isImport } from './import-forge.ts';
import { recordOf } from '../translate/last-synced.ts';

export interface ReferenceObservation {
  readonly kind: ReferencedKind;
  readonly virtual: NamespacedName;
  /** The virtual object, unless this program imported it. */
  readonly object: KubeObject | undefined;
  /** Why the virtual object cannot be read, although it exists. */
  readonly malformed: string | undefined;
  readonly imported: KubeObject | undefined;
  /** The host copy of this virtual object that another syncer manages. */
  readonly othersCopy: NamespacedName | undefined;
  /** All copies of this virtual object that this program created. */
  readonly ours: readonly KubeObject[];
  /** The host name by the naming rule; undefined: the virtual namespace is not mapped. */
  readonly target: NamespacedName | undefined;
  /** Another virtual object that has the same host name: its copy is at the target, or it comes first. */
  readonly holder: NamespacedName | undefined;
  readonly isTargetTaken: boolean;
  /** The object with the untranslated name of the reference in the host namespace of its namespace; undefined if lookups are not allowed. */
  readonly source: KubeObject | undefined;
  /** An object that appears at the place of the source is noticed. */
  readonly isSourceWatched: boolean;
  /** Why the content of the source forbids its import; see `refusals.ts`. */
  readonly sourceRefusal: string | undefined;
}

export type ImportAction =
  | 'none'
  | 'to-host'
  | 'to-virtual'
  /** Another controller owns the pair: nothing is changed. */
  | 'paused';

export type ReferenceProblemReason =
  | 'ReferenceNotFound'
  | 'ReferenceNotAllowed'
  | 'NotManaged'
  | 'NamespaceNotFound'
  | 'Terminating';

export interface ReferenceNotice {
  readonly reason: ReferenceProblemReason;
  readonly note: string;
}

/** For the administrator of the host, in logs, metrics and `explain`. */
export interface ReferenceProblem extends ReferenceNotice {
  /** What tenants learn instead, who may not find out which objects the host has. */
  readonly event?: ReferenceNotice;
}

export interface ReferenceDecision {
  /** Undefined: the naming rule applies, which fails for a namespace that is not mapped. */
  readonly name: NamespacedName | undefined;
  readonly action: ImportAction;
  readonly problem?: ReferenceProblem;
  /** The name of the copy of this other virtual object would be written, so no name is. */
  readonly holder?: NamespacedName;
}

export function decideReference(seen: ReferenceObservation, rules: RefusalRules): ReferenceDecision {
  const decision = decideUnrivalled(seen, rules);
  const { target, holder } = seen;
  if (holder === undefined || target === undefined || decision.name !== target) return decision;
  return { name: undefined, action: 'none', holder };
}

function decideUnrivalled(seen: ReferenceObservation, rules: RefusalRules): ReferenceDecision {
  if (seen.othersCopy !== undefined) return { name: seen.othersCopy, action: 'none' };
  if (seen.object !== undefined) return decideVirtual(seen, seen.object);
  if (seen.malformed !== undefined)
    return { name: seen.target, action: 'none', problem: malformed(seen, seen.malformed) };
  if (seen.source !== undefined) return decideSource(seen, seen.source, rules);
  return { name: seen.target, action: 'none', problem: notFound(seen) };
}

function decideVirtual(seen: ReferenceObservation, object: KubeObject): ReferenceDecision {
  const { kind, target } = seen;
  const name = target;
  if (target === undefined || !kind.isSynced || !kind.isImportable) return { name, action: 'none' };
  if (isOptedOut(object) || seen.ours.some(isOptedOut)) return { name, action: 'paused' };
  const refusal = refusalOfVirtual(object, kind.virtual);
  if (refusal !== undefined) return { name, action: 'none', problem: notAllowed(seen, refusal) };
  if (seen.isTargetTaken) return { name, action: 'none', problem: taken(seen, target) };
  return { name, action: 'to-host' };
}

function decideSource(
  seen: ReferenceObservation,
  source: KubeObject,
  rules: RefusalRules,
): ReferenceDecision {
  const refusal = refusalOfSource(source, seen.kind.host, rules) ?? seen.sourceRefusal;
  // The name is rewritten nevertheless, because with the unchanged name a consumer on the host would find the refused object.
  if (refusal !== undefined) {
    const problem = { ...notAllowed(seen, refusal), event: notFound(seen) };
    return { name: seen.target, action: 'none', problem };
  }
  return { name: nameOf(source), action: seen.kind.isImportable ? 'to-virtual' : 'none' };
}

/** No copy names the object: what is imported is surplus. */
export function decideUnreferenced(seen: ReferenceObservation): ReferenceDecision {
  return { name: undefined, action: seen.ours.length > 0 || seen.imported ? 'none' : 'paused' };
}

export function surplusCopies(
  seen: ReferenceObservation,
  decision: ReferenceDecision,
): readonly KubeObject[] {
  if (decision.action === 'paused' || isOptedOut(seen.object)) return [];
  if (seen.object === undefined && seen.malformed !== undefined) return [];
  const kept = decision.action === 'to-host' && seen.target ? keyOf(seen.target) : undefined;
  return seen.ours.filter((copy) => objectKey(copy) !== kept && !isOptedOut(copy) && !isSkipped(copy));
}

function isSkipped({ metadata: { labels, annotations } }: KubeObject): boolean {
  return labels?.[SKIP_BACKSYNC] === 'true' || annotations?.[SKIP_BACKSYNC] === 'true';
}

/** The same whether the host has no such object, or one that must not be imported. */
function notFound({ kind, virtual, isSourceWatched }: ReferenceObservation): ReferenceProblem {
  const where = isSourceWatched
    ? 'does not exist in the virtual cluster, and on the host it was not found or is not allowed to be imported'
    : 'does not exist in the virtual cluster';
  return {
    reason: 'ReferenceNotFound',
    note:
      `${describeReference(kind, virtual)} is referenced, but ${where}. ` +
      `The translated name is written; ${whenItExists(kind, isSourceWatched)}.`,
  };
}

function malformed({ kind, virtual }: ReferenceObservation, why: string): ReferenceProblem {
  return {
    reason: 'ReferenceNotFound',
    note:
      `${describeReference(kind, virtual)} is referenced, but the API server returns no valid object for it: ${why}. ` +
      'The translated name is written, and a copy on the host stays as it is.',
  };
}

function whenItExists({ isImportable, isSynced }: ReferencedKind, isSourceWatched: boolean): string {
  if (!isImportable)
    return 'objects of this kind are not imported, the name is valid as soon as their own syncer has copied the object';
  if (isSynced && isSourceWatched) return 'the object is imported as soon as it exists';
  if (isSynced) return 'the object is imported as soon as it exists in the virtual cluster';
  const off =
    'an object of the virtual cluster is not imported, because its kind is not enabled under sync.toHost';
  return isSourceWatched ? `the object is imported as soon as it exists on the host; ${off}` : off;
}

/** The namespace of the reference is missing in the virtual cluster, so the object of the host cannot be imported into it. */
export function namespaceNotFound({ kind, virtual }: ReferenceObservation): ReferenceProblem {
  return {
    reason: 'NamespaceNotFound',
    note:
      `${describeReference(kind, virtual)} is referenced and exists on the host, but the virtual cluster has no namespace ` +
      `"${virtual.namespace}". Create it there; the import resumes automatically.`,
  };
}

/** The namespace of the reference is being deleted in the virtual cluster. */
export function namespaceEnding({ kind, virtual }: ReferenceObservation): ReferenceProblem {
  return {
    reason: 'Terminating',
    note:
      `${describeReference(kind, virtual)} is referenced and exists on the host, but namespace "${virtual.namespace}" of the virtual ` +
      'cluster is being deleted, so it is not imported there.',
  };
}

function notAllowed({ kind, virtual }: ReferenceObservation, refusal: string): ReferenceProblem {
  return {
    reason: 'ReferenceNotAllowed',
    note: `${describeReference(kind, virtual)} is referenced, but must not be copied: ${refusal}. Reference another object.`,
  };
}

function taken({ kind, virtual }: ReferenceObservation, target: NamespacedName): ReferenceProblem {
  return {
    reason: 'NotManaged',
    note:
      `${describeReference(kind, virtual)} would be copied to "${keyOf(target)}" on the host, which is an object that this syncer ` +
      'did not create, so it is left untouched. Delete or rename it on the host; the import resumes automatically.',
  };
}

export interface KindView {
  readonly kind: ReferencedKind;
  virtual(key: ObjectKey): KubeObject | undefined;
  malformed(key: ObjectKey): string | undefined;
  virtuals(): Iterable<KubeObject>;
  copiesOf(key: ObjectKey): readonly KubeObject[];
  host(key: ObjectKey): KubeObject | undefined;
  refusal(object: KubeObject): string | undefined;
  /** This process created this virtual object as an import, even if its labels or annotations were edited since. */
  isKnownImport(object: KubeObject): boolean;
  /** This process created this host object as the copy of this virtual one, even if its labels or annotations were edited since. */
  isKnownCopy(key: ObjectKey, object: KubeObject): boolean;
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
  const target = names.referenceToHost(virtual, kind.host);
  const atTarget = target && view.host(keyOf(target));
  const isKnown = atTarget && view.isKnownCopy(key, atTarget) && !isOfAnother(atTarget, names.vcluster);
  const known = isKnown ? [atTarget] : [];
  const copies = view.copiesOf(key).filter((copy) => !known.includes(copy));
  const ours = [...known, ...copies.filter(isMadeHere(kind))];
  const [others] = copies.filter((copy) => !ours.includes(copy)).toSorted(byHostKey);
  const source = sourceOf(view, virtual, names);
  return {
    kind,
    virtual,
    object: isImported ? undefined : there,
    malformed: view.malformed(key),
    imported: isImported ? there : undefined,
    othersCopy: others && nameOf(others),
    ours,
    target,
    holder: target && holderOf(view, virtual, { target, names }),
    isTargetTaken: atTarget !== undefined && !ours.some((copy) => objectKey(copy) === objectKey(atTarget)),
    source,
    isSourceWatched: sourceKeyOf(kind, virtual, names) !== undefined,
    sourceRefusal: source && view.refusal(source),
  };
}

/** The long form of names is ambiguous (`a-x-b` in `c`, and `a` in `b-x-c`), and the short one is its hash. The virtual object that has the copy
 * keeps the name; without a copy, the older one that exists has it. */
function holderOf(
  view: KindView,
  virtual: NamespacedName,
  { target, names }: { readonly target: NamespacedName; readonly names: NameTranslator },
): NamespacedName | undefined {
  const { kind } = view;
  const targetKey = keyOf(target);
  const isOther = (one: NamespacedName): boolean => keyOf(one) !== keyOf(virtual);
  const copy = view.host(targetKey);
  const original = copy && namedVirtual(copy, kind.host, names);
  if (original !== undefined) return isOther(original) ? original : undefined;
  const long = names.toHost(virtual);
  const claims = (long === undefined ? [] : names.toVirtualCandidates(long)).flatMap((one) => {
    const place = names.referenceToHost(one, kind.host);
    const object = place && keyOf(place) === targetKey ? view.virtual(keyOf(one)) : undefined;
    return object === undefined || isImport(object, names.vcluster) ? [] : [{ one, object }];
  });
  const [first] = claims.toSorted((a, b) => byAge(a.object, b.object));
  return first !== undefined && isOther(first.one) ? first.one : undefined;
}

function byAge(a: KubeObject, b: KubeObject): number {
  const [one, other] = [a, b].map(
    ({ metadata }) => `${metadata.creationTimestamp ?? ''} ${metadata.namespace ?? ''}/${metadata.name}`,
  );
  return (one ?? '') < (other ?? '') ? -1 : 1;
}

/** In the virtual cluster's own host namespace, or in the one to which only this virtual namespace is mapped; undefined: it is not looked up. */
export function sourceKeyOf(
  kind: Pick<ReferencedKind, 'isNamed' | 'isImportable'>,
  { namespace, name }: NamespacedName,
  names: NameTranslator,
): ObjectKey | undefined {
  const place = names.namespaceToHost(namespace);
  if (!kind.isNamed || !kind.isImportable || place === undefined) return undefined;
  const source = { namespace: place, name };
  const isOwn = place === names.hostNamespace || names.toVirtualCandidates(source).length === 1;
  return isOwn ? keyOf(source) : undefined;
}

function sourceOf(view: KindView, virtual: NamespacedName, names: NameTranslator): KubeObject | undefined {
  const key = sourceKeyOf(view.kind, virtual, names);
  const source = key === undefined ? undefined : view.host(key);
  // With unchanged names, our own copy has the name of its original.
  const isOwnCopy =
    source !== undefined &&
    (view.isKnownCopy(keyOf(virtual), source) ||
      view.copiesOf(keyOf(virtual)).some((copy) => objectKey(copy) === key));
  return isOwnCopy ? undefined : source;
}

/** The virtual object that references on the host name like this: the original of the copy there, or the object whose name translates to this one,
 * although it has not been copied yet. Undefined: there is none. */
export function virtualNamed(
  view: KindView,
  host: NamespacedName,
  names: NameTranslator,
): NamespacedName | undefined {
  const { kind } = view;
  const key = keyOf(host);
  const copy = view.host(key);
  const original = copy && namedVirtual(copy, kind.host, names);
  if (original !== undefined) return original;
  for (const object of view.virtuals()) {
    const name = nameOf(object);
    const target = names.referenceToHost(name, kind.host);
    const isImported = isImport(object, names.vcluster) || view.isKnownImport(object);
    if (target !== undefined && keyOf(target) === key && !isImported) return name;
  }
  return undefined;
}

/** Only this program writes sync records. Copies of synced kinds (Endpoints) do not belong to the importer. */
function isMadeHere(kind: ReferencedKind): (copy: KubeObject) => boolean {
  return (copy) => kind.isImportable && recordOf(copy) !== undefined;
}

/** Its marks are not only removed: another syncer has them, or has copied the record from the virtual object. */
function isOfAnother(copy: KubeObject, vcluster: string): boolean {
  const { labels, annotations } = copy.metadata;
  const isRecordCopied = annotations?.[LAST_SYNCED] !== undefined && recordOf(copy) === undefined;
  return isRecordCopied || (labels?.[MANAGED_BY_LABEL] ?? vcluster) !== vcluster;
}

function byHostKey(a: KubeObject, b: KubeObject): number {
  return objectKey(a) < objectKey(b) ? -1 : 1;
}
