/** Deletes copies, and virtual objects whose copy a user has deleted. */

import { invariant } from '../../base/errors.ts';
import {
  isTerminating,
  keyOf,
  parseKey,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
} from '../../kube/object.ts';
import { isAlreadyExists } from '../../kube/status-error.ts';
import { vclusterRemedy } from '../kinds/synced-kinds.ts';
import { namedVirtual, FIELD_MANAGER } from '../translate/bookkeeping.ts';
import { standInFor } from '../translate/stand-in.ts';
import { isMissedByCache, readVirtual } from './cache-refresh.ts';
import { STALE } from './controller.ts';
import { SYNCED_BY_VCLUSTER, type Observation } from './decide.ts';
import { OBJECTION_MS } from './guards.ts';
import type { KindSync } from './kind-sync.ts';
import { again, later, type Again, type ReconcileResult, type Wait } from './left.ts';
import { deletedNotice, leftToVclusterNotice, recreatedNotice } from './notices.ts';

export const HOST_DELETED = 'host copy was deleted';

/** vCluster deletes the copies of objects that are gone, and those of objects that were created again. */
export const LEFT_TO_VCLUSTER_MS = 10_000;

/** A finalizer delays the deletion; its removal causes an event. A second deletion would remove the copy from the cache, and the event be lost. */
const WAITING_FOR_FINALIZERS: Wait = { outcome: 'terminating', reason: 'Terminating' };

export async function deleteCopy(
  sync: KindSync,
  seen: Observation,
  reason: string,
): Promise<ReconcileResult> {
  const { host, target } = seen;
  invariant(host?.metadata.uid && target, 'a host copy that is deleted exists in the cache');
  if (isTerminating(host)) return WAITING_FOR_FINALIZERS;
  const leftMs = seen.virtual === undefined ? vclusterWaitMs(sync, seen.key, host) : 0;
  if (leftMs > 0)
    return { outcome: 'pending', reason: SYNCED_BY_VCLUSTER, left: later(SYNCED_BY_VCLUSTER, leftMs) };
  if (seen.virtual === undefined && (await isMissedByCache(sync, seen.key, host))) return STALE;
  if (seen.virtual === undefined && (await sync.environment.objection()) !== undefined)
    return { outcome: 'again', left: later('another virtual cluster', OBJECTION_MS) };
  const waitMs = fightWaitMs(sync, seen, host);
  if (waitMs > 0)
    return {
      outcome: 'contested',
      reason: 'Contested',
      left: later('another syncer creates it again', waitMs),
    };
  if (!sync.areDependentsRead(target)) return dependentsFirst(reason);
  // First: if that fails, the copy that says what the status is from is still there.
  await clearStatus(sync, seen, host);
  const outcome = await sync.writers.host.delete(target, host.metadata.uid, reason);
  // Else it may get another copy.
  if (seen.virtual === undefined) sync.states.forget(seen.key);
  else sync.states.release(seen.key);
  sync.references.clearReferences(seen.key);
  if (outcome === 'deleted') sync.released(target);
  return { outcome: 'deleted', reason };
}

/** What vCluster has not seen deleted by itself it takes for deleted by another client, if the object is created again within the next minute. */
function vclusterWaitMs(sync: KindSync, key: ObjectKey, { metadata: { uid } }: KubeObject): number {
  if (!sync.decide.isSyncedByVcluster) return 0;
  const state = sync.states.of(key);
  const known = state.leftToVcluster?.uid === uid ? state.leftToVcluster : undefined;
  const { sinceMs } = (state.leftToVcluster = known ?? { uid, sinceMs: sync.nowMs() });
  return Math.max(0, sinceMs + LEFT_TO_VCLUSTER_MS - sync.nowMs());
}

export async function clearStatus(sync: KindSync, { virtual }: Observation, host: KubeObject): Promise<void> {
  const { kind } = sync;
  if (virtual === undefined || isTerminating(virtual) || kind.statusPatch(virtual, host) !== undefined)
    return;
  const patch = kind.statusPatch(virtual, undefined);
  if (patch !== undefined) await sync.patchStatus(virtual, patch, 'the host copy is deleted');
}

