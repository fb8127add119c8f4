/** The database as a file: who may read it, who writes it, how it is opened. */

import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, readSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { TerminalError } from '../../kube/errors.ts';
import { checkVersion, migrate } from './schema.ts';
import { isDatabaseBusy, unusable } from './storage-error.ts';

/** A database that nobody else writes while it is open. */
export interface WritableDatabase extends Disposable {
  readonly database: DatabaseSync;
}

/** The management store below its data folder. */
export function databaseFile(dataDir: string): string {
  return join(dataDir, 'management.db');
}

/** Another process holds a lock only for moments: at its end, or while it takes up what a crash left. */
const BUSY_TIMEOUT_MS = 5_000;
/** The write-ahead log is cut back to this when it is empty again: one long backup must not leave it large for good. */
const WAL_BYTES_KEPT = 16 * 1024 * 1024;

/**
 * Opens a store for writing, makes it where there is none (mode 0600, folder 0700). Throws a `TerminalError` when another process has it,
 * and for everything else that keeps it from being used.
 */
export function openForWriting(file: string): WritableDatabase {
  let lock: DatabaseSync | undefined;
  let database: DatabaseSync | undefined;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    lock = takeLock(file);
    create(file);
    keepPrivate(file);
    refuseForeignLog(file);
    database = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
    migrate(database, file);
    configure(database, file);
    const [held, opened] = [lock, database];
    return {
      database: opened,
      [Symbol.dispose]: () => {
        opened.close();
        held.close();
      },
    };
  } catch (error) {
    database?.close();
    lock?.close();
    throw unusable(error, file);
  }
}

/** Opens a store for reading, while another process may be writing it. Throws a `TerminalError`. */
export function openForReading(file: string): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    statSync(file);
    database = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
    checkVersion(database, file);
    return database;
  } catch (error) {
    database?.close();
    throw unusable(error, file);
  }
}

/**
 * A lock that the operating system holds for this process, and lets go of however the process ends: SQLite's own, on an empty file beside
 * the database. Not on the database itself, which others must be able to read.
 */
function takeLock(file: string): DatabaseSync {
  const path = `${file}.lock`;
  create(path);
  const lock = new DatabaseSync(path, { timeout: 0 });
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock.close();
    if (!isDatabaseBusy(error)) throw unusable(error, path);
    throw new TerminalError(
      `${file} is in use by another process: end that one first, or give this one another dataDir`,
      { cause: error },
    );
  }
}

/**
 * Makes an empty file that only this user may read. A file that exists is not even opened: closing it would drop the locks which this process
 * has on it, as POSIX has it.
 */
function create(file: string): void {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'wx', 0o600);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return;
    throw error;
  }
  closeSync(descriptor);
  syncFolder(dirname(file));
}

/** A restored file, or one on a volume that a cluster prepared, may be open to others; a file of another user stays as it is. */
function keepPrivate(file: string): void {
  if ((statSync(file).mode & 0o077) === 0) return;
  try {
    chmodSync(file, 0o600);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EPERM')) throw error;
  }
}

/** A new name is durable only when its folder is. */
export function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** A backup is not in write-ahead mode (bytes 18 and 19 of its header), the store always is once it was opened. */
const ROLLBACK_MODE = 1;

/**
 * Throws a `TerminalError` for a restored backup beside the write-ahead log that a crashed process left of the database before: SQLite would
 * mix the two. Only for a process that does not have the file open: looking at it drops the locks which the process has on it.
 */
export function refuseForeignLog(file: string): void {
  const size = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (size === 0 || writeMode(file) !== ROLLBACK_MODE) return;
  throw new TerminalError(
    `${file} was restored, but ${file}-wal belongs to the database before: remove ${file}-wal and ${file}-shm`,
  );
}

function writeMode(file: string): number | undefined {
  const header = Buffer.alloc(20);
  const descriptor = openSync(file, 'r');
  try {
    return readSync(descriptor, header) === header.length ? header[18] : undefined;
  } finally {
    closeSync(descriptor);
  }
}

function configure(database: DatabaseSync, file: string): void {
  const mode = database.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode'];
  if (mode !== 'wal') {
    throw new TerminalError(
      `${file} is on a file system without shared memory: choose a local disk for dataDir`,
    );
  }
  database.exec(`PRAGMA synchronous = FULL; PRAGMA journal_size_limit = ${WAL_BYTES_KEPT}`);
  // What was deleted is overwritten where that costs no write of its own.
  database.exec('PRAGMA secure_delete = FAST');
}
