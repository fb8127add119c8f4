/** The SQLite driver: an engine whose thread appends every event to a database. */

import { type Clock, systemClock, type Timer } from '../../../base/clock.ts';
import type { JsonObject } from '../../../base/json.ts';
import { TerminalError } from '../../../base/errors.ts';
import { type Logger, silentLogger } from '../../../base/logger.ts';
import { type Engine, type LoggedEvent, RevisionedStore } from '../revisioned-store.ts';
import { closed, type HistoryOptions, type Notes } from '../store.ts';
import { rowOf, Replay, type NoteChange } from './tables.ts';
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

/** A crash may lose the notes of this time. */
const FLUSH_DELAY_MS = 1_000;

class SqliteEngine implements Engine {
  readonly name: string;
  readonly isShared = true;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** All notes, by list; changes are written in batches. */
  readonly #notes = new Map<string, Map<string, string>>();
  /** Keys of notes that changed since the last flush, by list. */
  #changed = new Map<string, Set<string>>();
  #timer: Timer | undefined;
  /** Set by `load`. */
  #writer: DatabaseWriter | undefined;
  /** The revision up to which the database is compacted. */
  #compacted = 0;
  #isCompacting = false;

  constructor(file: string, clock: Clock, logger: Logger) {
    this.name = file;
    this.#clock = clock;
    this.#logger = logger;
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
      if (report.kind === 'notes')
        for (const { list, key, value } of report.rows) this.#list(list).set(key, value);
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
    await this.#thread().send({ kind: 'compact', revision });
    this.#compacted = Math.max(this.#compacted, revision);
  }

  /** In the background. */
  forget(revision: number): void {
    if (this.#isCompacting || revision < this.#compacted + COMPACT_LAG) return;
    this.#isCompacting = true;
    const failed = (error: unknown): void =>
      this.#logger.warn({ err: error, file: this.name }, 'history could not be compacted');
    void this.compact(revision)
      .catch(failed)
      .finally(() => (this.#isCompacting = false));
  }

  async probe(): Promise<void> {
    await this.#thread().send({ kind: 'probe' });
  }

  notes(list: string): Notes {
    return {
      read: async () => new Map(this.#list(list)),
      write: async (changes) => this.#note(list, changes),
    };
  }

  async close(): Promise<void> {
    await this.#flush();
    await this.#thread().close();
  }

  #thread(): DatabaseWriter {
    if (!this.#writer) throw closed();
    return this.#writer;
  }

  #note(list: string, changes: ReadonlyMap<string, string | undefined>): void {
    const notes = this.#list(list);
    for (const [key, value] of changes) {
      if (value === undefined) notes.delete(key);
      else notes.set(key, value);
    }
    this.#mark(list, changes.keys());
    this.#timer ??= this.#clock.schedule(FLUSH_DELAY_MS, () => void this.#flush());
  }

  /** Writes all changes of notes. A failure is logged and retried with the next change. */
  async #flush(): Promise<void> {
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
      await this.#thread().send({ kind: 'note', changes });
    } catch (error) {
      for (const [list, keys] of flushed) this.#mark(list, keys);
      this.#logger.warn({ err: error, file: this.name }, 'notes could not be written');
    }
  }

  #mark(list: string, keys: Iterable<string>): void {
    const marked = this.#changed.get(list) ?? new Set();
    for (const key of keys) marked.add(key);
    this.#changed.set(list, marked);
  }

  #list(list: string): Map<string, string> {
    const notes = this.#notes.get(list) ?? new Map<string, string>();
    this.#notes.set(list, notes);
    return notes;
  }
}
