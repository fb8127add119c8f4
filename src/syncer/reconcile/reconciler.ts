/** Reconciles one key: observe both sides, decide, act. Idempotent. */

import { invariant, Postponed } from '../../base/errors.ts';
import { backoffDelayMs } from '../../base/retry.ts';
import {
  isTerminating,
  keyOf,
  objectKey,
  parseKey,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
} from '../../kube/object.ts';
import { hasSelector } from '../kinds/kind.ts';
import { recordOf } from '../translate/last-synced.ts';
import { ownershipOf } from '../translate/bookkeeping.ts';
import { isStandIn } from '../translate/stand-in.ts';
import {
  afterConflict,
  isVirtualBehind,
  learnService,
  readHostService,
  readLeftOut,
  type LeftOut,
} from './cache-refresh.ts';
import { STALE, UNCHANGED } from './controller.ts';
import { isRefused, type PlacedPair, type RefusedCopy } from './copy.ts';
import {
  deleteCopy,
  deleteStray,
  deleteToRecreate,
  deleteVirtual,
  dependentsFirst,
  endStandIn,
  forget,
  HOST_DELETED,
} from './copy-deletion.ts';
import {
  claimOf,
  decide,
  isCopyOf,
  isKeptForVcluster,
  isOptedOut,
  isOverOwnCopy,
  isRecreated,
  SYNCED_BY_VCLUSTER,
  type Claim,
  type Decision,
  type Observation,
} from './decide.ts';
import { deletionsOf, hasLostCopy, recreationWaitMs } from './guards.ts';
import { BY_HOST_KEY, BY_VIRTUAL_KEY, isOfSameNamespace, type KindSync } from './kind-sync.ts';
import { again, later, type ReconcileResult } from './left.ts';
import {
  keepsDeletingNotice,
  leftToVclusterNotice,
  notAllowedNotice,
  syncedNotice,
  takenOverNotice,
  warning,
} from './notices.ts';
import { finishCopy, updatePair } from './pair-update.ts';
import { awaitEnd } from './termination.ts';
import { isByUser } from './user-deletion.ts';

/** Interval between reads of a host Service that prevents a take-over: doubles up to the second. */
const TAKE_OVER_BASE_MS = 1000;
const TAKE_OVER_MAX_MS = 5 * 60_000;
/** Decisions after which there is a copy, which its stand-in waits for. */
const COPYING: ReadonlySet<Decision['kind']> = new Set(['create', 'update', 'rewrite', 'takeOver']);

export async function reconcile(sync: KindSync, key: ObjectKey): Promise<ReconcileResult> {
  let isPostponed = false;
  let result: ReconcileResult | undefined;
  try {
    return (result = await attempt(sync, key));
  } catch (error) {
    isPostponed = error instanceof Postponed;
    throw error;
  } finally {
    sync.evaluations?.reconciled(key, isPostponed);
    if (result !== STALE && !isPostponed) sync.references.markReconciled(key);
  }
}

async function attempt(sync: KindSync, key: ObjectKey): Promise<ReconcileResult> {
  sync.states.awaitService(key, undefined);
  sync.states.find(key)?.begin();
  const seen = await observeWithLeftOut(sync, key);
  const decision = decide(seen, sync.decide);
  // First, because an object of another kind can change the decision for an unchanged pair, and a former leader may have written to another place.
  const isUpdate = decision.kind === 'update' && seen.strays.length === 0;
  if (isUpdate && isUnchanged(sync, seen)) return UNCHANGED;
  const { kind, environment } = sync;
  try {
    const standIns = COPYING.has(decision.kind)
      ? seen.strays.filter((stray) => isStandIn(stray, seen.target))
      : [];
    for (const stray of seen.strays) if (!standIns.includes(stray)) await deleteStray(sync, stray);
    const result = await act(sync, decision, seen);
    if (isRefused(result)) {
      environment.listener?.decided(kind, seen, result.refusal, {});
      return await refuseCopy(sync, seen, decision, result);
    }
    for (const standIn of standIns) await endStandIn(sync, standIn, seen.target);
    environment.listener?.decided(kind, seen, decision, { result });
    return result.outcome === 'created' && isJoined(seen, observe(sync, key))
      ? { ...result, left: again('the host has another Service than before') }
      : result;
  } catch (error) {
    if (error instanceof Postponed) throw error;
    environment.listener?.decided(kind, seen, decision, { error });
    await afterConflict(sync, error, seen);
    throw error;
  }
}

