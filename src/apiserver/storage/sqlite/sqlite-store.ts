/**
 * The SQLite driver: the present and the history in memory, every event in a database.
 *
 * A write is decided, made durable, shown, handed to watchers and acknowledged, in this order: nobody ever sees what a crash could take back.
 * Writes that come while others become durable wait and share the next commit.
 */

import { systemClock, type Clock } from '../../../base/clock.ts';
import type { JsonObject } from '../../../base/json.ts';
import { TerminalError } from '../../../base/errors.ts';
import type { Logger } from '../../../base/logger.ts';
import type { WriteRequest } from '../decide-write.ts';
import { RevisionedState } from '../revisioned-state.ts';
import {
  closed,
  StoreError,
  type ListPage,
  type ListResult,
  type Notes,
  type Store,
  type StoredEntry,
  type StoreKey,
  type StoreRange,
  type StoreWatch,
  type WatchObserver,
} from '../store.ts';
import { Replay } from './file/replay.ts';
import { SqliteNotes } from './sqlite-notes.ts';
import { WriteBatch, type PendingWrite } from './writer/write-batch.ts';
import { DatabaseWriter, type FoundReport } from './writer/database-writer.ts';

export interface SqliteStoreOptions {
  /** Path of the database; it and its folder are made where they are missing. */
  readonly file: string;
  /** Events kept for watches that resume and for lists of the past; default 8192. */
  readonly historyLimit?: number;
  /** The same, in characters of JSON; default 64 Mi. */
  readonly historyBytesMax?: number;
  readonly clock?: Clock;
  /** Absent: failures of work in the background are not said. */
  readonly logger?: Logger;
}

const DEFAULT_HISTORY_LIMIT = 8192;
const DEFAULT_HISTORY_BYTES_MAX = 64 * 1024 * 1024;
/** One commit; more wait for the next. */
const BATCH_WRITES_MAX = 512;
const BATCH_BYTES_MAX = 16 * 1024 * 1024;
/** How long a durable write shows that the next one will be durable too. */
const PROBE_MS = 1000;
/** Writers that wait for the disk: beyond this it is better to say so. */
const WAITING_MAX = 10_000;
/** Revisions that go from memory before the database forgets them too. */
const FORGET_LAG = 256;

export class SqliteStore implements Store {
  readonly #file: string;
  readonly #state: RevisionedState;
  readonly #notes: SqliteNotes;
  readonly #logger: Logger | undefined;
  /** Set once, by {@link open}. */
  #writer: DatabaseWriter | undefined;
  #waiting: PendingWrite[] = [];
  /** Runs while writes wait or become durable. */
  #committing: Promise<void> | undefined;
  /** What the database has been told to forget. */
  #forgotten = 0;
  #isForgetting = false;
  #isClosed = false;
  readonly #clock: Clock;
  /** When a write was last made durable, monotonic. */
  #writtenMs = Number.NEGATIVE_INFINITY;
  #probe: Promise<void> | undefined;

