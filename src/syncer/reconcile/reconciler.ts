/** One key, once: observe both sides, decide, act. Idempotent; after an error the next run decides again. */

import { compareVersions, isOlder } from '../../kube/informer/resource-version.ts';
import type { ClusterClient, EventRecorder, Informer, RecordedEvent } from '../../kube/types.ts';
import type { Backoff } from '../../base/backoff.ts';
import { invariant } from '../../base/errors.ts';
import {
  SERVICES,
  keyOf,
  parseKey,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
} from '../../kube/object.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../../kube/status-error.ts';
import type { JsonObject } from '../../base/json.ts';
import type { ObjectReference, TranslatedReference } from '../patch/types.ts';
import { LAST_SYNCED } from '../translate/metadata/bookkeeping.ts';
import { recordedRevision } from '../translate/merge/last-synced.ts';
import type { Arrivals } from './arrivals.ts';
import { needsWrite } from './diff.ts';
import type { Writer } from './writer.ts';
import type { ContentionGuard, DriftVerdict } from './contention.ts';
import type { CopyForge, MergedCopy, Pair } from './copy-forge.ts';
import { hasSelector, type SyncedKind } from '../kinds/kind.ts';
import { decide, type DecideOptions, type Decision, type Observation } from './decide.ts';
import {
  contestedNotice,
  keepsDeletingNotice,
  notAllowedNotice,
  syncedNotice,
  takenOverNotice,
  warning,
} from './notices.ts';
import type { RecreationBackoff } from './recreation.ts';
import type { Reconcile, ReconcileResult } from './result.ts';
import { isInStep, syncedPair, type SyncedPairs } from './synced-pairs.ts';

export interface ReconcilerOptions {
  readonly kind: SyncedKind;
  readonly observe: (key: ObjectKey) => Observation;
  readonly decide: DecideOptions;
  readonly onHostDelete: 'recreate' | 'deleteVirtual';
  readonly forge: CopyForge;
  /** Some expression reads `context.hostObject` on the way to the host. */
  readonly readsHostObject: boolean;
  readonly pairs: SyncedPairs;
  readonly host: { readonly client: ClusterClient; readonly cache: Informer; readonly writer: Writer };
  readonly virtual: {
    readonly client: ClusterClient;
    readonly cache: Informer;
    readonly services: Informer;
    readonly writer: Writer;
  };
  readonly arrivals: Arrivals;
  readonly recreation: RecreationBackoff;
  /** Between two looks at a host Service that forbids a take-over. */
  readonly takeOverBackoff: Backoff;
  readonly contention: ContentionGuard;
  readonly recorder: EventRecorder;
  readonly references: ReferenceNotes;
  /** A host name is free by our own doing, which causes no event: others may wait for it. */
  readonly released: (target: NamespacedName) => void;
}

/** What the copies of the Endpoints reference on the host. */
export interface ReferenceNotes {
  /** What a copy should reference has changed, although neither side of it did. */
  isStale(key: ObjectKey): boolean;
  /** The copy references exactly these. */
  recordReferences(key: ObjectKey, references: readonly TranslatedReference[]): void;
  /** There is no copy (any more). */
  clearReferences(key: ObjectKey): void;
  /** The key has been decided once, whatever the outcome. */
  markReconciled(key: ObjectKey): void;
}

const UNCHANGED: ReconcileResult = { outcome: 'unchanged' };
const FROM_HOST = 'changed on the host';
/** An expression that reads the host object and changes it with every run would do so endlessly. */
const RERUNS_MAX = 4;

export function createReconciler(options: ReconcilerOptions): Reconcile {
  const reconciler = new KindReconciler(options);
  return (key) => reconciler.reconcile(key);
}

class KindReconciler {
  readonly #options: ReconcilerOptions;
  /** Keys whose expressions read a host object that our own write has changed since, with the number of runs in a row. */
  readonly #reruns = new Map<ObjectKey, number>();

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  async reconcile(key: ObjectKey): Promise<ReconcileResult> {
    try {
      return await this.#reconcile(key);
    } finally {
      this.#options.references.markReconciled(key);
    }
  }

