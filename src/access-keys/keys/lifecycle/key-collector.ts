/**
 * What the server does to keys by itself: deletes expired ones, ends deletions whose grace is over (also after a restart), collects keys
 * whose owners are all gone, and takes away the two finalizers that are its own. Level-triggered: a key comes again with every change around
 * it, and what to do follows from how things are. Several replicas may do the same at once; the slower one finds it done.
 */

import { hasCollectorFinalizer } from '../../../apiserver/objects/collector-finalizers.ts';
import type { Clock, Timer } from '../../../base/clock.ts';
import type { Logger } from '../../../base/logger.ts';
import { createWorkQueue, type WorkQueue } from '../../../kube/work-queue.ts';
import { StoreError } from '../../../apiserver/storage/store.ts';
import { decideLifecycle } from './key-lifecycle.ts';
import type { KeyActivity } from '../authentication/key-activity.ts';
import { activityIntervalMs } from './key-expiry.ts';
import type { KeyIndex } from '../index/key-index.ts';
import type { IndexedKey, KeyChange } from '../index/key-record.ts';
import type { KeyRemoval } from './key-removal.ts';

/** A scan for what is due looks at every key: not more often than this. */
const SCAN_INTERVAL_MS = 100;
/** A timer cannot wait for ever, and a clock may be set. */
const SCAN_MAX_MS = 3_600_000;
const RETRY_BASE_MS = 50;
const RETRY_MAX_MS = 30_000;

export interface KeyCollectorOptions {
  readonly index: KeyIndex;
  readonly activity: KeyActivity;
  readonly removal: KeyRemoval;
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
    index.onChange((change) => this.#changed(change));
    for (const key of index.all()) if (needsCare(key)) this.#queue.add(key.uid);
    this.#scan();
    this.#worker = this.#work();
  }

  /** Waits until what is under way has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#queue.shutDown();
    await this.#worker;
  }

  #changed({ now, before }: KeyChange): void {
    const { index } = this.#options;
    for (const key of [now, before]) {
      if (!key || this.#isStopped) continue;
      if (needsCare(key)) this.#queue.add(key.uid);
      for (const { uid } of key.owners) if (index.byUid(uid)?.deletion) this.#queue.add(uid);
    }
    // Dependents care whether an owner is there, going or gone; nothing else of it matters to them.
    const uid = now?.uid !== before?.uid || now?.deletion ? (before ?? now)?.uid : undefined;
    if (uid !== undefined)
      for (const { uid: dependent } of index.dependentsOf(uid)) this.#queue.add(dependent);
    if (now) this.#wakeAt(this.#dueMs(now));
  }

  /** When something happens to the key by the clock alone. Infinity: never. */
  #dueMs(key: IndexedKey): number {
    if (key.deletion) return key.deletion.hasGrace ? key.deletion.dueMs : Number.POSITIVE_INFINITY;
    return this.#endMs(key) ?? Number.POSITIVE_INFINITY;
  }

  /** A key that lives from its last use gets the time that another replica has to note one. */
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

  /** Queues what is due and waits for the next that will be. */
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
        if (!this.#isStopped) await this.#care(uid);
        this.#queue.forget(uid);
      } catch (error) {
        if (error instanceof StoreError && error.code === 'closed') continue;
        this.#options.logger.warn({ err: error, uid }, 'a key could not be collected, trying again');
        this.#queue.addRateLimited(uid);
      } finally {
        this.#queue.done(uid);
      }
    }
  }

  async #care(uid: string): Promise<void> {
    const { index, activity, removal, clock } = this.#options;
    const key = index.byUid(uid);
    if (!key) return;
    if (key.isAfterActivity && this.#dueMs(key) <= clock.now()) await activity.read();
    const nowMs = clock.now();
    const fate = decideLifecycle(key, index, { nowMs, endMs: this.#endMs(key) });
    switch (fate.kind) {
      case 'stay':
        this.#wakeAt(this.#dueMs(key));
        return;
      case 'remove':
        return removal.remove(key, fate);
      case 'release':
        for (const orphan of fate.orphans) await removal.disown(orphan, [key.uid]);
        return removal.release(key, fate.finalizer);
      case 'disown':
        return removal.disown(key, fate.uids);
    }
  }
}

/** What may have to happen to it now, whatever the clock says. */
function needsCare({ owners, finalizers, deletion }: IndexedKey): boolean {
  return owners.length > 0 || (deletion !== undefined && hasCollectorFinalizer(finalizers));
}

const NO_METRICS = {
  depth: () => undefined,
  added: () => undefined,
  retried: () => undefined,
  queued: () => undefined,
  worked: () => undefined,
};
