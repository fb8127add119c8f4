/** The SQLite driver: an engine whose thread appends every event to a database. */

import { type Clock, systemClock, type Timer } from '../../../base/clock.ts';
import type { JsonObject } from '../../../base/json.ts';
import { TerminalError } from '../../../base/errors.ts';
import { type Logger, silentLogger } from '../../../base/logger.ts';
import { type Engine, type LoggedEvent, RevisionedStore } from '../revisioned-store.ts';
import { closed, type HistoryOptions } from '../store.ts';
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
  /** Changes of notes since the last flush, by list and key. */
  #changed = new Map<string, NoteChange>();
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
        for (const { list, key, value } of report.rows) store.restoreNote(list, key, value);
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

  note(list: string, changes: ReadonlyMap<string, string | undefined>): void {
    for (const [key, value = null] of changes) this.#changed.set(`${list}\0${key}`, { list, key, value });
    this.#timer ??= this.#clock.schedule(FLUSH_DELAY_MS, () => void this.#flush());
  }

  async close(): Promise<void> {
    await this.#flush();
    await this.#thread().close();
  }

  #thread(): DatabaseWriter {
    if (!this.#writer) throw closed();
    return this.#writer;
  }

  /** Writes all changes of notes. A failure is logged and retried with the next change. */
  async #flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const flushed = this.#changed;
    if (flushed.size === 0) return;
    this.#changed = new Map();
    try {
      await this.#thread().send({ kind: 'note', changes: [...flushed.values()] });
    } catch (error) {
      // Later changes win.
      this.#changed = new Map([...flushed, ...this.#changed]);
      this.#logger.warn({ err: error, file: this.name }, 'notes could not be written');
    }
  }
}
