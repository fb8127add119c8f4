/** Lets through so many at once and so many per second after that. */

import type { Clock } from '../lib/clock.ts';

export class TokenBucket {
  readonly #clock: Clock;
  readonly #burst: number;
  readonly #perSecond: number;
  #tokens: number;
  #countedMs: number;

  constructor(clock: Clock, burst: number, perSecond: number) {
    this.#clock = clock;
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#tokens = burst;
    this.#countedMs = clock.monotonicMs();
  }

  /** Takes a token if there is one. */
  take(): boolean {
    const nowMs = this.#clock.monotonicMs();
    const earned = ((nowMs - this.#countedMs) / 1000) * this.#perSecond;
    this.#tokens = Math.min(this.#burst, this.#tokens + earned);
    this.#countedMs = nowMs;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
