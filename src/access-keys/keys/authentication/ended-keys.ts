/**
 * Keys that were collected because they had expired. Their owner, who can still prove that it was theirs, is told so for as long as this
 * process remembers, instead of being nobody all of a sudden.
 */

import { LRUCache } from 'lru-cache';
import type { Clock } from '../../../base/clock.ts';
import { isSameDigest, type PresentedCredential } from '../../credentials/key-digests.ts';
import { endOf } from '../lifecycle/key-expiry.ts';
import type { IndexedKey, KeyChange } from '../index/key-record.ts';

const REMEMBERED_MAX = 10_000;

export class EndedKeys {
  readonly #clock: Clock;
  // Bounded by size, not by number: for a number the cache would take its memory at once.
  readonly #digests = new LRUCache<string, Buffer>({ maxSize: REMEMBERED_MAX, sizeCalculation: () => 1 });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `lastActivityMs`: the last use of the key that was, as far as it is known. */
  noteChange({ now, before }: KeyChange, lastActivityMs: (key: IndexedKey) => number | undefined): void {
    if (now || !before) return;
    const endMs = endOf(before, lastActivityMs(before));
    if (endMs !== undefined && endMs <= this.#clock.now()) {
      const [newest] = before.credentials;
      if (newest) this.#digests.set(newest.id, newest.digest);
    }
  }

  has({ id, digest }: PresentedCredential): boolean {
    const known = this.#digests.get(id);
    return known !== undefined && isSameDigest(known, digest);
  }
}
