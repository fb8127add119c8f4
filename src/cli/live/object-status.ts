/** Why an object is, or is not, in sync or imported: one state, one reason, one sentence. Pure. */

import { messageOf, PatchError } from '../../base/errors.ts';
import { ENDPOINT_SLICES, keyOf } from '../../kube/object.ts';
import { isNamespaceMissing } from '../../syncer/reconcile/controller.ts';
import {
  CONTROLLED_BY,
  type Decision,
  type IgnoreReason,
  isOptedOut,
  SKIP_BACKSYNC,
} from '../../syncer/reconcile/decide.ts';
import { describePatchError } from '../output/terminal.ts';
import type { ObjectPlan, ReferencePlan } from '../../syncer/rehearsal.ts';
import type { LeaseState, ReportedEvent } from './reports.ts';
import type { Config } from '../../config/config.ts';
import { MANAGED_BY } from '../../syncer/kinds/endpoint-slices.ts';
import type { CopyAddress } from '../../syncer/kinds/kind.ts';
import { disablingSetting } from '../../syncer/kinds/synced-kinds.ts';
import type { Target } from './target.ts';

type State = 'synced' | 'pending' | 'skipped' | 'refused' | 'failed' | 'contested';

export interface SyncStatus {
  readonly state: State;
  /** The reason of the Event where there is one; '' for an object in sync. */
  readonly reason: string;
  readonly sentence: string;
}

export interface StatusFacts {
  readonly nowMs: number;
  /** Of the daemon about this object, the latest first. */
  readonly events: readonly ReportedEvent[];
  readonly missingNamespaces: ReadonlySet<string>;
  /** What the user can do about one of them. */
  readonly namespaceAdvice: string;
  /** Undefined: leader election is off. */
  readonly lease: LeaseState | undefined;
  /** The daemon in charge runs another configuration, so it does not write what this one would. */
  readonly runsOther: boolean;
  /** The state of the vCluster in its fleet, if it is not synced, or not as configured. */
  readonly fleetNote?: string | undefined;
  /** Why the copies of objects that are gone stay. */
  readonly objection?: string | undefined;
  /** This program syncs Services, because there is no vCluster that syncs them and their Pods. */
  readonly syncsServices: boolean;
  /** Rights that the daemon needs and this user does not have, described. */
  readonly missingRights: readonly string[];
}

/** An older Event of the daemon is obsolete: delays end after five minutes, streaks after ten. */
const RECENT_MS = 10 * 60_000;

export function statusOf(plan: ObjectPlan, facts: StatusFacts): SyncStatus {
  const { decision, error } = plan;
  const what = `${plan.kind.resource.kind} "${plan.key}"`;
  switch (decision.kind) {
    case 'ignore':
      return {
        state: 'skipped',
        reason: decision.reason,
        sentence: ignoredSentence(plan, decision.reason, what, facts.syncsServices),
      };
    case 'refuse':
      return {
        state: 'refused',
        reason: decision.reason,
        sentence: `${what} is not synced: ${sentenceOf(decision.note)}`,
      };
    case 'delete':
      if (plan.seen.virtual === undefined && facts.objection !== undefined)
        return held(what, hostOf(plan), facts.objection);
      return pending(
        facts,
        what,
        decision.reason,
        `${what}: the host copy ${hostOf(plan)} is about to be deleted: ${decision.reason}`,
      );
    case 'create':
    case 'update':
    case 'rewrite':
    case 'takeOver':
      if (error === undefined || isNamespaceMissing(error)) return inProgress(plan, decision, facts, what);
      return failed(error, what, facts);
  }
}

function held(what: string, copy: string, objection: string): SyncStatus {
  return {
    state: 'pending',
    reason: 'DeletionsHeld',
    sentence: `${what} is gone, and its host copy ${copy} stays: ${objection}`,
  };
}

/** Where the host serves the copy; undefined: there is no copy, or it has no address. */
export function addressOf({ kind, seen }: ObjectPlan): CopyAddress | undefined {
  const { host, ownership } = seen;
  return host === undefined || ownership?.kind !== 'ours' ? undefined : kind.addressOf?.(host);
}

type WriteDecision = Extract<Decision, { kind: 'create' | 'update' | 'rewrite' | 'takeOver' }>;