/** A host Service that was created during the write found no copy that belongs to it. */
function isJoined(before: Observation, now: Observation): boolean {
  return now.hasForeignService || now.isUnserved !== before.isUnserved;
}

async function observeWithLeftOut(sync: KindSync, key: ObjectKey): Promise<Observation> {
  const seen = observe(sync, key);
  const deletions = deletionsOf(sync.states.find(key)?.deletions, sync.nowMs());
  const leftOut = await readLeftOut(sync, seen, deletions > 0);
  if (leftOut === undefined) return seen;
  // The copy was changed, not deleted.
  if (leftOut.host !== undefined) sync.states.of(key).deletions = undefined;
  return observe(sync, key, leftOut);
}

function observe(observed: KindSync, key: ObjectKey, leftOut: LeftOut = {}): Observation {
  const { virtual, services, host, names, states, foreignService, kind, environment } = observed;
  const object = virtual.get(key) ?? leftOut.virtual;
  const serviceKey = kind.serviceKey(key, object);
  const target = names.toHost(parseKey(key));
  const hostKey = target === undefined ? undefined : keyOf(target);
  const hostObject = hostKey === undefined ? undefined : (host.get(hostKey) ?? leftOut.host);
  const foreign = hostObject && foreignService(kind.hostService(hostObject), object);
  return {
    key,
    virtual: object,
    service: serviceKey === undefined ? undefined : services.get(serviceKey),
    target,
    unmapped: object && kind.unmappedNamespace?.(object, names),
    host: hostObject,
    ownership: hostObject && ownershipOf(hostObject, kind.resource, names, parseKey(key)),
    strays: isOptedOut(object) ? [] : straysOf(key, hostKey, observed),
    claims: hostKey === undefined ? [] : claimsOn(hostKey, observed),
    hasForeignService: foreign !== undefined,
    isMoved: isOfSameNamespace(environment.hostServices.get(foreign ?? ''), object, names),
    isUnserved:
      kind.isSparedWithMark && hostKey !== undefined && environment.hostServices.get(hostKey) === undefined,
    wasCopied: states.find(key)?.isCopied === true,
    isKnownCopy: hostObject !== undefined && states.find(key)?.isKnownCopy(hostObject) === true,
  };
}

/** Copies of this key that were written under an earlier configuration. The sync record proves that this program created them. */
function straysOf(
  key: ObjectKey,
  hostKey: ObjectKey | undefined,
  { host, names, kind }: KindSync,
): readonly KubeObject[] {
  const copies = host.byIndex(BY_VIRTUAL_KEY, key);
  if (copies.size === 0 || (copies.size === 1 && hostKey !== undefined && copies.has(hostKey))) return [];
  return [...copies].flatMap((copyKey) => {
    const copy = copyKey === hostKey ? undefined : host.get(copyKey);
    if (copy === undefined || isTerminating(copy) || recordOf(copy) === undefined || isOptedOut(copy))
      return [];
    return ownershipOf(copy, kind.resource, names).kind === 'ours' ? [copy] : [];
  });
}

/** A single claim needs no comparison and is left out. */
function claimsOn(hostKey: ObjectKey, options: KindSync): readonly Claim[] {
  const { virtual, services, decide, kind } = options;
  const keys = virtual.byIndex(BY_HOST_KEY, hostKey);
  if (keys.size < 2) return [];
  return [...keys].flatMap((key) => {
    const object = virtual.get(key);
    if (object === undefined) return [];
    const serviceKey = kind.serviceKey(key, object);
    const service = serviceKey === undefined ? undefined : services.get(serviceKey);
    const isForeign = hostServicesOf(object, parseKey(hostKey), options).some(
      (hostService) => options.foreignService(hostService, object) !== undefined,
    );
    return [claimOf(object, service, { ...decide, isForeign })];
  });
}

