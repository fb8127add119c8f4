/**
 * The garbage collector of keys: deletes expired keys a week after their end, ends deletions after their grace period (also after a restart), collects keys whose
 * owners are all gone, and removes the finalizers `orphan` and `foregroundDeletion`. Level-triggered: each change of a key or of its owners
 * enqueues it, and the action follows from the current state. Replicas may do the same work concurrently; the slower one finds it done.
 */

import { activityIntervalMs, KEEP_EXPIRED_MS } from './stored-key.ts';
import { metadataOf } from '../../kube/object.ts';
import { hasCollectorFinalizer } from '../../apiserver/metadata.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { SERVER_WRITE } from '../identity.ts';
import type { Logger } from '../../base/logger.ts';
import { OutageLog } from '../../base/outage-log.ts';
import { WorkQueue } from '../../kube/work-queue.ts';
import { StoreError, type Store, type StoredEntry } from '../../apiserver/storage/store.ts';
import { decideLifecycle, type LifecycleAction, isKeyReference } from './key-lifecycle.ts';
import type { KeyActivity } from './key-activity.ts';
import type { IndexedKey, KeyChange, KeyIndex } from './key-index.ts';
import type { ExpiryEvents } from './expiry-events.ts';
import type { ObjectRegistry } from '../../apiserver/objects/object-registry.ts';
import type { Written } from '../../apiserver/objects/object-writer.ts';
import { notFound } from '../../apiserver/status.ts';
import {
  currentForm,
  groupName,
  type Target,
  type ResourceDefinition,
} from '../../apiserver/objects/resource-definition.ts';
import { ignoreNotFound, StatusError } from '../../kube/status-error.ts';
import { cloneJson, type JsonObject, listField, objectList, text } from '../../base/json.ts';

/** A scan visits every key: minimum interval. */
const SCAN_INTERVAL_MS = 100;
/** A scan also notices that the wall clock was set. */
const SCAN_MAX_MS = 30_000;
const RETRY_BASE_MS = 50;
const RETRY_MAX_MS = 30_000;

/** Only this many expired keys with a shorter ttl are kept of each subject: a client could create any number within the week. */
const SHORT_TTL_MS = 86_400_000;
export const SHORT_LIVED_KEPT_MAX = 1000;

/** A larger change of the wall clock against the monotonic one is a step. */
const CLOCK_STEP_MS = 5 * 60_000;
/** Time without deletions of expired keys after a step, for the clock to be set right. */
const CLOCK_PAUSE_MS = 3_600_000;