function inProgress(plan: ObjectPlan, decision: WriteDecision, facts: StatusFacts, what: string): SyncStatus {
  const { target } = plan.seen;
  if (decision.kind === 'takeOver' && plan.changes.length === 0) {
    const why = `the host Service ${hostOf(plan)} still has a selector, so the host's endpoints controller writes these Endpoints`;
    return {
      state: 'pending',
      reason: 'host Service has a selector',
      sentence: `${what} is not synced yet: ${why}`,
    };
  }
  const contested = recent(facts, 'Contested');
  if (contested !== undefined) {
    // A correction may be in place until the other writer is back: the daemon forgets it after the same time without an overwrite.
    const state = plan.changes.length === 0 ? `is synced to ${hostOf(plan)} for now` : 'is not in sync';
    const sentence = `${what} ${state}: ${sentenceOf(contested.note)}`;
    return { state: 'contested', reason: 'Contested', sentence };
  }
  if (plan.changes.length === 0 && plan.error === undefined) {
    const quarantined = recent(facts, 'PatchFailed', /quarantin/);
    const note =
      quarantined === undefined ? '' : `; its last change is delayed: ${sentenceOf(quarantined.note)}`;
    return { state: 'synced', reason: '', sentence: `${what} is synced to ${hostOf(plan)}${note}` };
  }
  if (facts.missingRights.length > 0) {
    const rights = facts.missingRights.join(', ');
    return {
      state: 'failed',
      reason: 'MissingRight',
      sentence: `${what} is not synced: a right is missing: ${rights}`,
    };
  }
  if (target !== undefined && facts.missingNamespaces.has(target.namespace)) {
    return {
      state: 'failed',
      reason: 'NamespaceNotFound',
      sentence: `${what} is not synced: host namespace "${target.namespace}" does not exist; ${facts.namespaceAdvice}`,
    };
  }
  return (
    reported(plan, decision, facts, what) ??
    pending(facts, what, reasonOf(decision), dueSentence(plan, decision, what))
  );
}

/** State that only the daemon has: it waits, or the API server rejected its write. */
function reported(
  plan: ObjectPlan,
  decision: Decision,
  facts: StatusFacts,
  what: string,
): SyncStatus | undefined {
  const patch = recent(facts, 'PatchFailed');
  if (patch !== undefined) {
    return {
      state: 'failed',
      reason: 'PatchFailed',
      sentence: `${what} is not in sync: ${sentenceOf(patch.note)}`,
    };
  }
  const recreation = recent(facts, 'SyncError', /delet/);
  if (recreation !== undefined && decision.kind === 'create') {
    const why =
      'another client on the host keeps deleting the copy, so it is created again with increasing delays';
    return {
      state: 'pending',
      reason: 'waiting for re-creation',
      sentence: `${what} waits for the re-creation of ${hostOf(plan)}: ${why}`,
    };
  }
  const refused = facts.events.find(
    ({ type, lastMs }) => type === 'Warning' && facts.nowMs - lastMs < RECENT_MS,
  );
  if (refused === undefined) return undefined;
  return {
    state: 'failed',
    reason: refused.reason,
    sentence: `${what} is not in sync: ${sentenceOf(refused.note)}`,
  };
}

function failed(error: unknown, what: string, { events }: StatusFacts): SyncStatus {
  if (error instanceof PatchError) {
    const isQuarantined = events.some(({ note }) => note.includes('quarantin'));
    const after = isQuarantined
      ? '; the expression is quarantined for this object and retried with increasing delays'
      : '';
    const [message = ''] = describePatchError(error).split('\n');
    const how = error.isRestSynced ? 'is synced except for a patch that fails' : 'is not synced';
    return { state: 'failed', reason: 'PatchFailed', sentence: `${what} ${how}: ${message}${after}` };
  }
  const message = messageOf(error);
  return { state: 'failed', reason: 'SyncError', sentence: `${what} is not synced: ${message}` };
}

/** The daemon does not write what this configuration would. */
function otherConfiguration(what: string): SyncStatus {
  return {
    state: 'pending',
    reason: 'another configuration',
    sentence: `${what} is not in sync with this configuration: the daemon runs another configuration`,
  };
}

function ofFleet(what: string, note: string): SyncStatus {
  return {
    state: 'failed',
    reason: 'NotJoined',
    sentence: `${what} is not in sync: its vCluster is in the state ${note}`,
  };
}

function pending(
  { fleetNote, lease, runsOther }: StatusFacts,
  what: string,
  reason: string,
  due: string,
): SyncStatus {
  if (fleetNote !== undefined) return ofFleet(what, fleetNote);
  if (runsOther) return otherConfiguration(what);
  if (lease === undefined)
    return {
      state: 'pending',
      reason,
      sentence: `${due}; if this state persists, check that a daemon is running`,
    };
  if (lease.holder !== '')
    return { state: 'pending', reason, sentence: `${due}; the leader "${lease.holder}" writes it` };
  return {
    state: 'pending',
    reason: 'no leader',
    sentence: `${due}; no replica holds Lease "${lease.key}", so no daemon writes it`,
  };
}