/** That of the Service of `object`, and, if another syncer has copied the translated name of the Service back, the one of that name. */
function hostServicesOf(
  object: KubeObject,
  target: NamespacedName,
  { kind, names }: KindSync,
): readonly ObjectKey[] {
  const serviceKey = kind.serviceKey(objectKey(object), object);
  const translated = serviceKey === undefined ? undefined : names.toHost(parseKey(serviceKey));
  const kept = kind.hostService({ ...object, metadata: { ...object.metadata, ...target } });
  return [...(translated === undefined ? [] : [keyOf(translated)]), ...(kept === undefined ? [] : [kept])];
}

type Acted = Promise<ReconcileResult | RefusedCopy>;

async function act(sync: KindSync, decision: Decision, seen: Observation): Acted {
  switch (decision.kind) {
    case 'ignore':
      return ignore(sync, seen, decision.reason);
    case 'refuse':
      return refuse(sync, seen, decision);
    case 'delete':
      return deleteCopy(sync, seen, decision.reason);
    case 'create':
      return createCopy(sync, seen);
    case 'update':
      return updatePair(sync, seen);
    case 'rewrite':
      return rewriteCopy(sync, seen, decision.reason);
    case 'takeOver':
      return takeOver(sync, seen);
    case 'terminating':
      return awaitEnd(sync, seen, decision.next);
  }
}

function isUnchanged(sync: KindSync, seen: Observation): boolean {
  if (sync.references.isStale(seen.key)) return false;
  return sync.states.find(seen.key)?.isUnchanged(seen) === true;
}

function ignore(sync: KindSync, seen: Observation, reason: string): ReconcileResult {
  if (seen.virtual === undefined) forget(sync, seen.key);
  else reportIgnored(sync, seen, reason);
  // A copy that stays as it is goes on naming objects.
  if (!isCopyOf(seen)) sync.references.clearReferences(seen.key);
  return { outcome: 'ignored', reason };
}

function reportIgnored(sync: KindSync, seen: Observation, reason: string): void {
  const state = sync.states.of(seen.key);
  const ignored = `${seen.virtual?.metadata.uid} ${reason}`;
  if (state.reportedIgnored === ignored) return;
  state.reportedIgnored = ignored;
  const notice =
    reason === SYNCED_BY_VCLUSTER ? leftToVclusterNotice(seen.host) : sync.kind.noticeOfGate(reason);
  if (notice !== undefined) sync.report(seen.virtual, notice);
}

function refuse(
  sync: KindSync,
  seen: Observation,
  { reason, note }: Decision & { kind: 'refuse' },
  // For another reason, what stays is another object's.
  isCopyKept = reason === 'NamespaceNotMapped' && isCopyOf(seen),
): ReconcileResult {
  sync.report(seen.virtual, warning(reason, note));
  if (!isCopyKept) sync.references.clearReferences(seen.key);
  return { outcome: 'refused', reason };
}

/** A copy that is there already is deleted, unless vCluster needs it; then the key is reconciled again. */
async function refuseCopy(
  sync: KindSync,
  seen: Observation,
  decision: Decision,
  { refusal, service }: RefusedCopy,
): Promise<ReconcileResult> {
  sync.states.awaitService(seen.key, service);
  for (const stray of seen.strays) if (isStandIn(stray, seen.target)) await deleteStray(sync, stray);
  if (!isOverOwnCopy(decision)) return refuse(sync, seen, refusal);
  return isKeptForVcluster(seen, sync.decide)
    ? refuse(sync, seen, refusal, true)
    : deleteCopy(sync, seen, refusal.reason);
}

async function createCopy(sync: KindSync, seen: Observation): Acted {
  const { virtual, key } = seen;
  invariant(virtual, 'an object that is copied exists');
  const state = sync.states.of(key);
  const isLost = hasLostCopy(state.deletions, sync.nowMs(), virtual.metadata.uid ?? '');
  if (sync.environment.config.onHostDelete === 'deleteVirtual' && isLost && !isTerminating(virtual)) {
    let isToFollow = false;
    try {
      isToFollow = await isCopyDeletedByUser(sync, seen, virtual);
    } finally {
      // Asked once: later, the namespace may have ended, and be there again.
      if (!isToFollow) state.deletions = state.deletions && { ...state.deletions, virtualUid: undefined };
    }
    if (isToFollow) return deleteVirtual(sync, seen, virtual);
  }
  const waitMs = recreationWaitMs(state.deletions, sync.nowMs());
  if (waitMs > 0) return waitForRecreation(sync, seen, waitMs);
  if (deletionsOf(state.deletions, sync.nowMs()) > 0) await sync.environment.owner.refresh();
  if (await learnService(sync, seen, virtual)) return STALE;
  if (seen.target !== undefined && !sync.areDependentsRead(seen.target))
    return dependentsFirst('no host copy');
  const copy = await sync.forge.fresh(placed(sync, seen), state.lastSync(virtual, sync.nowMs()));
  if (isRefused(copy)) return copy;
  for (const reference of copy.notAllowed) sync.report(seen.virtual, notAllowedNotice(reference));
  const stored = await sync.writers.host.create(copy.host, 'no host copy');
  if (stored !== undefined && seen.target !== undefined) sync.hostChanged(seen.target);
  sync.recordReferences(key, copy.references);
  sync.report(seen.virtual, syncedNotice(copy.host));
  const written = { sent: copy.host, stored, kept: copy.host };
  return finishCopy(sync, { ...seen, virtual }, copy, written, { outcome: 'created' });
}

