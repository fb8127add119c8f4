/** Opens the database file: permissions, the lock of the writing process, recovery checks. */

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
import { TerminalError, codeOf, messageOf } from '../../../base/errors.ts';
import { checkVersion, migrate } from './tables.ts';

/** A database that no other process writes while it is open. */
export interface WritableDatabase extends Disposable {
  readonly database: DatabaseSync;
}

export function databaseFile(dataDir: string): string {
  return join(dataDir, 'management.db');
}

/** Another process holds a lock only briefly: while it closes the database or recovers from a crash. */
const BUSY_TIMEOUT_MS = 5_000;
/** An empty write-ahead log is truncated to this size: otherwise one long backup would leave it large forever. */
const WAL_BYTES_KEPT = 16 * 1024 * 1024;

/**
 * Opens a store for writing and creates it if it does not exist (mode 0600, folder 0700). Throws a `TerminalError` when another process has
 * it open, and for every other problem.
 */
export function openForWriting(file: string): WritableDatabase {
  let lock: DatabaseSync | undefined;
  let database: DatabaseSync | undefined;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    lock = takeLock(file);
    create(file);
    keepPrivate(file);
    // SQLite opens a file that it cannot write read-only, without an error.
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
 * A lock that the operating system releases however the process ends: SQLite's own lock, on an empty file next to the database. Not on the
 * database itself, which other processes must be able to read.
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
      `${file} is in use by another process: stop that process, or set another dataDir for this one`,
      { cause: error },
    );
  }
}

/**
 * Creates an empty file that only this user may read. An existing file is not opened: by POSIX rules, closing it would release the locks that
 * this process has on it.
 */
function create(file: string): void {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'wx', 0o600);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return;
    throw error;
  }
  closeSync(descriptor);
  syncFolder(dirname(file));
}

/** A restored file, or one on a volume that a cluster prepared, may be readable by other users; a file of another user is not changed. */
function keepPrivate(file: string): void {
  if ((statSync(file).mode & 0o077) === 0) return;
  try {
    chmodSync(file, 0o600);
  } catch (error) {
    if (codeOf(error) !== 'EPERM') throw error;
  }
}

/** A new file name is durable only after its folder is synced. */
export function syncFolder(folder: string): void {
  sync(folder, 'r');
}

export function sync(path: string, flags: 'r' | 'r+'): void {
  const descriptor = openSync(path, flags);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Byte 18 of the header: a backup is not in write-ahead mode; a store always is once it was opened. */
const ROLLBACK_MODE = 1;
const WRITE_AHEAD_MODE = 2;

/**
 * Throws a `TerminalError` when the write-ahead log does not belong to the database: SQLite would mix a restored backup with the log of a
 * crashed process, and would not notice a missing log with acknowledged writes. Must be called before this process opens the file: reading
 * the header releases the locks of the process.
 */
export function rejectForeignLog(file: string): void {
  const log = `${file}-wal`;
  const size = statSync(log, { throwIfNoEntry: false })?.size;
  if (size === undefined && existsSync(openMark(file)) && writeMode(file) === WRITE_AHEAD_MODE) {
    throw new TerminalError(
      `${file} was not closed, and ${log} with its last writes is missing: put the file back, or restore a backup; ` +
        `to continue without these writes, remove ${openMark(file)}`,
    );
  }
  if ((size ?? 0) > 0 && writeMode(file) === ROLLBACK_MODE) {
    throw new TerminalError(
      `${file} was restored, but ${log} belongs to the previous database: remove ${log} and ${file}-shm`,
    );
  }
}

/** Exists while the database is open and after a crash: as long as the write-ahead log must exist too. */
function openMark(file: string): string {
  return `${file}.open`;
}

function markOpen(database: DatabaseSync, file: string): void {
  database.exec('BEGIN IMMEDIATE; COMMIT');
  if (existsSync(`${file}-wal`)) create(openMark(file));
}

/** INVARIANT: the mark is removed before the log, so that a crash in between leaves no mark without a log. */
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
  // Overwrites deleted data where that needs no additional write.
  database.exec('PRAGMA secure_delete = FAST');
}

/** By primary result code, https://www.sqlite.org/rescode.html, or by code of the file system. */
const NO_WRITE_PERMISSION = 'cannot be written: grant this user write permission on the file and its folder';
const NO_FOLDER = 'has a parent that is not a folder: choose another path';
const ADVICE: Readonly<Record<string, string>> = {
  5: 'is locked by another program: stop it, or wait until it has finished',
  8: NO_WRITE_PERMISSION,
  10: 'cannot be read or written, input or output failed: check the disk and the resource limits of this process',
  11: 'is damaged: restore a backup, or recover its contents with "sqlite3 FILE .recover"',
  13: 'cannot grow, the disk is full: free some space',
  14: 'cannot be opened: grant this user read and write permission on the file and its folder',
  26: 'is not a database, or its header is damaged: restore a backup, or move the file away to start with an empty store',
  EACCES: NO_WRITE_PERMISSION,
  EPERM: NO_WRITE_PERMISSION,
  EROFS: 'is on a read-only file system: choose a writable folder',
  ENOSPC: 'cannot be created, the disk is full: free some space',
  ENOTDIR: NO_FOLDER,
  EEXIST: NO_FOLDER,
  EISDIR: 'is a folder: choose another path, or move it away',
  ENOENT: 'does not exist',
};

/** One sentence that begins with the file. */
export function storageMessage(error: unknown, file: string): string {
  if (error instanceof TerminalError) return error.message;
  const advice = ADVICE[resultCodeOf(error)];
  const message = messageOf(error);
  return advice === undefined ? `${file}: ${message}` : `${file} ${advice} (${message})`;
}

function isDatabaseBusy(error: unknown): boolean {
  return resultCodeOf(error) === 5;
}

/** True for a file that SQLite can read, but not as an intact database. */
export function isDatabaseDamaged(error: unknown): boolean {
  const code = resultCodeOf(error);
  return code === 11 || code === 26;
}

export function unusable(error: unknown, file: string): TerminalError {
  if (error instanceof TerminalError) return error;
  return new TerminalError(storageMessage(error, file), { cause: error });
}

function resultCodeOf(error: unknown): number | string {
  const isOfSqlite = error instanceof Error && 'errcode' in error && typeof error.errcode === 'number';
  // The low byte is the primary code; the rest is a detail.
  return isOfSqlite ? Number(error.errcode) & 0xff : codeOf(error);
}
