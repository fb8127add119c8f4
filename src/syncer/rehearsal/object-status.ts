/** Why an object is, or is not, in sync. Pure. */

import { InvariantError, messageOf, PatchError, patchErrorLine } from '../../base/errors.ts';
import { ENDPOINT_SLICES, ENDPOINTS, keyOf, objectKey, type KubeObject } from '../../kube/object.ts';
import { isWait, type WarningReason } from '../reconcile/controller.ts';
import { isNamespaceGone } from '../../kube/status-error.ts';
import { describeNamespaceEnd, describeTermination } from '../../kube/termination.ts';
import {
  type AfterTermination,
  type Decision,
  type IgnoreReason,
  isCopyOf,
  isOptedOut,
  SKIP_BACKSYNC,
  SYNCED_BY_VCLUSTER,
} from '../reconcile/decide.ts';
import { CONTROLLED_BY } from '../translate/labels.ts';
import { isDeletion, isRecreation, type Change, type ObjectPlan } from './rehearsal.ts';
import { MANAGED_BY } from '../kinds/endpoint-slices.ts';
import { NO_EFFECT, type CopyAddress } from '../kinds/kind.ts';
import { FIELD_MANAGER } from '../translate/bookkeeping.ts';
import type { Snapshot, WorldPlan } from './snapshot.ts';
import { namespaceAdvice } from '../reconcile/environment.ts';
import {
  held,
  heldBack,
  quotedKey,
  sentenceOf,
  statusAs,
  type DaemonFacts,
  type ReportedEvent,
  type SyncStatus,
} from './sync-status.ts';

export interface StatusFacts extends DaemonFacts {
  readonly nowMs: number;
  /** Of the daemon about this object, the latest first. */
  readonly events: readonly ReportedEvent[];
  readonly closedNamespaces: Snapshot['closedNamespaces'];
  readonly unreadNamespaces: Snapshot['unreadNamespaces'];
  /** What the user can do about one of them. */
  readonly namespaceAdvice: string;
  /** Why the copies of objects that are gone stay. */
  readonly objection?: string | undefined;
  /** This program syncs Services, because there is no vCluster that syncs them and their Pods. */
  readonly syncsServices: boolean;
  /** Rights that the daemon needs and this user does not have, described. */
  readonly missingRights: readonly string[];
  /** An object is written although one of its patches fails. */
  readonly isRestSynced: boolean;
}

/** An older Event of the daemon is obsolete: delays end after five minutes, streaks after ten. */
export const RECENT_MS = 10 * 60_000;

/** What the status of every object of a plan depends on. */
export function factsOf(
  { snapshot: { config, closedNamespaces, unreadNamespaces }, objection }: WorldPlan,
  reports: DaemonFacts & Pick<StatusFacts, 'nowMs'>,
): Omit<StatusFacts, 'events'> {
  return {
    ...reports,
    objection,
    closedNamespaces,
    unreadNamespaces,
    namespaceAdvice: namespaceAdvice(config),
    isRestSynced: config.patches.onError === 'path',
    syncsServices: config.services.mode === 'sync',
    missingRights: [],
  };
}

export function statusOf(plan: ObjectPlan, facts: StatusFacts): SyncStatus {
  const { decision, error } = plan;
  const what = `${plan.kind.resource.kind} "${plan.key}"`;
  switch (decision.kind) {
    case 'ignore':
      return statusAs('skipped', decision.reason, `${what} ${whyIgnored(plan, decision.reason, facts)}`);
    case 'refuse':
      return statusAs('refused', decision.reason, `${what} is not synced: ${sentenceOf(decision.note)}`);
    case 'delete': {
      if (plan.seen.virtual === undefined && facts.objection !== undefined)
        return held(what, hostOf(plan), facts.objection);
      const wait = waiting(plan, facts, what);
      if (wait !== undefined) return wait;
      const due = `${what}: the host copy ${hostOf(plan)} is about to be deleted: ${decision.reason}`;
      return pending(facts, what, decision.reason, due);
    }
    case 'terminating':
      return terminating(plan, decision.next, what);
    case 'create':
    case 'update':
    case 'rewrite':
    case 'takeOver':
      if (error === undefined || isNamespaceGone(error)) return inProgress(plan, decision, facts, what);
      return failed(error, what, facts);
  }
}