/** Another syncer has created the copy if this program never wrote it. A record may have been copied from elsewhere, as the mirroring controllers do. */
function fightWaitMs(sync: KindSync, seen: Observation, copy: KubeObject): number {
  const { kind, host } = sync;
  const { metadata } = copy;
  if (metadata.managedFields?.some(({ manager }) => manager === FIELD_MANAGER) === true) return 0;
  // The event of a new virtual object may come after that of its copy, and its name is another one each time.
  const group = kind.serviceKey(seen.key, copy) ?? seen.key;
  const { waitMs, isReportable } = sync.foughtDeletions.verdict(group, metadata.resourceVersion);
  // Without the virtual object, the Event would be lost.
  if (isReportable && seen.virtual !== undefined) {
    sync.report(seen.virtual, recreatedNotice(copy, waitMs, vclusterRemedy(sync.environment.config)));
    sync.foughtDeletions.noteReported(group);
  }
  if (waitMs === 0) sync.foughtDeletions.note(group, metadata.resourceVersion, host.resourceVersion);
  return waitMs;
}

export async function deleteStray(
  sync: KindSync,
  { metadata: { namespace = '', name, uid = '' } }: KubeObject,
): Promise<void> {
  await sync.writers.host.delete({ namespace, name }, uid, 'belongs elsewhere now');
  sync.released({ namespace, name });
}

/** `wanted`: in place of `host`, which cannot become it. */
export async function deleteToRecreate(
  sync: KindSync,
  { key, target, virtual }: Observation,
  host: KubeObject,
  wanted: KubeObject,
): Promise<ReconcileResult> {
  const reason = 'it cannot be updated in place';
  invariant(target, 'a copy that is updated has a target');
  if (isTerminating(host)) return WAITING_FOR_FINALIZERS;
  if (sync.decide.isSyncedByVcluster) return leaveToVcluster(sync, virtual, host);
  if (!sync.areDependentsRead(target)) return dependentsFirst(reason);
  if (sync.kind.hasStandIn(wanted, host)) await createStandIn(sync, key, wanted);
  const outcome = await sync.writers.host.delete(target, host.metadata.uid ?? '', reason);
  const state = sync.states.of(key);
  state.synced = undefined;
  state.isCopied = true;
  // A dry run leaves the copy in place, so a requeue would delete it again in an endless loop.
  return outcome === 'dryRun'
    ? { outcome: 'deleted', reason }
    : { outcome: 'deleted', reason, left: again(reason) };
}

function leaveToVcluster(sync: KindSync, virtual: KubeObject | undefined, host: KubeObject): ReconcileResult {
  sync.report(virtual, leftToVclusterNotice(host));
  return { outcome: 'contested', reason: 'Contested', left: later(SYNCED_BY_VCLUSTER, OBJECTION_MS) };
}

async function createStandIn(sync: KindSync, key: ObjectKey, wanted: KubeObject): Promise<void> {
  const standIn = standInFor(wanted);
  // In a mapped namespace, it is at the place of the object of its own name: it would be no stray of this key, and stay.
  const named = namedVirtual(standIn, sync.kind.resource, sync.names);
  if (named === undefined || keyOf(named) !== key) return;
  try {
    await sync.writers.host.create(standIn, 'stands in for the copy');
  } catch (error) {
    // Of a daemon that ended.
    if (!isAlreadyExists(error)) throw error;
  }
}

/** Deletes a stand-in once the copy is there. */
export async function endStandIn(
  sync: KindSync,
  { metadata: { namespace = '', name, uid = '' } }: KubeObject,
  target: NamespacedName | undefined,
): Promise<void> {
  const isThere = target !== undefined && sync.host.get(keyOf(target)) !== undefined;
  if (isThere) await sync.writers.host.delete({ namespace, name }, uid, 'the copy is there again');
}

export async function deleteVirtual(
  sync: KindSync,
  { key }: Observation,
  virtual: KubeObject,
): Promise<ReconcileResult> {
  // The cache may be behind what the tenant has said of it since, such as that another controller has it.
  const current = await readVirtual(sync, virtual);
  if (current?.metadata.resourceVersion !== virtual.metadata.resourceVersion) return STALE;
  const outcome = await sync.writers.virtual.delete(parseKey(key), virtual.metadata.uid ?? '', HOST_DELETED);
  if (outcome === 'deleted') {
    const { kind, environment } = sync;
    environment.logger.warn(
      { kind: kind.resource.kind, key, setting: 'endpointSyncer.onHostDelete: deleteVirtual' },
      'virtual object deleted, because its copy on the host was deleted',
    );
    sync.report(virtual, deletedNotice());
  }
  forget(sync, key);
  return { outcome: 'deleted', reason: HOST_DELETED };
}

export function forget(sync: KindSync, key: ObjectKey): void {
  sync.states.forget(key);
  sync.references.clearReferences(key);
}

/** An edit of what is deleted along with the copy would be lost. */
export function dependentsFirst(reason: string): Again {
  return { outcome: 'again', left: later(reason, 100) };
}
