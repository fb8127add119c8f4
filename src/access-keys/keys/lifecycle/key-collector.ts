/**
 * The garbage collector of keys: deletes expired keys, ends deletions after their grace period (also after a restart), collects keys whose
 * owners are all gone, and removes the finalizers `orphan` and `foregroundDeletion`. Level-triggered: each change of a key or of its owners
 * enqueues it, and the action follows from the current state. Replicas may do the same work concurrently; the slower one finds it done.
 */

import { hasCollectorFinalizer } from '../../../apiserver/objects/collector-finalizers.ts';
import type { Clock, Timer } from '../../../base/clock.ts';
import type { Logger } from '../../../base/logger.ts';
import { createWorkQueue, type WorkQueue } from '../../../kube/work-queue.ts';
import { StoreError } from '../../../apiserver/storage/store.ts';
import { decideLifecycle, type LifecycleAction } from './key-lifecycle.ts';
import type { KeyActivity } from '../authentication/key-activity.ts';
import { activityIntervalMs } from './key-expiry.ts';
import type { KeyIndex } from '../index/key-index.ts';
import type { IndexedKey, KeyChange } from '../index/key-record.ts';
import type { KeyRemoval } from './key-removal.ts';

/** A scan visits every key: minimum interval. */
const SCAN_INTERVAL_MS = 100;
/** Timers have a maximum, and a clock may be set. */
const SCAN_MAX_MS = 3_600_000;
const RETRY_BASE_MS = 50;
const RETRY_MAX_MS = 30_000;

export interface KeyCollectorOptions {
  readonly index: KeyIndex;
  readonly activity: KeyActivity;
  readonly removal: KeyRemoval;
  /** Reports an expired key that was deleted. Must not reject. */
  reportExpired(key: IndexedKey, endMs: number): Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class KeyCollector {
  readonly #options: KeyCollectorOptions;
  readonly #queue: WorkQueue;
  #timer: Timer | undefined;
  #timerMs = Number.POSITIVE_INFINITY;
  #worker: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: KeyCollectorOptions) {
    this.#options = options;
    const { clock } = options;
    this.#queue = createWorkQueue({
      clock,
      metrics: NO_METRICS,
      retryBaseMs: RETRY_BASE_MS,
      retryMaxMs: RETRY_MAX_MS,
    });
  }

  /** The index must have been started. */
  start(): void {
    const { index } = this.#options;
    index.onChange((change) => this.#enqueueAffected(change));
    for (const key of index.all()) if (needsReconcile(key)) this.#queue.add(key.uid);
    this.#scan();
    this.#worker = this.#work();
  }

  /** Waits for the action in progress. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#queue.shutDown();
    await this.#worker;
  }

  #enqueueAffected({ now, before }: KeyChange): void {
    const { index } = this.#options;
    for (const key of [now, before]) {
      if (!key || this.#isStopped) continue;
      if (needsReconcile(key)) this.#queue.add(key.uid);
      for (const { uid } of key.owners) if (index.byUid(uid)?.deletion) this.#queue.add(uid);
    }
    // Dependents depend only on whether an owner exists or is being deleted.
    const uid = now?.uid !== before?.uid || now?.deletion ? (before ?? now)?.uid : undefined;
    if (uid !== undefined)
      for (const { uid: dependent } of index.dependentsOf(uid)) this.#queue.add(dependent);
    if (now) this.#wakeAt(this.#dueMs(now));
  }

  /** When the key is due by time alone. Infinity: never. */
  #dueMs(key: IndexedKey): number {
    if (key.deletion) return key.deletion.hasGrace ? key.deletion.dueMs : Number.POSITIVE_INFINITY;
    return this.#endMs(key) ?? Number.POSITIVE_INFINITY;
  }

  /** With ttlAfterLastActivity the end is delayed by the time that another replica may take to write a use. */
  #endMs(key: IndexedKey): number | undefined {
    const endMs = this.#options.index.expiresAtMs(key);
    return endMs !== undefined && key.isAfterActivity ? endMs + 2 * activityIntervalMs(key) : endMs;
  }

  #wakeAt(dueMs: number): void {
    if (this.#isStopped || dueMs >= this.#timerMs) return;
    const nowMs = this.#options.clock.now();
    const delayMs = Math.min(Math.max(dueMs - nowMs, SCAN_INTERVAL_MS), SCAN_MAX_MS);
    this.#timer?.cancel();
    this.#timerMs = nowMs + delayMs;
    this.#timer = this.#options.clock.schedule(delayMs, () => this.#scan());
  }

  /** Enqueues the keys that are due and schedules the next scan. */
  #scan(): void {
    this.#timerMs = Number.POSITIVE_INFINITY;
    const nowMs = this.#options.clock.now();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const key of this.#options.index.all()) {
      const dueMs = this.#dueMs(key);
      if (dueMs <= nowMs) this.#queue.add(key.uid);
      else nextMs = Math.min(nextMs, dueMs);
    }
    if (Number.isFinite(nextMs)) this.#wakeAt(nextMs);
  }

  async #work(): Promise<void> {
    for (let uid = await this.#queue.take(); uid !== undefined; uid = await this.#queue.take()) {
      try {
        if (!this.#isStopped) await this.#reconcile(uid);
        this.#queue.forget(uid);
      } catch (error) {
        if (error instanceof StoreError && error.code === 'closed') continue;
        this.#options.logger.warn({ err: error, uid }, 'cannot collect an access key, retrying');
        this.#queue.addRateLimited(uid);
      } finally {
        this.#queue.done(uid);
      }
    }
  }

  async #reconcile(uid: string): Promise<void> {
    const { index, activity, removal, clock } = this.#options;
    const key = index.byUid(uid);
    if (!key) return;
    if (key.isAfterActivity && this.#dueMs(key) <= clock.now()) await activity.read();
    const nowMs = clock.now();
    const action = decideLifecycle(key, index, { nowMs, endMs: this.#endMs(key) });
    switch (action.kind) {
      case 'none':
        this.#wakeAt(this.#dueMs(key));
        return;
      case 'delete':
        return this.#delete(key, action);
      case 'removeFinalizer':
        for (const orphan of action.orphans) await removal.removeOwners(orphan, [key.uid]);
        return removal.removeFinalizer(key, action.finalizer);
      case 'removeOwners':
        return removal.removeOwners(key, action.uids);
    }
  }

  async #delete(key: IndexedKey, action: Extract<LifecycleAction, { kind: 'delete' }>): Promise<void> {
    const { index, removal } = this.#options;
    const endMs = index.expiresAtMs(key);
    const isDeleted = await removal.delete(key, action);
    if (isDeleted && action.why === 'expired' && endMs !== undefined) {
      await this.#options.reportExpired(key, endMs);
    }
  }
}

/** Whether there can be an action for the key independent of time. */
function needsReconcile({ owners, finalizers, deletion }: IndexedKey): boolean {
  return owners.length > 0 || (deletion !== undefined && hasCollectorFinalizer(finalizers));
}

const NO_METRICS = {
  depth: () => undefined,
  added: () => undefined,
  retried: () => undefined,
  queued: () => undefined,
  worked: () => undefined,
};