function dueSentence(plan: ObjectPlan, decision: Decision, what: string): string {
  const clusters = new Set(plan.changes.map(({ cluster }) => cluster));
  if (decision.kind === 'create')
    return `${what} is not on the host yet: ${hostOf(plan)} is about to be created`;
  if (decision.kind === 'rewrite')
    return `${what}: ${hostOf(plan)} is about to be rewritten: ${decision.reason}`;
  if (decision.kind === 'takeOver')
    return `${what}: ${hostOf(plan)}, which the host's endpoints controller created, is about to be taken over`;
  const { host } = plan.seen;
  const update = plan.changes.find((change) => change.cluster === 'host')?.after;
  if (host !== undefined && update !== undefined && plan.kind.needsRecreation(update, host))
    return `${what}: ${hostOf(plan)} is about to be deleted and created again: an immutable field has changed`;
  if (clusters.has('virtual'))
    return `${what} is not in sync: a change on the host is about to be copied to the virtual cluster`;
  return `${what} is not in sync: ${hostOf(plan)} is about to be updated`;
}

function reasonOf(decision: WriteDecision): string {
  switch (decision.kind) {
    case 'create':
      return 'no host copy';
    case 'update':
      return 'differs';
    case 'rewrite':
      return decision.reason;
    case 'takeOver':
      return 'taken over';
  }
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

/** Notes of Events are sentences; inside another sentence they have no full stop and no capital. */
function sentenceOf(note: string): string {
  const [first = ''] = note.split('\n');
  const text = first.replace(/\.$/u, '');
  return /^[A-Z][a-z]/u.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

function ignoredSentence(
  { seen, key, kind }: ObjectPlan,
  reason: IgnoreReason,
  what: string,
  syncsServices: boolean,
): string {
  const copy = seen.host === undefined ? '' : `; the host copy ${hostKey(seen.host.metadata)} stays as it is`;
  const service = `Service "${kind.serviceKey(key, seen.virtual) ?? key}"`;
  const copies = kind.resource.kind.replace(/s?$/u, 's');
  switch (reason) {
    case 'never synced':
      return `${what} is never synced: it describes the API server itself, and the host has its own`;
    case 'controlled by another': {
      const where = isOptedOut(seen.virtual) ? 'the virtual object' : 'the host copy';
      return `${what} is not synced: ${CONTROLLED_BY} on ${where} assigns it to another controller${copy}; remove it to resume syncing`;
    }
    case 'skip-backsync':
      return `${what} no longer exists, and ${SKIP_BACKSYNC} on the host copy keeps that copy`;
    case 'gone on both sides':
      return `${what} exists neither in the virtual cluster nor on the host`;
    case 'service has a selector':
      return `${what} is not copied: ${selectorReason({ seen, kind }, service, syncsServices)}`;
    case 'no service':
      return `${what} is not copied: there is no ${service}, and endpointSyncer.requireService is true`;
    case 'no service name':
      return `${what} is not copied: it has no label kubernetes.io/service-name, so it belongs to no Service`;
    case 'made by the EndpointSlice controller':
      return syncsServices
        ? `${what} is not copied: the virtual cluster's EndpointSlice controller created it for the Pods of ${service}, and no Pods are synced`
        : `${what} is not copied: the virtual cluster's EndpointSlice controller created it, and the host's own controller creates the host ${copies}`;
    case 'mirrored from Endpoints':
      return `${what} is not copied: it mirrors the Endpoints of ${service}, which are synced, and the host mirrors their copy`;
    case 'selects Pods':
      return `${what} is not copied: it has a selector, and no Pods are synced that it could select on the host`;
    case 'no synced endpoints':
      return `${what} is not copied: it has no Endpoints or EndpointSlices that are synced, and is no ExternalName Service`;
    case 'namespace is excluded':
      return `${what} is not copied: endpointSyncer.namespaces excludes its namespace`;
    case 'not selected':
      return `${what} is not copied: its labels do not match endpointSyncer.selector`;
    default:
      return reason satisfies never;
  }
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

function hostKey({ namespace = '', name }: { namespace?: string; name: string }): string {
  return `"${keyOf({ namespace, name })}"`;
}

// State, reason and sentence of a referenced object, and of an object that is not synced. Pure.

export function statusOfImport(
  { seen, isReferenced, decision, changes }: ReferencePlan,
  { fleetNote, runsOther, objection }: Pick<StatusFacts, 'fleetNote' | 'runsOther' | 'objection'>,
): SyncStatus {
  const { kind, virtual } = seen;
  const what = `${kind.virtual.kind} "${keyOf(virtual)}"`;
  const copy = seen.ours.find((one) => !isOptedOut(one));
  if (!isReferenced && copy !== undefined && seen.object === undefined && objection !== undefined)
    return held(what, hostKey(copy.metadata), objection);
  if (decision.problem !== undefined) {
    const { reason, note } = decision.problem;
    return { state: 'refused', reason, sentence: `${what} is not imported: ${sentenceOf(note)}` };
  }
  if (changes.length > 0 && fleetNote !== undefined) return ofFleet(what, fleetNote);
  if (changes.length > 0 && runsOther) return otherConfiguration(what);
  if (changes.length > 0) {
    const reason = changes.map((change) => change.reason).join(', ');
    const verb = changes.every(({ after }) => after === undefined) ? 'deleted' : 'written';
    return {
      state: 'pending',
      reason,
      sentence: `${what} is not in sync: its copy is about to be ${verb}: ${reason}`,
    };
  }
  if (!isReferenced) return unreferenced(what, seen);
  switch (decision.action) {
    case 'to-host':
      return {
        state: 'synced',
        reason: '',
        sentence: `${what} is imported into the host as "${seen.target === undefined ? '' : keyOf(seen.target)}"`,
      };
    case 'to-virtual': {
      const { namespace = '', name = '' } = seen.source?.metadata ?? {};
      return {
        state: 'synced',
        reason: '',
        sentence: `${what} is imported from the host, where it is "${keyOf({ namespace, name })}"`,
      };
    }
    case 'paused':
      return paused(what);
    case 'none':
      return notImported(what, { seen, decision });
  }
}

/** An import that is not deleted although no synced object references it: what an object references that cannot be translated is unknown. */
function unreferenced(what: string, { ours, imported }: ReferencePlan['seen']): SyncStatus {
  const [kept = imported] = ours;
  if (kept === undefined)
    return {
      state: 'skipped',
      reason: 'not referenced',
      sentence: `${what} is not imported: no synced object references it`,
    };
  if (isOptedOut(kept)) return paused(what);
  const where = kept === imported ? 'from the host' : `into the host as ${hostKey(kept.metadata)}`;
  return {
    state: 'synced',
    reason: 'kept',
    sentence: `${what} is imported ${where} and is kept: an object fails whose copy references it`,
  };
}

function paused(what: string): SyncStatus {
  return {
    state: 'skipped',
    reason: 'controlled by another',
    sentence: `${what} is not imported: ${CONTROLLED_BY} assigns it to another controller`,
  };
}

function notImported(what: string, { seen, decision }: Pick<ReferencePlan, 'seen' | 'decision'>): SyncStatus {
  const name = decision.name === undefined ? '' : `"${keyOf(decision.name)}"`;
  if (seen.othersCopy !== undefined) {
    return {
      state: 'skipped',
      reason: 'copied by another syncer',
      sentence: `${what} is on the host as ${name}: another syncer manages that copy`,
    };
  }
  if (!seen.kind.isImportable) {
    const reason = 'never imported';
    return {
      state: 'skipped',
      reason,
      sentence: `${what} is not imported: objects of this kind are copied by another syncer; references use the name ${name}`,
    };
  }
  const key = 'syncing of this kind is not enabled under sync.toHost';
  return {
    state: 'skipped',
    reason: 'not configured',
    sentence: `${what} is not imported: ${key}; references use the name ${name}`,
  };
}

/** The state of an existing object that is neither synced nor referenced. */
export function statusOfOther(
  { resource, object, cluster, virtual }: Extract<Target, { kind: 'other' }>,
  config: Config,
): SyncStatus {
  const { namespace = '', name } = object.metadata;
  const what = `${resource.kind} "${keyOf({ namespace, name })}"`;
  const setting = disablingSetting(config, resource);
  if (setting !== undefined)
    return { state: 'skipped', reason: 'disabled', sentence: `${what} is not synced: ${setting}` };
  if (cluster === 'virtual') {
    return {
      state: 'skipped',
      reason: 'not referenced',
      sentence: `${what} is not imported: no synced object references it`,
    };
  }
  const blocks = virtual === undefined ? '' : `; "${keyOf(virtual)}" cannot be synced while it has this name`;
  return {
    state: 'skipped',
    reason: 'NotManaged',
    sentence: `host ${what} is not a copy of an object of this virtual cluster: another client created it, so it is left untouched${blocks}`,
  };
}
