/** Deletions that this process has caused: the watch event of one is not another client's deletion. */

import type { Clock } from '../../../base/clock.ts';
import type { NamespacedName } from '../../../kube/object.ts';
import type { Writer } from '../write/writer.ts';

/** After a lost response the event may take as long as a silent watch. */
const RESPONSE_MAX_MS = 10 * 60_000;

export class OwnDeletions {
  readonly #clock: Clock;
  /** When each was sent, by the uid of the object; oldest first. */
  readonly #sentMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True while the deletion of this object is under way, or its response was lost. */
  has(uid: string): boolean {
    this.#forgetOld();
    return this.#sentMs.has(uid);
  }

  /** An API server deletes this object together with one that this process is about to delete. */
  note(uid: string): void {
    this.#forgetOld();
    this.#sentMs.set(uid, this.#clock.monotonicMs());
  }

  /** The same writer; its deletions are noted here. `deleting` is called before each. */
  noting(writer: Writer, deleting: (key: NamespacedName) => void): Writer {
    return {
      ...writer,
      delete: async (key, uid, reason) => {
        deleting(key);
        this.note(uid);
        const outcome = await writer.delete(key, uid, reason);
        // From here on the cache ignores the event.
        this.#sentMs.delete(uid);
        return outcome;
      },
    };
  }

  #forgetOld(): void {
    const limitMs = this.#clock.monotonicMs() - RESPONSE_MAX_MS;
    for (const [uid, sentMs] of this.#sentMs) {
      if (sentMs > limitMs) return;
      this.#sentMs.delete(uid);
    }
  }
}
