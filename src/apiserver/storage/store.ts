/** The contract of a revisioned store: what the API machinery needs from a database, whatever the engine. */

import type { JsonObject } from '../../base/json.ts';

/** Where an object lives. A cluster-scoped object has the namespace `''`. */
export interface StoreKey {
  /** One storage per resource, `endpoints` or `leases.coordination.k8s.io`. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

/** An object at a revision. Shared and immutable. */
export interface StoredEntry {
  readonly key: StoreKey;
  /** The whole object but its resourceVersion, which is {@link revision}. */
  readonly value: JsonObject;
  /** The store's counter when this state was written: positive, strictly rising over the whole store. */
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

/** One resource, in one namespace or (absent) in all of them. */
export interface StoreRange {
  readonly resource: string;
  readonly namespace?: string;
}

export interface ListPage {
  /** Default: now. A revision below the history window is `compacted`. */
  readonly atRevision?: number;
  /** Exclusive start: the key after which the page begins, see {@link orderedKey}. */
  readonly after?: string;
  /** Entries at most; absent or 0: all. */
  readonly limit?: number;
}

export interface ListResult {
  /** In the order of {@link orderedKey}. */
  readonly entries: readonly StoredEntry[];
  /** The revision that this list shows. */
  readonly revision: number;
  /** How many entries of the range come after this page. */
  readonly remaining: number;
}

/** Receives events in the order of their revisions; its methods must not throw. */
export interface WatchObserver {
  event(event: StoreEvent): void;
  /** The watch ended by itself, e.g. because the store closed. Not called after `close()`. */
  end(): void;
}

export interface StoreWatch {
  /** Every event up to this revision has been handed out. */
  readonly revision: number;
  close(): void;
}

export type StoreErrorCode =
  /** create: the key is taken; `current` holds it. */
  | 'exists'
  /** update, delete: there is no such key. */
  | 'missing'
  /** update, delete: the entry is at another revision; `current` holds it. */
  | 'conflict'
  /** list, watch: the revision is older than the history. */
  | 'compacted'
  /** list, watch: the revision has not happened yet. */
  | 'future'
  /** The write could not be made durable, or the engine is not to be reached: nothing happened, and it may work later. */
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

// Every driver says these in the same words.

/** `floor`: what is known begins after it. */
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
 * Objects by key with one rising revision, optimistic concurrency and a window of history. A write is either wholly there, with
 * exactly one event, or not at all. Every method rejects with {@link StoreError}.
 */
export interface Store {
  /** The revision of the newest write; a later one where others raise the same counter. */
  revision(): Promise<number>;
  get(key: StoreKey): Promise<StoredEntry | undefined>;
  list(range: StoreRange, page?: ListPage): Promise<ListResult>;
  create(key: StoreKey, value: JsonObject): Promise<StoredEntry>;
  update(key: StoreKey, value: JsonObject, expectedRevision: number): Promise<StoredEntry>;
  /** Answers the last state, at the revision of the deletion. */
  delete(key: StoreKey, expectedRevision: number): Promise<StoredEntry>;
  /** Hands out every event after `afterRevision`, first from history, then live, without a gap or a duplicate. */
  watch(range: StoreRange, afterRevision: number, observer: WatchObserver): Promise<StoreWatch>;
  /** Forgets history up to and including `revision`. */
  compact(revision: number): Promise<void>;
  /** Resolves when a write now could be made durable; rejects with `unavailable` otherwise, such as on a full disk. */
  checkWritable(): Promise<void>;
  /** The notes called `table`, beside the objects. */
  notes(table: string): Notes;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Small facts that change often and matter little, such as when something was last used: no revisions, no events, no preconditions. The last
 * write of a key wins; a crash may lose what was written in the last second.
 */
export interface Notes {
  /** Every note, as it is now. */
  read(): Promise<ReadonlyMap<string, string>>;
  /** Sets these notes; undefined removes one. Notes that are not named stay. */
  write(changes: ReadonlyMap<string, string | undefined>): Promise<void>;
}

/** What a check of everything that a store keeps has found. */
export interface StoreVerdict {
  /** One sentence each; nothing when the store is sound. */
  readonly problems: readonly string[];
  readonly objects: number;
  readonly revision: number;
}

/** The text by which lists are ordered and continued: `namespace/name`. */
export function orderedKey(key: Pick<StoreKey, 'namespace' | 'name'>): string {
  return `${key.namespace}/${key.name}`;
}

export function isInRange(key: StoreKey, range: StoreRange): boolean {
  return (
    key.resource === range.resource && (range.namespace === undefined || range.namespace === key.namespace)
  );
}