function terminating({ seen, changes, error }: ObjectPlan, next: AfterTermination, what: string): SyncStatus {
  const { host } = seen;
  if (host === undefined) throw new InvariantError('a host object that is being deleted exists');
  const which = next === 'create' ? 'the host object' : 'its host copy';
  const isBehind = changes.some(({ cluster }) => cluster === 'host') || error !== undefined;
  const outlook = {
    recreate: isBehind
      ? 'a change is about to be written to it, and it is created again when it is gone'
      : 'it is created again when it is gone',
    create: 'the copy is created when it is gone',
    nothing: 'nothing takes its place',
  }[next];
  const sentence = `${what}: ${which} ${quotedKey(host.metadata)} ${describeTermination(host)}; ${outlook}`;
  return statusAs('terminating', 'Terminating', sentence);
}

/** Where the host serves the copy; undefined: there is no copy, or it has no address. */
export function addressOf({ kind, seen }: ObjectPlan): CopyAddress | undefined {
  const { host } = seen;
  return host === undefined || !isCopyOf(seen) ? undefined : kind.addressOf?.(host);
}

type WriteDecision = Extract<Decision, { kind: 'create' | 'update' | 'rewrite' | 'takeOver' }>;

function inProgress(plan: ObjectPlan, decision: WriteDecision, facts: StatusFacts, what: string): SyncStatus {
  const { seen, result } = plan;
  const { target } = seen;
  const isAtRest = plan.changes.length === 0 && plan.error === undefined;
  if (decision.kind === 'takeOver' && result?.outcome === 'pending') {
    const why = `the host Service ${hostOf(plan)} still has a selector, so the host's endpoints controller writes these Endpoints`;
    return statusAs('pending', result.reason, `${what} is not synced yet: ${why}`);
  }
  const wait = waiting(plan, facts, what);
  if (wait !== undefined) return wait;
  const contested = recent(facts, 'Contested');
  if (contested !== undefined) {
    // A correction may be in place until the other writer is back: the daemon forgets it after the same time without an overwrite.
    const state = plan.changes.length === 0 ? `is synced to ${hostOf(plan)} for now` : 'is not in sync';
    return statusAs('contested', 'Contested', `${what} ${state}: ${sentenceOf(contested.note)}`);
  }
  if (isAtRest) {
    const idle = noEffectOf(plan, facts);
    if (idle !== undefined)
      return statusAs(
        'pending',
        NO_EFFECT.reason,
        `${what} is synced to ${hostOf(plan)}, without effect: ${sentenceOf(idle)}`,
      );
    const quarantined = recent(current(facts, plan), 'PatchFailed', /quarantin/);
    const note =
      quarantined === undefined ? '' : `; its last change is delayed: ${sentenceOf(quarantined.note)}`;
    return statusAs('synced', '', `${what} is synced to ${hostOf(plan)}${note}`);
  }
  if (facts.missingRights.length > 0) {
    const rights = facts.missingRights.join(', ');
    return statusAs('failed', 'MissingRight', `${what} is not synced: a right is missing: ${rights}`);
  }
  if (target !== undefined && facts.closedNamespaces.has(target.namespace)) {
    const namespace = facts.closedNamespaces.get(target.namespace);
    if (namespace !== undefined) {
      const why = `host namespace "${target.namespace}" ${describeNamespaceEnd(namespace)}`;
      return statusAs('terminating', 'Terminating', `${what} is not synced: ${why}`);
    }
    const why = `host namespace "${target.namespace}" does not exist; ${facts.namespaceAdvice}`;
    return statusAs('failed', 'NamespaceNotFound', `${what} is not synced: ${why}`);
  }
  const due = dueSentence(plan, decision, what);
  return reported(plan, decision, facts, what) ?? pending(facts, what, reasonOf(decision), due);
}

/** The engine writes nothing, although the object is not in sync; an Event tells why. Undefined: it is in sync, or something is written. */
function waiting(plan: ObjectPlan, facts: StatusFacts, what: string): SyncStatus | undefined {
  const { changes, error, result } = plan;
  if (changes.length > 0 || error !== undefined || result === undefined || !isWait(result)) return undefined;
  const { outcome, reason, note } = result;
  const told = recent(facts, reason) ?? plan.events.findLast((event) => event.reason === reason);
  const why = sentenceOf(told?.note ?? note ?? reason);
  return heldBack(facts, what) ?? statusAs(outcome, reason, `${what} is not in sync: ${why}`);
}

/** Why nothing on the host can use the copy. */
function noEffectOf({ kind, events }: ObjectPlan, facts: StatusFacts): string | undefined {
  const notice = events.find(({ reason }) => reason === NO_EFFECT.reason);
  // Only the daemon has waited for the slices of the host's mirroring controller. What a name leads to is known here.
  const isWaitedFor = kind.resource.plural === ENDPOINTS.plural;
  return notice?.note ?? (isWaitedFor ? recent(facts, NO_EFFECT.reason)?.note : undefined);
}

