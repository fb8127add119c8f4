/** The store's side of the writer thread: requests in, one promise each. */

import { Worker } from 'node:worker_threads';
import { TerminalError } from '../../../../base/errors.ts';
import { sourceExtension } from '../../../../base/source-extension.ts';
import { StoreError } from '../../store.ts';
import type { NumberedRequest, WriterReport, WriterRequest } from './writer-protocol.ts';

/** What the database holds when it is opened, in the order in which it is reported. */
export type FoundReport = Extract<WriterReport, { kind: 'found' | 'log' | 'present' | 'notes' }>;

interface Asked {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class DatabaseWriter {
  readonly #file: string;
  readonly #worker: Worker;
  readonly #asked = new Map<number, Asked>();
  readonly #onFound: (report: FoundReport) => void;
  readonly #opening: Asked;
  #lastId = 0;
  /** Why nothing can be written any more. */
  #end: Error | undefined;

  private constructor(file: string, onFound: (report: FoundReport) => void, opening: Asked) {
    this.#file = file;
    this.#onFound = onFound;
    this.#opening = opening;
    const program = `./writer-thread.${sourceExtension(import.meta.url)}`;
    this.#worker = new Worker(new URL(program, import.meta.url), {
      workerData: file,
      name: 'store-writer',
      // It needs nothing of what the process was started with.
      execArgv: [],
      argv: [],
    });
    this.#worker.on('message', (report: WriterReport) => this.#take(report));
    this.#worker.on('error', (error) =>
      this.#ended(error instanceof Error ? error : new Error(String(error))),
    );
    this.#worker.on('exit', () => this.#ended(undefined));
  }

  /** Opens the database and hands over what it holds. Rejects with a `TerminalError`. */
  static async open(file: string, onFound: (report: FoundReport) => void): Promise<DatabaseWriter> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const writer = new DatabaseWriter(file, onFound, { resolve, reject });
    try {
      await promise;
      return writer;
    } catch (error) {
      await writer.#worker.terminate();
      throw error;
    }
  }

  /** Resolves when it is done; rejects with a {@link StoreError} `unavailable`, and nothing has happened then. */
  async ask(request: WriterRequest): Promise<void> {
    if (this.#end) throw this.#unavailable(this.#end.message, this.#end);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const id = ++this.#lastId;
    this.#asked.set(id, { resolve, reject });
    const message: NumberedRequest = { id, request };
    this.#worker.postMessage(message);
    await promise;
  }

  /** Ends the thread when everything asked before is done. */
  async close(): Promise<void> {
    try {
      // A thread that has ended has said so to those whose writes it took along.
      if (!this.#end) await this.ask({ kind: 'close' });
    } finally {
      await this.#worker.terminate();
    }
  }

  #take(report: WriterReport): void {
    switch (report.kind) {
      case 'ready':
        this.#opening.resolve();
        return;
      case 'refused':
        this.#opening.reject(new TerminalError(report.message));
        return;
      case 'done': {
        const asked = this.#asked.get(report.id);
        this.#asked.delete(report.id);
        if (report.error === undefined) asked?.resolve();
        else asked?.reject(this.#unavailable(report.error));
        return;
      }
      default:
        this.#onFound(report);
    }
  }

  /** Whatever was asked may have happened or not: only the file knows, and only a new start reads it. */
  #ended(error: Error | undefined): void {
    this.#end ??= error ?? new Error('the writer thread has ended');
    const text = `${this.#file}: the writer thread ended: restart the process to see what was still written`;
    this.#opening.reject(new TerminalError(text, { cause: error }));
    for (const { reject } of this.#asked.values()) reject(this.#unavailable(text, error));
    this.#asked.clear();
  }

  #unavailable(message: string, cause?: Error): StoreError {
    return new StoreError('unavailable', message, undefined, { cause });
  }
}
