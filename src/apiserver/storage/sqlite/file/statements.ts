/** The SQL statements of a store database. */

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

// The casts are safe: STRICT tables return exactly these types.
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

/** The list and the key of the note that a probe writes. */
const PROBE = 'probe';
const PROBE_BYTES = 8 * 1024;

/** Each method is one transaction. */
export class StoreWrites {
  readonly #database: DatabaseSync;
  readonly #insert: StatementSync;
  readonly #put: StatementSync;
  readonly #remove: StatementSync;
  readonly #putNote: StatementSync;
  readonly #removeNote: StatementSync;
  readonly #removeReplaced: StatementSync;
  readonly #removeDeletions: StatementSync;
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
    this.#removeReplaced = prepare(
      'DELETE FROM log WHERE revision IN (SELECT previous FROM log WHERE revision > ? AND revision <= ?)',
    );
    this.#removeDeletions = prepare(
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

  /** Removes the events after `from` up to `to`, except current states. A power failure may undo it. */
  compact(from: number, to: number): void {
    this.#withoutSync(() => {
      this.#removeReplaced.run(from, to);
      this.#removeDeletions.run(from, to);
      this.#setCompacted.run(to);
    });
  }

  /** A power failure may undo it; a crash of the process does not. */
  note(changes: readonly NoteChange[]): void {
    this.#withoutSync(() => {
      for (const { list, key, value } of changes) {
        if (value === null) this.#removeNote.run(list, key);
        else this.#putNote.run(list, key, value);
      }
    });
  }

  /** Durable when it returns. Large enough to fail on a full disk. */
  probe(): void {
    this.#transaction(() => this.#putNote.run(PROBE, PROBE, '-'.repeat(PROBE_BYTES)));
  }

  #append(row: LogRow): void {
    const { type, resource, namespace, name, previous, value } = row;
    const result = this.#insert.run(type, resource, namespace, name, previous, value, checksumOf(row));
    if (result.lastInsertRowid !== row.revision) {
      const message = `revision ${row.revision} came out as ${result.lastInsertRowid}: another program has written to the database`;
      throw new InvariantError(message);
    }
    if (type === 'deleted') this.#remove.run(resource, namespace, name);
    else this.#put.run(resource, namespace, name, row.revision);
  }

  /** Does not wait for the disk. Earlier writes stay durable: they precede it in the same write-ahead log. */
  #withoutSync(work: () => void): void {
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
      // After some errors, such as a full disk, SQLite has rolled back already.
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      throw error;
    }
  }
}
