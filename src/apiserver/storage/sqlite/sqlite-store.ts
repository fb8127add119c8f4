/** The SQLite driver: an engine whose thread appends every event to a database. */

import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { type Clock, systemClock, type Timer } from '../../../base/clock.ts';
import type { JsonObject } from '../../../base/json.ts';
import { TerminalError, messageOf } from '../../../base/errors.ts';
import { type Logger, silentLogger } from '../../../base/logger.ts';
import { OutageLog } from '../../../base/outage-log.ts';
import { type Engine, type LoggedEvent, RevisionedStore } from '../revisioned-store.ts';
import { closed, type HistoryOptions, StoreError } from '../store.ts';
import {
  rowOf,
  Replay,
  type LogCounters,
  type LogRow,
  type NoteChange,
  type NoteRow,
  type PresentRow,
  type StoredRow,
} from './tables.ts';

/** Default history: 8192 events, 64 Mi characters. */
export interface SqliteStoreOptions extends HistoryOptions {
  /** Path of the database; file and folder are created if they do not exist. */
  readonly file: string;
  readonly clock?: Clock;
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
  readonly #compacting: OutageLog;
  readonly #noting: OutageLog;
  /** Changes of notes since the last flush, by list and key. */
  #changed = new Map<string, NoteChange>();
  #timer: Timer | undefined;
  /** Set by `load`. */
  #writer: WriterThread | undefined;
  /** The revision up to which the database is compacted. */
  #compacted = 0;
  #isCompacting = false;

  constructor(file: string, clock: Clock, logger: Logger) {
    this.name = file;
    this.#clock = clock;
    this.#compacting = new OutageLog(logger, 'history could not be compacted');
    this.#noting = new OutageLog(logger, 'notes could not be written');
  }

  async load(store: RevisionedStore): Promise<void> {
    let replay: Replay | undefined;
    const writer = new WriterThread(this.name, (report) => {
      if (report.kind === 'counters') {
        replay = new Replay(store, report.counters);
        this.#compacted = report.counters.compacted;
      }
      if (report.kind === 'log') for (const row of report.rows) replay?.addRow(row);
      if (report.kind === 'present') for (const row of report.rows) replay?.addPresent(row);
      if (report.kind === 'notes')
        for (const { list, key, value } of report.rows) store.restoreNote(list, key, value);
    });
    await writer.opened();
    this.#writer = writer;
    replay?.finish();
    const [problem] = replay?.problems ?? [];
    if (problem !== undefined) {
      await writer.close();
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
    void this.compact(revision)
      .then(() => this.#compacting.ended())
      .catch((error: unknown) => this.#compacting.failed({ err: error, file: this.name }))
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

  #thread(): WriterThread {
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
      this.#noting.ended();
    } catch (error) {
      // Later changes win.
      this.#changed = new Map([...flushed, ...this.#changed]);
      this.#noting.failed({ err: error, file: this.name });
    }
  }
}

/** The client of the thread that owns the database: one promise for each request. */
class WriterThread {
  readonly #file: string;
  readonly #worker: Worker;
  readonly #pending = new Map<number, PromiseWithResolvers<void>>();
  #lastId = OPENING;
  #end: Error | undefined;

  /** `onLoad` receives the contents of the database. */
  constructor(file: string, onLoad: (report: LoadReport) => void) {
    this.#file = file;
    const program = `./writer-thread${extname(import.meta.url)}`;
    this.#worker = new Worker(new URL(program, import.meta.url), {
      workerData: file,
      name: 'store-writer',
      // The thread needs no options of this process.
      execArgv: [],
      argv: [],
    });
    this.#worker.on('message', (report: WriterReport) => {
      if (report.kind === 'done') this.#done(report);
      else onLoad(report);
    });
    this.#worker.on('error', (error) =>
      this.#ended(error instanceof Error ? error : new Error(String(error))),
    );
    this.#worker.on('exit', () => this.#ended(undefined));
  }

  /** Resolves when everything was loaded. Rejects with a `TerminalError`. */
  async opened(): Promise<void> {
    try {
      await this.#outcomeOf(OPENING);
    } catch (error) {
      await this.#worker.terminate();
      throw new TerminalError(messageOf(error), { cause: error });
    }
  }

  /** Resolves when the request is done; rejects with a {@link StoreError} `unavailable` when nothing has happened. */
  async send(request: WriterRequest): Promise<void> {
    if (this.#end) throw unavailable(this.#end.message, this.#end);
    const message: NumberedRequest = { id: ++this.#lastId, request };
    this.#worker.postMessage(message);
    await this.#outcomeOf(message.id);
  }

  /** Ends the thread after all earlier requests. */
  async close(): Promise<void> {
    try {
      // The requests of a thread that has ended are rejected already.
      if (!this.#end) await this.send({ kind: 'close' });
    } finally {
      await this.#worker.terminate();
    }
  }

  #outcomeOf(id: number): Promise<void> {
    const pending = Promise.withResolvers<void>();
    this.#pending.set(id, pending);
    return pending.promise;
  }

  #done({ id, error }: Extract<WriterReport, { kind: 'done' }>): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (error === undefined) pending?.resolve();
    else pending?.reject(unavailable(error));
  }

  /** Pending requests may or may not have happened: only reading the file in a new process tells. */
  #ended(error: Error | undefined): void {
    this.#end ??= error ?? new Error('the writer thread has ended');
    const text = `${this.#file}: the writer thread has ended; pending writes may have happened: restart the process`;
    for (const { reject } of this.#pending.values()) reject(unavailable(text, error));
    this.#pending.clear();
  }
}

function unavailable(message: string, cause?: Error): StoreError {
  return new StoreError('unavailable', message, undefined, { cause });
}

// Messages between the store and its writer thread.

export type WriterRequest =
  | { readonly kind: 'append'; readonly rows: readonly LogRow[] }
  | { readonly kind: 'compact'; readonly revision: number }
  | { readonly kind: 'note'; readonly changes: readonly NoteChange[] }
  /** Makes a meaningless write durable. */
  | { readonly kind: 'probe' }
  | { readonly kind: 'close' };

export interface NumberedRequest {
  readonly id: number;
  readonly request: WriterRequest;
}

/** Number of the request that the thread starts with: to open the database and report its contents. */
const OPENING = 0;

/** The contents of the database: first `counters`, then all rows. */
type LoadReport =
  | { readonly kind: 'counters'; readonly counters: LogCounters }
  | { readonly kind: 'log'; readonly rows: readonly StoredRow[] }
  | { readonly kind: 'present'; readonly rows: readonly PresentRow[] }
  | { readonly kind: 'notes'; readonly rows: readonly NoteRow[] };

export type WriterReport =
  | LoadReport
  /** `error` is a message for the user: nothing of the request has happened. */
  | { readonly kind: 'done'; readonly id: number; readonly error: string | undefined };
