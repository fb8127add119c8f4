/** The stages of the sync of one object and what each of them did, as `explain` shows them. */

import { systemClock } from '../../base/clock.ts';
import { PatchError } from '../../base/errors.ts';
import { valueAt, type JsonValue } from '../../base/json.ts';
import { asObject, keyOf, parseKey, type KubeObject, type StringMap } from '../../kube/object.ts';
import { tracePatches, type TracedPatch } from '../../syncer/patch/trace.ts';
import type { Direction } from '../../syncer/patch/types.ts';
import { isOptedOut } from '../../syncer/reconcile/decide.ts';
import { isBookkeepingAnnotation, isBookkeepingLabel } from '../../syncer/translate/bookkeeping.ts';
import type { SyncedKind } from '../../syncer/kinds/kind.ts';
import { memberEquals, memberOf } from '../../syncer/translate/content.ts';
import { stringMapOf } from '../../syncer/translate/labels.ts';
import type { Application } from '../offline/applied-patches.ts';
import { describePatchError } from '../output/error-report.ts';
import type { Change, ObjectPlan } from '../../syncer/rehearsal.ts';

export interface PatchStage {
  readonly direction: Direction;
  readonly index: number;
  readonly path: string;
  readonly action: TracedPatch['action'];
  /** Concrete paths with the values before and after; a value that is not there is null. */
  readonly matches: readonly {
    readonly path: string;
    readonly before: JsonValue;
    readonly after: JsonValue;
  }[];
  /** Where nothing matched: the longest part of the path that exists. */
  readonly nearest: string | null;
  readonly error: string | null;
}

/** A key whose values differ between the sides. */
export interface MergeStage {
  readonly path: string;
  readonly winner: 'virtual' | 'host';
  readonly before: JsonValue;
  readonly after: JsonValue;
}

export interface WriteStage {
  readonly cluster: Change['cluster'];
  readonly verb: 'create' | 'update' | 'delete';
  readonly kind: string;
  readonly object: string;
  readonly reason: string;
}

export interface Stages {
  readonly gate: { readonly isPassed: boolean; readonly detail: string };
  readonly name: { readonly detail: string };
  readonly translation: readonly string[];
  readonly patches: readonly PatchStage[];
  readonly merge: readonly MergeStage[];
  readonly write: readonly WriteStage[];
}

/** `applications`: of the rehearsal that the plan is from, in their order. */
export async function stagesOf(plan: ObjectPlan, applications: readonly Application[]): Promise<Stages> {
  const { seen, decision, changes } = plan;
  const isSynced = ['create', 'update', 'rewrite', 'takeOver'].includes(decision.kind);
  const first = (direction: Direction): Application | undefined =>
    isSynced ? applications.find((one) => one.direction === direction && isOf(one, plan)) : undefined;
  const forward = first('toHost');
  const back = changes.some(({ cluster }) => cluster === 'virtual') ? first('toVirtual') : undefined;
  return {
    gate: { isPassed: decision.kind !== 'ignore' && decision.kind !== 'delete', detail: gateDetail(plan) },
    name: { detail: nameDetail(plan) },
    translation:
      seen.virtual === undefined || forward === undefined
        ? []
        : translationOf(plan.kind, seen.virtual, asObject(forward.object)),
    patches: [...(forward ? await patchStages(forward) : []), ...(back ? await patchStages(back) : [])],
    merge: changes.flatMap((change) => mergeOf(change, plan.kind)),
    write: writesOf(changes),
  };
}

function isOf({ kind, context }: Application, plan: ObjectPlan): boolean {
  const { namespace, name } = parseKey(plan.key);
  const isNamed = valueAt(context.virtualObject, ['metadata', 'name']) === name;
  return kind === plan.kind && context.objectNamespace === namespace && isNamed;
}

export function writesOf(changes: readonly Change[]): WriteStage[] {
  return changes.map(({ cluster, resource, before, after, reason }) => {
    const { namespace = '', name = '' } = (after ?? before)?.metadata ?? {};
    const verb = before === undefined ? 'create' : after === undefined ? 'delete' : 'update';
    return { cluster, verb, kind: resource.kind, object: keyOf({ namespace, name }), reason };
  });
}

