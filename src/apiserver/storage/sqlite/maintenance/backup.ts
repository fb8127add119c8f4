/** Copies a database at one revision while it is being read and written. */

import { closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { TerminalError } from '../../../../base/errors.ts';
import { openForReading, syncFolder } from '../file/database-file.ts';
import { isDatabaseDamaged, storageMessage, unusable } from '../file/storage-error.ts';
import { verifyDatabase } from './verify-database.ts';

export interface BackupResult {
  readonly objects: number;
  readonly revision: number;
  readonly bytes: number;
}

/**
 * Writes the copy to `target` with mode 0600; it is verified and durable when this returns. Throws a `TerminalError` when `target` exists or
 * cannot be written, or when the database is damaged; no file is left then.
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
    sync(part);
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
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') {
      const message = `${part} exists: another backup is running, or one was interrupted; remove the file if none is running`;
      throw new TerminalError(message, { cause: error });
    }
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    throw unusable(error, isMissing ? `the folder ${dirname(part)}` : part);
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

function sync(path: string): void {
  const descriptor = openSync(path, 'r+');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Gives the complete file its final name. */
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
