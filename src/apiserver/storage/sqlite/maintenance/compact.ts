/** Forgets all history of a database that nobody serves, and gives the space back to the disk. */

import { statSync } from 'node:fs';
import { TerminalError } from '../../../../base/errors.ts';
import { openForWriting } from '../file/database-file.ts';
import { numberOf } from '../file/tables.ts';
import { readCounters, StoreWrites } from '../file/statements.ts';
import { unusable } from '../file/storage-error.ts';

export interface CompactResult {
  /** Rows of the log that went. */
  readonly rows: number;
  readonly revision: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

/** Throws a `TerminalError`: there is no such file, a process serves it, or the disk refuses. */
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
      new StoreWrites(database).forget(compacted, counter);
      database.exec('VACUUM');
    } catch (error) {
      throw unusable(error, file);
    }
    rows = before - numberOf(database, 'SELECT count(*) FROM log');
    revision = counter;
  }
  return { rows, revision, bytesBefore, bytesAfter: sizeOf(file) };
}

/** With the write-ahead log, which is part of the database until it is closed. */
function sizeOf(file: string): number {
  try {
    return statSync(file).size + (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0);
  } catch (error) {
    throw new TerminalError(`${file} does not exist: nothing has been stored there yet`, { cause: error });
  }
}