/** State that only the daemon has: it waits, or the API server rejected its write. */
function reported(
  plan: ObjectPlan,
  decision: Decision,
  facts: StatusFacts,
  what: string,
): SyncStatus | undefined {
  const later = current(facts, plan);
  const failed = ({ reason, note }: ReportedEvent): SyncStatus =>
    statusAs('failed', reason, `${what} is not in sync: ${sentenceOf(note)}`);
  const patch = recent(facts.isRestSynced ? facts : later, 'PatchFailed', OF_THE_MOMENT);
  if (patch !== undefined) return failed(patch);
  const recreation = recent(later, 'SyncError', /delet/);
  if (recreation !== undefined && decision.kind === 'create') {
    const why =
      'another client on the host keeps deleting the copy, so it is created again with increasing delays';
    const sentence = `${what} waits for the re-creation of ${hostOf(plan)}: ${why}`;
    return statusAs('pending', 'waiting for re-creation', sentence);
  }
  const isUnread = facts.unreadNamespaces.has(plan.seen.target?.namespace ?? '');
  const ofRequests: readonly WarningReason[] = isUnread
    ? ['SyncError', 'NamespaceNotFound', 'Terminating']
    : ['SyncError'];
  const refused = ofRequests.flatMap((reason) => recent(later, reason) ?? []);
  const [last] = refused.toSorted((a, b) => b.lastMs - a.lastMs);
  return last && failed(last);
}

/** Another run of the same patch may succeed: all other failures of patches are repeated here. */
const OF_THE_MOMENT = /quarantin|\((?:timeout|memory|killed)\)/;

/** With the Events that are later than the last success alone: what failed before is over. */
function current(facts: StatusFacts, plan: ObjectPlan): StatusFacts {
  const succeeded = facts.events.filter(({ reason }) => ['Synced', 'TakenOver'].includes(reason));
  const { host, virtual } = plan.seen;
  const succeededMs = Math.max(lastWriteMs([host, virtual]), ...succeeded.map(({ lastMs }) => lastMs));
  return { ...facts, events: facts.events.filter(({ lastMs }) => lastMs > succeededMs) };
}

/** Of this program, to any of them; managedFields have whole seconds. */
export function lastWriteMs(objects: readonly (KubeObject | undefined)[]): number {
  const written = objects.flatMap((object) => object?.metadata.managedFields ?? []);
  const times = written.flatMap(({ manager, time = '' }) =>
    manager === FIELD_MANAGER ? [Date.parse(time) + 999] : [],
  );
  return Math.max(0, ...times);
}

function failed(error: unknown, what: string, facts: StatusFacts): SyncStatus {
  if (error instanceof PatchError) {
    const after = recent(facts, 'PatchFailed', /quarantin/)
      ? '; the expression is quarantined for this object and retried with increasing delays'
      : '';
    const messages = [error, ...error.others].map(patchErrorLine);
    const except = messages.length === 1 ? 'a patch that fails' : `${messages.length} patches that fail`;
    const how = error.isRestSynced ? `is synced except for ${except}` : 'is not synced';
    return statusAs('failed', 'PatchFailed', `${what} ${how}: ${messages.join('; ')}${after}`);
  }
  return statusAs('failed', 'SyncError', `${what} is not synced: ${messageOf(error)}`);
}

function pending(facts: StatusFacts, what: string, reason: string, due: string): SyncStatus {
  const other = heldBack(facts, what);
  if (other !== undefined) return other;
  const { lease } = facts;
  if (lease === undefined)
    return statusAs('pending', reason, `${due}; if this state persists, check that a daemon is running`);
  if (lease.holder !== '')
    return statusAs('pending', reason, `${due}; the leader "${lease.holder}" writes it`);
  const sentence = `${due}; no replica holds Lease "${lease.key}", so no daemon writes it`;
  return statusAs('pending', 'no leader', sentence);
}

function dueSentence(plan: ObjectPlan, decision: WriteDecision, what: string): string {
  const copy = hostOf(plan);
  const change = changeOfCopy(plan);
  if (change !== undefined && (isRecreation(change) || isDeletion(change)))
    return `${what}: ${copy} is about to be deleted and created again: ${change.reason}`;
  switch (decision.kind) {
    case 'create':
      return `${what} is not on the host yet: ${copy} is about to be created`;
    case 'rewrite':
      return `${what}: ${copy} is about to be rewritten: ${decision.reason}`;
    case 'takeOver':
      return `${what}: ${copy}, which the host's endpoints controller created, is about to be taken over`;
    case 'update':
      return `${what} is not in sync: ${updateOf(plan, change)}`;
  }
}

