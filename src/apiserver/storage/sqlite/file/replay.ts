/** Replays the rows of a file into the state of a store, and checks every row. */

import { isJsonObject, type JsonObject } from '../../../../base/json.ts';
import type { RevisionedState } from '../../revisioned-state.ts';
import { orderedKey, type StoredEntry, type StoreEvent, type StoreKey } from '../../store.ts';
import { checksumOf, type PresentRow, type StoredRow } from './log-row.ts';

/** Counters of the log. */
export interface LogCounters {
  /** The newest revision that was ever assigned. */
  readonly counter: number;
  /** Up to this revision, only the states that were current then are kept. */
  readonly compacted: number;
}

const PROBLEMS_MAX = 100;

export class Replay {
  readonly #state: RevisionedState;
  readonly #counters: LogCounters;
  readonly #problems: string[] = [];
  #presentRows = 0;
  #last = 0;

  /** Fills `state`, which must be new. */
  constructor(state: RevisionedState, counters: LogCounters) {
    this.#state = state;
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

  /** Rows must be passed in the order of their revisions. */
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
    const revision = this.#state.get(keyOf(row))?.revision;
    if (revision === row.revision) return;
    const found = revision === undefined ? 'which the log does not have' : `but the log says ${revision}`;
    this.#problem(`${nameOf(row)} is at revision ${row.revision}, ${found}`);
  }

  /** Must be called after the last row of both kinds. */
  finish(): void {
    if (this.#presentRows !== this.#state.objects) {
      this.#problem(
        `${this.#presentRows} objects are present, but the log replayed gives ${this.#state.objects}`,
      );
    }
    this.#state.restoreCounters(this.#counters.counter, this.#counters.compacted);
  }

  /** A row from before the history: there is one state for each object, and no deletion. */
  #addState(row: StoredRow, value: JsonObject | undefined): void {
    const key = keyOf(row);
    if (row.type === 'deleted' || this.#state.get(key)) {
      this.#problem(
        `revision ${row.revision}, ${nameOf(row)}: should have been compacted with its successor`,
      );
    }
    if (value) this.#state.restore({ key, value, revision: row.revision });
  }

  #addEvent(row: StoredRow, value: JsonObject | undefined): void {
    const key = keyOf(row);
    const current = this.#state.get(key);
    const expected = current?.revision ?? null;
    if (row.previous !== expected) {
      const after = row.previous === null ? 'nothing' : `revision ${row.previous}`;
      const found = expected === null ? 'there is nothing' : `there is revision ${expected}`;
      this.#problem(`revision ${row.revision}, ${nameOf(row)}: follows ${after}, but ${found}`);
    }
    const event = eventOf(row, { key, value, current });
    if (event) this.#state.apply(event, row.value?.length ?? 0);
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

interface Found {
  readonly key: StoreKey;
  readonly value: JsonObject | undefined;
  readonly current: StoredEntry | undefined;
}

/** Undefined for a row that is impossible after the rows before it. */
function eventOf({ type, revision }: StoredRow, { key, value, current }: Found): StoreEvent | undefined {
  if (type === 'created') {
    return value && !current ? { type, revision, entry: { key, value, revision } } : undefined;
  }
  const state = type === 'deleted' ? current?.value : value;
  if (!current || !state) return undefined;
  return { type, revision, entry: { key, value: state, revision }, previous: current };
}

function keyOf({ resource, namespace, name }: PresentRow | StoredRow): StoreKey {
  return { resource, namespace, name };
}

function nameOf(row: PresentRow | StoredRow): string {
  return `${row.resource} ${orderedKey(row)}`;
}
