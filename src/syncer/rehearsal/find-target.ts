/** The object that a name on the command line refers to: one that is synced, one that is referenced, or neither. */

import { TerminalError } from '../../base/errors.ts';
import { qualifiedPlural } from '../../kube/memory-cluster.ts';
import {
  isOfKindNamed,
  keyOf,
  objectKey,
  parseKey,
  printKindName,
  type KindName,
  type ObjectKey,
  type Resource,
} from '../../kube/object.ts';
import type { ObjectPlan, ReferencePlan } from './rehearsal.ts';
import type { WorldPlan } from './snapshot.ts';
import type { Target } from './status-rows.ts';

type OtherTarget = Extract<Target, { kind: 'other' }>;

export interface TargetName {
  readonly key: ObjectKey;
  readonly isHost: boolean;
  /** Undefined: of any kind. If objects of several groups have the kind and the name, the group is needed. */
  readonly kind: KindName | undefined;
}

/** Synced objects are preferred to referenced ones; undefined where no object has this name. Throws `TerminalError` where objects of several groups
 * have this kind and name. */
export function findTarget(plan: WorldPlan, wanted: TargetName): Target | undefined {
  const [first, ...others] = targetsNamed(plan, wanted);
  if (first === undefined || wanted.kind === undefined) return first;
  const groups = new Set([first, ...others].map(groupOfTarget));
  if (groups.size < 2) return first;
  const { kind } = wanted.kind;
  const kinds = [...groups].map((group) => `--kind ${printKindName({ kind, group })}`);
  throw new TerminalError(
    `${kind} "${wanted.key}" exists in ${groups.size} groups: use ${kinds.join(' or ')}`,
  );
}

function targetsNamed(plan: WorldPlan, wanted: TargetName): Target[] {
  const isKind = (resource: Resource): boolean => isOfKindNamed(resource, wanted.kind);
  const objects = plan.objects.filter((one) => isKind(one.kind.resource) && isObjectNamed(one, wanted));
  const imports = plan.references.filter(
    (one) => isKind(one.seen.kind.virtual) && isImportNamed(one, wanted),
  );
  const known: Target[] = [
    ...objects.map((one): Target => ({ kind: 'object', plan: one })),
    ...imports.map((one): Target => ({ kind: 'import', plan: one })),
  ];
  const groups = known.map(groupOfTarget);
  const others = otherTargets(plan, wanted, isKind);
  return [...known, ...others.filter(({ resource }) => !groups.includes(resource.group))];
}

function groupOfTarget(target: Target): string {
  if (target.kind === 'other') return target.resource.group;
  return target.kind === 'object' ? target.plan.kind.resource.group : target.plan.seen.kind.virtual.group;
}

function isObjectNamed({ key, seen, decision }: ObjectPlan, wanted: TargetName): boolean {
  if (!wanted.isHost) return key === wanted.key;
  const isOwn = seen.ownership?.kind === 'ours' && keyOf(seen.ownership.virtual) === key;
  const isItsCopy = isOwn || seen.host === undefined || decision.kind === 'takeOver';
  return seen.target !== undefined && keyOf(seen.target) === wanted.key && isItsCopy;
}

function isImportNamed({ seen }: ReferencePlan, wanted: TargetName): boolean {
  if (!wanted.isHost) return keyOf(seen.virtual) === wanted.key;
  return [...seen.ours, ...(seen.source === undefined ? [] : [seen.source])].some(
    (object) => objectKey(object) === wanted.key,
  );
}

function otherTargets(
  { snapshot, objects }: WorldPlan,
  { key, isHost }: TargetName,
  isKind: (resource: Resource) => boolean,
): OtherTarget[] {
  const cluster = isHost ? 'host' : 'virtual';
  const kinds = [
    ...snapshot.kinds,
    ...snapshot.referenced.map(({ kind, ...sides }) => ({ resource: kind[cluster], ...sides })),
  ];
  return kinds.flatMap(({ resource, ...sides }): OtherTarget[] => {
    const object = isKind(resource) ? sides[cluster].find((one) => objectKey(one) === key) : undefined;
    if (object === undefined) return [];
    const waiting = objects.find(
      (one) =>
        isHost &&
        one.decision.kind === 'refuse' &&
        qualifiedPlural(one.kind.resource) === qualifiedPlural(resource) &&
        one.seen.target !== undefined &&
        keyOf(one.seen.target) === key,
    );
    const virtual = isHost ? waiting && parseKey(waiting.key) : parseKey(key);
    return [{ kind: 'other', resource, virtual, object, cluster }];
  });
}
