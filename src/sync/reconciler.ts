/** One key, once: observe both sides, decide, act. Idempotent; whatever goes wrong is decided anew the next time. */

import { compareVersions } from '../cluster/resource-version.ts';
import type { ClusterClient, EventRecorder, Informer, RecordedEvent } from '../cluster/types.ts';
import { invariant } from '../kube/errors.ts';
import {
  ENDPOINTS,
  SERVICES,
  keyOf,
  parseKey,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
} from '../kube/object.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../kube/status-error.ts';
import type { ObjectReference, TranslatedReference } from '../patch/types.ts';
import type { Writer } from '../write/writer.ts';
import type { ContentionGuard } from './contention.ts';
import type { CopyForge, MergedCopy, Pair } from './copy-forge.ts';
import { decide, type DecideOptions, type Decision, type Observation } from './decide.ts';
import { contestedNotice, keepsDeletingNotice, notAllowedNotice, syncedNotice, warning } from './notices.ts';
import type { RecreationBackoff } from './recreation.ts';
import { isInStep, syncedPair, type SyncedPairs } from './synced-pairs.ts';

export interface ReconcilerOptions {
  readonly observe: (key: ObjectKey) => Observation;
  readonly decide: DecideOptions;
  readonly onHostDelete: 'recreate' | 'deleteVirtual';
  readonly forge: CopyForge;
  readonly pairs: SyncedPairs;
  readonly host: { readonly client: ClusterClient; readonly cache: Informer; readonly writer: Writer };
  readonly virtual: { readonly client: ClusterClient; readonly services: Informer; readonly writer: Writer };
  readonly recreation: RecreationBackoff;
  readonly contention: ContentionGuard;
  readonly recorder: EventRecorder;
  readonly references: ReferenceNotes;
  /** A host name is free by our own doing, which causes no event: others may wait for it. */
  readonly released: (target: NamespacedName) => void;
}

/** Told what the copies of the Endpoints name on the host. */
export interface ReferenceNotes {
  /** What a copy should name has changed, although neither side of it did. */
  isStale(key: ObjectKey): boolean;
  /** The copy names exactly these. */
  took(key: ObjectKey, references: readonly TranslatedReference[]): void;
  /** There is no copy (any more). */
  dropped(key: ObjectKey): void;
  /** The key has been looked at, whatever came of it. */
  settled(key: ObjectKey): void;
}

/** What became of a key. `waitMs` asks to look again later even if nothing happens. */
export interface ReconcileResult {
  readonly outcome:
    | 'unchanged'
    | 'created'
    | 'updated'
    | 'rewritten'
    | 'deleted'
    | 'ignored'
    | 'refused'
    | 'waiting';
  readonly reason?: string;
  readonly waitMs?: number;
}

export type Reconcile = (key: ObjectKey) => Promise<ReconcileResult>;

const UNCHANGED: ReconcileResult = { outcome: 'unchanged' };

export function createReconciler(options: ReconcilerOptions): Reconcile {
  const reconciler = new EndpointsReconciler(options);
  return (key) => reconciler.reconcile(key);
}

