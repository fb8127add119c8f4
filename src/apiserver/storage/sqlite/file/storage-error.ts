/** Explains errors of SQLite and of the file system to the operator: what failed, on which file, and the next step. */

import { TerminalError, messageOf } from '../../../../base/errors.ts';

/** By primary result code, https://www.sqlite.org/rescode.html, or by code of the file system. */
const ADVICE: ReadonlyMap<number | string, string> = new Map<number | string, string>([
  [5, 'is locked by another program: stop it, or wait until it has finished'],
  [8, 'cannot be written: grant this user write permission on the file and its folder'],
  [
    10,
    'cannot be read or written, input or output failed: check the disk and the resource limits of this process',
  ],
  [11, 'is damaged: restore a backup, or recover its contents with "sqlite3 FILE .recover"'],
  [13, 'cannot grow, the disk is full: free some space'],
  [14, 'cannot be opened: grant this user read and write permission on the file and its folder'],
  [
    26,
    'is not a database, or its header is damaged: restore a backup, or move the file away to start with an empty store',
  ],
  ['EACCES', 'cannot be written: grant this user write permission on the file and its folder'],
  ['EPERM', 'cannot be written: grant this user write permission on the file and its folder'],
  ['EROFS', 'is on a read-only file system: choose a writable folder'],
  ['ENOSPC', 'cannot be created, the disk is full: free some space'],
  ['ENOTDIR', 'has a parent that is not a folder: choose another path'],
  ['EEXIST', 'has a parent that is not a folder: choose another path'],
  ['EISDIR', 'is a folder: choose another path, or move it away'],
  ['ENOENT', 'does not exist'],
]);

/** One sentence that begins with the file. */
export function storageMessage(error: unknown, file: string): string {
  if (error instanceof TerminalError) return error.message;
  const advice = ADVICE.get(codeOf(error));
  const message = messageOf(error);
  return advice === undefined ? `${file}: ${message}` : `${file} ${advice} (${message})`;
}

export function isDatabaseBusy(error: unknown): boolean {
  return codeOf(error) === 5;
}

/** True for a file that SQLite can read, but not as an intact database. */
export function isDatabaseDamaged(error: unknown): boolean {
  const code = codeOf(error);
  return code === 11 || code === 26;
}

/** Opening failed, and a retry will not help. */
export function unusable(error: unknown, file: string): TerminalError {
  if (error instanceof TerminalError) return error;
  return new TerminalError(storageMessage(error, file), { cause: error });
}

function codeOf(error: unknown): number | string {
  if (!(error instanceof Error)) return '';
  // The low byte is the primary code; the rest is a detail.
  if ('errcode' in error && typeof error.errcode === 'number') return error.errcode & 0xff;
  return 'code' in error ? String(error.code) : '';
}