function updateOf(plan: ObjectPlan, change: Change | undefined): string {
  if (plan.changes.some(({ cluster }) => cluster === 'virtual'))
    return 'a change on the host is about to be copied to the virtual cluster';
  if (change !== undefined) return `${hostOf(plan)} is about to be updated`;
  const strays = plan.changes.map(
    ({ before, reason }) => before && `${quotedKey(before.metadata)} is about to be deleted: ${reason}`,
  );
  return strays.join('; ');
}

/** Without those of copies at other places. */
function changeOfCopy({ changes, seen: { target } }: ObjectPlan): Change | undefined {
  return changes.find(({ cluster, before, after }) => {
    const object = after ?? before;
    return (
      cluster === 'host' &&
      object !== undefined &&
      target !== undefined &&
      objectKey(object) === keyOf(target)
    );
  });
}

const REASONS = { create: 'no host copy', update: 'differs', takeOver: 'taken over' } as const;

function reasonOf(decision: WriteDecision): string {
  return decision.kind === 'rewrite' ? decision.reason : REASONS[decision.kind];
}

function recent(
  { events, nowMs }: StatusFacts,
  reason: string,
  note: RegExp = /(?:)/,
): ReportedEvent | undefined {
  return events.find(
    (event) => event.reason === reason && note.test(event.note) && nowMs - event.lastMs < RECENT_MS,
  );
}

function hostOf({ seen: { target } }: ObjectPlan): string {
  return target === undefined ? 'the host copy' : `"${keyOf(target)}"`;
}

/** What follows the name of the object. */
function whyIgnored(
  { seen, key, kind }: ObjectPlan,
  reason: IgnoreReason,
  { syncsServices }: StatusFacts,
): string {
  const copy =
    seen.host === undefined || !isCopyOf(seen)
      ? ''
      : `; the host copy ${quotedKey(seen.host.metadata)} stays as it is`;
  const service = `Service "${kind.serviceKey(key, seen.virtual) ?? key}"`;
  const owner = isOptedOut(seen.virtual) ? 'the virtual object' : 'the host copy';
  const derived = syncsServices
    ? ` for the Pods of ${service}, and no Pods are synced`
    : `, and the host's own controller creates the host ${kind.resource.kind.replace(/s?$/u, 's')}`;
  const reasons: Readonly<Record<IgnoreReason, string>> = {
    'never synced': 'is never synced: it describes the API server itself, and the host has its own',
    'controlled by another': `is not synced: ${CONTROLLED_BY} on ${owner} assigns it to another controller${copy}; remove it to resume syncing`,
    'skip-backsync': `no longer exists, and ${SKIP_BACKSYNC} on the host copy keeps that copy`,
    [SYNCED_BY_VCLUSTER]: `is not copied by this configuration, but vCluster's values sync it${copy}: vCluster would delete the object with it`,
    'gone on both sides': 'exists neither in the virtual cluster nor on the host',
    'service has a selector': `is not copied: ${selectorReason({ seen, kind }, service, syncsServices)}`,
    'no service': `is not copied: there is no ${service}, and endpointSyncer.requireService is true`,
    'no service name':
      'is not copied: it has no label kubernetes.io/service-name, so it belongs to no Service',
    'made by the EndpointSlice controller': `is not copied: the virtual cluster's EndpointSlice controller created it${derived}`,
    'mirrored from Endpoints': `is not copied: it mirrors the Endpoints of ${service}, which are synced, and the host mirrors their copy`,
    'selects Pods':
      'is not copied: it has a selector, and no Pods are synced that it could select on the host',
    'no synced endpoints':
      'is not copied yet: it has no Endpoints or EndpointSlices that are synced, and is neither of type LoadBalancer nor ExternalName',
    'namespace is excluded': 'is not copied: endpointSyncer.namespaces excludes its namespace',
    'not selected': 'is not copied: its labels do not match endpointSyncer.selector',
  };
  return reasons[reason];
}

/** What a Service with a selector means depends on who copies Services, and on who made the object. */
function selectorReason(
  { seen, kind }: Pick<ObjectPlan, 'seen' | 'kind'>,
  service: string,
  syncsServices: boolean,
): string {
  if (syncsServices)
    return `${service} has a selector, so it is not copied either: no Pods are synced that it could select on the host`;
  if (kind.resource.plural !== ENDPOINT_SLICES.plural)
    return `${service} has a selector, so the host's own controllers create the host Endpoints`;
  const manager = seen.virtual?.metadata.labels?.[MANAGED_BY];
  const whose = manager === undefined ? 'slices without a manager' : `slices of the manager "${manager}"`;
  return `${service} has a selector, so its addresses on the host are those of its Pods there; ${whose} are copied for Services without a selector only`;
}
