/** The contract of a revisioned store, which all storage drivers implement. */

import type { JsonObject } from '../../base/json.ts';

/** The key of an object. A cluster-scoped object has the namespace `''`. */
export interface StoreKey {
  /** One storage per resource, `endpoints` or `leases.coordination.k8s.io`. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

export interface StoredEntry {
  readonly key: StoreKey;
  /** The complete object without its resourceVersion, which is {@link revision}. */
  readonly value: JsonObject;
  /** The store's counter when this state was written: positive and strictly increasing over the whole store. */
  readonly revision: number;
}

export interface StoreEvent {
  readonly type: 'created' | 'updated' | 'deleted';
  readonly revision: number;
  /** The state after the write; for `deleted` the last state, at the revision of the deletion. */
  readonly entry: StoredEntry;
  /** The state before, for `updated` and `deleted`. */
  readonly previous?: StoredEntry;
}

/** One resource, in one namespace or (absent) in all namespaces. */
export interface StoreRange {
  readonly resource: string;
  readonly namespace?: string;
}

export interface ListPage {
  /** Default: the current revision. A revision below the history window is `compacted`. */
  readonly atRevision?: number;
  /** The page begins after this key, see `orderedKey`. */
  readonly after?: string;
  /** Maximum number of entries; absent or 0: all. */
  readonly limit?: number;
}

export interface ListResult {
  /** In the order of `orderedKey`. */
  readonly entries: readonly StoredEntry[];
  readonly revision: number;
  readonly remaining: number;
}

/** Receives events in the order of their revisions; its methods must not throw. */
export interface WatchObserver {
  event(event: StoreEvent): void;
  /** The store has ended the watch, such as when it closes. Not called after `close()`. */
  end(): void;
}

export interface StoreWatch {
  /** Every event up to this revision has been sent. */
  readonly revision: number;
  close(): void;
}

/** What a store keeps current inside its commits: when a write resolves, the projection shows it. Its methods must not throw. */
export interface Projection {
  /** All objects of the resource, in place of those before: at the start, and when the store has read them again. */
  reset(entries: readonly StoredEntry[]): void;
  /** The object is now `entry`; undefined: it is deleted. */
  changed(key: StoreKey, entry: StoredEntry | undefined): void;
}

export interface Projected {
  /**
   * Undefined: the projection shows what the store shows. Otherwise rejects with `StoreError` `unavailable` unless the store can tell now: an engine
   * that was restored has not been read again, or another replica may have written anything since the engine responded last.
   */
  confirmed(): Promise<void> | undefined;
  /** Resolves when the projection shows every write that was acknowledged before this call, at any replica. */
  catchUp(): Promise<void>;
  /** Since the engine last responded; 0 while it responds. */
  readonly unconfirmedMs: number;
  close(): void;
}

export type StoreErrorCode =
  | 'exists'
  | 'missing'
  /** update, delete: the entry is at another revision; `current` is the entry. */
  | 'conflict'
  | 'compacted'
  | 'future'
  /** The write could not be made durable, or the engine is not reachable: nothing happened, and a retry may succeed. */
  | 'unavailable'
  | 'closed';

export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly code: StoreErrorCode;
  readonly current: StoredEntry | undefined;

  constructor(code: StoreErrorCode, message: string, current?: StoredEntry, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.current = current;
  }
}

// Shared by all drivers, so that their messages are equal.

/** `floor`: the history begins after this revision. */
export function compacted(revision: number, floor: number): StoreError {
  const message = `revision ${revision} is older than the history, which starts after ${floor}`;
  return new StoreError('compacted', message);
}

export function future(revision: number): StoreError {
  return new StoreError('future', `revision ${revision} has not happened yet`);
}

export function closed(): StoreError {
  return new StoreError('closed', 'the store is closed');
}

/**
 * Objects by key with one increasing revision, optimistic concurrency and a window of history. A write is atomic and has exactly one event.
 * Every method rejects with {@link StoreError}.
 */
export interface Store {
  /** The revision of the newest write; a later one when other programs share the counter. */
  revision(): Promise<number>;
  get(key: StoreKey): Promise<StoredEntry | undefined>;
  list(range: StoreRange, page?: ListPage): Promise<ListResult>;
  create(key: StoreKey, value: JsonObject): Promise<StoredEntry>;
  update(key: StoreKey, value: JsonObject, expectedRevision: number): Promise<StoredEntry>;
  /** Resolves with the last state, at the revision of the deletion. */
  delete(key: StoreKey, expectedRevision: number): Promise<StoredEntry>;
  /** Sends every event after `afterRevision`, first from history, then live, without gaps or duplicates. */
  watch(range: StoreRange, afterRevision: number, observer: WatchObserver): Promise<StoreWatch>;
  /** Keeps `projection` current from now on; it is complete when this returns. */
  project(resource: string, projection: Projection): Projected;
  /** Resolves when a write could be made durable now; rejects with `unavailable` otherwise, such as on a full disk. */
  checkWritable(): Promise<void>;
  /** The notes in `table`, which are stored separately from the objects. */
  notes(table: string): Notes;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Small values that change often and may be lost, such as the time of the last use: no revisions, no events, no preconditions. The last
 * write of a key wins; a crash may lose the writes of the last second.
 */
export interface Notes {
  read(): Promise<ReadonlyMap<string, string>>;
  /** Sets these notes; undefined removes one. Other notes stay. */
  write(changes: ReadonlyMap<string, string | undefined>): Promise<void>;
}

export interface StoreVerdict {
  /** One sentence each; empty when the data is intact. */
  readonly problems: readonly string[];
  readonly objects: number;
  readonly revision: number;
}

export interface HistoryOptions {
  /** Number of events kept for watches that resume and for past lists. */
  readonly historyLimit?: number;
  /** Total JSON text of the objects in these events. */
  readonly historyBytesMax?: number;
}

export function isInRange(key: StoreKey, range: StoreRange): boolean {
  return (
    key.resource === range.resource && (range.namespace === undefined || range.namespace === key.namespace)
  );
}