  async #reconcile(key: ObjectKey): Promise<ReconcileResult> {
    const seen = this.#options.observe(key);
    const isCurrent = !this.#options.references.isStale(key) && !this.#reruns.has(key);
    if (isCurrent && isInStep(this.#options.pairs.get(key), seen)) return UNCHANGED;
    const decision = decide(seen, this.#options.decide);
    try {
      for (const stray of seen.strays) await this.#deleteStray(stray);
      return await this.#act(decision, seen);
    } catch (error) {
      await this.#refresh(error, seen);
      throw error;
    }
  }

  #act(decision: Decision, seen: Observation): Promise<ReconcileResult> {
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

  async #ignore(seen: Observation, reason: string): Promise<ReconcileResult> {
    if (seen.virtual === undefined) this.#forget(seen.key);
    // An object that another controller takes care of keeps its copy, and what that references.
    if (reason !== 'controlled by another' && reason !== 'skip-backsync')
      this.#options.references.clearReferences(seen.key);
    return { outcome: 'ignored', reason };
  }

  async #refuse(
    seen: Observation,
    { reason, note }: Decision & { kind: 'refuse' },
  ): Promise<ReconcileResult> {
    this.#tell(seen, warning(reason, note));
    this.#options.references.clearReferences(seen.key);
    return { outcome: 'refused', reason };
  }

  async #delete(seen: Observation, reason: string): Promise<ReconcileResult> {
    const { host, target } = seen;
    invariant(host?.metadata.uid && target, 'a host copy that is deleted has been seen');
    if (seen.virtual === undefined && (await this.#isMissedByCache(seen.key, host)))
      return this.#reconcile(seen.key);
    await this.#options.host.writer.delete(target, host.metadata.uid, reason);
    this.#forget(seen.key);
    this.#options.released(target);
    return { outcome: 'deleted', reason };
  }

  /** A copy that an earlier configuration put elsewhere. */
  async #deleteStray({ metadata: { namespace = '', name, uid = '' } }: KubeObject): Promise<void> {
    await this.#options.host.writer.delete({ namespace, name }, uid, 'belongs elsewhere now');
    this.#options.released({ namespace, name });
  }

  async #create(seen: Observation): Promise<ReconcileResult> {
    const { virtual, key } = seen;
    invariant(virtual, 'only what exists is copied');
    if (this.#options.onHostDelete === 'deleteVirtual' && this.#options.recreation.deletions(key) > 0) {
      return this.#deleteVirtual(seen, virtual);
    }
    const waitMs = this.#options.recreation.waitMs(key);
    if (waitMs > 0) return this.#waitForRecreation(seen, waitMs);
    if (await this.#learnService(seen, virtual)) return this.#reconcile(key);
    const copy = await this.#options.forge.fresh(pairOf(seen));
    this.#warnNotAllowed(seen, copy.notAllowed);
    const stored = await this.#options.host.writer.create(copy.host, 'no host copy');
    this.#remember(seen, virtual, stored ?? copy.host);
    this.#options.references.recordReferences(key, copy.references);
    this.#tell(seen, syncedNotice(copy.host));
    return this.#afterWrite(key, { outcome: 'created' });
  }

  async #update(seen: Observation): Promise<ReconcileResult> {
    const { host, virtual, key } = seen;
    invariant(virtual && host, 'both sides exist when one updates the other');
    const { contention, forge, arrivals } = this.#options;
    const contestedMs = this.#contestedWaitMs(seen);
    if (contestedMs > 0) return { outcome: 'waiting', reason: 'Contested', waitMs: contestedMs };
    if (await this.#isVirtualBehind(virtual, host)) return this.#reconcile(key);
    const record = recordOf(host);
    const merged = await forge.merged({ ...pairOf(seen), host }, arrivals.of(key, record));
    const uncertainMs = merged.isUncertain ? arrivals.uncertainWaitMs(key, record) : 0;
    if (uncertainMs > 0) return { outcome: 'waiting', reason: 'change is under way', waitMs: uncertainMs };
    this.#warnNotAllowed(seen, merged.notAllowed);
    const isDrift = this.#isOverwritten(seen, merged);
    const verdict = isDrift ? contention.noteDrift(key) : undefined;
    if (verdict !== undefined && verdict.waitMs > 0) return this.#leaveContested(seen, host, verdict);
    const result = await this.#writeBoth(seen, merged);
    if (!isDrift) contention.noteChange(key);
    return result;
  }

