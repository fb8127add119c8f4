/** What an error of SQLite or of the file system means to whoever runs this: what is wrong, where, and what to do. */

import { TerminalError } from '../../../../base/errors.ts';

/** Primary result codes, https://www.sqlite.org/rescode.html; the first one stands for the file system's own codes too. */
const ADVICE: ReadonlyMap<number | string, string> = new Map<number | string, string>([
  [5, 'is locked by another program: end it, or wait until it is done'],
  [8, 'cannot be written: give this user the right to write the file and its folder'],
  [
    10,
    'cannot be read or written, the disk or its limits refuse: look at the disk and at the limits of this process',
  ],
  [11, 'is damaged: restore a backup, or save what "sqlite3 FILE .recover" can read of it'],
  [13, 'cannot grow, the disk is full: free space on it'],
  [14, 'cannot be opened: give this user the right to read and write the file and its folder'],
  [
    26,
    'is not a database, or its beginning is damaged: restore a backup, or move it away to start with an empty store',
  ],
  ['EACCES', 'cannot be written: give this user the right to write the file and its folder'],
  ['EPERM', 'cannot be written: give this user the right to write the file and its folder'],
  ['EROFS', 'is on a file system that can only be read: choose a folder that can be written'],
  ['ENOSPC', 'cannot be made, the disk is full: free space on it'],
  ['ENOTDIR', 'is below something that is not a folder: choose another place'],
  ['EEXIST', 'is below something that is not a folder: choose another place'],
  ['EISDIR', 'is a folder: choose another place, or move it away'],
  ['ENOENT', 'does not exist'],
]);

/** One sentence that begins with the file. */
export function storageMessage(error: unknown, file: string): string {
  if (error instanceof TerminalError) return error.message;
  const advice = ADVICE.get(codeOf(error));
  const said = error instanceof Error ? error.message : String(error);
  return advice === undefined ? `${file}: ${said}` : `${file} ${advice} (${said})`;
}

export function isDatabaseBusy(error: unknown): boolean {
  return codeOf(error) === 5;
}

/** True for a file that SQLite reads, but not as a sound database. */
export function isDatabaseDamaged(error: unknown): boolean {
  const code = codeOf(error);
  return code === 11 || code === 26;
}

/** Opening failed, and trying again will not help. */
export function unusable(error: unknown, file: string): TerminalError {
  if (error instanceof TerminalError) return error;
  return new TerminalError(storageMessage(error, file), { cause: error });
}

function codeOf(error: unknown): number | string {
  if (!(error instanceof Error)) return '';
  // The low byte is the primary code, the rest says where it happened.
  if ('errcode' in error && typeof error.errcode === 'number') return error.errcode & 0xff;
  return 'code' in error ? String(error.code) : '';
}
