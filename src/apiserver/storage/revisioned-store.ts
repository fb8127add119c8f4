/**
 * A store whose objects, history, watches and projections are in memory, above an engine that keeps the log.
 *
 * INVARIANT: a write is decided, made durable, applied, sent to projections and watchers and acknowledged, in this order: no client sees a write that
 * a crash could undo.
 */

import { setImmediate } from 'node:timers/promises';
import { orderedKey } from '../../kube/object.ts';
import { type Clock, systemClock } from '../../base/clock.ts';
import type { JsonObject } from '../../base/json.ts';
import { type Logger, silentLogger } from '../../base/logger.ts';
import { OutageLog } from '../../base/outage-log.ts';
import { EventFeed, type HistoryLimits } from './event-feed.ts';
import { OrderedEntries } from './ordered-entries.ts';
import {
  closed,
  compacted,
  future,
  StoreError,
  type ListPage,
  type ListResult,
  type Notes,
  type Projected,
  type Projection,
  type Store,
  type StoredEntry,
  type StoreEvent,
  type StoreKey,
  type StoreRange,
  type StoreWatch,
  type WatchObserver,
  type HistoryOptions,
} from './store.ts';

/** An empty store is at revision 1, as etcd is: 0 means "any" to clients. */
export const FIRST_REVISION = 1;

export interface RevisionedStoreOptions extends HistoryLimits {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly logger: Logger;
}

type WriteRequest = { readonly key: StoreKey } & (
  | { readonly kind: 'create'; readonly value: JsonObject }
  | { readonly kind: 'update'; readonly value: JsonObject; readonly expectedRevision: number }
  | { readonly kind: 'delete'; readonly expectedRevision: number }
);

interface PendingWrite {
  readonly request: WriteRequest;
  readonly text: string;
  readonly resolve: (entry: StoredEntry) => void;
  readonly reject: (error: StoreError) => void;
}

/** Limits of one append; further writes wait for the next. */
const BATCH_WRITES_MAX = 512;
const BATCH_BYTES_MAX = 16 * 1024 * 1024;
/** After a durable write, no probe is needed for this long. */
const PROBE_MS = 1000;
/** Writes that may wait for the engine; further writes fail. */
const WAITING_MAX = 10_000;

export class RevisionedStore implements Store {
  readonly #options: RevisionedStoreOptions;
  readonly #tables = new Map<string, OrderedEntries>();
  readonly #feed: EventFeed;
  readonly #outage: OutageLog;
  readonly #lists = new Map<string, Map<string, string>>();
  /** By resource. */
  readonly #projections = new Map<string, Set<Projection>>();
  #revision = FIRST_REVISION;
  #waiting: PendingWrite[] = [];
  /** Pending while writes wait or are being committed. */
  #committing: Promise<void> | undefined;
  #isClosed = false;
  /** When a write was last made durable, monotonic. */
  #writtenMs = Number.NEGATIVE_INFINITY;
  #probe: Promise<void> | undefined;

  constructor(options: RevisionedStoreOptions) {
    this.#options = options;
    this.#feed = new EventFeed(options, options.logger);
    this.#outage = new OutageLog(options.logger, 'writes could not be made durable', 'error');
  }

