/** Finds the object that a name on the command line refers to: one that is synced, one that is referenced, or neither. */

import {
  keyOf,
  objectKey,
  parseKey,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  type Resource,
} from '../../kube/object.ts';
import type { ReferencePlan, ObjectPlan } from '../../syncer/rehearsal.ts';
import type { WorldPlan } from './session.ts';

export type Target =
  | { readonly kind: 'object'; readonly plan: ObjectPlan }
  | { readonly kind: 'import'; readonly plan: ReferencePlan }
  /** An existing object that is not synced: a host object of another client, or a virtual object that is not referenced. */
  | {
      readonly kind: 'other';
      readonly resource: Resource;
      /** Its name in the virtual cluster; undefined where it has none. */
      readonly virtual: NamespacedName | undefined;
      readonly object: KubeObject;
      readonly cluster: 'virtual' | 'host';
    };

export interface TargetName {
  readonly key: ObjectKey;
  /** The key is that of a host object. */
  readonly isHost: boolean;
  readonly kind: string | undefined;
}

/** Synced objects are preferred to referenced ones; undefined where no object has this name. */
export function findTarget(plan: WorldPlan, wanted: TargetName): Target | undefined {
  const isKind = (resource: Resource): boolean => wanted.kind === undefined || resource.kind === wanted.kind;
  const object = plan.objects.find((one) => isKind(one.kind.resource) && isObjectNamed(one, wanted));
  if (object !== undefined) return { kind: 'object', plan: object };
  const imported = plan.references.find((one) => isKind(one.seen.kind.virtual) && isImportNamed(one, wanted));
  if (imported !== undefined) return { kind: 'import', plan: imported };
  return otherTarget(plan, wanted, isKind);
}

function isObjectNamed({ key, seen }: ObjectPlan, wanted: TargetName): boolean {
  if (!wanted.isHost) return key === wanted.key;
  const isOwn = seen.ownership?.kind === 'ours' && keyOf(seen.ownership.virtual) === key;
  return seen.target !== undefined && keyOf(seen.target) === wanted.key && (isOwn || seen.host === undefined);
}

function isImportNamed({ seen }: ReferencePlan, wanted: TargetName): boolean {
  if (!wanted.isHost) return keyOf(seen.virtual) === wanted.key;
  return [...seen.ours, ...(seen.source === undefined ? [] : [seen.source])].some(
    (object) => objectKey(object) === wanted.key,
  );
}

function otherTarget(
  { snapshot, objects }: WorldPlan,
  { key, isHost }: TargetName,
  isKind: (resource: Resource) => boolean,
): Target | undefined {
  const cluster = isHost ? 'host' : 'virtual';
  const kinds = [
    ...snapshot.kinds,
    ...snapshot.referenced.map(({ kind, ...sides }) => ({ resource: kind[cluster], ...sides })),
  ];
  for (const { resource, ...sides } of kinds.filter((one) => isKind(one.resource))) {
    const object = sides[cluster].find((one) => objectKey(one) === key);
    if (object === undefined) continue;
    const waiting = objects.find(
      (one) =>
        isHost &&
        one.kind.resource.kind === resource.kind &&
        one.seen.target !== undefined &&
        keyOf(one.seen.target) === key,
    );
    const virtual = isHost ? waiting && parseKey(waiting.key) : parseKey(key);
    return { kind: 'other', resource, virtual, object, cluster };
  }
  return undefined;
}