  /**
   * The host first: its record names what is on its way to the virtual side, so a crash or a second edit in between loses nothing. After
   * the virtual write nothing has to be written.
   */
  async #writeBoth(seen: Observation, merged: MergedCopy): Promise<ReconcileResult> {
    const { virtual, host, key } = seen;
    invariant(virtual && host, 'both sides exist when one updates the other');
    if (merged.host !== undefined && this.#options.kind.needsRecreation(merged.host, host))
      return this.#deleteToRecreate(seen, host);
    const isHostWritten = merged.host !== undefined;
    // Before the write: its answer may be lost.
    if (merged.host !== undefined && merged.virtualPatch !== undefined)
      this.#options.arrivals.note(key, recordOf(merged.host), 'due');
    const stored = merged.host && (await this.#options.host.writer.update(merged.host, updateReason(merged)));
    const copy = stored ?? host;
    this.#options.references.recordReferences(key, merged.references);
    if (merged.virtualPatch === undefined) {
      if (merged.hasIncoming) this.#options.arrivals.note(key, recordOf(copy), 'arrived');
      this.#remember(seen, virtual, copy);
      if (!isHostWritten) return this.#unchanged(key);
      return this.#afterWrite(key, { outcome: 'updated', reason: updateReason(merged) });
    }
    const patched = await this.#patchVirtual(seen, merged.virtualPatch, recordOf(merged.host ?? host));
    const result = { outcome: 'updated', reason: FROM_HOST } as const;
    // What the virtual cluster stored differs from what was sent: that is a change of its own.
    if (patched !== undefined && !isStoredAs(this.#options.kind, patched, merged.virtual))
      return { ...result, waitMs: 0 };
    this.#remember(seen, patched ?? virtual, copy);
    return this.#afterWrite(key, result);
  }

  /** The creation follows at once, as a decision of its own. */
  async #deleteToRecreate({ key, target }: Observation, host: KubeObject): Promise<ReconcileResult> {
    const reason = 'an immutable field has changed';
    invariant(target, 'what is updated has a place');
    await this.#options.host.writer.delete(target, host.metadata.uid ?? '', reason);
    this.#options.pairs.delete(key);
    return { outcome: 'deleted', reason, waitMs: 0 };
  }

  async #patchVirtual(
    { key, virtual }: Observation,
    body: JsonObject,
    record: string | undefined,
  ): Promise<KubeObject | undefined> {
    const { arrivals, virtual: side } = this.#options;
    try {
      const stored = await side.writer.mergePatch(parseKey(key), body, FROM_HOST);
      if (stored !== undefined) arrivals.note(key, record, 'arrived');
      return stored;
    } catch (error) {
      // Without an answer the patch may have arrived; then the virtual object is seen to hold it. That it arrived and was changed back
      // meanwhile is far less likely than that it was lost.
      arrivals.note(key, record, 'due');
      if (isConflict(error) && virtual !== undefined) await this.#readVirtual(virtual);
      throw error;
    }
  }

  /** The host copy was made from a later version of the virtual object than the cache shows. True: the cache has been brought up to date. */
  async #isVirtualBehind(virtual: KubeObject, host: KubeObject): Promise<boolean> {
    const { resourceVersion } = virtual.metadata;
    if (!isOlder(resourceVersion, recordedRevision(recordOf(host)))) return false;
    const current = await this.#readVirtual(virtual);
    return current === undefined || isOlder(resourceVersion, current.metadata.resourceVersion);
  }