  /** Before the first use of an engine that may hold a log. Rejects with a `TerminalError`. */
  protected async load(): Promise<void> {
    const { engine } = this.#options;
    await engine.load(this);
    engine.forget(this.#feed.floor);
  }

  get newest(): number {
    return this.#revision;
  }

  get objects(): number {
    return this.#tables.values().reduce((sum, table) => sum + table.size, 0);
  }

  peek(key: StoreKey): StoredEntry | undefined {
    return this.#tables.get(key.resource)?.get(orderedKey(key));
  }

  async revision(): Promise<number> {
    return this.#revision;
  }

  async get(key: StoreKey): Promise<StoredEntry | undefined> {
    return this.peek(key);
  }

  async list(range: StoreRange, page: ListPage = {}): Promise<ListResult> {
    const revision = page.atRevision ?? this.#revision;
    this.#checkRevision(revision);
    const table = this.#table(range.resource);
    const limit = page.limit ? page.limit : Number.POSITIVE_INFINITY;
    const others = this.#differencesAt(range.resource, revision);
    const [entries, remaining] = table.page(range, page.after, limit, others);
    return { entries, revision, remaining };
  }

  async create(key: StoreKey, value: JsonObject): Promise<StoredEntry> {
    return this.#write({ kind: 'create', key, value }, this.#options.engine.encode(value));
  }

  async update(key: StoreKey, value: JsonObject, expectedRevision: number): Promise<StoredEntry> {
    const text = this.#options.engine.encode(value);
    return this.#write({ kind: 'update', key, value, expectedRevision }, text);
  }

  async delete(key: StoreKey, expectedRevision: number): Promise<StoredEntry> {
    return this.#write({ kind: 'delete', key, expectedRevision }, '');
  }

  async watch(range: StoreRange, afterRevision: number, observer: WatchObserver): Promise<StoreWatch> {
    if (this.#isClosed) throw closed();
    this.#checkRevision(afterRevision);
    const close = this.#feed.subscribe(range, afterRevision, observer);
    const current = (): number => this.#revision;
    return {
      // `apply` publishes events, so every event up to the revision has been sent.
      get revision() {
        return current();
      },
      close,
    };
  }

  /** Every commit of this process is the only one there is, so a projection is always current. */
  project(resource: string, projection: Projection): Projected {
    projection.reset([...this.#table(resource).values()]);
    const projections = this.#projections.get(resource) ?? new Set();
    this.#projections.set(resource, projections.add(projection));
    return {
      confirmed: () => undefined,
      catchUp: () => Promise.resolve(),
      unconfirmedMs: 0,
      close: () => void projections.delete(projection),
    };
  }

  async compact(revision: number): Promise<void> {
    if (this.#isClosed) throw closed();
    if (revision > this.#revision) throw future(revision);
    this.#feed.compact(revision);
    await this.#options.engine.compact(revision);
  }

  /** Probes at most once a second, and not at all after recent durable writes. */
  async checkWritable(): Promise<void> {
    if (this.#isClosed) throw closed();
    const { engine, clock } = this.#options;
    if (clock.monotonicMs() - this.#writtenMs < PROBE_MS) return;
    this.#probe ??= engine
      .probe()
      .then(() => void (this.#writtenMs = clock.monotonicMs()))
      .finally(() => (this.#probe = undefined));
    await this.#probe;
  }

  notes(list: string): Notes {
    const notes = this.#notes(list);
    return {
      read: async () => new Map(notes),
      write: async (changes) => {
        for (const [key, value] of changes) {
          if (value === undefined) notes.delete(key);
          else notes.set(key, value);
        }
        this.#options.engine.note(list, changes);
      },
    };
  }

  /** Completes all pending writes first; then every watch ends. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#committing;
    this.#feed.endAll();
    await this.#options.engine.close();
  }

  /** Applies one event, to the projections first, and sends it to the watchers; `bytes` is its size in the history. */
  apply(event: StoreEvent, bytes = 0): void {
    const { entry, revision } = event;
    const { key } = entry;
    const table = this.#table(key.resource);
    const isDeleted = event.type === 'deleted';
    if (isDeleted) table.delete(orderedKey(key));
    else table.set(orderedKey(key), entry);
    const projections = this.#projections.get(key.resource) ?? [];
    for (const projection of projections) projection.changed(key, isDeleted ? undefined : entry);
    this.#revision = revision;
    this.#feed.publish(event, bytes);
  }

  restore(entry: StoredEntry): void {
    this.#table(entry.key.resource).set(orderedKey(entry.key), entry);
  }

  /** Sets a counter that is ahead of the entries, and the revision up to which history is compacted. */
  restoreCounters(revision: number, compactedUpTo: number): void {
    this.#revision = Math.max(this.#revision, revision);
    this.#feed.compact(compactedUpTo);
  }

  restoreNote(list: string, key: string, value: string): void {
    this.#notes(list).set(key, value);
  }

  #notes(list: string): Map<string, string> {
    const notes = this.#lists.get(list) ?? new Map<string, string>();
    this.#lists.set(list, notes);
    return notes;
  }

  #table(resource: string): OrderedEntries {
    const table = this.#tables.get(resource) ?? new OrderedEntries();
    this.#tables.set(resource, table);
    return table;
  }

  /** The entries that were different at a revision: for each key the state before its first event since. */
  #differencesAt(resource: string, revision: number): Map<string, StoredEntry | undefined> {
    const others = new Map<string, StoredEntry | undefined>();
    for (const event of this.#feed.after(revision)) {
      if (event.entry.key.resource !== resource) continue;
      const id = orderedKey(event.entry.key);
      if (!others.has(id)) others.set(id, event.previous);
    }
    return others;
  }

  #checkRevision(revision: number): void {
    if (revision > this.#revision) throw future(revision);
    if (revision < this.#feed.floor) throw compacted(revision, this.#feed.floor);
  }

  #write(request: WriteRequest, text: string): Promise<StoredEntry> {
    const { engine } = this.#options;
    if (this.#isClosed) throw closed();
    if (this.#waiting.length >= WAITING_MAX) {
      throw new StoreError('unavailable', `${engine.name}: ${WAITING_MAX} writes wait for the disk`);
    }
    const { promise, resolve, reject } = Promise.withResolvers<StoredEntry>();
    this.#waiting.push({ request, text, resolve, reject });
    if (engine.isShared) this.#committing ??= this.#commitAll();
    else void this.#commit(this.#nextWrites());
    return promise;
  }

  async #commitAll(): Promise<void> {
    // Waits for the end of the turn, so that all writes of this turn share the first commit.
    for (await setImmediate(); this.#waiting.length > 0; await setImmediate())
      await this.#commit(this.#nextWrites());
    this.#committing = undefined;
  }

  #nextWrites(): PendingWrite[] {
    let count = 0;
    for (let bytes = 0; count < this.#waiting.length && count < BATCH_WRITES_MAX; count++) {
      bytes += this.#waiting[count]?.text.length ?? 0;
      if (count > 0 && bytes > BATCH_BYTES_MAX) break;
    }
    return this.#waiting.splice(0, count);
  }

  /** Never rejects. In one turn if the engine appends in one. */
  async #commit(writes: readonly PendingWrite[]): Promise<void> {
    const { engine, clock } = this.#options;
    const { outcomes, events } = this.#decide(writes);
    try {
      const appended = events.length > 0 ? engine.append(events) : undefined;
      if (appended) await appended;
    } catch (error) {
      const cause = error instanceof StoreError ? error : new StoreError('unavailable', String(error));
      this.#outage.failed({ err: cause, store: engine.name });
      this.#writtenMs = Number.NEGATIVE_INFINITY;
      // Rejected writes get the same error: their rejection may depend on a write that did not happen.
      for (const { reject } of writes) reject(cause);
      return;
    }
    if (events.length > 0) {
      this.#writtenMs = clock.monotonicMs();
      this.#outage.ended();
    }
    for (const { event, text } of events) this.apply(event, text.length);
    for (const [index, { resolve, reject }] of writes.entries()) {
      const outcome = outcomes[index];
      if (outcome instanceof StoreError) reject(outcome);
      else if (outcome) resolve(outcome.entry);
    }
    engine.forget(this.#feed.floor);
  }

  /** Each write is decided on the state after the writes before it. */
  #decide(writes: readonly PendingWrite[]): {
    readonly outcomes: readonly (StoreEvent | StoreError)[];
    readonly events: readonly LoggedEvent[];
  } {
    const pending = new Map<string, StoredEntry | undefined>();
    const events: LoggedEvent[] = [];
    const outcomes = writes.map(({ request, text }) => {
      const id = `${request.key.resource}/${orderedKey(request.key)}`;
      const current = pending.has(id) ? pending.get(id) : this.peek(request.key);
      const outcome = decideWrite(request, current, this.#revision + events.length + 1);
      if (outcome instanceof StoreError) return outcome;
      pending.set(id, outcome.type === 'deleted' ? undefined : outcome.entry);
      events.push({ event: outcome, text });
      return outcome;
    });
    return { outcomes, events };
  }
}

/** The event of a write at `revision`, or the reason why it fails. */
function decideWrite(
  write: WriteRequest,
  current: StoredEntry | undefined,
  revision: number,
): StoreEvent | StoreError {
  const { key } = write;
  const name = `${key.resource} ${orderedKey(key)}`;
  if (write.kind === 'create') {
    if (current) return new StoreError('exists', `${name} exists`, current);
    return { type: 'created', revision, entry: { key, value: write.value, revision } };
  }
  if (!current) return new StoreError('missing', `${name} does not exist`);
  if (current.revision !== write.expectedRevision) {
    const message = `${name} is at revision ${current.revision}, not ${write.expectedRevision}`;
    return new StoreError('conflict', message, current);
  }
  const type = write.kind === 'update' ? 'updated' : 'deleted';
  const value = write.kind === 'update' ? write.value : current.value;
  return { type, revision, entry: { key, value, revision }, previous: current };
}

// The contract of an engine: where a revisioned store keeps its log.

/** An event, and its object as {@link Engine.encode} has encoded it; `''` for a deletion. */
export interface LoggedEvent {
  readonly event: StoreEvent;
  readonly text: string;
}

/** One process writes it at a time. */
export interface Engine {
  readonly name: string;
  /** An append waits for something slow, so the writes of a turn, and those that arrive meanwhile, share the next one. */
  readonly isShared: boolean;
  /** Fills a new store. Rejects with a `TerminalError` for a log that cannot be used. */
  load(store: RevisionedStore): Promise<void>;
  /** The object as the log holds it. Its length counts as the size of an event. */
  encode(value: JsonObject): string;
  /** Resolves when all events are durable; undefined: they are. Rejects when none has happened. */
  append(events: readonly LoggedEvent[]): Promise<void> | undefined;
  compact(revision: number): Promise<void>;
  /** Events up to this revision are not needed any more. */
  forget(revision: number): void;
  /** Resolves when an append could be made durable now. */
  probe(): Promise<void>;
  /** Notes have changed; they may be written later. */
  note(list: string, changes: ReadonlyMap<string, string | undefined>): void;
  /** After the last append; writes notes that are not written yet. */
  close(): Promise<void>;
}

// The in-memory driver: an engine without a log. Every write completes in the turn of its call.

const HISTORY_LIMIT = 2048;

export class MemoryStore extends RevisionedStore {
  constructor({ historyLimit: eventsMax = HISTORY_LIMIT }: Pick<HistoryOptions, 'historyLimit'> = {}) {
    super({
      engine: MEMORY_ENGINE,
      eventsMax,
      bytesMax: Number.POSITIVE_INFINITY,
      clock: systemClock,
      logger: silentLogger,
    });
  }
}

const DONE = Promise.resolve();

const MEMORY_ENGINE: Engine = {
  name: 'memory',
  isShared: false,
  load: () => DONE,
  encode: () => '',
  append: () => undefined,
  compact: () => DONE,
  forget: () => undefined,
  probe: () => DONE,
  note: () => undefined,
  close: () => DONE,
};
