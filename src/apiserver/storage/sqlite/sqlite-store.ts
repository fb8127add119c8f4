/** The SQLite driver: an engine whose thread appends every event to a database. */

import { type Clock, systemClock, type Timer } from '../../../base/clock.ts';
import type { JsonObject } from '../../../base/json.ts';
import { TerminalError } from '../../../base/errors.ts';
import { type Logger, silentLogger } from '../../../base/logger.ts';
import { type Engine, type LoggedEvent, RevisionedStore } from '../revisioned-store.ts';
import { closed, type HistoryOptions, type Notes } from '../store.ts';
import { rowOf, Replay, type NoteRow, type NoteChange } from './tables.ts';
import { DatabaseWriter } from './database-writer.ts';

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
/** The database is compacted after this many revisions were compacted in memory. */
const COMPACT_LAG = 256;

export class SqliteStore extends RevisionedStore {
  /**
   * Rejects with a `TerminalError` that describes the problem with the file or its folder, or when another process has it open. The complete
   * file is verified.
   */
  static async open(options: SqliteStoreOptions): Promise<SqliteStore> {
    const { file, clock = systemClock, logger = silentLogger } = options;
    const store = new SqliteStore({
      engine: new SqliteEngine(file, clock, logger),
      eventsMax: options.historyLimit ?? HISTORY_LIMIT,
      bytesMax: options.historyBytesMax ?? HISTORY_BYTES_MAX,
      clock,
      logger,
    });
    await store.load();
    return store;
  }
}

class SqliteEngine implements Engine {
  readonly name: string;
  readonly isShared = true;
  readonly #logger: Logger;
  readonly #notes: SqliteNotes;
  /** Set by `load`. */
  #writer: DatabaseWriter | undefined;
  /** The revision up to which the database is compacted. */
  #compacted = 0;
  #isCompacting = false;

  constructor(file: string, clock: Clock, logger: Logger) {
    this.name = file;
    this.#logger = logger;
    this.#notes = new SqliteNotes(
      clock,
      (changes) => this.#thread().send({ kind: 'note', changes }),
      (error) => logger.warn({ err: error, file }, 'notes could not be written'),
    );
  }

  async load(store: RevisionedStore): Promise<void> {
    let replay: Replay | undefined;
    this.#writer = await DatabaseWriter.open(this.name, (report) => {
      if (report.kind === 'counters') {
        replay = new Replay(store, report.counters);
        this.#compacted = report.counters.compacted;
      }
      if (report.kind === 'log') for (const row of report.rows) replay?.addRow(row);
      if (report.kind === 'present') for (const row of report.rows) replay?.addPresent(row);
      if (report.kind === 'notes') this.#notes.restore(report.rows);
    });
    replay?.finish();
    const [problem] = replay?.problems ?? [];
    if (problem !== undefined) {
      await this.#writer.close();
      throw new TerminalError(
        `${this.name} is damaged: ${problem}. Run "endpoint-syncer store verify" for all problems, then restore a backup`,
      );
    }
  }

  encode(value: JsonObject): string {
    return JSON.stringify(value);
  }

  append(events: readonly LoggedEvent[]): Promise<void> {
    return this.#thread().send({
      kind: 'append',
      rows: events.map(({ event, text }) => rowOf(event, text)),
    });
  }

  async compact(revision: number): Promise<void> {
    this.#compacted = Math.max(this.#compacted, revision);
    await this.#thread().send({ kind: 'compact', revision });
  }

  /** In the background. */
  forget(revision: number): void {
    if (this.#isCompacting || revision < this.#compacted + COMPACT_LAG) return;
    this.#isCompacting = true;
    void this.#compactLater(revision);
  }

  async #compactLater(revision: number): Promise<void> {
    try {
      await this.#thread().send({ kind: 'compact', revision });
      this.#compacted = Math.max(this.#compacted, revision);
    } catch (error) {
      this.#logger.warn({ err: error, file: this.name }, 'history could not be compacted');
    } finally {
      this.#isCompacting = false;
    }
  }

  async probe(): Promise<void> {
    await this.#thread().send({ kind: 'probe' });
  }

  notes(table: string): Notes {
    return this.#notes.of(table);
  }

  async close(): Promise<void> {
    await this.#notes.flush();
    await this.#thread().close();
  }

  #thread(): DatabaseWriter {
    if (!this.#writer) throw closed();
    return this.#writer;
  }
}

// Notes in a database: all of them in memory, changes written in batches.

/** A crash may lose the changes of this time. */
const FLUSH_DELAY_MS = 1_000;

class SqliteNotes {
  readonly #lists = new Map<string, Map<string, string>>();
  /** Keys that changed since the last flush, by list. */
  #changed = new Map<string, Set<string>>();
  readonly #clock: Clock;
  readonly #write: (changes: readonly NoteChange[]) => Promise<void>;
  readonly #onFailure: (error: unknown) => void;
  #timer: Timer | undefined;

  constructor(
    clock: Clock,
    write: (changes: readonly NoteChange[]) => Promise<void>,
    onFailure: (error: unknown) => void,
  ) {
    this.#clock = clock;
    this.#write = write;
    this.#onFailure = onFailure;
  }

  restore(rows: readonly NoteRow[]): void {
    for (const { list, key, value } of rows) this.#list(list).set(key, value);
  }

  of(list: string): Notes {
    return {
      read: async () => new Map(this.#list(list)),
      write: async (changes) => this.#change(list, changes),
    };
  }

  /** Writes all changes. A failure is reported and retried with the next change. */
  async flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const flushed = this.#changed;
    if (flushed.size === 0) return;
    this.#changed = new Map();
    const changes = [...flushed].flatMap(([list, keys]) => {
      const notes = this.#list(list);
      return [...keys].map((key): NoteChange => ({ list, key, value: notes.get(key) ?? null }));
    });
    try {
      await this.#write(changes);
    } catch (error) {
      for (const [list, keys] of flushed) for (const key of keys) this.#mark(list, key);
      this.#onFailure(error);
    }
  }

  #change(list: string, changes: ReadonlyMap<string, string | undefined>): void {
    const notes = this.#list(list);
    for (const [key, value] of changes) {
      if (value === undefined) notes.delete(key);
      else notes.set(key, value);
      this.#mark(list, key);
    }
    this.#timer ??= this.#clock.schedule(FLUSH_DELAY_MS, () => void this.flush());
  }

  #mark(list: string, key: string): void {
    const keys = this.#changed.get(list);
    if (keys) keys.add(key);
    else this.#changed.set(list, new Set([key]));
  }

  #list(list: string): Map<string, string> {
    let notes = this.#lists.get(list);
    if (!notes) {
      notes = new Map();
      this.#lists.set(list, notes);
    }
    return notes;
  }
}
