/** Maintenance of a database file: verify, back up, compact. */

import { closeSync, existsSync, linkSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { TerminalError, codeOf } from '../../../base/errors.ts';
import { MemoryStore } from '../revisioned-store.ts';
import {
  openForReading,
  sync,
  syncFolder,
  openForWriting,
  storageMessage,
  isDatabaseDamaged,
  unusable,
} from './database-file.ts';
import type { StoreVerdict } from '../store.ts';
import { Replay, readCounters, readLog, readPresent, StoreWrites, numberOf } from './tables.ts';

/**
 * SQLite's integrity check, then a replay of the log that is compared with the table of current entries. Works while
 * another process writes, because one transaction reads everything. An unreadable file is a problem too.
 */
export function verifyDatabase(file: string): StoreVerdict {
  const problems: string[] = [];
  const store = new MemoryStore({ historyLimit: 1 });
  try {
    using database = openForReading(file);
    database.exec('BEGIN');
    problems.push(...integrityProblems(database));
    const replay = new Replay(store, readCounters(database));
    for (const row of readLog(database)) replay.addRow(row);
    for (const row of readPresent(database)) replay.addPresent(row);
    replay.finish();
    problems.push(...replay.problems);
  } catch (error) {
    problems.push(error instanceof TerminalError ? error.message : storageMessage(error, file));
  }
  return { problems, objects: store.objects, revision: store.newest };
}

function integrityProblems(database: DatabaseSync): string[] {
  const lines = database
    .prepare('PRAGMA integrity_check(100)')
    .all()
    .map((row) => String(row['integrity_check']));
  return lines.filter((line) => line !== 'ok').map((line) => `SQLite: ${line}`);
}

export interface BackupResult {
  readonly objects: number;
  readonly revision: number;
  readonly bytes: number;
}

/**
 * Copies a database at one revision while it is being read and written. Writes the copy to `target` with mode 0600; it is verified and
 * durable when this returns. Throws a `TerminalError` when `target` exists or cannot be written, or when the database is damaged; no file is
 * left then.
 */
export function backupDatabase(file: string, target: string): BackupResult {
  if (existsSync(target)) throw new TerminalError(`${target} exists: choose another name, or remove it`);
  const part = `${target}.part`;
  createPart(part);
  try {
    copy(file, part);
    const { problems, objects, revision } = verifyDatabase(part);
    const [problem] = problems;
    if (problem !== undefined)
      throw new TerminalError(`${file} is damaged, the copy is not usable: ${problem}`);
    sync(part, 'r+');
    publish(part, target);
    return { objects, revision, bytes: statSync(target).size };
  } finally {
    for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(part + suffix, { force: true });
  }
}

/** Creates the file before SQLite opens it, so that no other user can ever read it. */
function createPart(part: string): void {
  try {
    closeSync(openSync(part, 'wx', 0o600));
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EEXIST') {
      const message = `${part} exists: another backup is running, or one was interrupted; remove the file if none is running`;
      throw new TerminalError(message, { cause: error });
    }
    throw unusable(error, code === 'ENOENT' ? `the folder ${dirname(part)}` : part);
  }
}

function copy(file: string, part: string): void {
  using database = openForReading(file);
  try {
    database.prepare('VACUUM INTO ?').run(part);
  } catch (error) {
    // An error such as a full disk concerns the target, a damaged page the database.
    throw new TerminalError(storageMessage(error, isDatabaseDamaged(error) ? file : part), { cause: error });
  }
}

function publish(part: string, target: string): void {
  try {
    // Unlike a rename, a link never replaces another file.
    linkSync(part, target);
    rmSync(part);
  } catch (error) {
    // Some file systems have no hard links.
    if (existsSync(target))
      throw new TerminalError(`${target} exists: choose another name`, { cause: error });
    renameSync(part, target);
  }
  syncFolder(dirname(target));
}

export interface CompactResult {
  readonly rows: number;
  readonly revision: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

/**
 * Removes all history of a database that no process serves, and returns the space to the file system. Throws a `TerminalError` when the
 * file does not exist, a process serves it, or it cannot be written.
 */
export function compactDatabase(file: string): CompactResult {
  const bytesBefore = sizeOf(file);
  let rows: number;
  let revision: number;
  {
    using opened = openForWriting(file);
    const { database } = opened;
    const { counter, compacted } = readCounters(database);
    const before = numberOf(database, 'SELECT count(*) FROM log');
    try {
      new StoreWrites(database).compact(compacted, counter);
      database.exec('VACUUM');
    } catch (error) {
      throw unusable(error, file);
    }
    rows = before - numberOf(database, 'SELECT count(*) FROM log');
    revision = counter;
  }
  return { rows, revision, bytesBefore, bytesAfter: sizeOf(file) };
}

/** Includes the write-ahead log, which is part of the database until it is closed. */
function sizeOf(file: string): number {
  try {
    return statSync(file).size + (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0);
  } catch (error) {
    throw new TerminalError(`${file} does not exist: nothing has been stored there yet`, { cause: error });
  }
}
