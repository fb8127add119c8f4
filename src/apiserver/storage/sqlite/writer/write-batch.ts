/** Writes of one commit, each decided on the state after the writes before it. */

import { decideWrite, type WriteRequest } from '../../decide-write.ts';
import type { RevisionedState } from '../../revisioned-state.ts';
import { orderedKey, StoreError, type StoredEntry, type StoreEvent, type StoreKey } from '../../store.ts';
import { rowOf, type LogRow } from '../file/log-row.ts';

export interface PendingWrite {
  readonly request: WriteRequest;
  /** The new state as JSON; empty for a deletion. */
  readonly text: string;
  readonly resolve: (entry: StoredEntry) => void;
  readonly reject: (error: StoreError) => void;
}

/** The outcome of a write if the commit succeeds. */
interface Decided {
  readonly write: PendingWrite;
  readonly outcome: StoreEvent | StoreError;
}

export class WriteBatch {
  /** The rows to append; empty when every write has failed. */
  readonly rows: readonly LogRow[];
  readonly #state: RevisionedState;
  readonly #decided: readonly Decided[];

  constructor(state: RevisionedState, writes: readonly PendingWrite[]) {
    this.#state = state;
    const pending = new Map<string, StoredEntry | undefined>();
    const rows: LogRow[] = [];
    this.#decided = writes.map((write) => {
      const id = idOf(write.request.key);
      const current = pending.has(id) ? pending.get(id) : state.get(write.request.key);
      const outcome = decideWrite(write.request, current, state.revision + rows.length + 1);
      if (!(outcome instanceof StoreError)) {
        pending.set(id, outcome.type === 'deleted' ? undefined : outcome.entry);
        rows.push(rowOf(outcome, write.text));
      }
      return { write, outcome };
    });
    this.rows = rows;
  }

  /** The rows are durable: applies them, notifies watchers, then resolves the writes. */
  succeed(): void {
    for (const { write, outcome } of this.#decided) {
      if (!(outcome instanceof StoreError)) this.#state.apply(outcome, write.text.length);
    }
    for (const { write, outcome } of this.#decided) {
      if (outcome instanceof StoreError) write.reject(outcome);
      else write.resolve(outcome.entry);
    }
  }

  /** Nothing was written. Rejected writes get the same error: their rejection may depend on a write that did not happen. */
  fail(error: StoreError): void {
    for (const { write } of this.#decided) write.reject(error);
  }
}

function idOf(key: StoreKey): string {
  return `${key.resource}/${orderedKey(key)}`;
}