  /**
   * The cache has not reached the version of the virtual object that the copy was made from, by another replica: the object exists, and
   * the cache has it now.
   */
  async #isMissedByCache(key: ObjectKey, host: KubeObject): Promise<boolean> {
    const { cache } = this.#options.virtual;
    if (!isOlder(cache.resourceVersion, recordedRevision(recordOf(host)))) return false;
    return (await this.#readVirtual({ metadata: { ...parseKey(key) } })) !== undefined;
  }

  /** Undefined: it is gone. */
  async #readVirtual({
    metadata: { name, namespace = '', uid = '' },
  }: KubeObject): Promise<KubeObject | undefined> {
    const { client, cache } = this.#options.virtual;
    try {
      const current = await client.get(this.#options.kind.resource, { name, namespace });
      cache.observeWrite(current);
      return current;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      cache.observeDelete(keyOf({ name, namespace }), uid);
      return undefined;
    }
  }

  /** Another client changed our data on the host although the virtual object stayed as it was when we wrote it. */
  #isOverwritten(seen: Observation, { correctsDrift }: MergedCopy): boolean {
    const pair = this.#options.pairs.get(seen.key);
    return (
      correctsDrift &&
      this.#isVirtualUnchanged(seen) &&
      pair?.hostVersion !== seen.host?.metadata.resourceVersion
    );
  }

  #isVirtualUnchanged({ key, virtual }: Observation): boolean {
    return this.#options.pairs.get(key)?.virtualVersion === virtual?.metadata.resourceVersion;
  }

  /** Only corrections wait: a change of the virtual object, or of what it references, is written at once. */
  #contestedWaitMs(seen: Observation): number {
    const isCorrection = this.#isVirtualUnchanged(seen) && !this.#options.references.isStale(seen.key);
    return isCorrection ? this.#options.contention.waitMs(seen.key) : 0;
  }

  async #rewrite(seen: Observation, reason: string): Promise<ReconcileResult> {
    const { virtual, host } = seen;
    invariant(virtual && host?.metadata.resourceVersion, 'both sides exist when a copy is rewritten');
    const copy = await this.#options.forge.fresh(pairOf(seen));
    this.#warnNotAllowed(seen, copy.notAllowed);
    if (this.#options.kind.needsRecreation(copy.host, host)) return this.#deleteToRecreate(seen, host);
    const { resourceVersion, uid = '' } = host.metadata;
    const metadata = { ...copy.host.metadata, resourceVersion, uid };
    const stored = await this.#options.host.writer.update({ ...copy.host, metadata }, reason);
    this.#remember(seen, virtual, stored ?? host);
    this.#options.references.recordReferences(seen.key, copy.references);
    return this.#afterWrite(seen.key, { outcome: 'rewritten', reason });
  }

  /** Expressions that read the host object are run again after each of our own writes, until they change nothing. */
  #afterWrite(key: ObjectKey, result: ReconcileResult): ReconcileResult {
    const runs = this.#reruns.get(key) ?? 0;
    if (!this.#options.readsHostObject || runs >= RERUNS_MAX) {
      this.#reruns.delete(key);
      return result;
    }
    this.#reruns.set(key, runs + 1);
    return { ...result, waitMs: 0 };
  }

  #unchanged(key: ObjectKey): ReconcileResult {
    this.#reruns.delete(key);
    return UNCHANGED;
  }

  /** The host Service is read, not watched: take-overs are rare. */
  async #takeOver(seen: Observation): Promise<ReconcileResult> {
    const { key, target, host } = seen;
    invariant(target && host, 'what is taken over exists on the host');
    const { client } = this.#options.host;
    const service = await client.get(SERVICES, target).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    if (service !== undefined && hasSelector(service)) {
      const waitMs = this.#options.takeOverBackoff.next(key);
      return { outcome: 'waiting', reason: 'host Service has a selector', waitMs };
    }
    this.#options.takeOverBackoff.forget(key);
    const result = await this.#rewrite(seen, 'taken over');
    this.#tell(seen, takenOverNotice(host));
    return result;
  }

  async #deleteVirtual(seen: Observation, virtual: KubeObject): Promise<ReconcileResult> {
    const reason = 'host copy was deleted';
    await this.#options.virtual.writer.delete(parseKey(seen.key), virtual.metadata.uid ?? '', reason);
    this.#forget(seen.key);
    return { outcome: 'deleted', reason };
  }

  /** Reports once per streak that another client on the host keeps deleting the copy. */
  async #waitForRecreation(seen: Observation, waitMs: number): Promise<ReconcileResult> {
    if (this.#options.recreation.deletions(seen.key) === 2) this.#tell(seen, keepsDeletingNotice());
    return { outcome: 'waiting', reason: 'host copy was deleted', waitMs };
  }

  async #leaveContested(
    seen: Observation,
    host: KubeObject,
    { waitMs, isReportable }: DriftVerdict,
  ): Promise<ReconcileResult> {
    if (isReportable) this.#tell(seen, contestedNotice(host, waitMs));
    return { outcome: 'waiting', reason: 'Contested', waitMs };
  }

  /**
   * Before the first copy of an object whose Service is not in the cache: could the cache be late? It cannot where it has already
   * reached the version of the object, because a Service with a selector exists before its Endpoints and slices. Answers true when a
   * Service turned up.
   */
  async #learnService(seen: Observation, virtual: KubeObject): Promise<boolean> {
    const { client, services } = this.#options.virtual;
    const serviceKey = this.#options.kind.serviceKey(seen.key, virtual);
    if (serviceKey === undefined || seen.service !== undefined) return false;
    if (hasReached(services.resourceVersion, virtual.metadata.resourceVersion)) return false;
    try {
      services.observeWrite(await client.get(SERVICES, parseKey(serviceKey)));
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  /** After a lost race the cache is behind: read the host object once, so that the next attempt decides on what is there. */
  async #refresh(error: unknown, { target, host }: Observation): Promise<void> {
    const { client, cache } = this.#options.host;
    if (target === undefined || !(isConflict(error) || isAlreadyExists(error) || isNotFound(error))) return;
    try {
      cache.observeWrite(await client.get(this.#options.kind.resource, target));
    } catch (failure) {
      if (isNotFound(failure) && host?.metadata.uid) cache.observeDelete(keyOf(target), host.metadata.uid);
    }
  }

  #remember(seen: Observation, virtual: KubeObject, host: KubeObject): void {
    const notice = this.#options.kind.noticeOf(virtual, seen.service);
    if (notice !== undefined) this.#tell(seen, notice);
    this.#options.pairs.set(seen.key, syncedPair(virtual, host, seen.service));
  }

  #forget(key: ObjectKey): void {
    this.#options.pairs.delete(key);
    this.#options.recreation.forget(key);
    this.#options.takeOverBackoff.forget(key);
    this.#options.contention.forget(key);
    this.#options.arrivals.forget(key);
    this.#reruns.delete(key);
    this.#options.references.clearReferences(key);
  }

  #warnNotAllowed(seen: Observation, references: readonly ObjectReference[]): void {
    for (const reference of references) this.#tell(seen, notAllowedNotice(reference));
  }

  #tell({ virtual }: Observation, notice: RecordedEvent): void {
    if (virtual !== undefined) this.#options.recorder.event(virtual, this.#options.kind.resource, notice);
  }
}

function pairOf({ virtual, target, host }: Observation): Pair {
  invariant(virtual && target, 'only what exists and has a place is copied');
  return { virtual, target, host };
}

function recordOf({ metadata: { annotations } }: KubeObject): string | undefined {
  return annotations?.[LAST_SYNCED];
}

/** True when the API server stored what flows back as it was sent. */
function isStoredAs(kind: SyncedKind, stored: KubeObject, sent: KubeObject): boolean {
  return !needsWrite(sent, stored, kind.content);
}

function updateReason({ correctsDrift }: MergedCopy): string {
  return correctsDrift ? 'differs from the virtual object' : 'bookkeeping';
}

/** True when a cache at version `reached` holds everything up to `wanted`; versions that cannot be compared prove nothing. */
function hasReached(reached: string, wanted: string | undefined): boolean {
  return (compareVersions(reached, wanted) ?? -1) >= 0;
}
