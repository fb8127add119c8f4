/** Reconciles one key: observe both sides, decide, act. Idempotent. */

import { invariant, type PatchError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { parseKey, type KubeObject, type ObjectKey, type NamespacedName } from '../../kube/object.ts';
import { isConflict } from '../../kube/status-error.ts';
import { hasSelector, type SyncedKind } from '../kinds/kind.ts';
import { CacheRefresh, type CacheRefreshOptions } from './cache-refresh.ts';
import { RefusedCopy, virtualPatch, type MergedCopy, type PlacedPair, type CopyForge } from './copy.ts';
import { decide, isOverOwnCopy, type Decision, type Observation, type DecideOptions } from './decide.ts';
import {
  AUTOMATIC_OVERWRITES_MAX,
  correctionWaitMs,
  deletionsOf,
  hasLostCopy,
  heldKeys,
  noteChange,
  noteDrift,
  noteKeyChanges,
  OVERWRITES_MAX,
  recreationWaitMs,
  type DriftVerdict,
  type FoughtDeletions,
  type KeyVerdict,
  OBJECTION_MS,
} from './guards.ts';
import {
  alteredNotice,
  contestedKeyNotice,
  contestedNotice,
  contestedStatusNotice,
  echoNotice,
  keepsDeletingNotice,
  notAllowedNotice,
  recreatedNotice,
  repairedNotice,
  syncedNotice,
  takenOverNotice,
  warning,
} from './notices.ts';
import { changedPaths } from './object-diff.ts';
import { cachedAs, type ObjectState, type ObjectStates } from './object-state.ts';
import { STALE, UNCHANGED, type ReconcileResult } from './controller.ts';
import { needsWrite } from '../translate/content.ts';
import { FIELD_MANAGER, type Writer } from './writer.ts';
import { LAST_SYNCED } from '../translate/bookkeeping.ts';
import { recordOf } from '../translate/last-synced.ts';
import { backoffDelayMs } from '../../base/retry.ts';
import type { Clock } from '../../base/clock.ts';
import type { EventRecorder, RecordedEvent } from '../../kube/types.ts';
import type { ObjectReference } from '../patch/types.ts';
import type { Observe } from './observer.ts';
import type { ReferenceRecords, SyncListener } from './environment.ts';

export interface ReconcilerOptions extends CacheRefreshOptions {
  readonly observe: Observe;
  readonly decide: DecideOptions;
  readonly onHostDelete: 'recreate' | 'deleteVirtual';
  readonly forge: CopyForge;
  readonly host: CacheRefreshOptions['host'] & { readonly writer: Writer };
  readonly virtual: CacheRefreshOptions['virtual'] & { readonly writer: Writer };
  /** An expression towards the host reads `context.hostObject`. */
  readonly readsHostObject: boolean;
  readonly foughtDeletions: FoughtDeletions;
  readonly recorder: EventRecorder;
  readonly references: ReferenceRecords;
  readonly clock: Clock;
  readonly listener: SyncListener | undefined;
  /** Called when this program has created a host object, on which objects of other kinds may depend. Our own writes cause no event. */
  readonly created: (target: NamespacedName) => void;
  /** Called when this program has freed a host name that other objects may wait for. Our own deletions cause no event. */
  readonly released: (target: NamespacedName) => void;
  /** Why the copies of objects that are gone must stay for now. */
  readonly objection: () => Promise<string | undefined>;
  /** With `deleteVirtual`: the virtual object is about to be deleted together with its Service, whose copy was deleted. */
  readonly isDeletedAlong: (key: ObjectKey, target: NamespacedName) => Promise<boolean>;
  /**
   * The copies that get traffic from the host Service of this name have no change on the host that is still to be read. They are deleted when it
   * is created for another virtual Service than theirs, and API servers delete Endpoints along with it.
   */
  readonly areDependentsRead: (target: NamespacedName) => boolean;
  /** Called when this program has changed a virtual object, on which objects of other kinds may depend. Our own writes cause no event. */
  readonly patched: (virtual: KubeObject) => void;
}

const HOST_DELETED = 'host copy was deleted';
const FROM_HOST = 'changed on the host';
const DELETION_CHECK_MS = 5000;
/** While the virtual object keeps what another syncer has copied back, for want of what was there before. */
const ECHO_RECHECK_MS = 1000;
/** Interval between reads of a host Service that prevents a take-over: doubles up to the second. */
const TAKE_OVER_BASE_MS = 1000;
const TAKE_OVER_MAX_MS = 5 * 60_000;

/** A finalizer delays the deletion; its removal causes an event. A second deletion would remove the copy from the cache, and the event be lost. */
const WAITING_FOR_FINALIZERS: ReconcileResult = {
  outcome: 'waiting',
  reason: 'host copy is being deleted',
  waitMs: DELETION_CHECK_MS,
};

function isBeingDeleted({ metadata }: KubeObject): boolean {
  return metadata['deletionTimestamp'] !== undefined;
}

/** An edit of what is deleted along with the copy would be lost. */
function dependentsFirst(reason: string): ReconcileResult {
  return { outcome: 'again', reason, waitMs: 100 };
}

/** Admission has removed the record of the sync. */
const RECORD_PATH = `metadata.annotations["${LAST_SYNCED}"]`;

/** An observation of a pair: both objects exist. */
type SeenPair = Observation & { readonly virtual: KubeObject; readonly host: KubeObject };

export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #states: ObjectStates;
  readonly #caches: CacheRefresh;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#states = options.states;
    this.#caches = new CacheRefresh(options);
  }

  async reconcile(key: ObjectKey): Promise<ReconcileResult> {
    let result: ReconcileResult | undefined;
    try {
      return (result = await this.#reconcile(key));
    } finally {
      if (result !== STALE) this.#options.references.markReconciled(key);
    }
  }

  async #reconcile(key: ObjectKey): Promise<ReconcileResult> {
    this.#states.awaitService(key, undefined);
    const seen = await this.#observe(key);
    const decision = decide(seen, this.#options.decide);
    // A change of an object of another kind can change the decision for an unchanged pair, so decide first. A former leader may still have
    // written a copy to another place.
    const isUpdate = decision.kind === 'update' && seen.strays.length === 0;
    if (isUpdate && this.#isUnchanged(seen)) return UNCHANGED;
    const { kind, listener } = this.#options;
    try {
      for (const stray of seen.strays) await this.#deleteStray(stray);
      const result = await this.#act(decision, seen);
      listener?.decided(kind, seen, decision);
      // A host Service that was created during the write found no copy that gets its traffic.
      const isJoined = result.outcome === 'created' && this.#options.observe(key).hasForeignService;
      return isJoined ? { ...result, waitMs: 0 } : result;
    } catch (error) {
      listener?.decided(kind, seen, error instanceof RefusedCopy ? error.refusal : decision, error);
      if (error instanceof RefusedCopy) return await this.#refuseCopy(seen, decision, error);
      await this.#caches.afterConflict(error, seen);
      throw error;
    }
  }

  async #observe(key: ObjectKey): Promise<Observation> {
    const { observe } = this.#options;
    const seen = observe(key);
    const deletions = deletionsOf(this.#states.find(key)?.deletions, this.#nowMs());
    const leftOut = await this.#caches.readLeftOut(seen, deletions > 0);
    if (leftOut === undefined) return seen;
    // The copy was changed, not deleted.
    if (leftOut.host !== undefined) this.#states.of(key).deletions = undefined;
    return observe(key, leftOut);
  }

  async #act(decision: Decision, seen: Observation): Promise<ReconcileResult> {
    switch (decision.kind) {
      case 'ignore':
        return this.#ignore(seen, decision.reason);
      case 'refuse':
        return this.#refuse(seen, decision);
      case 'delete':
        return this.#delete(seen, decision.reason);
      case 'create':
        return this.#create(seen);
      case 'update':
        return this.#update(seen);
      case 'rewrite':
        return this.#rewrite(seen, decision.reason);
      case 'takeOver':
        return this.#takeOver(seen);
    }
  }

  #ignore(seen: Observation, reason: string): ReconcileResult {
    if (seen.virtual === undefined) this.#forget(seen.key);
    else this.#reportIgnored(seen, reason);
    // The copy of an opted-out object stays, and therefore the objects that the copy references.
    const isCopyKept = reason === 'controlled by another' || reason === 'skip-backsync';
    if (!isCopyKept || seen.host === undefined) this.#options.references.clearReferences(seen.key);
    return { outcome: 'ignored', reason };
  }

  #refuse(seen: Observation, { reason, note }: Decision & { kind: 'refuse' }): ReconcileResult {
    this.#report(seen, warning(reason, note));
    this.#options.references.clearReferences(seen.key);
    return { outcome: 'refused', reason };
  }

  /** A copy that is there already is deleted; then the key is reconciled again. */
  async #refuseCopy(
    seen: Observation,
    decision: Decision,
    { refusal, service }: RefusedCopy,
  ): Promise<ReconcileResult> {
    this.#states.awaitService(seen.key, service);
    return isOverOwnCopy(decision) ? this.#delete(seen, refusal.reason) : this.#refuse(seen, refusal);
  }

  async #delete(seen: Observation, reason: string): Promise<ReconcileResult> {
    const { host, target } = seen;
    invariant(host?.metadata.uid && target, 'a host copy that is deleted exists in the cache');
    if (isBeingDeleted(host)) return WAITING_FOR_FINALIZERS;
    if (seen.virtual === undefined && (await this.#caches.isMissedByCache(seen.key, host))) return STALE;
    if (seen.virtual === undefined && (await this.#options.objection()) !== undefined)
      return { outcome: 'again', reason: 'another virtual cluster', waitMs: OBJECTION_MS };
    const waitMs = this.#fightWaitMs(seen, host);
    if (waitMs > 0) return { outcome: 'waiting', reason: 'Contested', waitMs };
    if (!this.#options.areDependentsRead(target)) return dependentsFirst(reason);
    const outcome = await this.#options.host.writer.delete(target, host.metadata.uid, reason);
    await this.#clearStatus(seen, host);
    this.#forget(seen.key);
    // A dry run leaves the copy in place, so the object would be deleted again in an endless loop.
    if (outcome === 'deleted') this.#options.released(target);
    return { outcome: 'deleted', reason };
  }

  /** Another syncer has created the copy if this program never wrote it. A record may have been copied from elsewhere, as the mirroring controllers do. */
  #fightWaitMs(seen: Observation, copy: KubeObject): number {
    const { foughtDeletions, kind, host } = this.#options;
    const { metadata } = copy;
    if (metadata.managedFields?.some(({ manager }) => manager === FIELD_MANAGER) === true) return 0;
    // The event of a new virtual object may come after that of its copy, and its name is another one each time.
    const group = kind.serviceKey(seen.key, copy) ?? seen.key;
    const { waitMs, isReportable } = foughtDeletions.verdict(group, metadata.resourceVersion);
    // Without the virtual object, the Event would be lost.
    if (isReportable && seen.virtual !== undefined) {
      this.#report(seen, recreatedNotice(copy, waitMs));
      foughtDeletions.noteReported(group);
    }
    if (waitMs === 0) foughtDeletions.note(group, metadata.resourceVersion, host.cache.resourceVersion);
    return waitMs;
  }

  /** Deletes a copy that was written under an earlier configuration. */
  async #deleteStray({ metadata: { namespace = '', name, uid = '' } }: KubeObject): Promise<void> {
    await this.#options.host.writer.delete({ namespace, name }, uid, 'belongs elsewhere now');
    this.#options.released({ namespace, name });
  }

  async #create(seen: Observation): Promise<ReconcileResult> {
    const { virtual, key } = seen;
    const { onHostDelete, forge, host, references } = this.#options;
    invariant(virtual, 'an object that is copied exists');
    const state = this.#states.of(key);
    const isLost = hasLostCopy(state.deletions, this.#nowMs(), virtual.metadata.uid ?? '');
    if (onHostDelete === 'deleteVirtual' && isLost) return this.#deleteVirtual(seen, virtual);
    const waitMs = recreationWaitMs(state.deletions, this.#nowMs());
    if (waitMs > 0) return this.#waitForRecreation(seen, waitMs);
    if (await this.#caches.learnService(seen, virtual)) return STALE;
    if (seen.target !== undefined && !this.#options.areDependentsRead(seen.target))
      return dependentsFirst('no host copy');
    const copy = await forge.fresh(placed(seen), state.lastSync(virtual));
    this.#reportNotAllowed(seen, copy.notAllowed);
    const stored = await host.writer.create(copy.host, 'no host copy');
    if (stored !== undefined && seen.target !== undefined) this.#options.created(seen.target);
    references.recordReferences(key, copy.references);
    this.#report(seen, syncedNotice(copy.host));
    await this.#rememberWithStatus(seen, virtual, stored ?? copy.host, copy.isEchoed);
    if (copy.isEchoed) return { outcome: 'created', waitMs: 0 };
    const result = this.#rerunAfterWrite(key, { outcome: 'created' });
    return this.#unlessFailed(key, this.#unlessAltered(key, result, copy.host, stored), copy.failure);
  }

  /** Everything but the path of a failed patch is written. The error is reported like one that stops the whole object. */
  #unlessFailed(key: ObjectKey, result: ReconcileResult, failure: PatchError | undefined): ReconcileResult {
    if (failure === undefined) return result;
    this.#states.of(key).isOpen = true;
    if (result.waitMs === undefined) throw failure.ofSyncedRest();
    return result;
  }

  /** What the host's admission has made of the copy is a change of the host like any other, so the key is reconciled again. */
  #unlessAltered(
    key: ObjectKey,
    result: ReconcileResult,
    sent: KubeObject,
    stored: KubeObject | undefined,
  ): ReconcileResult {
    if (stored === undefined || isStoredAs(this.#options.kind, stored, sent)) return result;
    const state = this.#states.of(key);
    state.alteredVersion = stored.metadata.resourceVersion;
    state.isOpen = true;
    return { ...result, waitMs: 0 };
  }

  /** Replaces the host object with one PUT, guarded by resourceVersion. */
  async #rewrite(seen: Observation, reason: string): Promise<ReconcileResult> {
    const { virtual, host } = seen;
    const { forge, kind, references } = this.#options;
    invariant(virtual && host?.metadata.resourceVersion, 'both objects exist when a copy is rewritten');
    if (await this.#caches.isVirtualBehind(virtual, host, true)) return STALE;
    const copy = await forge.fresh(placed(seen), this.#states.of(seen.key).lastSync(virtual));
    this.#reportNotAllowed(seen, copy.notAllowed);
    if (kind.needsRecreation(copy.host, host)) return this.#deleteToRecreate(seen, host);
    // Without its finalizers, an object that is being deleted is removed before another client is done with it.
    const { resourceVersion, uid = '', finalizers } = host.metadata;
    const kept = finalizers === undefined ? {} : { finalizers };
    const metadata = { ...copy.host.metadata, ...kept, resourceVersion, uid };
    const sent = { ...copy.host, metadata };
    const stored = await this.#options.host.writer.update(sent, reason);
    references.recordReferences(seen.key, copy.references);
    await this.#rememberWithStatus(seen, virtual, stored ?? host, copy.isEchoed);
    if (copy.isEchoed) return { outcome: 'rewritten', reason, waitMs: 0 };
    const result = this.#rerunAfterWrite(seen.key, { outcome: 'rewritten', reason });
    return this.#unlessFailed(seen.key, this.#unlessAltered(seen.key, result, sent, stored), copy.failure);
  }

  /** The virtual object may have the status of an earlier copy, and a new virtual object has none yet. */
  async #rememberWithStatus(
    seen: Observation,
    virtual: KubeObject,
    host: KubeObject,
    isEchoed = false,
  ): Promise<void> {
    if ((await this.#copyStatus(seen, virtual, host)) === undefined)
      this.#remember(seen, virtual, host, isEchoed);
  }

  /** While the host Service has a selector, the host's endpoints controller still writes the object. */
  async #takeOver(seen: Observation): Promise<ReconcileResult> {
    const { key, target, host } = seen;
    const { references } = this.#options;
    invariant(target && host, 'an object that is taken over exists on the host');
    const state = this.#states.of(key);
    const service = await this.#caches.readHostService(target);
    if (service !== undefined && hasSelector(service)) {
      references.clearReferences(key);
      const waitMs = backoffDelayMs(state.takeOverReads, TAKE_OVER_BASE_MS, TAKE_OVER_MAX_MS);
      state.takeOverReads += 1;
      return { outcome: 'waiting', reason: 'host Service has a selector', waitMs };
    }
    state.takeOverReads = 0;
    const result = await this.#rewrite(seen, 'taken over');
    if (result !== STALE) this.#report(seen, takenOverNotice(host));
    return result;
  }

  /** The key is requeued immediately, and the next reconcile creates the copy. */
  async #deleteToRecreate({ key, target }: Observation, host: KubeObject): Promise<ReconcileResult> {
    const reason = 'an immutable field has changed';
    invariant(target, 'a copy that is updated has a target');
    if (isBeingDeleted(host)) return WAITING_FOR_FINALIZERS;
    if (!this.#options.areDependentsRead(target)) return dependentsFirst(reason);
    const outcome = await this.#options.host.writer.delete(target, host.metadata.uid ?? '', reason);
    this.#states.of(key).synced = undefined;
    // A dry run leaves the copy in place, so a requeue would delete it again in an endless loop.
    return outcome === 'dryRun' ? { outcome: 'deleted', reason } : { outcome: 'deleted', reason, waitMs: 0 };
  }

  async #deleteVirtual({ key, target }: Observation, virtual: KubeObject): Promise<ReconcileResult> {
    // Deleted first, the object would take away the reason for which its Service is synced, and the Service would stay.
    if (target !== undefined && (await this.#options.isDeletedAlong(key, target)))
      return { outcome: 'again', reason: HOST_DELETED, waitMs: DELETION_CHECK_MS };
    await this.#options.virtual.writer.delete(parseKey(key), virtual.metadata.uid ?? '', HOST_DELETED);
    this.#forget(key);
    return { outcome: 'deleted', reason: HOST_DELETED };
  }

  /** There is neither a virtual object nor a copy of ours. */
  #forget(key: ObjectKey): void {
    this.#states.forget(key);
    this.#options.references.clearReferences(key);
  }

  /** Reports once per streak that another client keeps deleting the host copy. */
  #waitForRecreation(seen: Observation, waitMs: number): ReconcileResult {
    if (this.#states.find(seen.key)?.deletions?.count === 2)
      this.#report(seen, keepsDeletingNotice(this.#options.kind.deletionHint));
    return { outcome: 'waiting', reason: HOST_DELETED, waitMs };
  }

  async #update(observation: Observation): Promise<ReconcileResult> {
    const seen = asPair(observation);
    const { host, virtual, key } = seen;
    const state = this.#states.of(key);
    const contestedMs = this.#contestedWaitMs(seen);
    if (contestedMs > 0) return { outcome: 'waiting', reason: 'Contested', waitMs: contestedMs };
    if (await this.#caches.isVirtualBehind(virtual, host)) return STALE;
    const record = recordOf(host);
    const held = heldKeys(state.keyContests, this.#nowMs());
    const merged = await this.#merged(seen, held);
    const uncertainMs = merged.isUncertain ? state.arrivals.uncertainWaitMs(this.#nowMs(), record) : 0;
    if (uncertainMs > 0) return { outcome: 'again', reason: 'change is in progress', waitMs: uncertainMs };
    this.#reportNotAllowed(seen, merged.notAllowed);
    const overwrites = this.#overwritesOf(seen, merged);
    const isDrift = overwrites !== undefined;
    const verdict = isDrift ? this.#drift(state, overwrites) : undefined;
    if (verdict !== undefined && verdict.waitMs > 0) return this.#waitWhileContested(seen, merged, verdict);
    if (merged.echo !== undefined) this.#report(seen, echoNotice(virtual, merged.echo));
    const { contests, verdicts } = noteKeyChanges(state.keyContests, merged.flows, this.#nowMs());
    state.keyContests = contests;
    if (verdicts.length > 0) return this.#withoutContested(seen, verdicts);
    const result = await this.#write(seen, merged);
    if (!isDrift && result.outcome !== 'unchanged') state.contest = noteChange(state.contest);
    return this.#unlessFailed(key, this.#untilDue(key, result, held), merged.failure);
  }

  /** Both sides keep rewriting these annotations or labels. They are left alone, and the rest is synced. */
  async #withoutContested(seen: SeenPair, contested: readonly KeyVerdict[]): Promise<ReconcileResult> {
    for (const { id, waitMs, isReportable } of contested)
      if (isReportable) this.#report(seen, contestedKeyNotice(seen, id, waitMs));
    const held = heldKeys(this.#states.of(seen.key).keyContests, this.#nowMs());
    const merged = await this.#merged(seen, held);
    const result = this.#untilDue(seen.key, await this.#write(seen, merged), held);
    return this.#unlessFailed(seen.key, result, merged.failure);
  }

  /** The key is requeued for annotations and labels that were left alone. */
  #untilDue(key: ObjectKey, result: ReconcileResult, held: ReadonlyMap<string, number>): ReconcileResult {
    if (held.size === 0) return result;
    this.#states.of(key).isOpen = true;
    const waitMs = Math.ceil(Math.min(result.waitMs ?? Infinity, ...held.values()));
    return result.outcome === 'unchanged'
      ? { outcome: 'waiting', reason: 'Contested', waitMs }
      : { ...result, waitMs };
  }

  #merged(seen: SeenPair, held: ReadonlyMap<string, number>): Promise<MergedCopy> {
    const { key, host } = seen;
    const state = this.#states.of(key);
    return this.#options.forge.merged({ ...placed(seen), host }, state.arrivals.of(recordOf(host)), {
      ...state.lastSync(seen.virtual),
      restoresEchoes: correctionWaitMs(state.contest, this.#nowMs()) === 0,
      held: new Set(held.keys()),
    });
  }

  /** Writes the host first. Its record lists the values on their way to the virtual side, so neither a crash nor a concurrent edit loses
   * them. The virtual write completes the sync.
   */
  async #write(seen: SeenPair, merged: MergedCopy): Promise<ReconcileResult> {
    const { kind, references, host: side } = this.#options;
    const { host, key } = seen;
    const reason = merged.correctsDrift ? 'differs from the virtual object' : 'bookkeeping';
    if (merged.host !== undefined && kind.needsRecreation(merged.host, host))
      return this.#deleteToRecreate(seen, host);
    // Before the write, because its response may be lost.
    if (merged.host !== undefined && merged.virtual !== undefined)
      this.#states.of(key).arrivals.note(recordOf(merged.host), 'due');
    if (merged.host !== undefined) this.#states.of(key).noteReplaced(recordOf(host));
    const stored = merged.host && (await side.writer.update(merged.host, reason));
    if (merged.repaired.length > 0) this.#report(seen, repairedNotice(host, merged.repaired));
    references.recordReferences(key, merged.references);
    const copy = stored ?? host;
    const result = await (merged.virtual === undefined
      ? this.#finishHost(seen, merged, { copy, reason })
      : this.#writeVirtual(seen, merged, merged.virtual, copy));
    return merged.host === undefined ? result : this.#unlessAltered(key, result, merged.host, stored);
  }

  async #finishHost(
    seen: SeenPair,
    merged: MergedCopy,
    { copy, reason }: { readonly copy: KubeObject; readonly reason: string },
  ): Promise<ReconcileResult> {
    const { key, virtual } = seen;
    const state = this.#states.of(key);
    if (merged.hasIncoming) state.arrivals.note(recordOf(copy), 'arrived');
    const copied = await this.#copyStatus(seen, virtual, copy);
    if (copied !== undefined) return copied;
    // Values that another syncer has copied back are left: their delay has not passed, or the earlier values are unknown.
    this.#remember(seen, virtual, copy, merged.echo !== undefined);
    if (merged.host !== undefined) return this.#rerunAfterWrite(key, { outcome: 'updated', reason });
    state.reruns = 0;
    if (merged.echo !== undefined)
      return { outcome: 'waiting', reason: 'Contested', waitMs: ECHO_RECHECK_MS };
    return UNCHANGED;
  }

  async #writeVirtual(
    seen: SeenPair,
    merged: MergedCopy,
    wanted: KubeObject,
    copy: KubeObject,
  ): Promise<ReconcileResult> {
    const patch = virtualPatch(this.#options.kind, seen.virtual, wanted);
    const patched = await this.#patchVirtual(seen, patch, recordOf(merged.host ?? seen.host));
    const result = { outcome: 'updated', reason: FROM_HOST } as const;
    // The virtual cluster stored another state than was sent, for example because of admission. That is a new change to sync.
    if (patched !== undefined && !isStoredAs(this.#options.kind, patched, wanted))
      return { ...result, waitMs: 0 };
    const copied = await this.#copyStatus(seen, patched ?? seen.virtual, copy);
    if (copied !== undefined) return copied;
    const isEchoLeft = (merged.echo?.left.length ?? 0) > 0;
    this.#remember(seen, patched ?? seen.virtual, copy, merged.echo !== undefined);
    // A label from the host may decide that the object is not synced, and our own write causes no event.
    if (patched !== undefined && !this.#isGateOpen(seen, patched)) return { ...result, waitMs: 0 };
    // The host follows the restored values in the next reconcile: they may translate to others than before.
    if (merged.echo !== undefined) return { ...result, waitMs: isEchoLeft ? ECHO_RECHECK_MS : 0 };
    return this.#rerunAfterWrite(seen.key, result);
  }

  #isGateOpen({ service }: Observation, virtual: KubeObject): boolean {
    const { kind, decide: options } = this.#options;
    return kind.gate(virtual, service, options) === undefined;
  }

  async #patchVirtual(
    { key, virtual }: SeenPair,
    body: JsonObject,
    record: string | undefined,
  ): Promise<KubeObject | undefined> {
    const side = this.#options.virtual;
    const { arrivals } = this.#states.of(key);
    try {
      const stored = await side.writer.mergePatch(parseKey(key), body, FROM_HOST);
      if (stored !== undefined) {
        arrivals.note(record, 'arrived');
        this.#options.patched(stored);
      }
      return stored;
    } catch (error) {
      // Without a response, the patch may have been applied; then the virtual object shows its values. That it was applied and reverted
      // meanwhile is far less likely than that it was lost.
      arrivals.note(record, 'due');
      if (isConflict(error)) await this.#caches.readVirtual(virtual);
      throw error;
    }
  }

  /**
   * How many times within a minute others may do what they did since our last write: on the host, or on the virtual side to what the host has.
   * Undefined: they did nothing, or a user changed the virtual object.
   */
  #overwritesOf(seen: SeenPair, { correctsDrift, echo, host, virtual }: MergedCopy): number | undefined {
    const state = this.#states.of(seen.key);
    if (!state.isVirtualUnchanged(seen.virtual)) return undefined;
    if (echo !== undefined) return AUTOMATIC_OVERWRITES_MAX;
    // What flows to the virtual side is in agreement then, unless admission changes it each time.
    if (state.isAltered(seen.host) && virtual !== undefined) return OVERWRITES_MAX;
    if (state.isAltered(seen.host) && host !== undefined) return AUTOMATIC_OVERWRITES_MAX;
    const isDamaged = correctsDrift || recordOf(seen.host) === undefined;
    return isDamaged && !state.isHostUnchanged(seen.host) ? OVERWRITES_MAX : undefined;
  }

  /** Only corrections are delayed. Changes of the virtual object or of its references are written immediately. */
  #contestedWaitMs(seen: Observation): number {
    const state = this.#states.of(seen.key);
    const isStale = this.#options.references.isStale(seen.key);
    const isCorrection = state.isVirtualUnchanged(seen.virtual) && !isStale;
    return isCorrection ? correctionWaitMs(state.contest, this.#nowMs()) : 0;
  }

  /** Others have overwritten what this process wrote. */
  #drift(state: ObjectState, overwritesMax = OVERWRITES_MAX): DriftVerdict {
    const { contest, verdict } = noteDrift(state.contest, this.#nowMs(), overwritesMax);
    state.contest = contest;
    return verdict;
  }

  #waitWhileContested(
    seen: SeenPair,
    merged: MergedCopy,
    { waitMs, isReportable }: DriftVerdict,
  ): ReconcileResult {
    const notice = this.#contestNotice(seen, merged, waitMs);
    if (isReportable) this.#report(seen, notice);
    return { outcome: 'waiting', reason: 'Contested', note: notice.note, waitMs };
  }

  #contestNotice(seen: SeenPair, { echo, host, virtual }: MergedCopy, waitMs: number): RecordedEvent {
    if (echo !== undefined) return echoNotice(seen.virtual, echo, waitMs);
    if (!this.#states.of(seen.key).isAltered(seen.host)) return contestedNotice(seen.host, waitMs);
    const paths =
      virtual === undefined
        ? changedPaths(host ?? seen.host, seen.host)
        : changedPaths(virtual, seen.virtual);
    return alteredNotice(seen.host, paths.length === 0 ? [RECORD_PATH] : paths);
  }

  /** Copies the status of the host copy in a separate write. `virtual`, `host`: their state after the other writes. Undefined: it has it. */
  async #copyStatus(
    seen: Observation,
    virtual: KubeObject,
    host: KubeObject,
  ): Promise<ReconcileResult | undefined> {
    const { kind } = this.#options;
    const patch = kind.statusPatch(virtual, host);
    if (patch === undefined) return undefined;
    // The pair was in sync with this state of the host, so another client of the virtual cluster has written the status since.
    const state = this.#states.of(seen.key);
    const verdict = state.isHostUnchanged(host) ? this.#drift(state) : undefined;
    if (verdict !== undefined && verdict.waitMs > 0) {
      if (verdict.isReportable) this.#report(seen, contestedStatusNotice(virtual, verdict.waitMs));
      return { outcome: 'waiting', reason: 'Contested', waitMs: verdict.waitMs };
    }
    const reason = 'status of the host copy';
    const patched = await this.#patchStatus(virtual, patch, reason);
    this.#remember(seen, patched ?? virtual, host);
    return { outcome: 'updated', reason };
  }

  /** Removes the status that came from a deleted copy. */
  async #clearStatus({ virtual }: Observation, host: KubeObject): Promise<void> {
    const { kind } = this.#options;
    if (virtual === undefined || kind.statusPatch(virtual, host) !== undefined) return;
    const patch = kind.statusPatch(virtual, undefined);
    if (patch !== undefined) await this.#patchStatus(virtual, patch, 'the host copy is deleted');
  }

  #patchStatus(virtual: KubeObject, patch: JsonObject, reason: string): Promise<KubeObject | undefined> {
    const { name, namespace = '', uid = null, resourceVersion = null } = virtual.metadata;
    const body = { ...patch, metadata: { uid, resourceVersion } };
    return this.#options.virtual.writer.mergePatch({ name, namespace }, body, reason, 'status');
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  /** Nothing has changed since the pair was written, so no update is needed. */
  #isUnchanged(seen: Observation): boolean {
    if (this.#options.references.isStale(seen.key)) return false;
    return this.#states.find(seen.key)?.isUnchanged(seen) === true;
  }

  /** `isEchoed`: the virtual object keeps, for now, what another syncer has copied back. */
  #remember(seen: Observation, virtual: KubeObject, host: KubeObject, isEchoed = false): void {
    const options = this.#options;
    const pair = {
      virtual: cachedAs(options.virtual.cache, virtual),
      host: cachedAs(options.host.cache, host),
    };
    const notice = options.kind.noticeOf(pair.virtual, seen.service);
    if (notice !== undefined) this.#report(seen, notice);
    this.#states.of(seen.key).remember(pair, seen.service, isEchoed);
  }

  #rerunAfterWrite(key: ObjectKey, result: ReconcileResult): ReconcileResult {
    const isRerun = this.#options.readsHostObject && this.#states.of(key).countRerun();
    return isRerun ? { ...result, waitMs: 0 } : result;
  }

  #report({ virtual }: Observation, notice: RecordedEvent): void {
    if (virtual !== undefined) this.#options.recorder.event(virtual, this.#options.kind.resource, notice);
  }

  /** Reports each change of the reason once. */
  #reportIgnored(seen: Observation, reason: string): void {
    const state = this.#states.of(seen.key);
    const ignored = `${seen.virtual?.metadata.uid} ${reason}`;
    if (state.reportedIgnored === ignored) return;
    state.reportedIgnored = ignored;
    const notice = this.#options.kind.noticeOfGate(reason);
    if (notice !== undefined) this.#report(seen, notice);
  }

  #reportNotAllowed(seen: Observation, references: readonly ObjectReference[]): void {
    for (const reference of references) this.#report(seen, notAllowedNotice(reference));
  }
}

function asPair(seen: Observation): SeenPair {
  const { virtual, host } = seen;
  invariant(virtual && host, 'both objects exist when a pair is updated');
  return { ...seen, virtual, host };
}

/** True when the API server stored the object as it was sent. */
function isStoredAs(kind: SyncedKind, stored: KubeObject, sent: KubeObject): boolean {
  return !needsWrite(sent, stored, kind.content);
}

function placed({ virtual, target, host }: Observation): PlacedPair {
  invariant(virtual && target, 'an object that is copied exists and has a target');
  return { virtual, target, host };
}
