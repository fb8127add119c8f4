/** The tables of a store, and migrations from a new file or an older version. */

import type { DatabaseSync } from 'node:sqlite';
import { TerminalError } from '../../../../base/errors.ts';
import { FIRST_REVISION } from '../../revisioned-state.ts';

/** `epsy`: distinguishes a store from any other SQLite file. */
const APPLICATION_ID = 0x65707379;

/**
 * Migrations by version: number 0 creates version 1 in an empty file, number 1 version 2 from version 1, and so on.
 *
 * `log` holds all events that are not compacted, in order; its AUTOINCREMENT is the store's revision. A row is removed when the row that
 * replaced it is compacted, so that the log alone gives the current state. `present` repeats that state, so that a lost row is found, and for
 * inspection: `SELECT * FROM present JOIN log USING (revision)`.
 */
const MIGRATIONS: readonly string[] = [
  `CREATE TABLE log (
     revision INTEGER PRIMARY KEY AUTOINCREMENT,
     type TEXT NOT NULL,
     resource TEXT NOT NULL,
     namespace TEXT NOT NULL,
     name TEXT NOT NULL,
     previous INTEGER,
     value TEXT,
     checksum INTEGER NOT NULL
   ) STRICT;
   CREATE TABLE present (
     resource TEXT NOT NULL,
     namespace TEXT NOT NULL,
     name TEXT NOT NULL,
     revision INTEGER NOT NULL,
     PRIMARY KEY (resource, namespace, name)
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE notes (
     list TEXT NOT NULL,
     key TEXT NOT NULL,
     value TEXT NOT NULL,
     PRIMARY KEY (list, key)
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE history (compacted INTEGER NOT NULL) STRICT;
   INSERT INTO history VALUES (0);
   INSERT INTO sqlite_sequence (name, seq) VALUES ('log', ${FIRST_REVISION});
   PRAGMA application_id = ${APPLICATION_ID}`,
];

/** Creates or migrates the tables, in one transaction. Throws a `TerminalError` unless the file is a store of this version or an older one. */
export function migrate(database: DatabaseSync, file: string): void {
  const found = checkedVersion(database, file);
  if (found === MIGRATIONS.length) return;
  database.exec(
    [
      'BEGIN IMMEDIATE',
      ...MIGRATIONS.slice(found),
      `PRAGMA user_version = ${MIGRATIONS.length}`,
      'COMMIT',
    ].join(';\n'),
  );
}

/** For read-only access: throws a `TerminalError` unless the file is a store of exactly this version. */
export function checkVersion(database: DatabaseSync, file: string): void {
  const found = checkedVersion(database, file);
  if (found < MIGRATIONS.length) {
    throw new TerminalError(
      found === 0
        ? `${file} is empty: nothing has been stored in it yet`
        : `${file} has the format of an older version: start the API once to migrate the file`,
    );
  }
}

function checkedVersion(database: DatabaseSync, file: string): number {
  const version = numberOf(database, 'PRAGMA user_version');
  const application = numberOf(database, 'PRAGMA application_id');
  const isEmpty = numberOf(database, 'SELECT count(*) FROM sqlite_schema') === 0;
  if (!isEmpty && application !== APPLICATION_ID) {
    throw new TerminalError(
      `${file} is a database of another program: set another dataDir, or move the file away`,
    );
  }
  if (version > MIGRATIONS.length) {
    throw new TerminalError(
      `${file} was written by a newer version of this program (format ${version}, this one knows up to ${MIGRATIONS.length}): ` +
        'run that version, or restore an older backup',
    );
  }
  return version;
}

/** The first column of the first row. */
export function numberOf(database: DatabaseSync, sql: string): number {
  const [value] = Object.values(database.prepare(sql).get() ?? {});
  return Number(value ?? 0);
}
