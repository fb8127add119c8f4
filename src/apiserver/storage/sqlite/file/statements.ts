/** Everything that is asked of an open store database. */

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { InvariantError } from '../../../../base/errors.ts';
import { checksumOf, type LogRow, type NoteRow, type PresentRow, type StoredRow } from './log-row.ts';
import type { LogCounters } from './replay.ts';
import { numberOf } from './tables.ts';

/** A change of a note; null removes it. */
export interface NoteChange extends Omit<NoteRow, 'value'> {
  readonly value: string | null;
}

export function readCounters(database: DatabaseSync): LogCounters {
  return {
    counter: numberOf(database, "SELECT seq FROM sqlite_sequence WHERE name = 'log'"),
    compacted: numberOf(database, 'SELECT compacted FROM history'),
  };
}

// The casts: STRICT tables give exactly these types.
export function readLog(database: DatabaseSync): Iterable<StoredRow> {
  return database
    .prepare('SELECT * FROM log ORDER BY revision')
    .iterate() as Iterable<unknown> as Iterable<StoredRow>;
}

export function readPresent(database: DatabaseSync): Iterable<PresentRow> {
  return database.prepare('SELECT * FROM present').iterate() as Iterable<unknown> as Iterable<PresentRow>;
}

export function readNotes(database: DatabaseSync): Iterable<NoteRow> {
  return database.prepare('SELECT * FROM notes').iterate() as Iterable<unknown> as Iterable<NoteRow>;
}

/** The writes; each method is one transaction. */
/** The list and the key of the note that a probe writes. */
const PROBE = 'probe';
const PROBE_BYTES = 8 * 1024;

export class StoreWrites {
  readonly #database: DatabaseSync;
  readonly #insert: StatementSync;
  readonly #put: StatementSync;
  readonly #remove: StatementSync;
  readonly #putNote: StatementSync;
  readonly #removeNote: StatementSync;
  readonly #forgetReplaced: StatementSync;
  readonly #forgetDeletions: StatementSync;
  readonly #setCompacted: StatementSync;

  constructor(database: DatabaseSync) {
    this.#database = database;
    const prepare = (sql: string): StatementSync => database.prepare(sql);
    this.#insert = prepare(
      'INSERT INTO log (type, resource, namespace, name, previous, value, checksum) VALUES (?, ?, ?, ?, ?, ?, ?)',
    );
    this.#put = prepare('INSERT OR REPLACE INTO present VALUES (?, ?, ?, ?)');
    this.#remove = prepare('DELETE FROM present WHERE resource = ? AND namespace = ? AND name = ?');
    this.#putNote = prepare('INSERT OR REPLACE INTO notes VALUES (?, ?, ?)');
    this.#removeNote = prepare('DELETE FROM notes WHERE list = ? AND key = ?');
    this.#forgetReplaced = prepare(
      'DELETE FROM log WHERE revision IN (SELECT previous FROM log WHERE revision > ? AND revision <= ?)',
    );
    this.#forgetDeletions = prepare(
      "DELETE FROM log WHERE revision > ? AND revision <= ? AND type = 'deleted'",
    );
    this.#setCompacted = prepare('UPDATE history SET compacted = ?');
  }

  /** Durable when it returns. */
  append(rows: readonly LogRow[]): void {
    this.#transaction(() => {
      for (const row of rows) this.#append(row);
    });
  }

  /** Forgets events after `from` up to `to`, and the states that they took the place of. May be undone by a loss of power. */
  forget(from: number, to: number): void {
    this.#loosely(() => {
      this.#forgetReplaced.run(from, to);
      this.#forgetDeletions.run(from, to);
      this.#setCompacted.run(to);
    });
  }

  /** May be undone by a loss of power, not by the end of the process. */
  note(changes: readonly NoteChange[]): void {
    this.#loosely(() => {
      for (const { list, key, value } of changes) {
        if (value === null) this.#removeNote.run(list, key);
        else this.#putNote.run(list, key, value);
      }
    });
  }

  /** Durable when it returns. Large enough to need what a full disk does not have. */
  probe(): void {
    this.#transaction(() => this.#putNote.run(PROBE, PROBE, '-'.repeat(PROBE_BYTES)));
  }

  #append(row: LogRow): void {
    const { type, resource, namespace, name, previous, value } = row;
    const result = this.#insert.run(type, resource, namespace, name, previous, value, checksumOf(row));
    if (result.lastInsertRowid !== row.revision) {
      const message = `revision ${row.revision} came out as ${result.lastInsertRowid}: another program wrote to the database`;
      throw new InvariantError(message);
    }
    if (type === 'deleted') this.#remove.run(resource, namespace, name);
    else this.#put.run(resource, namespace, name, row.revision);
  }

  /** Without waiting for the disk. What was durable stays so: it is earlier in the same write-ahead log. */
  #loosely(work: () => void): void {
    this.#database.exec('PRAGMA synchronous = NORMAL');
    try {
      this.#transaction(work);
    } finally {
      this.#database.exec('PRAGMA synchronous = FULL');
    }
  }

  #transaction(work: () => void): void {
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      work();
      this.#database.exec('COMMIT');
    } catch (error) {
      // SQLite has rolled back by itself after some errors, such as a full disk.
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      throw error;
    }
  }
}
