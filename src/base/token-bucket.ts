/** Token buckets: a burst, then a rate per second. */

import { LRUCache } from 'lru-cache';
import type { Clock } from './clock.ts';

export interface Rate {
  /** Size of the burst, after a long time without use. */
  readonly burst: number;
  readonly perSecond: number;
}

export class TokenBucket {
  readonly #rate: Rate;
  readonly #clock: Clock;
  /** Negative after more was spent than there was. */
  #tokens: number;
  /** Monotonic. */
  #filledMs: number;

  constructor(rate: Rate, clock: Clock) {
    this.#rate = rate;
    this.#clock = clock;
    this.#tokens = rate.burst;
    this.#filledMs = clock.monotonicMs();
  }

  /** Takes a token. 0: there was one; otherwise the milliseconds until there is one. */
  take(): number {
    this.#fill();
    if (this.#tokens < 1) return this.#msUntil(1);
    this.#tokens -= 1;
    return 0;
  }

  /** Takes tokens whether they are there or not, because they are used already. Returns the milliseconds until none is owed. */
  spend(count: number): number {
    this.#fill();
    this.#tokens -= count;
    return this.#tokens >= 0 ? 0 : this.#msUntil(0);
  }

  /** Returns the token that was taken last. */
  giveBack(): void {
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + 1);
  }

  #fill(): void {
    const { burst, perSecond } = this.#rate;
    const nowMs = this.#clock.monotonicMs();
    const gained = ((nowMs - this.#filledMs) / 1000) * perSecond;
    this.#tokens = Math.min(burst, this.#tokens + gained);
    this.#filledMs = nowMs;
  }

  #msUntil(tokens: number): number {
    return ((tokens - this.#tokens) / this.#rate.perSecond) * 1000;
  }
}

/** Above this number, the least recently used bucket is removed; its key starts with a full bucket again. */
const KEYS_MAX = 10_000;

/** A bucket per key. */
export class TokenBuckets {
  readonly #rate: Rate;
  readonly #clock: Clock;
  // Limited by size, not by number: with a number the cache would allocate its memory immediately.
  readonly #buckets = new LRUCache<string, TokenBucket>({ maxSize: KEYS_MAX, sizeCalculation: () => 1 });

  constructor(rate: Rate, clock: Clock) {
    this.#rate = rate;
    this.#clock = clock;
  }

  /** As {@link TokenBucket.take}. */
  take(key: string): number {
    return this.#bucketOf(key).take();
  }

  /** As {@link TokenBucket.spend}. */
  spend(key: string, count: number): number {
    return this.#bucketOf(key).spend(count);
  }

  /** As {@link TokenBucket.giveBack}. */
  giveBack(key: string): void {
    this.#buckets.get(key)?.giveBack();
  }

  get size(): number {
    return this.#buckets.size;
  }

  #bucketOf(key: string): TokenBucket {
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      bucket = new TokenBucket(this.#rate, this.#clock);
      this.#buckets.set(key, bucket);
    }
    return bucket;
  }
}
