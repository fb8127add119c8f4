/** Removes all history of a database that no process serves, and returns the space to the file system. */

import { statSync } from 'node:fs';
import { TerminalError } from '../../../../base/errors.ts';
import { openForWriting } from '../file/database-file.ts';
import { numberOf } from '../file/tables.ts';
import { readCounters, StoreWrites } from '../file/statements.ts';
import { unusable } from '../file/storage-error.ts';

export interface CompactResult {
  /** Number of removed rows of the log. */
  readonly rows: number;
  readonly revision: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

/** Throws a `TerminalError` when the file does not exist, a process serves it, or it cannot be written. */
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
