/** Whether a database is sound: SQLite's own check, then the log replayed and compared with what the file says is present. */

import type { DatabaseSync } from 'node:sqlite';
import { TerminalError } from '../../../../base/errors.ts';
import { RevisionedState } from '../../revisioned-state.ts';
import { openForReading } from '../file/database-file.ts';
import type { StoreVerdict } from '../../store.ts';
import { Replay } from '../file/replay.ts';
import { readCounters, readLog, readPresent } from '../file/statements.ts';
import { storageMessage } from '../file/storage-error.ts';

/** Works while another process writes: everything is read at one moment. A file that cannot be read at all is a problem too. */
export function verifyDatabase(file: string): StoreVerdict {
  const problems: string[] = [];
  const state = new RevisionedState({ eventsMax: 1, bytesMax: 0 });
  try {
    using database = openForReading(file);
    // One moment for all that is read.
    database.exec('BEGIN');
    problems.push(...integrityProblems(database));
    const replay = new Replay(state, readCounters(database));
    for (const row of readLog(database)) replay.take(row);
    for (const row of readPresent(database)) replay.takePresent(row);
    replay.finish();
    problems.push(...replay.problems);
  } catch (error) {
    problems.push(error instanceof TerminalError ? error.message : storageMessage(error, file));
  }
  return { problems, objects: state.objects, revision: state.revision };
}

function integrityProblems(database: DatabaseSync): string[] {
  const lines = database
    .prepare('PRAGMA integrity_check(100)')
    .all()
    .map((row) => String(row['integrity_check']));
  return lines.filter((line) => line !== 'ok').map((line) => `SQLite: ${line}`);
}