async function isCopyDeletedByUser(
  sync: KindSync,
  { key, target }: Observation,
  virtual: KubeObject,
): Promise<boolean> {
  const streak = sync.states.find(key)?.deletions;
  if (target === undefined || streak === undefined) return false;
  return isByUser(sync, { target, services: hostServicesOf(virtual, target, sync) }, streak);
}

/** Reports once per streak that another client keeps deleting the host copy. */
function waitForRecreation(sync: KindSync, seen: Observation, waitMs: number): ReconcileResult {
  if (sync.states.find(seen.key)?.deletions?.count === 2)
    sync.report(seen.virtual, keepsDeletingNotice(sync.kind.deletionHint));
  return { outcome: 'pending', reason: HOST_DELETED, left: later(HOST_DELETED, waitMs) };
}

async function rewriteCopy(sync: KindSync, seen: Observation, reason: string): Acted {
  const { virtual, host } = seen;
  invariant(virtual && host?.metadata.resourceVersion, 'both objects exist when a copy is rewritten');
  if (await isVirtualBehind(sync, virtual, host, true)) return STALE;
  const lastSync = sync.states.of(seen.key).lastSync(virtual, sync.nowMs());
  const copy = await sync.forge.fresh(placed(sync, seen), lastSync);
  if (isRefused(copy)) return copy;
  for (const reference of copy.notAllowed) sync.report(seen.virtual, notAllowedNotice(reference));
  if (isRecreated(sync.decide, copy.host, host, virtual))
    return deleteToRecreate(sync, seen, host, copy.host);
  // Without its finalizers, an object that is being deleted is removed before another client is done with it.
  const { resourceVersion, uid = '', finalizers } = host.metadata;
  const kept = finalizers === undefined ? {} : { finalizers };
  const metadata = { ...copy.host.metadata, ...kept, resourceVersion, uid };
  const sent = { ...copy.host, metadata };
  const stored = await sync.writers.host.update(sent, reason);
  sync.recordReferences(seen.key, copy.references);
  const result = { outcome: 'rewritten', reason } as const;
  return finishCopy(sync, { ...seen, virtual }, copy, { sent, stored, kept: host }, result);
}

/** While the host Service has a selector, the host's endpoints controller still writes the object. */
async function takeOver(sync: KindSync, seen: Observation): Acted {
  const { key, target, host } = seen;
  invariant(target && host, 'an object that is taken over exists on the host');
  const state = sync.states.of(key);
  const service = await readHostService(sync, target);
  if (service !== undefined && hasSelector(service)) {
    sync.references.clearReferences(key);
    const waitMs = backoffDelayMs(state.takeOverReads, TAKE_OVER_BASE_MS, TAKE_OVER_MAX_MS);
    state.takeOverReads += 1;
    const reason = 'host Service has a selector';
    return { outcome: 'pending', reason, left: later(reason, waitMs) };
  }
  state.takeOverReads = 0;
  const result = await rewriteCopy(sync, seen, 'taken over');
  if (result !== STALE && !isRefused(result)) sync.report(seen.virtual, takenOverNotice(host));
  return result;
}

function placed(sync: KindSync, { virtual, target, host, isUnserved }: Observation): PlacedPair {
  invariant(virtual && target, 'an object that is copied exists and has a target');
  return { virtual, target, host, isUnserved, budget: sync.newBudget() };
}
