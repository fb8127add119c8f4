/**
 * The thread that owns the database: it reads the database once at the start, then only writes.
 *
 * Why a thread: a commit waits for the disk. Measured on the machine of `bench/README.md` (two cores, fsync 0.2 ms, objects of 1 KiB), commits
 * on the main thread against this thread: one writer 4500/s against 2900/s, 16 writers 31 000/s against 27 000/s, 64 writers 48 000/s for
 * both. But the event loop, and with it every read and watch, was blocked for up to 27 ms (p99 22 ms) against 10 ms (p99 2 ms), and a disk
 * with 5 ms per fsync would block it for 5 ms per commit. The message to this thread takes 0.1 ms, less than an HTTP request.
 */

import { setImmediate } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { openForWriting, type WritableDatabase, storageMessage } from './database-file.ts';
import type { NumberedRequest, WriterReport, WriterRequest } from './sqlite-store.ts';
import { readCounters, readLog, readNotes, readPresent, StoreWrites } from './tables.ts';

const ROWS_PER_REPORT = 500;
/** Revisions compacted at once: a write in the meantime waits for one step, not for all. */
const COMPACT_STEP = 256;

function report(message: WriterReport): void {
  parentPort?.postMessage(message);
}

function reportRows<Row extends object>(rows: Iterable<Row>, wrap: (rows: Row[]) => WriterReport): void {
  let chunk: Row[] = [];
  for (const row of rows) {
    chunk.push(row);
    if (chunk.length < ROWS_PER_REPORT) continue;
    report(wrap(chunk));
    chunk = [];
  }
  if (chunk.length > 0) report(wrap(chunk));
}

class WriterThread {
  readonly #file: string;
  readonly #opened: WritableDatabase;
  readonly #writes: StoreWrites;
  #compacted: number;

  constructor(file: string) {
    this.#file = file;
    this.#opened = openForWriting(file);
    this.#writes = new StoreWrites(this.#opened.database);
    this.#compacted = readCounters(this.#opened.database).compacted;
  }

  reportContents(): void {
    const { database } = this.#opened;
    report({ kind: 'counters', counters: readCounters(database) });
    reportRows(readLog(database), (rows) => ({ kind: 'log', rows }));
    reportRows(readPresent(database), (rows) => ({ kind: 'present', rows }));
    reportRows(readNotes(database), (rows) => ({ kind: 'notes', rows }));
  }

  async handle({ id, request }: NumberedRequest): Promise<void> {
    let error: string | undefined;
    try {
      await this.#perform(request);
    } catch (thrown) {
      error = storageMessage(thrown, this.#file);
    }
    report({ kind: 'done', id, error });
    if (request.kind === 'close') parentPort?.close();
  }

  async #perform(request: WriterRequest): Promise<void> {
    switch (request.kind) {
      case 'append':
        return this.#writes.append(request.rows);
      case 'note':
        return this.#writes.note(request.changes);
      case 'probe':
        return this.#writes.probe();
      case 'compact':
        return await this.#compact(request.revision);
      case 'close':
        return this.#opened[Symbol.dispose]();
    }
  }

  async #compact(revision: number): Promise<void> {
    while (this.#compacted < revision) {
      const to = Math.min(revision, this.#compacted + COMPACT_STEP);
      this.#writes.compact(this.#compacted, to);
      this.#compacted = to;
      await setImmediate();
    }
  }
}

function start(file: string): void {
  let error: string | undefined;
  try {
    const thread = new WriterThread(file);
    thread.reportContents();
    parentPort?.on('message', (request: NumberedRequest) => void thread.handle(request));
  } catch (thrown) {
    error = storageMessage(thrown, file);
  }
  // Of the request to open the database.
  report({ kind: 'done', id: 0, error });
}

// The parent thread passes the path as workerData.
start(workerData as string);
