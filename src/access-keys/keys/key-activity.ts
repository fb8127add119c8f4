/**
 * The last use of each key: exact in memory, and written to the notes of the store at most once a minute per key, many keys in one write. The
 * resourceVersion of a key does not change.
 */

import { activityIntervalMs } from './stored-key.ts';
import { metadataOf, timeText } from '../../kube/object.ts';
import type { Overlay } from '../../apiserver/objects/resource-definition.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { type JsonObject, objectField, text } from '../../base/json.ts';
import type { Logger } from '../../base/logger.ts';
import { OutageLog } from '../../base/outage-log.ts';
import type { Notes, Store } from '../../apiserver/storage/store.ts';
import type { KeyRecord } from '../identity.ts';

/** Notes that become due within this time share one write. */
const BATCH_MS = 1_000;
const RETRY_MS = 5_000;

interface KeyActivityOptions {
  readonly store: Pick<Store, 'notes'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Table of notes in the store: uid → ISO time. */
const NOTES = 'activity';

export class KeyActivity implements Overlay {
  readonly #options: KeyActivityOptions;
  readonly #notes: Notes;
  readonly #outage: OutageLog;
  readonly #lastMs = new Map<string, number>();
  /** When the last note of each key was written. */
  readonly #notedMs = new Map<string, number>();
  /** Keys that were used since their last note: when the next one may be written. */
  readonly #dueMs = new Map<string, number>();
  /** Deleted keys whose notes must be deleted. */
  readonly #gone = new Set<string>();
  #timer: Timer | undefined;
  #timerMs = 0;
  #isStopped = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: KeyActivityOptions) {
    this.#options = options;
    this.#notes = options.store.notes(NOTES);
    this.#outage = new OutageLog(options.logger, 'cannot write the last use of keys, retrying');
  }

  /** Reads the notes, including those of other replicas. Rejects with `StoreError`. */
  async read(): Promise<void> {
    for (const [uid, time] of await this.#notes.read()) {
      const ms = Date.parse(time);
      if (Number.isNaN(ms) || this.#gone.has(uid)) continue;
      this.#notedMs.set(uid, Math.max(ms, this.#notedMs.get(uid) ?? 0));
      this.#lastMs.set(uid, Math.max(ms, this.#lastMs.get(uid) ?? 0));
    }
  }

  lastMs(uid: string): number | undefined {
    return this.#lastMs.get(uid);
  }

  get uids(): Iterable<string> {
    return this.#lastMs.keys();
  }

  recordUse(key: Pick<KeyRecord, 'uid' | 'ttlMs'>): void {
    const { uid } = key;
    const nowMs = this.#options.clock.now();
    this.#lastMs.set(uid, Math.max(nowMs, this.#lastMs.get(uid) ?? 0));
    if (this.#dueMs.has(uid)) return;
    const intervalMs = activityIntervalMs(key);
    const dueMs = Math.max(nowMs, (this.#notedMs.get(uid) ?? 0) + intervalMs);
    this.#dueMs.set(uid, dueMs);
    this.#writeAt(Math.max(dueMs, nowMs + Math.min(BATCH_MS, intervalMs)));
  }

  forget(uid: string): void {
    if (!this.#lastMs.delete(uid) && !this.#notedMs.has(uid)) return;
    this.#dueMs.delete(uid);
    this.#notedMs.delete(uid);
    this.#gone.add(uid);
    this.#writeAt(this.#options.clock.now() + BATCH_MS);
  }

  async flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const uid of this.#dueMs.keys()) this.#dueMs.set(uid, 0);
    await this.#write();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.flush();
  }

  /** For an `Overlay`: `status.lastActivity` is the last use, unless the object itself has a later one. */
  version(object: JsonObject): string {
    const lastMs = this.#lastMs.get(text(metadataOf(object), 'uid'));
    if (lastMs === undefined) return '';
    const time = timeText(lastMs);
    return time > text(objectField(object, 'status'), 'lastActivity') ? time : '';
  }

  over(object: JsonObject): JsonObject {
    const time = this.version(object);
    if (time === '') return object;
    return { ...object, status: { ...objectField(object, 'status'), lastActivity: time } };
  }

  #writeAt(atMs: number): void {
    if (this.#isStopped || (this.#timer && this.#timerMs <= atMs)) return;
    this.#timer?.cancel();
    this.#timerMs = atMs;
    this.#timer = this.#options.clock.schedule(Math.max(0, atMs - this.#options.clock.now()), () => {
      this.#timer = undefined;
      void this.#write();
    });
  }

  /** Writes one after the other, so that an older write never overtakes a newer one. */
  #write(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#writeDue());
    return this.#writing;
  }

  /** Never rejects: what could not be written is due again. */
  async #writeDue(): Promise<void> {
    const nowMs = this.#options.clock.now();
    const changes = new Map<string, string | undefined>();
    for (const [uid, dueMs] of this.#dueMs) {
      if (dueMs > nowMs) continue;
      changes.set(uid, new Date(this.#lastMs.get(uid) ?? nowMs).toISOString());
      this.#dueMs.delete(uid);
      this.#notedMs.set(uid, nowMs);
    }
    for (const uid of this.#gone) changes.set(uid, undefined);
    try {
      if (changes.size > 0) {
        await this.#notes.write(changes);
        this.#outage.ended();
      }
      for (const [uid, time] of changes) if (time === undefined) this.#gone.delete(uid);
    } catch (error) {
      this.#outage.failed({ err: error, keys: changes.size });
      for (const uid of changes.keys()) if (this.#lastMs.has(uid)) this.#dueMs.set(uid, nowMs);
      return this.#writeAt(nowMs + RETRY_MS);
    }
    let nextMs = Number.POSITIVE_INFINITY;
    for (const dueMs of this.#dueMs.values()) nextMs = Math.min(nextMs, dueMs);
    if (Number.isFinite(nextMs)) this.#writeAt(Math.max(nextMs, nowMs + BATCH_MS));
  }
}
