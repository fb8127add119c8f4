/**
 * The SQLite driver: current entries and history in memory, every event in a database.
 *
 * A write is decided, made durable, applied, sent to watchers and acknowledged, in this order: no client sees a write that a crash could
 * undo. Writes that arrive during a commit share the next one.
 */

import { type Clock, systemClock } from '../../../base/clock.ts';
import type { JsonObject } from '../../../base/json.ts';
import { TerminalError } from '../../../base/errors.ts';
import type { Logger } from '../../../base/logger.ts';
import type { WriteRequest } from '../decide-write.ts';
import { RevisionedState } from '../revisioned-state.ts';
import {
  closed,
  type HistoryOptions,
  type ListPage,
  type ListResult,
  type Notes,
  type Projected,
  type Projection,
  type Store,
  type StoredEntry,
  StoreError,
  type StoreKey,
  type StoreRange,
  type StoreWatch,
  type WatchObserver,
} from '../store.ts';
import { SqliteNotes } from './sqlite-notes.ts';
import { type PendingWrite, WriteBatch } from './writer/write-batch.ts';
import { DatabaseWriter, type LoadReport } from './writer/database-writer.ts';
import { Replay } from './file/replay.ts';

/** Default history: 8192 events, 64 Mi characters. */
export interface SqliteStoreOptions extends HistoryOptions {
  /** Path of the database; file and folder are created if they do not exist. */
  readonly file: string;
  readonly clock?: Clock;
  /** Absent: failures in the background are not logged. */
  readonly logger?: Logger;
}

const HISTORY_LIMIT = 8192;
const HISTORY_BYTES_MAX = 64 * 1024 * 1024;
/** Limits of one commit; further writes wait for the next. */
const BATCH_WRITES_MAX = 512;
const BATCH_BYTES_MAX = 16 * 1024 * 1024;
/** After a durable write, no probe is needed for this long. */
const PROBE_MS = 1000;
/** Writes that may wait for the disk; further writes fail. */
const WAITING_MAX = 10_000;
/** The database is compacted after this many revisions were compacted in memory. */
const COMPACT_LAG = 256;

export class SqliteStore implements Store {
  readonly #file: string;
  readonly #state: RevisionedState;
  readonly #notes: SqliteNotes;
  readonly #logger: Logger | undefined;
  /** Set by {@link open}. */
  #writer: DatabaseWriter | undefined;
  #waiting: PendingWrite[] = [];
  /** Pending while writes wait or are being committed. */
  #committing: Promise<void> | undefined;
  /** The revision up to which the database is compacted. */
  #compacted = 0;
  #isCompacting = false;
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
      eventsMax: options.historyLimit ?? HISTORY_LIMIT,
      bytesMax: options.historyBytesMax ?? HISTORY_BYTES_MAX,
    });
    this.#notes = new SqliteNotes(
      this.#clock,
      (changes) => this.#thread().send({ kind: 'note', changes }),
      (error) => this.#logger?.warn({ err: error, file: this.#file }, 'notes could not be written'),
    );
  }

  /**
   * Rejects with a `TerminalError` that describes the problem with the file or its folder, or when another process has it open. The complete
   * file is verified.
   */
  static async open(options: SqliteStoreOptions): Promise<SqliteStore> {
    const store = new SqliteStore(options);
    const loading = new Loading(store.#state, store.#notes);
    const writer = await DatabaseWriter.open(options.file, (report) => loading.add(report));
    const [problem] = loading.finish();
    if (problem !== undefined) {
      await writer.close();
      throw new TerminalError(
        `${options.file} is damaged: ${problem}. Run "endpoint-syncer store verify" for all problems, then restore a backup`,
      );
    }
    store.#writer = writer;
    store.#compacted = loading.compacted;
    store.#compactBehind();
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

  project(resource: string, projection: Projection): Projected {
    return this.#state.project(resource, projection);
  }

  async compact(revision: number): Promise<void> {
    if (this.#isClosed) throw closed();
    this.#state.compact(revision);
    this.#compacted = Math.max(this.#compacted, revision);
    await this.#thread().send({ kind: 'compact', revision });
  }

  /** Probes at most once a second, and not at all after recent durable writes. */
  async checkWritable(): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#writtenMs < PROBE_MS) return;
    this.#probe ??= this.#thread()
      .send({ kind: 'probe' })
      .then(() => void (this.#writtenMs = this.#clock.monotonicMs()))
      .finally(() => (this.#probe = undefined));
    await this.#probe;
  }

  notes(table: string): Notes {
    return this.#notes.of(table);
  }

  /** Completes all pending writes first. */
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
    // Waits for the end of the turn, so that all writes of this turn share the first commit.
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
      if (batch.rows.length > 0) await this.#thread().send({ kind: 'append', rows: batch.rows });
    } catch (error) {
      const cause = error instanceof StoreError ? error : new StoreError('unavailable', String(error));
      this.#logger?.error({ err: cause, file: this.#file }, 'writes could not be made durable');
      this.#writtenMs = Number.NEGATIVE_INFINITY;
      batch.fail(cause);
      return;
    }
    if (batch.rows.length > 0) this.#writtenMs = this.#clock.monotonicMs();
    batch.succeed();
    this.#compactBehind();
  }

  /** Compacts the database up to the revision that is compacted in memory, in the background. */
  #compactBehind(): void {
    const revision = this.#state.compacted;
    if (this.#isCompacting || revision < this.#compacted + COMPACT_LAG) return;
    this.#isCompacting = true;
    void this.#compactDatabase(revision);
  }

  async #compactDatabase(revision: number): Promise<void> {
    try {
      await this.#thread().send({ kind: 'compact', revision });
      this.#compacted = Math.max(this.#compacted, revision);
    } catch (error) {
      this.#logger?.warn({ err: error, file: this.#file }, 'history could not be compacted');
    } finally {
      this.#isCompacting = false;
    }
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Fills the state of a store that is being opened. */
class Loading {
  readonly #state: RevisionedState;
  readonly #notes: SqliteNotes;
  #replay: Replay | undefined;
  compacted = 0;

  constructor(state: RevisionedState, notes: SqliteNotes) {
    this.#state = state;
    this.#notes = notes;
  }

  add(report: LoadReport): void {
    switch (report.kind) {
      case 'counters':
        this.compacted = report.counters.compacted;
        this.#replay = new Replay(this.#state, report.counters);
        return;
      case 'log':
        for (const row of report.rows) this.#replay?.addRow(row);
        return;
      case 'present':
        for (const row of report.rows) this.#replay?.addPresent(row);
        return;
      case 'notes':
        this.#notes.restore(report.rows);
    }
  }

  /** The problems of the file. */
  finish(): readonly string[] {
    this.#replay?.finish();
    return this.#replay?.problems ?? [];
  }
}
