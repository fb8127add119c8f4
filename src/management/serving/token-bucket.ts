/** Token buckets by key: so much at once, then so much a second. */

import { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/clock.ts';

export interface Rate {
  /** How many at once, after a long time without any. */
  readonly burst: number;
  readonly perSecond: number;
}

interface Bucket {
  tokens: number;
  /** Monotonic. */
  filledMs: number;
}

/** Keys beyond these are forgotten, the longest unused first: a forgotten one starts with a full bucket. */
const KEYS_MAX = 10_000;

export class TokenBuckets {
  readonly #rate: Rate;
  readonly #clock: Clock;
  readonly #buckets = new LRUCache<string, Bucket>({ max: KEYS_MAX });

  constructor(rate: Rate, clock: Clock) {
    this.#rate = rate;
    this.#clock = clock;
  }

  /** Takes one. 0: there was one; else the milliseconds until there will be one. */
  take(key: string): number {
    const { burst, perSecond } = this.#rate;
    const nowMs = this.#clock.monotonicMs();
    let bucket = this.#buckets.get(key);
    if (!bucket) {
      bucket = { tokens: burst, filledMs: nowMs };
      this.#buckets.set(key, bucket);
    }
    const gained = ((nowMs - bucket.filledMs) / 1000) * perSecond;
    bucket.tokens = Math.min(burst, bucket.tokens + gained);
    bucket.filledMs = nowMs;
    if (bucket.tokens < 1) return ((1 - bucket.tokens) / perSecond) * 1000;
    bucket.tokens -= 1;
    return 0;
  }

  get size(): number {
    return this.#buckets.size;
  }
}