interface KeyCollectorOptions {
  readonly store: Store;
  readonly registry: ObjectRegistry;
  readonly definition: ResourceDefinition;
  readonly index: KeyIndex;
  readonly activity: KeyActivity;
  readonly expiry: Pick<ExpiryEvents, 'expired' | 'deleted'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class KeyCollector {
  readonly #options: KeyCollectorOptions;
  readonly #queue: WorkQueue;
  readonly #outage: OutageLog;
  #timer: Timer | undefined;
  #timerMs = Number.POSITIVE_INFINITY;
  #worker: Promise<void> | undefined;
  #isStopped = false;
  readonly #listeners: ((key: IndexedKey) => void)[] = [];
  /** Keys that have expired, by uid. */
  readonly #reported = new Set<string>();
  #surplus: ReadonlySet<string> = new Set();
  /** Of the wall clock against the monotonic one. */
  #clockOffsetMs: number;
  /** Monotonic. */
  #pausedUntilMs = 0;

  constructor(options: KeyCollectorOptions) {
    this.#options = options;
    const { clock, logger } = options;
    this.#outage = new OutageLog(logger, 'cannot collect an access key, retrying');
    this.#clockOffsetMs = clock.now() - clock.monotonicMs();
    this.#queue = new WorkQueue({
      clock,
      metrics: NO_METRICS,
      retryBaseMs: RETRY_BASE_MS,
      retryMaxMs: RETRY_MAX_MS,
    });
  }

  /** Called when a key has expired; after a restart of this process once more. Must not throw. */
  onExpired(listener: (key: IndexedKey) => void): void {
    this.#listeners.push(listener);
  }

  /** The index must have been started. */
  start(): void {
    const { index } = this.#options;
    index.onChange((change) => this.#enqueueAffected(change));
    for (const key of index.all()) if (needsReconcile(key)) this.#queue.add(key.uid);
    this.#scan();
    this.#worker = this.#work();
  }

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
    if (before) this.#reported.delete(before.uid);
    if (now) this.#wakeAt(this.#dueMs(now));
  }

  /** Must be called before a decision by time. */
  #checkClock(): void {
    const { clock, logger } = this.#options;
    const offsetMs = clock.now() - clock.monotonicMs();
    const stepMs = offsetMs - this.#clockOffsetMs;
    this.#clockOffsetMs = offsetMs;
    if (Math.abs(stepMs) <= CLOCK_STEP_MS) return;
    this.#pausedUntilMs = clock.monotonicMs() + CLOCK_PAUSE_MS;
    const stepSeconds = Math.round(stepMs / 1000);
    logger.warn({ stepSeconds }, 'the wall clock was set: no expired access key is deleted for an hour');
    this.#scan();
  }

  /** When the key is due by time alone. Infinity: never. */
  #dueMs(key: IndexedKey): number {
    if (key.deletion) return key.deletion.hasGrace ? key.deletion.dueMs : Number.POSITIVE_INFINITY;
    const endMs = this.#endMs(key) ?? Number.POSITIVE_INFINITY;
    return this.#reported.has(key.uid) ? this.#removalMs(key) : endMs;
  }

  /** When the expired key is deleted. Infinity: never. */
  #removalMs(key: IndexedKey): number {
    const { clock } = this.#options;
    const endMs = this.#endMs(key) ?? Number.POSITIVE_INFINITY;
    const removalMs = this.#surplus.has(key.uid) ? endMs : endMs + KEEP_EXPIRED_MS;
    const pauseMs = this.#pausedUntilMs - clock.monotonicMs();
    return pauseMs > 0 ? Math.max(removalMs, clock.now() + pauseMs) : removalMs;
  }

  /** With ttlAfterLastActivity the end is delayed by the time that another replica may take to write a use. */
  #endMs(key: IndexedKey): number | undefined {
    const endMs = this.#options.index.expiresAtMs(key);
    return endMs !== undefined && key.isAfterActivity ? endMs + 2 * activityIntervalMs(key) : endMs;
  }

  #wakeAt(dueMs: number): void {
    if (this.#isStopped || dueMs >= this.#timerMs) return;
    const nowMs = this.#options.clock.now();
    const delayMs = Math.max(dueMs - nowMs, SCAN_INTERVAL_MS);
    this.#timer?.cancel();
    this.#timerMs = nowMs + delayMs;
    this.#timer = this.#options.clock.schedule(delayMs, () => this.#scan());
  }

  /** Enqueues the keys that are due and schedules the next scan. */
  #scan(): void {
    this.#checkClock();
    this.#timerMs = Number.POSITIVE_INFINITY;
    const { index, clock } = this.#options;
    const nowMs = clock.now();
    this.#surplus = this.#shortLivedSurplus(nowMs);
    let nextMs = nowMs + SCAN_MAX_MS;
    for (const key of index.all()) {
      // It may have been reported by a clock that was ahead.
      if ((this.#endMs(key) ?? 0) > nowMs) this.#reported.delete(key.uid);
      const dueMs = this.#dueMs(key);
      if (dueMs <= nowMs) this.#queue.add(key.uid);
      else nextMs = Math.min(nextMs, dueMs);
    }
    this.#wakeAt(nextMs);
  }

  /** The uids of expired keys that are not kept, those that expired first. */
  #shortLivedSurplus(nowMs: number): ReadonlySet<string> {
    const expired = Map.groupBy(
      [...this.#options.index.all()].filter(
        (key) => key.ttlMs < SHORT_TTL_MS && (this.#endMs(key) ?? Number.POSITIVE_INFINITY) <= nowMs,
      ),
      ({ user }) => user.name,
    );
    const surplus = new Set<string>();
    for (const keys of expired.values()) {
      if (keys.length <= SHORT_LIVED_KEPT_MAX) continue;
      keys.sort((a, b) => (this.#endMs(a) ?? 0) - (this.#endMs(b) ?? 0));
      for (const { uid } of keys.slice(0, -SHORT_LIVED_KEPT_MAX)) surplus.add(uid);
    }
    return surplus;
  }

  async #work(): Promise<void> {
    for (let uid = await this.#queue.take(); uid !== undefined; uid = await this.#queue.take()) {
      try {
        if (!this.#isStopped) await this.#reconcile(uid);
        this.#queue.forget(uid);
        this.#outage.ended();
      } catch (error) {
        if (error instanceof StoreError && error.code === 'closed') continue;
        this.#outage.failed({ err: error, uid });
        this.#queue.addRateLimited(uid);
      } finally {
        this.#queue.done(uid);
      }
    }
  }

  async #reconcile(uid: string): Promise<void> {
    const { index, activity, clock } = this.#options;
    const key = index.byUid(uid);
    if (!key) return;
    this.#checkClock();
    if (key.isAfterActivity && this.#dueMs(key) <= clock.now()) await activity.read();
    const nowMs = clock.now();
    const action = decideLifecycle(key, index, nowMs, this.#removalMs(key));
    switch (action.kind) {
      case 'none':
        await this.#reportExpired(key, nowMs);
        this.#wakeAt(this.#dueMs(key));
        return;
      case 'delete':
        return this.#delete(key, action);
      case 'removeFinalizer':
        for (const orphan of action.orphans) await this.#removeOwners(orphan, [key.uid]);
        return this.#removeFinalizer(key, action.finalizer);
      case 'removeOwners':
        return this.#removeOwners(key, action.uids);
    }
  }

  async #reportExpired(key: IndexedKey, nowMs: number): Promise<void> {
    const endMs = this.#endMs(key);
    if (key.deletion || endMs === undefined || endMs > nowMs || this.#reported.has(key.uid)) return;
    this.#reported.add(key.uid);
    for (const listener of this.#listeners) listener(key);
    const { index, expiry } = this.#options;
    await expiry.expired(key, index.expiresAtMs(key) ?? endMs);
  }

  // Each write is conditional on the state of the decision and does nothing if the key has changed.

  async #delete(
    key: IndexedKey,
    { why, isForeground }: Extract<LifecycleAction, { kind: 'delete' }>,
  ): Promise<void> {
    if (why === 'ownerless' && (await this.#hasOwner(key))) return;
    const { registry, logger, index, expiry } = this.#options;
    const endMs = index.expiresAtMs(key);
    try {
      await registry.delete(this.#target(key), {
        gracePeriodSeconds: why === 'graceOver' ? 0 : undefined,
        uid: key.uid,
        // A key that changed in the meantime is decided again.
        resourceVersion: String(key.revision),
        propagationPolicy: isForeground ? 'Foreground' : undefined,
      });
      logger.info({ key: key.name, uid: key.uid, why }, 'access key deleted');
      if (why === 'expired' && endMs !== undefined) expiry.deleted(key, endMs);
    } catch (error) {
      if (!isOutdated(error)) throw error;
    }
  }

  /** Reads the owners from the store: the index may lag behind, and nothing is deleted because of that. */
  async #hasOwner({ owners }: IndexedKey): Promise<boolean> {
    const { store, definition } = this.#options;
    for (const owner of owners.filter(isKeyReference)) {
      const entry = await store.get({ resource: definition.storage, namespace: '', name: owner.name });
      const metadata = entry && metadataOf(entry.value);
      if (!metadata || text(metadata, 'uid') !== owner.uid) continue;
      if (text(metadata, 'deletionTimestamp') === '') return true;
    }
    return false;
  }

  async #removeFinalizer(key: IndexedKey, finalizer: string): Promise<void> {
    await this.#change(key, (metadata) => {
      const left = listField(metadata, 'finalizers').filter((name) => name !== finalizer);
      return { ...metadata, finalizers: left };
    });
  }

  async #removeOwners(key: IndexedKey, uids: readonly string[]): Promise<void> {
    await this.#change(key, (metadata) => {
      const left = objectList(metadata, 'ownerReferences').filter(
        (owner) => !uids.includes(text(owner, 'uid')),
      );
      return { ...metadata, ownerReferences: left };
    });
  }

  async #change(key: IndexedKey, change: (metadata: JsonObject) => JsonObject): Promise<void> {
    const { registry } = this.#options;
    const target = this.#target(key);
    const write = async (entry: StoredEntry): Promise<Written> => {
      const object = cloneJson(currentForm(target.definition, entry));
      const metadata = metadataOf(object);
      if (text(metadata, 'uid') !== key.uid) throw notFound(groupName(target.definition), key.name);
      return registry.writer.replace(target, entry, { ...object, metadata: change(metadata) }, SERVER_WRITE);
    };
    await ignoreNotFound(registry.modify(target, write, false));
  }

  #target({ name }: IndexedKey): Target {
    return { definition: this.#options.definition, namespace: '', name };
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

/** The key was deleted or changed; its event enqueues it again. */
function isOutdated(error: unknown): boolean {
  return error instanceof StatusError && (error.code === 404 || error.code === 409);
}
