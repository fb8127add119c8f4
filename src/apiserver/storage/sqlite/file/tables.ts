/** The tables of a store, and the ways to them from a new file or an older version. */

import type { DatabaseSync } from 'node:sqlite';
import { TerminalError } from '../../../../base/errors.ts';
import { FIRST_REVISION } from '../../revisioned-state.ts';

/** `epsy`: tells a store from any other SQLite file. */
const APPLICATION_ID = 0x65707379;

/**
 * Statement lists by version: number 0 makes version 1 from an empty file, number 1 version 2 from version 1, and so on.
 *
 * `log` is everything that happened and is not forgotten, in order; its AUTOINCREMENT is the store's revision. A row that a later one took the
 * place of goes when that later one is forgotten, so the log alone gives the present. `present` says the same once more, so that a
 * lost row is found, and so that people can look: `SELECT * FROM present JOIN log USING (revision)`.
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

/** Makes or renews the tables, in one transaction. Throws a `TerminalError` for a file that is not a store of this version or an older one. */
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

/** Throws a `TerminalError` for a file that is not a store of exactly this version: for those who only read. */
export function checkVersion(database: DatabaseSync, file: string): void {
  const found = checkedVersion(database, file);
  if (found < MIGRATIONS.length) {
    throw new TerminalError(
      found === 0
        ? `${file} is empty: nothing has been stored in it yet`
        : `${file} has the format of an older version: start the API once, it renews the file`,
    );
  }
}

function checkedVersion(database: DatabaseSync, file: string): number {
  const version = numberOf(database, 'PRAGMA user_version');
  const application = numberOf(database, 'PRAGMA application_id');
  const isEmpty = numberOf(database, 'SELECT count(*) FROM sqlite_schema') === 0;
  if (!isEmpty && application !== APPLICATION_ID) {
    throw new TerminalError(
      `${file} is a database of another program: choose another dataDir, or move it away`,
    );
  }
  if (version > MIGRATIONS.length) {
    throw new TerminalError(
      `${file} was written by a newer version of this program (format ${version}, this one knows up to ${MIGRATIONS.length}): ` +
        'run that version again, or restore a backup from before',
    );
  }
  return version;
}

/** The first column of the first row. */
export function numberOf(database: DatabaseSync, sql: string): number {
  const [value] = Object.values(database.prepare(sql).get() ?? {});
  return Number(value ?? 0);
}
