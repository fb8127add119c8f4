/** Notes in a database: all of them in memory, changes written in batches. */

import type { Clock, Timer } from '../../../base/clock.ts';
import type { Notes } from '../store.ts';
import type { NoteRow } from './file/log-row.ts';
import type { NoteChange } from './file/statements.ts';

/** A crash may lose the changes of this time. */
const FLUSH_DELAY_MS = 1_000;

export class SqliteNotes {
  readonly #lists = new Map<string, Map<string, string>>();
  /** Keys that changed since the last flush, by list. */
  #changed = new Map<string, Set<string>>();
  readonly #clock: Clock;
  readonly #write: (changes: readonly NoteChange[]) => Promise<void>;
  readonly #onFailure: (error: unknown) => void;
  #timer: Timer | undefined;

  constructor(
    clock: Clock,
    write: (changes: readonly NoteChange[]) => Promise<void>,
    onFailure: (error: unknown) => void,
  ) {
    this.#clock = clock;
    this.#write = write;
    this.#onFailure = onFailure;
  }

  restore(rows: readonly NoteRow[]): void {
    for (const { list, key, value } of rows) this.#list(list).set(key, value);
  }

  of(list: string): Notes {
    return {
      read: async () => new Map(this.#list(list)),
      write: async (changes) => this.#change(list, changes),
    };
  }

  /** Writes all changes. A failure is reported and retried with the next change. */
  async flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const flushed = this.#changed;
    if (flushed.size === 0) return;
    this.#changed = new Map();
    const changes = [...flushed].flatMap(([list, keys]) => {
      const notes = this.#list(list);
      return [...keys].map((key): NoteChange => ({ list, key, value: notes.get(key) ?? null }));
    });
    try {
      await this.#write(changes);
    } catch (error) {
      for (const [list, keys] of flushed) for (const key of keys) this.#mark(list, key);
      this.#onFailure(error);
    }
  }

  #change(list: string, changes: ReadonlyMap<string, string | undefined>): void {
    const notes = this.#list(list);
    for (const [key, value] of changes) {
      if (value === undefined) notes.delete(key);
      else notes.set(key, value);
      this.#mark(list, key);
    }
    this.#timer ??= this.#clock.schedule(FLUSH_DELAY_MS, () => void this.flush());
  }

  #mark(list: string, key: string): void {
    const keys = this.#changed.get(list);
    if (keys) keys.add(key);
    else this.#changed.set(list, new Set([key]));
  }

  #list(list: string): Map<string, string> {
    let notes = this.#lists.get(list);
    if (!notes) {
      notes = new Map();
      this.#lists.set(list, notes);
    }
    return notes;
  }
}
