/** What each stage of a sync does with one object, of a rehearsal: gate, name, translation, patches, merge, write. */

import { systemClock } from '../../base/clock.ts';
import { describePatchError, PatchError } from '../../base/errors.ts';
import { type JsonValue, valueAt } from '../../base/json.ts';
import { asObject, keyOf, parseKey, type KubeObject } from '../../kube/object.ts';
import { stringMapOf } from '../../kube/string-map.ts';
import type { SyncedKind } from '../kinds/kind.ts';
import { tracePatches, type TracedPatch } from '../patch/trace.ts';
import type { Direction } from '../patch/types.ts';
import { isOptedOut, isOverOwnCopy } from '../reconcile/decide.ts';
import { withoutBookkeeping } from '../translate/bookkeeping.ts';
import { memberEquals, memberOf } from '../translate/content.ts';
import { KeptSandbox, reportingPipeline, type Application } from './pipelines.ts';
import { isDeletion, isRecreation, type Change, type ObjectPlan } from './rehearsal.ts';

export type Stages = Awaited<ReturnType<typeof stagesOf>>;

/** Records what the patches of one rehearsal run on, and traces those of an object after it. */
export class StageRecorder implements AsyncDisposable {
  /** Of the rehearsal, and of the traces after it. */
  readonly sandbox = new KeptSandbox();
  readonly #applications: Application[] = [];

  readonly createPipeline = reportingPipeline((application) => this.#applications.push(application));

  stagesOf(plan: ObjectPlan): Promise<Stages> {
    return stagesOf(plan, this.#applications);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sandbox[Symbol.asyncDispose]();
  }
}

/** `applications`: of the rehearsal that the plan is from, in their order. */
async function stagesOf(plan: ObjectPlan, applications: readonly Application[]) {
  const { seen, decision, changes } = plan;
  const isSynced = decision.kind === 'create' || decision.kind === 'takeOver' || isOverOwnCopy(decision);
  const first = (direction: Direction): Application | undefined =>
    isSynced ? applications.find((one) => one.direction === direction && isOf(one, plan)) : undefined;
  const forward = first('toHost');
  const back = changes.some(({ cluster }) => cluster === 'virtual') ? first('toVirtual') : undefined;
  return {
    gate: { isPassed: !isExcluded(plan), detail: gateDetail(plan) },
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

export function writesOf(changes: readonly Change[]) {
  return changes.map((change) => {
    const { cluster, resource, before, after, reason } = change;
    const { namespace = '', name = '' } = (after ?? before)?.metadata ?? {};
    return { cluster, verb: verbOf(change), kind: resource.kind, object: keyOf({ namespace, name }), reason };
  });
}

function verbOf(change: Change): 'create' | 'delete' | 'update' | 'recreate' {
  if (change.before === undefined) return 'create';
  if (isDeletion(change)) return 'delete';
  return isRecreation(change) ? 'recreate' : 'update';
}

/** The gate keeps the object from the host, or from staying there. */
function isExcluded({ decision }: ObjectPlan): boolean {
  const isEnding = decision.kind === 'terminating' && decision.next === 'nothing';
  return isEnding || decision.kind === 'ignore' || decision.kind === 'delete';
}

function gateDetail(plan: ObjectPlan): string {
  const { seen, decision, key, kind } = plan;
  if (isExcluded(plan)) return 'reason' in decision ? decision.reason : 'the host copy is being deleted';
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

async function patchStages({ options, direction, object, context }: Application) {
  const tracing = { ...options, monotonicMs: () => systemClock.monotonicMs() };
  const { patches } = await tracePatches(tracing, direction, object, context);
  return patches.map((patch) => patchStage(direction, patch));
}

/** A value that is not there is null; `nearest`: where nothing matched, the longest part of the path that exists. */
function patchStage(direction: Direction, patch: TracedPatch) {
  const { index, path, action, matches, nearest = null, error } = patch;
  return {
    direction,
    index,
    path,
    action,
    matches: matches.map(({ before = null, after = null, ...match }) => ({ ...match, before, after })),
    nearest,
    error: error instanceof PatchError ? describePatchError(error) : null,
  };
}

/** Keys whose values differ between the sides: the winner is the side whose value is written to the other. */
function mergeOf({ cluster, before, after }: Change, { content, hasStatus }: SyncedKind) {
  if (before === undefined || after === undefined) return [];
  const winner = cluster === 'host' ? 'virtual' : 'host';
  const merged = (path: string, from: JsonValue = null, to: JsonValue = null) =>
    ({ path, winner, before: from, after: to }) as const;
  // Without what the syncer keeps for itself.
  const [shownBefore, shownAfter] = [withoutBookkeeping(before), withoutBookkeeping(after)];
  const maps = (['annotations', 'labels'] as const).flatMap((member) => {
    const [from, to] = [shownBefore, shownAfter].map(({ metadata }) => stringMapOf(metadata[member]));
    return Object.keys({ ...from, ...to })
      .filter((key) => from?.[key] !== to?.[key])
      .map((key) => merged(`metadata.${member}.${key}`, from?.[key], to?.[key]));
  });
  const members = (hasStatus ? [...content.members, 'status'] : content.members)
    .filter((path) => !memberEquals(content, path, memberOf(before, path), memberOf(after, path)))
    .map((path) => merged(path, memberOf(before, path), memberOf(after, path)));
  return [...maps, ...members];
}
