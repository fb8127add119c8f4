/** Plans every write of a sync until the plan is stable: a write may free a host name that another object needs. */

import { objectKey, SERVICES, type KubeObject } from '../../../kube/object.ts';
import type { OfflineSync } from '../../offline/offline-sync.ts';
import type { Change } from './plan.ts';
import { planSnapshot, type WorldPlan } from './session.ts';
import type { KindSnapshot, Snapshot } from './snapshot.ts';

/** A host name that becomes free is used by the object that waited for it; longer chains do not occur. */
const ROUNDS_MAX = 4;

export interface StablePlan {
  /** What would be done now. */
  readonly plan: WorldPlan;
  /** Of each object that changes, its state now and at the end, in the order in which a sync could do it. */
  readonly changes: readonly Change[];
}

export async function planUntilStable(snapshot: Snapshot, sync: OfflineSync): Promise<StablePlan> {
  const plan = await planSnapshot(snapshot, sync);
  const total = new Map<string, Change>();
  let changes = changesOf(plan);
  let current = snapshot;
  for (let round = 1; changes.length > 0; round++) {
    for (const change of changes) {
      const first = total.get(idOf(change));
      total.set(idOf(change), first === undefined ? change : { ...change, before: first.before });
    }
    if (round === ROUNDS_MAX) break;
    current = withChanges(current, changes);
    changes = changesOf(await planSnapshot(current, sync));
  }
  return { plan, changes: [...total.values()] };
}

function changesOf({ objects, imports }: WorldPlan): Change[] {
  return [...imports, ...objects].flatMap(({ changes }) => changes);
}

function idOf({ cluster, resource, before, after }: Change): string {
  const object = after ?? before;
  return `${cluster} ${resource.group}/${resource.kind} ${object === undefined ? '' : objectKey(object)}`;
}

/** The snapshot after these writes. */
export function withChanges(snapshot: Snapshot, changes: readonly Change[]): Snapshot {
  const ofKind = (kind: string, objects: KindSnapshot): KindSnapshot => ({
    virtual: after(
      objects.virtual,
      changes.filter((one) => one.cluster === 'virtual' && one.resource.kind === kind),
    ),
    host: after(
      objects.host,
      changes.filter((one) => one.cluster === 'host' && one.resource.kind === kind),
    ),
  });
  const kinds = snapshot.kinds.map((one) => ({ resource: one.resource, ...ofKind(one.resource.kind, one) }));
  return {
    ...snapshot,
    kinds,
    services: kinds.find(({ resource }) => resource.plural === SERVICES.plural) ?? snapshot.services,
    referenced: snapshot.referenced.map((one) => ({ kind: one.kind, ...ofKind(one.kind.virtual.kind, one) })),
  };
}

function after(objects: readonly KubeObject[], changes: readonly Change[]): KubeObject[] {
  const byKey = new Map(objects.map((object) => [objectKey(object), object]));
  for (const change of changes) {
    if (change.after !== undefined) byKey.set(objectKey(change.after), change.after);
    else if (change.before !== undefined) byKey.delete(objectKey(change.before));
  }
  return [...byKey.values()];
}
