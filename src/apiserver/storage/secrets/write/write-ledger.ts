/** Writes that are under way, and what the cache has seen of them: the answer to a write may get lost, its event does not. */

import type { Random } from '../../../../base/random.ts';
import type { StoredEntry } from '../../store.ts';
import type { Held } from '../codec/secret-codec.ts';

/** One Secret went from one state to another. Undefined: there was, or is, no readable object. */
export interface Change {
  readonly secretName: string;
  readonly before: Held | undefined;
  readonly after: Held | undefined;
  readonly revision: number;
  /** False when a list showed it: there may have been states in between. */
  readonly isExact: boolean;
}

export interface PendingWrite {
  /** The state that this write made, once it was seen; for a deletion the last one, at the revision of the deletion. */
  readonly seen: StoredEntry | undefined;
  /** States of this Secret went by unseen: that nothing was seen proves nothing. */
  readonly isBlind: boolean;
  close(): void;
}

/** What to look for: the id of a write, or the revision that a deletion ends. */
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

  /** What became of these Secrets went by unseen: by default of all, as the host's history has started anew. */
  blind(isMissed: (secretName: string) => boolean = () => true): void {
    for (const pending of this.#pending) if (isMissed(pending.secretName)) pending.isBlind = true;
  }
}

function outcomeOf(sought: Sought, { before, after, revision, isExact }: Change): StoredEntry | undefined {
  if ('writeId' in sought) return after?.writeId === sought.writeId ? after.entry : undefined;
  // After a list shows it gone, somebody may have changed and then deleted it.
  const isOurs = isExact && after === undefined && before?.entry.revision === sought.deletedRevision;
  return isOurs ? { ...before.entry, revision } : undefined;
}

/** Names of writes: unique among replicas by chance, within one by counting. */
export function writeIds(random: Random): () => string {
  const part = (): string => Math.floor(random() * 2 ** 32).toString(36);
  const replica = part() + part();
  let count = 0;
  return () => `${replica}-${(++count).toString(36)}`;
}
