/** Verifies a database: SQLite's integrity check, then a replay of the log that is compared with the table of current entries. */

import type { DatabaseSync } from 'node:sqlite';
import { TerminalError } from '../../../../base/errors.ts';
import { RevisionedState } from '../../revisioned-state.ts';
import { openForReading } from '../file/database-file.ts';
import type { StoreVerdict } from '../../store.ts';
import { Replay } from '../file/replay.ts';
import { readCounters, readLog, readPresent } from '../file/statements.ts';
import { storageMessage } from '../file/storage-error.ts';

/** Works while another process writes, because one transaction reads everything. An unreadable file is a problem too. */
export function verifyDatabase(file: string): StoreVerdict {
  const problems: string[] = [];
  const state = new RevisionedState({ eventsMax: 1, bytesMax: 0 });
  try {
    using database = openForReading(file);
    database.exec('BEGIN');
    problems.push(...integrityProblems(database));
    const replay = new Replay(state, readCounters(database));
    for (const row of readLog(database)) replay.addRow(row);
    for (const row of readPresent(database)) replay.addPresent(row);
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
