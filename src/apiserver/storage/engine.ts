/** The contract of an engine: where a revisioned store keeps its log. */

import type { JsonObject } from '../../base/json.ts';
import type { RevisionedState } from './revisioned-state.ts';
import type { Notes, StoreEvent } from './store.ts';

/** An event, and its object as {@link Engine.encode} has encoded it; `''` for a deletion. */
export interface LoggedEvent {
  readonly event: StoreEvent;
  readonly text: string;
}

/** One process writes it at a time. */
export interface Engine {
  /** In messages. */
  readonly name: string;
  /** An append waits for something slow, so the writes of a turn, and those that arrive meanwhile, share the next one. */
  readonly isShared: boolean;
  /** Fills the state of a new store. Rejects with a `TerminalError` for a log that cannot be used. */
  load(state: RevisionedState): Promise<void>;
  /** The object as the log holds it. Its length counts as the size of an event. */
  encode(value: JsonObject): string;
  /** Resolves when all events are durable; undefined: they are. Rejects when none has happened. */
  append(events: readonly LoggedEvent[]): Promise<void> | undefined;
  /** Resolves when events up to this revision are gone. */
  compact(revision: number): Promise<void>;
  /** Events up to this revision are not needed any more. */
  forget(revision: number): void;
  /** Resolves when an append could be made durable now. */
  probe(): Promise<void>;
  notes(table: string): Notes;
  /** After the last append; writes notes that are not written yet. */
  close(): Promise<void>;
}
