/**
 * What becomes of one referenced object: the name that is written for it, and whether it is imported, in which direction. Decided from
 * what both sides show. Pure: no clock, no requests, no memory of its own.
 */

import { keyOf, type KubeObject, type NamespacedName, type ObjectKey } from '../../../kube/object.ts';
import { isOptedOut } from '../../reconcile/decide/decide.ts';
import { describeReference, type ReferencedKind } from '../kinds/referenced-kind.ts';
import { refusalOfSource, refusalOfVirtual, type RefusalRules } from './refusals.ts';

export interface ReferenceObservation {
  readonly kind: ReferencedKind;
  /** The referenced object's name in the virtual cluster. */
  readonly virtual: NamespacedName;
  /** The virtual object, unless it is an import of ours. */
  readonly object: KubeObject | undefined;
  /** Our copy of a host object in its place. */
  readonly imported: KubeObject | undefined;
  /** The host copy of this virtual object that another syncer keeps. */
  readonly othersCopy: NamespacedName | undefined;
  /** Copies of this virtual object that we made, wherever they are. */
  readonly ours: readonly KubeObject[];
  /** What a patch writes by the rule; undefined: the virtual namespace is not mapped. */
  readonly target: NamespacedName | undefined;
  /** Something that is not our copy of this object is at the target. */
  readonly isTargetTaken: boolean;
  /** What the host has under the very name of the reference, in the host namespace; undefined where it may not be looked for. */
  readonly source: KubeObject | undefined;
  /** What a look into the source has shown besides; see `refusals.ts`. */
  readonly sourceRefusal: string | undefined;
}

export type ImportAction =
  | 'none'
  | 'to-host'
  | 'to-virtual'
  /** Another controller owns the pair: nothing is changed. */
  | 'paused';

export type ReferenceProblemReason = 'ReferenceNotFound' | 'ReferenceNotAllowed' | 'NotManaged';

export interface ReferenceProblem {
  readonly reason: ReferenceProblemReason;
  readonly note: string;
}

export interface ReferenceDecision {
  /** Undefined: the rule decides, which fails for a namespace that is not mapped. */
  readonly name: NamespacedName | undefined;
  readonly action: ImportAction;
  readonly problem?: ReferenceProblem;
}

export function decideReference(seen: ReferenceObservation, rules: RefusalRules): ReferenceDecision {
  if (seen.othersCopy !== undefined) return { name: seen.othersCopy, action: 'none' };
  if (seen.object !== undefined) return decideVirtual(seen, seen.object);
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
  // The name is rewritten all the same: left as it is, a consumer on the host would find the refused object.
  if (refusal !== undefined) return { name: seen.target, action: 'none', problem: notAllowed(seen, refusal) };
  const { namespace = '', name } = source.metadata;
  return { name: { namespace, name }, action: seen.kind.isImportable ? 'to-virtual' : 'none' };
}

/** The host copies that have no purpose any more under this decision. `isReferenced` false: none has. */
export function surplusCopies(
  seen: ReferenceObservation,
  decision: ReferenceDecision,
): readonly KubeObject[] {
  if (decision.action === 'paused' || isOptedOut(seen.object)) return [];
  const kept = decision.action === 'to-host' && seen.target ? keyOf(seen.target) : undefined;
  return seen.ours.filter((copy) => hostKeyOf(copy) !== kept && !isOptedOut(copy));
}

export function hostKeyOf({ metadata: { namespace = '', name } }: KubeObject): ObjectKey {
  return keyOf({ namespace, name });
}

function notFound({ kind, virtual }: ReferenceObservation): ReferenceProblem {
  return {
    reason: 'ReferenceNotFound',
    note:
      `${describeReference(kind, virtual)} is named, but it is neither in the virtual cluster nor on the host. ` +
      'The name is written as it will be; the object follows as soon as it appears.',
  };
}

function notAllowed({ kind, virtual }: ReferenceObservation, refusal: string): ReferenceProblem {
  return {
    reason: 'ReferenceNotAllowed',
    note: `${describeReference(kind, virtual)} is named, but it is never copied: ${refusal}. Name another object.`,
  };
}

function taken({ kind, virtual }: ReferenceObservation, target: NamespacedName): ReferenceProblem {
  return {
    reason: 'NotManaged',
    note:
      `${describeReference(kind, virtual)} belongs to "${keyOf(target)}" on the host, where there is already an object that this syncer ` +
      'did not make, so it is left untouched. Delete or rename it on the host; the import resumes automatically.',
  };
}
