/** Reconciles one key: observe both sides, decide, act. Idempotent. */

import { invariant } from '../../base/errors.ts';
import type { KubeObject, ObjectKey } from '../../kube/object.ts';
import { CacheRefresh } from './cache-refresh.ts';
import { CopyCreation } from './create-copy.ts';
import { decide, type Decision, type Observation } from './decide/decide.ts';
import { warning } from './notices.ts';
import { PairMemory } from './pair-memory.ts';
import type { ReconcilerOptions } from './reconciler-options.ts';
import { DECIDE_AGAIN, UNCHANGED, type Reconcile, type ReconcileResult } from './result.ts';
import { StatusFlow } from './status-flow.ts';
import { PairUpdate } from './update-pair.ts';

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
    const seen = this.#options.observe(key);
    const decision = decide(seen, this.#options.decide);
    // A change of an object of another kind can change the decision for an unchanged pair, so decide first. A former leader may still have
    // written a copy to another place.
    const isUpdate = decision.kind === 'update' && seen.strays.length === 0;
    if (isUpdate && this.#memory.isUnchanged(seen)) return UNCHANGED;
    try {
      for (const stray of seen.strays) await this.#deleteStray(stray);
      return await this.#act(decision, seen);
    } catch (error) {
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

  async #delete(seen: Observation, reason: string): Promise<ReconcileResult> {
    const { host, target } = seen;
    invariant(host?.metadata.uid && target, 'a host copy that is deleted exists in the cache');
    if (seen.virtual === undefined && (await this.#caches.isMissedByCache(seen.key, host)))
      return DECIDE_AGAIN;
    await this.#options.host.writer.delete(target, host.metadata.uid, reason);
    await this.#status.clear(seen, host);
    this.#memory.forget(seen.key);
    this.#options.released(target);
    return { outcome: 'deleted', reason };
  }

  /** Deletes a copy that was written under an earlier configuration. */
  async #deleteStray({ metadata: { namespace = '', name, uid = '' } }: KubeObject): Promise<void> {
    await this.#options.host.writer.delete({ namespace, name }, uid, 'belongs elsewhere now');
    this.#options.released({ namespace, name });
  }
}
