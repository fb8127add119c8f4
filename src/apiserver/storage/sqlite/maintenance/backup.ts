/** A copy of a database as it is at one moment, while others may read and write it. */

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
 * Writes the copy to `target`, mode 0600, checked and durable when this returns. Throws a `TerminalError`: `target` exists, cannot be
 * written, or the database is damaged; nothing is left behind then.
 */
export function backupDatabase(file: string, target: string): BackupResult {
  if (existsSync(target)) throw new TerminalError(`${target} exists: choose another name, or remove it`);
  const part = `${target}.part`;
  makePart(part);
  try {
    copy(file, part);
    const { problems, objects, revision } = verifyDatabase(part);
    const [problem] = problems;
    if (problem !== undefined)
      throw new TerminalError(`${file} is damaged, the copy is of no use: ${problem}`);
    sync(part);
    publish(part, target);
    return { objects, revision, bytes: statSync(target).size };
  } finally {
    for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(part + suffix, { force: true });
  }
}

/** Made before SQLite opens it, so that nobody else can ever read it. */
function makePart(part: string): void {
  try {
    closeSync(openSync(part, 'wx', 0o600));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') {
      const message = `${part} exists: another backup is being written, or one was interrupted; remove it in the second case`;
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
    // A full disk is the target's, a damaged page the database's.
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

/** Under its own name only when it is whole. */
function publish(part: string, target: string): void {
  try {
    // Unlike a rename, a link never takes the place of another file.
    linkSync(part, target);
    rmSync(part);
  } catch (error) {
    // Not every file system has links.
    if (existsSync(target))
      throw new TerminalError(`${target} exists: choose another name`, { cause: error });
    renameSync(part, target);
  }
  syncFolder(dirname(target));
}
