/** Reconciles one key: observe both sides, decide, act. Idempotent. */

import { invariant } from '../../base/errors.ts';
import type { KubeObject, ObjectKey } from '../../kube/object.ts';
import { CacheRefresh } from './cache-refresh.ts';
import { RefusedCopy } from './copy-forge.ts';
import { CopyCreation } from './create-copy.ts';
import { decide, isOverOwnCopy, type Decision, type Observation } from './decide/decide.ts';
import { recreatedNotice, warning } from './notices.ts';
import { PairMemory } from './pair-memory.ts';
import type { ReconcilerOptions } from './reconciler-options.ts';
import { DECIDE_AGAIN, UNCHANGED, type Reconcile, type ReconcileResult } from './result.ts';
import { StatusFlow } from './status-flow.ts';
import { PairUpdate } from './update-pair.ts';
import { FIELD_MANAGER } from './write/writer.ts';

export function createReconciler(options: ReconcilerOptions): Reconcile {
  const reconciler = new KindReconciler(options);
  return (key) => reconciler.reconcile(key);
}

class KindReconciler {
  readonly #options: ReconcilerOptions;
  readonly #memory: PairMemory;
  readonly #caches: CacheRefresh;
  readonly #creation: CopyCreation;
  readonly #status: StatusFlow;
  readonly #update: PairUpdate;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#memory = new PairMemory(options);
    this.#caches = new CacheRefresh(options);
    this.#status = new StatusFlow(options, this.#memory);
    this.#creation = new CopyCreation(options, {
      memory: this.#memory,
      caches: this.#caches,
      status: this.#status,
    });
    this.#update = new PairUpdate(options, {
      memory: this.#memory,
      status: this.#status,
      caches: this.#caches,
      creation: this.#creation,
    });
  }

  async reconcile(key: ObjectKey): Promise<ReconcileResult> {
    let result: ReconcileResult | undefined;
    try {
      result = await this.#reconcile(key);
      return result;
    } finally {
      if (result !== DECIDE_AGAIN) this.#options.references.markReconciled(key);
    }
  }

  async #reconcile(key: ObjectKey): Promise<ReconcileResult> {
    this.#options.awaitedServices.delete(key);
    const seen = this.#options.observe(key);
    const decision = decide(seen, this.#options.decide);
    // A change of an object of another kind can change the decision for an unchanged pair, so decide first. A former leader may still have
    // written a copy to another place.
    const isUpdate = decision.kind === 'update' && seen.strays.length === 0;
    if (isUpdate && this.#memory.isUnchanged(seen)) return UNCHANGED;
    const { kind, listener } = this.#options;
    try {
      for (const stray of seen.strays) await this.#deleteStray(stray);
      const result = await this.#act(decision, seen);
      listener?.decided(kind, seen, decision);
      return result;
    } catch (error) {
      listener?.decided(kind, seen, error instanceof RefusedCopy ? error.refusal : decision, error);
      if (error instanceof RefusedCopy) return await this.#refuseCopy(seen, decision, error);
      await this.#caches.afterConflict(error, seen);
      throw error;
    }
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
        return this.#creation.create(seen);
      case 'update':
        return this.#update.update(seen);
      case 'rewrite':
        return this.#creation.rewrite(seen, decision.reason);
      case 'takeOver':
        return this.#creation.takeOver(seen);
    }
  }

  #ignore(seen: Observation, reason: string): ReconcileResult {
    if (seen.virtual === undefined) this.#memory.forget(seen.key);
    else this.#memory.reportIgnored(seen, reason);
    // An opted-out object keeps its copy, and therefore the objects that the copy references.
    if (reason !== 'controlled by another' && reason !== 'skip-backsync')
      this.#options.references.clearReferences(seen.key);
    return { outcome: 'ignored', reason };
  }

  #refuse(seen: Observation, { reason, note }: Decision & { kind: 'refuse' }): ReconcileResult {
    this.#memory.report(seen, warning(reason, note));
    this.#options.references.clearReferences(seen.key);
    return { outcome: 'refused', reason };
  }

  /** A copy that is there already is deleted; then the key is reconciled again. */
  async #refuseCopy(
    seen: Observation,
    decision: Decision,
    { refusal, service }: RefusedCopy,
  ): Promise<ReconcileResult> {
    this.#options.awaitedServices.set(seen.key, service);
    return isOverOwnCopy(decision) ? this.#delete(seen, refusal.reason) : this.#refuse(seen, refusal);
  }

  async #delete(seen: Observation, reason: string): Promise<ReconcileResult> {
    const { host, target } = seen;
    invariant(host?.metadata.uid && target, 'a host copy that is deleted exists in the cache');
    if (seen.virtual === undefined && (await this.#caches.isMissedByCache(seen.key, host)))
      return DECIDE_AGAIN;
    const waitMs = this.#fightWaitMs(seen, host);
    if (waitMs > 0) return { outcome: 'waiting', reason: 'Contested', waitMs };
    const outcome = await this.#options.host.writer.delete(target, host.metadata.uid, reason);
    await this.#status.clear(seen, host);
    this.#memory.forget(seen.key);
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
    if (isReportable) this.#memory.report(seen, recreatedNotice(copy, waitMs));
    if (waitMs === 0) foughtDeletions.note(group, metadata.resourceVersion, host.cache.resourceVersion);
    return waitMs;
  }

  /** Deletes a copy that was written under an earlier configuration. */
  async #deleteStray({ metadata: { namespace = '', name, uid = '' } }: KubeObject): Promise<void> {
    await this.#options.host.writer.delete({ namespace, name }, uid, 'belongs elsewhere now');
    this.#options.released({ namespace, name });
  }
}