class EndpointsReconciler {
  readonly #options: ReconcilerOptions;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  async reconcile(key: ObjectKey): Promise<ReconcileResult> {
    try {
      return await this.#reconcile(key);
    } finally {
      this.#options.references.settled(key);
    }
  }

  async #reconcile(key: ObjectKey): Promise<ReconcileResult> {
    const seen = this.#options.observe(key);
    const isCurrent = !this.#options.references.isStale(key);
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
    }
  }

  async #ignore(seen: Observation, reason: string): Promise<ReconcileResult> {
    if (seen.virtual === undefined) this.#forget(seen.key);
    // An object that somebody else takes care of keeps its copy, and what that names.
    if (reason !== 'controlled by another' && reason !== 'skip-backsync')
      this.#options.references.dropped(seen.key);
    return { outcome: 'ignored', reason };
  }

  async #refuse(
    seen: Observation,
    { reason, note }: Decision & { kind: 'refuse' },
  ): Promise<ReconcileResult> {
    this.#tell(seen, warning(reason, note));
    this.#options.references.dropped(seen.key);
    return { outcome: 'refused', reason };
  }

  async #delete(seen: Observation, reason: string): Promise<ReconcileResult> {
    const { host, target } = seen;
    invariant(host?.metadata.uid && target, 'a host copy that is deleted has been seen');
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
    this.#options.references.took(key, copy.references);
    this.#tell(seen, syncedNotice(copy.host));
    return { outcome: 'created' };
  }

  async #update(seen: Observation): Promise<ReconcileResult> {
    const { host, key } = seen;
    invariant(host, 'both sides exist when one updates the other');
    const waitMs = this.#options.contention.waitMs(key);
    if (waitMs > 0) return { outcome: 'waiting', reason: 'Contested', waitMs };
    const merged = await this.#options.forge.merged({ ...pairOf(seen), host });
    this.#warnNotAllowed(seen, merged.notAllowed);
    if (this.#isOverwritten(seen, merged) && this.#options.contention.noteOverwrite(key)) {
      return this.#leaveContested(seen, host);
    }
    if (merged.virtualPatch !== undefined) {
      const reason = 'changed on the host';
      const stored = await this.#options.virtual.writer.mergePatch(
        parseKey(key),
        merged.virtualPatch,
        reason,
      );
      if (stored !== undefined) return this.#record({ ...seen, virtual: stored }, reason);
    }
    await this.#writeHost(seen, merged);
    return merged.host === undefined ? UNCHANGED : { outcome: 'updated', reason: updateReason(merged) };
  }

  /**
   * What came from the host is in the virtual cluster now, as `seen` shows it; the host copy has to say so before anybody looks at a later state:
   * whoever takes it away again in this moment would otherwise seem never to have had it, and get it back.
   */
  async #record(seen: Observation, reason: string): Promise<ReconcileResult> {
    const { host } = seen;
    invariant(host, 'both sides exist when one updates the other');
    if (decide(seen, this.#options.decide).kind !== 'update')
      return { outcome: 'updated', reason, waitMs: 0 };
    const merged = await this.#options.forge.merged({ ...pairOf(seen), host });
    // What the virtual cluster made of it differs from what was sent: that is for the next look.
    if (merged.virtualPatch !== undefined) return { outcome: 'updated', reason, waitMs: 0 };
    await this.#writeHost(seen, merged);
    return { outcome: 'updated', reason };
  }

  /** Brings the host copy in step, where it is not, and remembers that it is. */
  async #writeHost(seen: Observation, merged: MergedCopy): Promise<void> {
    const { virtual, host, key } = seen;
    invariant(virtual && host, 'both sides exist when one updates the other');
    const stored = merged.host && (await this.#options.host.writer.update(merged.host, updateReason(merged)));
    this.#remember(seen, virtual, stored ?? host);
    this.#options.references.took(key, merged.references);
  }

  /** Somebody changed our data on the host although the virtual object stayed as it was when we wrote it. */
  #isOverwritten({ key, virtual, host }: Observation, { putsRight, virtualPatch }: MergedCopy): boolean {
    const pair = this.#options.pairs.get(key);
    return (
      putsRight &&
      virtualPatch === undefined &&
      pair?.virtualVersion === virtual?.metadata.resourceVersion &&
      pair?.hostVersion !== host?.metadata.resourceVersion
    );
  }

  async #rewrite(seen: Observation, reason: string): Promise<ReconcileResult> {
    const { virtual, host } = seen;
    invariant(virtual && host?.metadata.resourceVersion, 'both sides exist when a copy is rewritten');
    const copy = await this.#options.forge.fresh(pairOf(seen));
    this.#warnNotAllowed(seen, copy.notAllowed);
    const { resourceVersion, uid = '' } = host.metadata;
    const metadata = { ...copy.host.metadata, resourceVersion, uid };
    const stored = await this.#options.host.writer.update({ ...copy.host, metadata }, reason);
    this.#remember(seen, virtual, stored ?? host);
    this.#options.references.took(seen.key, copy.references);
    return { outcome: 'rewritten', reason };
  }

  async #deleteVirtual(seen: Observation, virtual: KubeObject): Promise<ReconcileResult> {
    const reason = 'host copy was deleted';
    await this.#options.virtual.writer.delete(parseKey(seen.key), virtual.metadata.uid ?? '', reason);
    this.#forget(seen.key);
    return { outcome: 'deleted', reason };
  }

  /** Says once per streak that somebody on the host keeps deleting the copy. */
  async #waitForRecreation(seen: Observation, waitMs: number): Promise<ReconcileResult> {
    if (this.#options.recreation.deletions(seen.key) === 2) this.#tell(seen, keepsDeletingNotice());
    return { outcome: 'waiting', reason: 'host copy was deleted', waitMs };
  }

  async #leaveContested(seen: Observation, host: KubeObject): Promise<ReconcileResult> {
    const waitMs = this.#options.contention.waitMs(seen.key);
    this.#tell(seen, contestedNotice(host));
    return { outcome: 'waiting', reason: 'Contested', waitMs };
  }

  /**
   * Before the first copy of an Endpoints whose Service is not in the cache: could the cache be late? It cannot where it has already
   * reached the version of the Endpoints, because a Service with a selector exists before its Endpoints. Answers true when a Service
   * turned up.
   */
  async #learnService(seen: Observation, virtual: KubeObject): Promise<boolean> {
    const { client, services } = this.#options.virtual;
    if (seen.service !== undefined || hasReached(services.resourceVersion, virtual.metadata.resourceVersion))
      return false;
    try {
      services.observeWrite(await client.get(SERVICES, parseKey(seen.key)));
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
      cache.observeWrite(await client.get(ENDPOINTS, target));
    } catch (failure) {
      if (isNotFound(failure) && host?.metadata.uid) cache.observeDelete(keyOf(target), host.metadata.uid);
    }
  }

  #remember(seen: Observation, virtual: KubeObject, host: KubeObject): void {
    this.#options.pairs.set(seen.key, syncedPair(virtual, host, seen.service));
  }

  #forget(key: ObjectKey): void {
    this.#options.pairs.delete(key);
    this.#options.recreation.forget(key);
    this.#options.contention.forget(key);
    this.#options.references.dropped(key);
  }

  #warnNotAllowed(seen: Observation, references: readonly ObjectReference[]): void {
    for (const reference of references) this.#tell(seen, notAllowedNotice(reference));
  }

  #tell({ virtual }: Observation, notice: RecordedEvent): void {
    if (virtual !== undefined) this.#options.recorder.event(virtual, ENDPOINTS, notice);
  }
}

function pairOf({ virtual, target, host }: Observation): Pair {
  invariant(virtual && target, 'only what exists and has a place is copied');
  return { virtual, target, host };
}

function updateReason({ putsRight }: MergedCopy): string {
  return putsRight ? 'differs from the virtual object' : 'bookkeeping';
}

/** True when a cache at version `reached` holds everything up to `wanted`; versions that cannot be compared prove nothing. */
function hasReached(reached: string, wanted: string | undefined): boolean {
  return (compareVersions(reached, wanted) ?? -1) >= 0;
}
