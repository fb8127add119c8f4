/** Loads the contents of a database into a store. */

import type { RevisionedState } from '../revisioned-state.ts';
import { Replay } from './file/replay.ts';
import type { SqliteNotes } from './sqlite-notes.ts';
import type { LoadReport } from './writer/database-writer.ts';

/** Fills the state of a store that is being opened. */
export class Loading {
  readonly #state: RevisionedState;
  readonly #notes: SqliteNotes;
  #replay: Replay | undefined;
  compacted = 0;

  constructor(state: RevisionedState, notes: SqliteNotes) {
    this.#state = state;
    this.#notes = notes;
  }

  add(report: LoadReport): void {
    switch (report.kind) {
      case 'counters':
        this.compacted = report.counters.compacted;
        this.#replay = new Replay(this.#state, report.counters);
        return;
      case 'log':
        for (const row of report.rows) this.#replay?.addRow(row);
        return;
      case 'present':
        for (const row of report.rows) this.#replay?.addPresent(row);
        return;
      case 'notes':
        this.#notes.restore(report.rows);
    }
  }

  /** The problems of the file. */
  finish(): readonly string[] {
    this.#replay?.finish();
    return this.#replay?.problems ?? [];
  }
}
