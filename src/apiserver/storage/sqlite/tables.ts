/** The tables of a store: migrations, rows, SQL statements, and the replay of all rows into a store. */

import { orderedKey } from '../../../kube/object.ts';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { TerminalError, InvariantError } from '../../../base/errors.ts';
import { FIRST_REVISION, type RevisionedStore } from '../revisioned-store.ts';
import { type StoreEvent, type StoredEntry, type StoreKey } from '../store.ts';
import { isJsonObject, type JsonObject } from '../../../base/json.ts';

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

export function numberOf(database: DatabaseSync, sql: string): number {
  const [value] = Object.values(database.prepare(sql).get() ?? {});
  return Number(value ?? 0);
}

export interface LogRow {
  readonly revision: number;
  readonly type: StoreEvent['type'];
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  /** Revision of the state before; null when the object is new. */
  readonly previous: number | null;
  /** JSON text; null for a deletion, whose last state is the row `previous`. */
  readonly value: string | null;
}

export interface StoredRow extends LogRow {
  readonly checksum: number;
}

export type PresentRow = Pick<LogRow, 'resource' | 'namespace' | 'name' | 'revision'>;

export interface NoteRow {
  readonly list: string;
  readonly key: string;
  readonly value: string;
}

/** `text` is the new state as JSON. */
export function rowOf(event: StoreEvent, text: string): LogRow {
  const { type, revision, entry, previous } = event;
  return {
    revision,
    type,
    ...entry.key,
    previous: previous?.revision ?? null,
    value: type === 'deleted' ? null : text,
  };
}

/** CRC-32 of the complete row: SQLite has no checksums, so it would not notice a flipped bit in a value. */
function checksumOf(row: LogRow): number {
  const { revision, type, resource, namespace, name, previous } = row;
  const head = JSON.stringify([revision, type, resource, namespace, name, previous, row.value === null]);
  return crc32(row.value ?? '', crc32(head));
}

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

const PROBE = 'probe';
const PROBE_BYTES = 8 * 1024;

function statementsOf(database: DatabaseSync) {
  const prepare = (sql: string): StatementSync => database.prepare(sql);
  return {
    insert: prepare(
      'INSERT INTO log (type, resource, namespace, name, previous, value, checksum) VALUES (?, ?, ?, ?, ?, ?, ?)',
    ),
    put: prepare('INSERT OR REPLACE INTO present VALUES (?, ?, ?, ?)'),
    remove: prepare('DELETE FROM present WHERE resource = ? AND namespace = ? AND name = ?'),
    putNote: prepare('INSERT OR REPLACE INTO notes VALUES (?, ?, ?)'),
    removeNote: prepare('DELETE FROM notes WHERE list = ? AND key = ?'),
    removeReplaced: prepare(
      'DELETE FROM log WHERE revision IN (SELECT previous FROM log WHERE revision > ? AND revision <= ?)',
    ),
    removeDeletions: prepare("DELETE FROM log WHERE revision > ? AND revision <= ? AND type = 'deleted'"),
    setCompacted: prepare('UPDATE history SET compacted = ?'),
  };
}

/** Each method is one transaction. */
export class StoreWrites {
  readonly #database: DatabaseSync;
  readonly #sql: ReturnType<typeof statementsOf>;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#sql = statementsOf(database);
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
      this.#sql.removeReplaced.run(from, to);
      this.#sql.removeDeletions.run(from, to);
      this.#sql.setCompacted.run(to);
    });
  }

  /** A power failure may undo it; a crash of the process does not. */
  note(changes: readonly NoteChange[]): void {
    this.#withoutSync(() => {
      for (const { list, key, value } of changes) {
        if (value === null) this.#sql.removeNote.run(list, key);
        else this.#sql.putNote.run(list, key, value);
      }
    });
  }

  /** Durable when it returns. Large enough to fail on a full disk. */
  probe(): void {
    this.#transaction(() => this.#sql.putNote.run(PROBE, PROBE, '-'.repeat(PROBE_BYTES)));
  }

  #append(row: LogRow): void {
    const { type, resource, namespace, name, previous, value } = row;
    const result = this.#sql.insert.run(type, resource, namespace, name, previous, value, checksumOf(row));
    if (result.lastInsertRowid !== row.revision) {
      const message = `revision ${row.revision} came out as ${result.lastInsertRowid}: another program has written to the database`;
      throw new InvariantError(message);
    }
    if (type === 'deleted') this.#sql.remove.run(resource, namespace, name);
    else this.#sql.put.run(resource, namespace, name, row.revision);
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

// Replays the rows of a file into a store, and checks every row.