  private constructor(options: SqliteStoreOptions) {
    this.#file = options.file;
    this.#logger = options.logger;
    this.#clock = options.clock ?? systemClock;
    this.#state = new RevisionedState({
      eventsMax: options.historyLimit ?? DEFAULT_HISTORY_LIMIT,
      bytesMax: options.historyBytesMax ?? DEFAULT_HISTORY_BYTES_MAX,
    });
    this.#notes = new SqliteNotes(
      this.#clock,
      (changes) => this.#thread().ask({ kind: 'note', changes }),
      (error) => this.#logger?.warn({ err: error, file: this.#file }, 'Notes could not be written'),
    );
  }

  /**
   * Rejects with a `TerminalError` that says what is wrong with the file or its folder, or that another process has it. The file is checked in
   * full: what opens is sound.
   */
  static async open(options: SqliteStoreOptions): Promise<SqliteStore> {
    const store = new SqliteStore(options);
    const loading = new Loading(store.#state, store.#notes);
    const writer = await DatabaseWriter.open(options.file, (report) => loading.take(report));
    const [problem] = loading.finish();
    if (problem !== undefined) {
      await writer.close();
      throw new TerminalError(
        `${options.file} is damaged: ${problem}. Run "endpoint-syncer store verify" to see everything, then restore a backup`,
      );
    }
    store.#writer = writer;
    store.#forgotten = loading.compacted;
    store.#forgetBehind();
    return store;
  }

  async revision(): Promise<number> {
    return this.#state.revision;
  }

  async get(key: StoreKey): Promise<StoredEntry | undefined> {
    return this.#state.get(key);
  }

  async list(range: StoreRange, page: ListPage = {}): Promise<ListResult> {
    return this.#state.list(range, page);
  }

  async create(key: StoreKey, value: JsonObject): Promise<StoredEntry> {
    return this.#write({ kind: 'create', key, value }, JSON.stringify(value));
  }

  async update(key: StoreKey, value: JsonObject, expectedRevision: number): Promise<StoredEntry> {
    return this.#write({ kind: 'update', key, value, expectedRevision }, JSON.stringify(value));
  }

  async delete(key: StoreKey, expectedRevision: number): Promise<StoredEntry> {
    return this.#write({ kind: 'delete', key, expectedRevision }, '');
  }

  async watch(range: StoreRange, afterRevision: number, observer: WatchObserver): Promise<StoreWatch> {
    return this.#state.watch(range, afterRevision, observer);
  }

  async compact(revision: number): Promise<void> {
    if (this.#isClosed) throw closed();
    this.#state.compact(revision);
    this.#forgotten = Math.max(this.#forgotten, revision);
    await this.#thread().ask({ kind: 'forget', revision });
  }

  /** Probes at most once a second, and not at all while other writes show that it works. */
  async checkWritable(): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#writtenMs < PROBE_MS) return;
    this.#probe ??= this.#thread()
      .ask({ kind: 'probe' })
      .then(() => void (this.#writtenMs = this.#clock.monotonicMs()))
      .finally(() => (this.#probe = undefined));
    await this.#probe;
  }

  notes(table: string): Notes {
    return this.#notes.of(table);
  }

  /** Finishes the writes that it has taken. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#committing;
    await this.#notes.flush();
    this.#state.close();
    await this.#thread().close();
  }

  #thread(): DatabaseWriter {
    if (!this.#writer) throw closed();
    return this.#writer;
  }

  async #write(request: WriteRequest, text: string): Promise<StoredEntry> {
    if (this.#isClosed) throw closed();
    if (this.#waiting.length >= WAITING_MAX) {
      throw new StoreError('unavailable', `${this.#file}: ${WAITING_MAX} writes wait for the disk`);
    }
    const { promise, resolve, reject } = Promise.withResolvers<StoredEntry>();
    this.#waiting.push({ request, text, resolve, reject });
    this.#committing ??= this.#commitAll();
    return promise;
  }

  async #commitAll(): Promise<void> {
    // The end of the turn: whoever is about to write in it joins the first commit.
    for (await turn(); this.#waiting.length > 0; await turn()) await this.#commit(this.#nextWrites());
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

  async #commit(writes: readonly PendingWrite[]): Promise<void> {
    const batch = new WriteBatch(this.#state, writes);
    try {
      if (batch.rows.length > 0) await this.#thread().ask({ kind: 'append', rows: batch.rows });
    } catch (error) {
      const cause = error instanceof StoreError ? error : new StoreError('unavailable', String(error));
      this.#logger?.error({ err: cause, file: this.#file }, 'Writes could not be made durable');
      this.#writtenMs = Number.NEGATIVE_INFINITY;
      batch.fail(cause);
      return;
    }
    if (batch.rows.length > 0) this.#writtenMs = this.#clock.monotonicMs();
    batch.succeed();
    this.#forgetBehind();
  }

  /** The database forgets what memory has forgotten, behind the writes. */
  #forgetBehind(): void {
    const revision = this.#state.compacted;
    if (this.#isForgetting || revision < this.#forgotten + FORGET_LAG) return;
    this.#isForgetting = true;
    void this.#forget(revision);
  }

  async #forget(revision: number): Promise<void> {
    try {
      await this.#thread().ask({ kind: 'forget', revision });
      this.#forgotten = Math.max(this.#forgotten, revision);
    } catch (error) {
      this.#logger?.warn({ err: error, file: this.#file }, 'History could not be forgotten');
    } finally {
      this.#isForgetting = false;
    }
  }
}

/** The state of a store that is being opened. */
class Loading {
  readonly #state: RevisionedState;
  readonly #notes: SqliteNotes;
  #replay: Replay | undefined;
  compacted = 0;

  constructor(state: RevisionedState, notes: SqliteNotes) {
    this.#state = state;
    this.#notes = notes;
  }

  take(report: FoundReport): void {
    switch (report.kind) {
      case 'found':
        this.compacted = report.counters.compacted;
        this.#replay = new Replay(this.#state, report.counters);
        return;
      case 'log':
        for (const row of report.rows) this.#replay?.take(row);
        return;
      case 'present':
        for (const row of report.rows) this.#replay?.takePresent(row);
        return;
      case 'notes':
        this.#notes.restore(report.rows);
    }
  }

  /** What is wrong with what was found. */
  finish(): readonly string[] {
    this.#replay?.finish();
    return this.#replay?.problems ?? [];
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