function gateDetail({ seen, decision, key, kind }: ObjectPlan): string {
  if (decision.kind === 'ignore' || decision.kind === 'delete') return decision.reason;
  if (isOptedOut(seen.virtual)) return 'opted out';
  const service = kind.serviceKey(key, seen.virtual);
  if (service === undefined) return 'passed';
  return seen.service === undefined ? `no Service "${service}"` : `Service "${service}" has no selector`;
}

function nameDetail({ seen, key }: ObjectPlan): string {
  const { target, ownership, claims, host } = seen;
  if (target === undefined) return 'the namespace is not mapped';
  const place = `${key} -> ${keyOf(target)}`;
  const rivals = claims.filter((claim) => claim.key !== key).map((claim) => claim.key);
  const also = rivals.length === 0 ? '' : `; the same name as ${rivals.join(', ')}`;
  if (host === undefined) return `${place}, which does not exist${also}`;
  if (ownership?.kind !== 'ours') return `${place}, which is an object of another client${also}`;
  const owner = keyOf(ownership.virtual);
  return `${place}, which is the copy of ${owner === key ? 'this object' : owner}${also}`;
}

function translationOf(
  { content, translationNote }: SyncedKind,
  virtual: KubeObject,
  forged: KubeObject,
): string[] {
  const [before, after] = [stringMapOf(virtual.metadata.labels), stringMapOf(forged.metadata.labels)];
  const renamed = Object.keys(before).filter((key) => after[key] !== before[key]);
  const isTranslated = content.members.some(
    (name) => !memberEquals(content, name, memberOf(virtual, name), memberOf(forged, name)),
  );
  return [
    ...(renamed.length === 0 ? [] : [`label keys that are renamed or not copied: ${renamed.join(', ')}`]),
    ...(isTranslated ? [translationNote] : []),
  ];
}

async function patchStages({ options, direction, object, context }: Application): Promise<PatchStage[]> {
  const tracing = { ...options, monotonicMs: () => systemClock.monotonicMs() };
  const { patches } = await tracePatches(tracing, direction, object, context);
  return patches.map((patch) => patchStage(direction, patch));
}

function patchStage(direction: Direction, patch: TracedPatch): PatchStage {
  const { index, path, action, matches, nearest, error } = patch;
  return {
    direction,
    index,
    path,
    action,
    matches: matches.map(({ path: place, before, after }) => ({
      path: place,
      before: before ?? null,
      after: after ?? null,
    })),
    nearest: nearest ?? null,
    error: error instanceof PatchError ? describePatchError(error) : null,
  };
}

/** Both sides changed: the winner is the side whose value is written to the other. */
function mergeOf({ cluster, before, after }: Change, { content, hasStatus }: SyncedKind): MergeStage[] {
  if (before === undefined || after === undefined) return [];
  const winner = cluster === 'host' ? 'virtual' : 'host';
  const maps = (['annotations', 'labels'] as const).flatMap((member) => {
    const isHidden = member === 'annotations' ? isBookkeepingAnnotation : isBookkeepingLabel;
    return changedKeys(stringMapOf(before.metadata[member]), stringMapOf(after.metadata[member]))
      .filter(({ key }) => !isHidden(key))
      .map(
        ({ key, from, to }) =>
          ({ path: `metadata.${member}.${key}`, winner, before: from, after: to }) as const,
      );
  });
  const members = hasStatus ? [...content.members, 'status'] : content.members;
  return [
    ...maps,
    ...members.flatMap((path) => {
      const [from, to] = [memberOf(before, path), memberOf(after, path)];
      return memberEquals(content, path, from, to)
        ? []
        : [{ path, winner, before: from, after: to } as const];
    }),
  ];
}

function changedKeys(
  from: StringMap,
  to: StringMap,
): { key: string; from: string | null; to: string | null }[] {
  return [...new Set([...Object.keys(from), ...Object.keys(to)])]
    .filter((key) => from[key] !== to[key])
    .map((key) => ({ key, from: from[key] ?? null, to: to[key] ?? null }));
}
