/** Why an object that patches name is, or is not, imported, and why any other object is not synced. Pure. */

import { messageOf } from '../../base/errors.ts';
import {
  isTerminating,
  keyOf,
  type KubeObject,
  type NamespacedName,
  type Resource,
} from '../../kube/object.ts';
import { describeTermination } from '../../kube/termination.ts';
import type { ClusterName } from '../../kube/types.ts';
import type { Config } from '../config/config.ts';
import { disablingSetting } from '../kinds/synced-kinds.ts';
import { outcomeOf } from '../reconcile/controller.ts';
import { isOptedOut } from '../reconcile/decide.ts';
import { CONTROLLED_BY } from '../translate/labels.ts';
import { lastWriteMs, RECENT_MS, type StatusFacts } from './object-status.ts';
import { isDeletion, isRecreation, problemOf, type ReferencePlan } from './rehearsal.ts';
import {
  held,
  heldBack,
  quotedKey,
  sentenceOf,
  statusAs,
  type ReportedEvent,
  type SyncStatus,
} from './sync-status.ts';

/** `events`: about this import. */
export type ImportFacts = Pick<
  StatusFacts,
  'fleetNote' | 'runsOther' | 'objection' | 'namespaceAdvice' | 'events' | 'nowMs'
>;

export function statusOfImport(plan: ReferencePlan, facts: ImportFacts): SyncStatus {
  const { seen, isReferenced, decision, changes, error } = plan;
  const { objection } = facts;
  const { kind, virtual } = seen;
  const what = `${kind.virtual.kind} "${keyOf(virtual)}"`;
  const copy = seen.ours.find((one) => !isOptedOut(one));
  if (!isReferenced && copy !== undefined && seen.object === undefined && objection !== undefined)
    return held(what, quotedKey(copy.metadata), objection);
  const problem = problemOf(plan);
  if (problem !== undefined)
    return statusAs('refused', problem.reason, `${what} is not imported: ${sentenceOf(problem.note)}`);
  const other = changes.length > 0 ? heldBack(facts, what) : undefined;
  if (other !== undefined) return other;
  const ending = endingImport(seen);
  if (ending !== undefined) {
    const side = ending === seen.imported ? 'in the virtual cluster' : 'on the host';
    const outlook = isReferenced ? 'it is created again when it is gone' : 'nothing takes its place';
    const sentence = `${what}: its copy ${quotedKey(ending.metadata)} ${side} ${describeTermination(ending)}; ${outlook}`;
    return statusAs('terminating', 'Terminating', sentence);
  }
  if (changes.length > 0) {
    const told = reportedOf(plan, facts);
    if (told !== undefined) {
      const state = told.reason === 'Contested' ? 'contested' : 'failed';
      return statusAs(state, told.reason, `${what} is not in sync: ${sentenceOf(told.note)}`);
    }
    const reason = changes.map((change) => change.reason).join(', ');
    const verb = changes.some(isRecreation)
      ? 'deleted and created again'
      : changes.every(isDeletion)
        ? 'deleted'
        : 'written';
    return statusAs('pending', reason, `${what} is not in sync: its copy is about to be ${verb}: ${reason}`);
  }
  if (error !== undefined) return importFailed(what, error, facts.namespaceAdvice);
  if (!isReferenced) return unreferenced(what, seen);
  switch (decision.action) {
    case 'to-host': {
      const target = seen.target === undefined ? '' : keyOf(seen.target);
      return statusAs('synced', '', `${what} is imported into the host as "${target}"`);
    }
    case 'to-virtual': {
      const source = seen.source === undefined ? '"/"' : quotedKey(seen.source.metadata);
      return statusAs('synced', '', `${what} is imported from the host, where it is ${source}`);
    }
    case 'paused':
      return paused(what);
    case 'none':
      return notImported(what, { seen, decision });
  }
}

