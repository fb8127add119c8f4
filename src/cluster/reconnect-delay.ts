/** How long a list-watch waits before it tries again: 0.8 s × 2ⁿ up to 30 s, full jitter, reset after two healthy minutes. */

import type { Random } from '../lib/random.ts';
import { backoffDelayMs } from '../queue/backoff.ts';

export const RECONNECT_BASE_MS = 800;
export const RECONNECT_MAX_MS = 30_000;
/** A watch that lasted this long starts the back-off anew. */
export const HEALTHY_MS = 120_000;
/** A server may ask for patience, but not for ever. */
export const RETRY_AFTER_MAX_MS = 120_000;

export class ReconnectDelay {
  readonly #random: Random;
  readonly #maxMs: number;
  #failures = 0;

  constructor(random: Random, maxMs = RECONNECT_MAX_MS) {
    this.#random = random;
    this.#maxMs = maxMs;
  }

  /** Failures since the last healthy period. */
  get failures(): number {
    return this.#failures;
  }

  /**
   * The next wait, milliseconds. With a `Retry-After` it is that long at least, and jitter comes on top, so that not all return at once.
   * `isShort`: the server is well and has only forgotten where we were, so there is nothing to be patient with.
   */
  next({
    retryAfterMs = 0,
    isShort = false,
  }: { retryAfterMs?: number | undefined; isShort?: boolean } = {}): number {
    const capMs = backoffDelayMs(isShort ? 0 : this.#failures, RECONNECT_BASE_MS, this.#maxMs);
    this.#failures += 1;
    return Math.min(retryAfterMs, RETRY_AFTER_MAX_MS) + this.#random() * capMs;
  }

  reset(): void {
    this.#failures = 0;
  }
}
