/** The database as a file: who may read it, who writes it, how it is opened. */

import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { TerminalError } from '../../../../base/errors.ts';
import { checkVersion, migrate } from './tables.ts';
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
    // SQLite would open a file that it cannot write, for reading.
    closeSync(openSync(file, 'r+'));
    rejectForeignLog(file);
    database = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
    migrate(database, file);
    configure(database, file);
    markOpen(database, file);
    const [held, opened] = [lock, database];
    return {
      database: opened,
      [Symbol.dispose]: () => {
        try {
          close(opened, file);
        } finally {
          held.close();
        }
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

/** Bytes 18 and 19 of the header: a backup is not in write-ahead mode, the store always is once it was opened. */
const ROLLBACK_MODE = 1;
const WRITE_AHEAD_MODE = 2;

/**
 * Throws a `TerminalError` for a write-ahead log that is not the one of the database: SQLite would mix a restored backup with the log that a
 * crashed process left, and would not miss a log that is gone with all that was acknowledged since. Only for a process that does not have the
 * file open: looking at it drops the locks which the process has on it.
 */
export function rejectForeignLog(file: string): void {
  const log = `${file}-wal`;
  const size = statSync(log, { throwIfNoEntry: false })?.size;
  if (size === undefined && existsSync(openMark(file)) && writeMode(file) === WRITE_AHEAD_MODE) {
    throw new TerminalError(
      `${file} was not closed, and the last writes, which were in ${log}, are gone with it: put that back, or restore a backup; ` +
        `to go on with what is in the database, remove ${openMark(file)}`,
    );
  }
  if ((size ?? 0) > 0 && writeMode(file) === ROLLBACK_MODE) {
    throw new TerminalError(
      `${file} was restored, but ${log} belongs to the database before: remove ${log} and ${file}-shm`,
    );
  }
}

/** There while the database is open, and after a crash: as long as its write-ahead log must be there too. */
function openMark(file: string): string {
  return `${file}.open`;
}

/** After the log has come into being. */
function markOpen(database: DatabaseSync, file: string): void {
  database.exec('BEGIN IMMEDIATE; COMMIT');
  if (existsSync(`${file}-wal`)) create(openMark(file));
}

/** INVARIANT: the mark goes before the log does, so a crash in between leaves no mark without a log. */
function close(database: DatabaseSync, file: string): void {
  try {
    rmSync(openMark(file), { force: true });
    syncFolder(dirname(file));
  } finally {
    database.close();
  }
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