/** Why the daemon has not written what differs. What admission makes of a copy is reported once, and stays like that. */
function reportedOf({ seen }: ReferencePlan, { events, nowMs }: ImportFacts): ReportedEvent | undefined {
  const writtenMs = lastWriteMs([...seen.ours, seen.imported]);
  return events.find(({ reason, note, lastMs }) => {
    const isRecent = nowMs - lastMs < RECENT_MS;
    if (reason === 'Contested') return isRecent || IS_ALTERED.test(note);
    return reason === 'SyncError' && isRecent && lastMs > writtenMs;
  });
}

const IS_ALTERED = /'s admission: /u;

function importFailed(what: string, error: unknown, advice: string): SyncStatus {
  const { reason, note } = outcomeOf(error, 0, advice).warning ?? {
    reason: 'SyncError',
    note: messageOf(error),
  };
  return statusAs('failed', reason, `${what} is not imported: ${sentenceOf(note)}`);
}

/** The copy that is being deleted, on either side. */
export function endingImport({ ours, imported }: ReferencePlan['seen']): KubeObject | undefined {
  return [...ours, ...(imported ? [imported] : [])].find((copy) => isTerminating(copy));
}

/** An import that is not deleted although no synced object references it: what an object references that cannot be translated is unknown. */
function unreferenced(what: string, { ours, imported }: ReferencePlan['seen']): SyncStatus {
  const [kept = imported] = ours;
  if (kept === undefined) return notReferenced(what);
  if (isOptedOut(kept)) return paused(what);
  const where = kept === imported ? 'from the host' : `into the host as ${quotedKey(kept.metadata)}`;
  const sentence = `${what} is imported ${where} and is kept: an object fails whose copy references it`;
  return statusAs('synced', 'kept', sentence);
}

function notReferenced(what: string): SyncStatus {
  return statusAs('skipped', 'not referenced', `${what} is not imported: no synced object references it`);
}

function paused(what: string): SyncStatus {
  const sentence = `${what} is not imported: ${CONTROLLED_BY} assigns it to another controller`;
  return statusAs('skipped', 'controlled by another', sentence);
}

function notImported(what: string, { seen, decision }: Pick<ReferencePlan, 'seen' | 'decision'>): SyncStatus {
  const name = decision.name === undefined ? '' : `"${keyOf(decision.name)}"`;
  if (seen.othersCopy !== undefined) {
    const sentence = `${what} is on the host as ${name}: another syncer manages that copy`;
    return statusAs('skipped', 'copied by another syncer', sentence);
  }
  const [reason, why] = seen.kind.isImportable
    ? ['not configured', 'syncing of this kind is not enabled under sync.toHost']
    : ['never imported', 'objects of this kind are copied by another syncer'];
  return statusAs('skipped', reason, `${what} is not imported: ${why}; references use the name ${name}`);
}

/** An existing object that is not synced: a host object of another client, or a virtual object that is not referenced. */
export interface OtherObject {
  readonly resource: Resource;
  /** Its name in the virtual cluster; undefined where it has none. */
  readonly virtual: NamespacedName | undefined;
  readonly object: KubeObject;
  readonly cluster: ClusterName;
}

/** The state of an existing object that is neither synced nor referenced. */
export function statusOfOther(
  { resource, object, cluster, virtual }: OtherObject,
  config: Config,
): SyncStatus {
  const what = `${resource.kind} ${quotedKey(object.metadata)}`;
  const setting = disablingSetting(config, resource);
  if (setting !== undefined) return statusAs('skipped', 'disabled', `${what} is not synced: ${setting}`);
  if (cluster === 'virtual') return notReferenced(what);
  const blocks = virtual === undefined ? '' : `; "${keyOf(virtual)}" cannot be synced while it has this name`;
  const why = `another client created it, so it is left untouched${blocks}`;
  const sentence = `host ${what} is not a copy of an object of this virtual cluster: ${why}`;
  return statusAs('skipped', 'NotManaged', sentence);
}
