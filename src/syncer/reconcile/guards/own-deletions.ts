/** Deletions that this process has sent: a watch event that arrives before the response is not another client's deletion. */

import type { Clock } from '../../../base/clock.ts';
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

  /** The same writer; its deletions are noted here. */
  noting(writer: Writer): Writer {
    return {
      ...writer,
      delete: async (key, uid, reason) => {
        this.#forgetOld();
        this.#sentMs.set(uid, this.#clock.monotonicMs());
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
