/** From the rows of a file to the state of a store, with everything checked on the way. */

import { isJsonObject, type JsonObject } from '../../../../base/json.ts';
import type { RevisionedState } from '../../revisioned-state.ts';
import { orderedKey, type StoredEntry, type StoreEvent, type StoreKey } from '../../store.ts';
import { checksumOf, type PresentRow, type StoredRow } from './log-row.ts';

/** What the file says about its log as a whole. */
export interface LogCounters {
  /** The newest revision that was ever given. */
  readonly counter: number;
  /** Up to here, only the states that were the present then are kept. */
  readonly compacted: number;
}

/** More do not help anybody. */
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
        `history is forgotten up to ${counters.compacted}, but the counter is ${counters.counter}`,
      );
    }
  }

  /** What was wrong so far, one sentence each; nothing when the file is sound. */
  get problems(): readonly string[] {
    return this.#problems;
  }

  /** Rows come in the order of their revisions. */
  take(row: StoredRow): void {
    const { revision } = row;
    if (revision <= this.#last) this.#problem(`revision ${revision} comes after ${this.#last}`);
    if (revision > this.#counters.counter) {
      this.#problem(`revision ${revision} is newer than the counter, which is ${this.#counters.counter}`);
    }
    this.#last = revision;
    // It is taken all the same: one damaged row shall be one problem, not also those that would follow if it were not there.
    if (checksumOf(row) !== row.checksum) {
      this.#problem(`revision ${revision}, ${nameOf(row)}: the checksum does not match`);
    }
    const value = row.type === 'deleted' ? undefined : this.#parsed(row);
    if (revision <= this.#counters.compacted) this.#takeState(row, value);
    else this.#takeEvent(row, value);
  }

  takePresent(row: PresentRow): void {
    this.#presentRows++;
    const revision = this.#state.get(keyOf(row))?.revision;
    if (revision === row.revision) return;
    const found = revision === undefined ? 'which the log does not have' : `but the log says ${revision}`;
    this.#problem(`${nameOf(row)} is at revision ${row.revision}, ${found}`);
  }

  /** After the last row of both kinds. */
  finish(): void {
    if (this.#presentRows !== this.#state.objects) {
      this.#problem(
        `${this.#presentRows} objects are present, but the log replayed gives ${this.#state.objects}`,
      );
    }
    this.#state.restoreCounters(this.#counters.counter, this.#counters.compacted);
  }

  /** What is left of the time before the history: one state for each object, no deletions. */
  #takeState(row: StoredRow, value: JsonObject | undefined): void {
    const key = keyOf(row);
    if (row.type === 'deleted' || this.#state.get(key)) {
      this.#problem(
        `revision ${row.revision}, ${nameOf(row)}: should have been forgotten with its successor`,
      );
    }
    if (value) this.#state.restore({ key, value, revision: row.revision });
  }

  #takeEvent(row: StoredRow, value: JsonObject | undefined): void {
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
      // Said below: whatever the text is, it must not get into a message.
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

/** Undefined for a row that cannot have happened. */
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
