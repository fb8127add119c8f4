/** Writes a host copy from scratch: a new one, a replacement of an older object, or a take-over. */

import { invariant } from '../../base/errors.ts';
import { parseKey, type KubeObject } from '../../kube/object.ts';
import { hasSelector } from '../kinds/kind.ts';
import type { CacheRefresh } from './cache-refresh.ts';
import type { Observation } from './decide/decide.ts';
import { keepsDeletingNotice, syncedNotice, takenOverNotice } from './notices.ts';
import { pairOf, type PairMemory } from './pair-memory.ts';
import type { ReconcilerOptions } from './reconciler-options.ts';
import { DECIDE_AGAIN, type ReconcileResult } from './result.ts';
import type { StatusFlow } from './status-flow.ts';

const HOST_DELETED = 'host copy was deleted';
const DELETION_CHECK_MS = 5000;

export interface CopyCreationParts {
  readonly memory: PairMemory;
  readonly caches: CacheRefresh;
  readonly status: StatusFlow;
}

export class CopyCreation {
  readonly #options: ReconcilerOptions;
  readonly #memory: PairMemory;
  readonly #caches: CacheRefresh;
  readonly #status: StatusFlow;

  constructor(options: ReconcilerOptions, { memory, caches, status }: CopyCreationParts) {
    this.#options = options;
    this.#memory = memory;
    this.#caches = caches;
    this.#status = status;
  }

  async create(seen: Observation): Promise<ReconcileResult> {
    const { virtual, key } = seen;
    const { recreation, onHostDelete, forge, host, references } = this.#options;
    invariant(virtual, 'an object that is copied exists');
    if (onHostDelete === 'deleteVirtual' && recreation.hasLostCopy(key, virtual.metadata.uid ?? ''))
      return this.#deleteVirtual(seen, virtual);
    const waitMs = recreation.waitMs(key);
    if (waitMs > 0) return this.#waitForRecreation(seen, waitMs);
    if (await this.#caches.learnService(seen, virtual)) return DECIDE_AGAIN;
    const copy = await forge.fresh(pairOf(seen), this.#memory.agreed(key, virtual));
    this.#memory.reportNotAllowed(seen, copy.notAllowed);
    const stored = await host.writer.create(copy.host, 'no host copy');
    references.recordReferences(key, copy.references);
    this.#memory.report(seen, syncedNotice(copy.host));
    await this.#rememberWithStatus(seen, virtual, stored ?? copy.host, copy.isEchoed);
    if (copy.isEchoed) return { outcome: 'created', waitMs: 0 };
    return this.#memory.rerunAfterWrite(key, { outcome: 'created' });
  }

  /** Replaces the host object with one PUT, guarded by resourceVersion. */
  async rewrite(seen: Observation, reason: string): Promise<ReconcileResult> {
    const { virtual, host } = seen;
    const { forge, kind, references } = this.#options;
    invariant(virtual && host?.metadata.resourceVersion, 'both objects exist when a copy is rewritten');
    if (await this.#caches.isVirtualBehind(virtual, host)) return DECIDE_AGAIN;
    const copy = await forge.fresh(pairOf(seen));
    this.#memory.reportNotAllowed(seen, copy.notAllowed);
    if (kind.needsRecreation(copy.host, host)) return this.deleteToRecreate(seen, host);
    // Without its finalizers, an object that is being deleted is removed before another client is done with it.
    const { resourceVersion, uid = '', finalizers } = host.metadata;
    const kept = finalizers === undefined ? {} : { finalizers };
    const metadata = { ...copy.host.metadata, ...kept, resourceVersion, uid };
    const stored = await this.#options.host.writer.update({ ...copy.host, metadata }, reason);
    references.recordReferences(seen.key, copy.references);
    await this.#rememberWithStatus(seen, virtual, stored ?? host);
    return this.#memory.rerunAfterWrite(seen.key, { outcome: 'rewritten', reason });
  }

  /** The virtual object may have the status of an earlier copy, and a new virtual object has none yet. */
  async #rememberWithStatus(
    seen: Observation,
    virtual: KubeObject,
    host: KubeObject,
    isEchoed = false,
  ): Promise<void> {
    if ((await this.#status.copy(seen, virtual, host)) === undefined)
      this.#memory.remember(seen, virtual, host, isEchoed);
  }

  /** While the host Service has a selector, the host's endpoints controller still writes the object. */
  async takeOver(seen: Observation): Promise<ReconcileResult> {
    const { key, target, host } = seen;
    const { takeOverBackoff, references } = this.#options;
    invariant(target && host, 'an object that is taken over exists on the host');
    const service = await this.#caches.readHostService(target);
    if (service !== undefined && hasSelector(service)) {
      references.clearReferences(key);
      const waitMs = takeOverBackoff.next(key);
      return { outcome: 'waiting', reason: 'host Service has a selector', waitMs };
    }
    takeOverBackoff.forget(key);
    const result = await this.rewrite(seen, 'taken over');
    if (result !== DECIDE_AGAIN) this.#memory.report(seen, takenOverNotice(host));
    return result;
  }

  /** The key is requeued immediately, and the next reconcile creates the copy. */
  async deleteToRecreate({ key, target }: Observation, host: KubeObject): Promise<ReconcileResult> {
    const reason = 'an immutable field has changed';
    invariant(target, 'a copy that is updated has a target');
    // A finalizer delays the deletion; its removal causes an event.
    if (host.metadata['deletionTimestamp'] !== undefined)
      return { outcome: 'waiting', reason: 'host copy is being deleted', waitMs: DELETION_CHECK_MS };
    const outcome = await this.#options.host.writer.delete(target, host.metadata.uid ?? '', reason);
    this.#options.pairs.delete(key);
    // A dry run leaves the copy in place, so a requeue would delete it again in an endless loop.
    return outcome === 'dryRun' ? { outcome: 'deleted', reason } : { outcome: 'deleted', reason, waitMs: 0 };
  }

  async #deleteVirtual({ key, target }: Observation, virtual: KubeObject): Promise<ReconcileResult> {
    // Deleted first, the object would take away the reason for which its Service is synced, and the Service would stay.
    if (target !== undefined && (await this.#options.isDeletedAlong(key, target)))
      return { outcome: 'waiting', reason: HOST_DELETED, waitMs: DELETION_CHECK_MS, isTransient: true };
    await this.#options.virtual.writer.delete(parseKey(key), virtual.metadata.uid ?? '', HOST_DELETED);
    this.#memory.forget(key);
    return { outcome: 'deleted', reason: HOST_DELETED };
  }

  /** Reports once per streak that another client keeps deleting the host copy. */
  #waitForRecreation(seen: Observation, waitMs: number): ReconcileResult {
    if (this.#options.recreation.deletions(seen.key) === 2)
      this.#memory.report(seen, keepsDeletingNotice(this.#options.kind.deletionHint));
    return { outcome: 'waiting', reason: HOST_DELETED, waitMs };
  }
}
