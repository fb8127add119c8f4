/** Pending writes and their events: the response to a write may be lost, its event is not. */

import type { Random } from '../../../base/random.ts';
import type { StoredEntry } from '../store.ts';
import type { Held } from './codec/secret-codec.ts';

/** One Secret went from one state to another. Undefined: there was, or is, no readable object. */
export interface Change {
  readonly secretName: string;
  readonly before: Held | undefined;
  readonly after: Held | undefined;
  readonly revision: number;
  /** False when a list showed the change: there may have been other states in between. */
  readonly isExact: boolean;
}

export interface PendingWrite {
  /** The state that this write created, once its event was received; for a deletion the last state, at the revision of the deletion. */
  readonly seen: StoredEntry | undefined;
  /** Events of this Secret were missed, so a missing event proves nothing. */
  readonly isBlind: boolean;
  close(): void;
}

/** Identifies a write by its id, or a deletion by the revision that it removes. */
export type Sought = { readonly writeId: string } | { readonly deletedRevision: number };

interface Pending {
  readonly secretName: string;
  readonly sought: Sought;
  seen: StoredEntry | undefined;
  isBlind: boolean;
}

export class WriteLedger {
  readonly #pending = new Set<Pending>();

  /** Must be opened before the request is sent. */
  open(secretName: string, sought: Sought): PendingWrite {
    const pending: Pending = { secretName, sought, seen: undefined, isBlind: false };
    this.#pending.add(pending);
    return {
      get seen() {
        return pending.seen;
      },
      get isBlind() {
        return pending.isBlind;
      },
      close: () => void this.#pending.delete(pending),
    };
  }

  observe(change: Change): void {
    for (const pending of this.#pending) {
      if (pending.secretName !== change.secretName || pending.seen !== undefined) continue;
      pending.seen = outcomeOf(pending.sought, change);
      if (pending.seen === undefined && !change.isExact) pending.isBlind = true;
    }
  }

  /** Events of these Secrets were missed; by default those of all. */
  blind(isMissed: (secretName: string) => boolean = () => true): void {
    for (const pending of this.#pending) if (isMissed(pending.secretName)) pending.isBlind = true;
  }
}

function outcomeOf(sought: Sought, { before, after, revision, isExact }: Change): StoredEntry | undefined {
  if ('writeId' in sought) return after?.writeId === sought.writeId ? after.entry : undefined;
  // When a list shows the deletion, another client may have changed and deleted the object in between.
  const isOurs = isExact && after === undefined && before?.entry.revision === sought.deletedRevision;
  return isOurs ? { ...before.entry, revision } : undefined;
}

/** Generates ids of writes: a random part for the replica, and a counter. */
export function writeIds(random: Random): () => string {
  const part = (): string => Math.floor(random() * 2 ** 32).toString(36);
  const replica = part() + part();
  let count = 0;
  return () => `${replica}-${(++count).toString(36)}`;
}
