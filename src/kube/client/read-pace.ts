/** Bounds how many bytes per second are read from one API server: reading, parsing and handling them takes processor time from everything else. */

import type { Rate } from '../../base/token-bucket.ts';
import type { Clock } from '../../base/clock.ts';

export class ReadPace {
  readonly #rate: Rate;
  readonly #clock: Clock;
  /** Negative after more was read than the burst. */
  #bytes: number;
  #filledMs: number;

  /** In bytes. */
  constructor(rate: Rate, clock: Clock) {
    this.#rate = rate;
    this.#clock = clock;
    this.#bytes = rate.burst;
    this.#filledMs = clock.monotonicMs();
  }

  /** These bytes were read. Returns the milliseconds after which more may be. */
  read(bytes: number): number {
    const { burst, perSecond } = this.#rate;
    const nowMs = this.#clock.monotonicMs();
    const filled = this.#bytes + ((nowMs - this.#filledMs) / 1000) * perSecond;
    this.#bytes = Math.min(burst, filled) - bytes;
    this.#filledMs = nowMs;
    return this.#bytes >= 0 ? 0 : (-this.#bytes / perSecond) * 1000;
  }
}