export interface LogCounters {
  /** The newest revision that was ever assigned. */
  readonly counter: number;
  /** Up to this revision, only the states that were current then are kept. */
  readonly compacted: number;
}

const PROBLEMS_MAX = 100;

export class Replay {
  readonly #store: RevisionedStore;
  readonly #counters: LogCounters;
  readonly #problems: string[] = [];
  #presentRows = 0;
  #last = 0;

  /** Fills `store`, which must be new. */
  constructor(store: RevisionedStore, counters: LogCounters) {
    this.#store = store;
    this.#counters = counters;
    if (counters.compacted > counters.counter) {
      this.#problem(
        `history is compacted up to ${counters.compacted}, but the counter is ${counters.counter}`,
      );
    }
  }

  /** One sentence each; empty when the file is intact. */
  get problems(): readonly string[] {
    return this.#problems;
  }

  addRow(row: StoredRow): void {
    const { revision } = row;
    if (revision <= this.#last) this.#problem(`revision ${revision} comes after ${this.#last}`);
    if (revision > this.#counters.counter) {
      this.#problem(`revision ${revision} is newer than the counter, which is ${this.#counters.counter}`);
    }
    this.#last = revision;
    // The row is replayed nevertheless: otherwise one damaged row would cause further problems.
    if (checksumOf(row) !== row.checksum) {
      this.#problem(`revision ${revision}, ${nameOf(row)}: the checksum does not match`);
    }
    const value = row.type === 'deleted' ? undefined : this.#parsed(row);
    if (revision <= this.#counters.compacted) this.#addState(row, value);
    else this.#addEvent(row, value);
  }

  addPresent(row: PresentRow): void {
    this.#presentRows++;
    const revision = this.#store.peek(storeKeyOf(row))?.revision;
    if (revision === row.revision) return;
    const found = revision === undefined ? 'which the log does not have' : `but the log says ${revision}`;
    this.#problem(`${nameOf(row)} is at revision ${row.revision}, ${found}`);
  }

  finish(): void {
    if (this.#presentRows !== this.#store.objects) {
      this.#problem(
        `${this.#presentRows} objects are present, but the log replayed gives ${this.#store.objects}`,
      );
    }
    this.#store.restoreCounters(this.#counters.counter, this.#counters.compacted);
  }

  /** A row from before the history: there is one state for each object, and no deletion. */
  #addState(row: StoredRow, value: JsonObject | undefined): void {
    const key = storeKeyOf(row);
    if (row.type === 'deleted' || this.#store.peek(key)) {
      this.#problem(
        `revision ${row.revision}, ${nameOf(row)}: should have been compacted with its successor`,
      );
    }
    if (value) this.#store.restore({ key, value, revision: row.revision });
  }

  #addEvent(row: StoredRow, value: JsonObject | undefined): void {
    const current = this.#store.peek(storeKeyOf(row));
    const expected = current?.revision ?? null;
    if (row.previous !== expected) {
      const after = row.previous === null ? 'nothing' : `revision ${row.previous}`;
      const found = expected === null ? 'there is nothing' : `there is revision ${expected}`;
      this.#problem(`revision ${row.revision}, ${nameOf(row)}: follows ${after}, but ${found}`);
    }
    const event = eventOf(row, value, current);
    if (event) this.#store.apply(event, row.value?.length ?? 0);
  }

  #parsed(row: StoredRow): JsonObject | undefined {
    try {
      const value: unknown = JSON.parse(row.value ?? '');
      if (isJsonObject(value)) return value;
    } catch {
      // Reported below: the text must not be part of a message.
    }
    this.#problem(`revision ${row.revision}, ${nameOf(row)}: the value is not a JSON object`);
    return undefined;
  }

  #problem(text: string): void {
    if (this.#problems.length < PROBLEMS_MAX) this.#problems.push(text);
  }
}

/** Undefined for a row that is impossible after the rows before it. */
function eventOf(
  row: StoredRow,
  value: JsonObject | undefined,
  current: StoredEntry | undefined,
): StoreEvent | undefined {
  const { type, revision } = row;
  const state = type === 'deleted' ? current?.value : value;
  if (!state || (type === 'created') !== (current === undefined)) return undefined;
  const entry = { key: storeKeyOf(row), value: state, revision };
  return current ? { type, revision, entry, previous: current } : { type, revision, entry };
}

function storeKeyOf({ resource, namespace, name }: PresentRow | StoredRow): StoreKey {
  return { resource, namespace, name };
}

function nameOf(row: PresentRow | StoredRow): string {
  return `${row.resource} ${orderedKey(row)}`;
}
