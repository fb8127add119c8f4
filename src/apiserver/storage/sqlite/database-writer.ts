/** The client of the writer thread: one promise for each request. */

import { Worker } from 'node:worker_threads';
import { TerminalError } from '../../../base/errors.ts';
import { sourceExtension } from '../../../base/source-extension.ts';
import { StoreError } from '../store.ts';
import type { LogRow, NoteRow, PresentRow, StoredRow, LogCounters, NoteChange } from './tables.ts';

/** The contents of the database, in the order in which the thread reports them. */
export type LoadReport = Extract<WriterReport, { kind: 'counters' | 'log' | 'present' | 'notes' }>;

type PendingRequest = Omit<PromiseWithResolvers<void>, 'promise'>;

export class DatabaseWriter {
  readonly #file: string;
  readonly #worker: Worker;
  readonly #pending = new Map<number, PendingRequest>();
  readonly #onLoad: (report: LoadReport) => void;
  readonly #opening: PendingRequest;
  #lastId = 0;
  /** The error that has ended the thread. */
  #end: Error | undefined;

  private constructor(file: string, onLoad: (report: LoadReport) => void, opening: PendingRequest) {
    this.#file = file;
    this.#onLoad = onLoad;
    this.#opening = opening;
    const program = `./writer-thread.${sourceExtension(import.meta.url)}`;
    this.#worker = new Worker(new URL(program, import.meta.url), {
      workerData: file,
      name: 'store-writer',
      // The thread needs no options of this process.
      execArgv: [],
      argv: [],
    });
    this.#worker.on('message', (report: WriterReport) => this.#receive(report));
    this.#worker.on('error', (error) =>
      this.#ended(error instanceof Error ? error : new Error(String(error))),
    );
    this.#worker.on('exit', () => this.#ended(undefined));
  }

  /** Opens the database and reports its contents. Rejects with a `TerminalError`. */
  static async open(file: string, onLoad: (report: LoadReport) => void): Promise<DatabaseWriter> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const writer = new DatabaseWriter(file, onLoad, { resolve, reject });
    try {
      await promise;
      return writer;
    } catch (error) {
      await writer.#worker.terminate();
      throw error;
    }
  }

  /** Resolves when the request is done; rejects with a {@link StoreError} `unavailable` when nothing has happened. */
  async send(request: WriterRequest): Promise<void> {
    if (this.#end) throw this.#unavailable(this.#end.message, this.#end);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const id = ++this.#lastId;
    this.#pending.set(id, { resolve, reject });
    const message: NumberedRequest = { id, request };
    this.#worker.postMessage(message);
    await promise;
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

  #receive(report: WriterReport): void {
    switch (report.kind) {
      case 'ready':
        this.#opening.resolve();
        return;
      case 'failed':
        this.#opening.reject(new TerminalError(report.message));
        return;
      case 'done': {
        const pending = this.#pending.get(report.id);
        this.#pending.delete(report.id);
        if (report.error === undefined) pending?.resolve();
        else pending?.reject(this.#unavailable(report.error));
        return;
      }
      default:
        this.#onLoad(report);
    }
  }

  /** Pending requests may or may not have happened: only reading the file in a new process tells. */
  #ended(error: Error | undefined): void {
    this.#end ??= error ?? new Error('the writer thread has ended');
    const text = `${this.#file}: the writer thread has ended; pending writes may have happened: restart the process`;
    this.#opening.reject(new TerminalError(text, { cause: error }));
    for (const { reject } of this.#pending.values()) reject(this.#unavailable(text, error));
    this.#pending.clear();
  }

  #unavailable(message: string, cause?: Error): StoreError {
    return new StoreError('unavailable', message, undefined, { cause });
  }
}

// Messages between the store and its writer thread.

export type WriterRequest =
  | { readonly kind: 'append'; readonly rows: readonly LogRow[] }
  /** Removes events up to this revision. */
  | { readonly kind: 'compact'; readonly revision: number }
  | { readonly kind: 'note'; readonly changes: readonly NoteChange[] }
  /** Makes a meaningless write durable. */
  | { readonly kind: 'probe' }
  | { readonly kind: 'close' };

/** First `counters`, then all rows, then `ready`; or `failed`. After that one `done` for each request. */
export type WriterReport =
  | { readonly kind: 'counters'; readonly counters: LogCounters }
  | { readonly kind: 'log'; readonly rows: readonly StoredRow[] }
  | { readonly kind: 'present'; readonly rows: readonly PresentRow[] }
  | { readonly kind: 'notes'; readonly rows: readonly NoteRow[] }
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly message: string }
  /** `error` is a message for the user: nothing of the request has happened. */
  | { readonly kind: 'done'; readonly id: number; readonly error: string | undefined };

export interface NumberedRequest {
  readonly id: number;
  readonly request: WriterRequest;
}
