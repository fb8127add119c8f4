/** How fast what an API server sends is read: a rate of its bytes, and of the time of the event loop that reading them takes. */

import type { Clock } from '../../base/clock.ts';
import type { TokenBucket } from '../../base/token-bucket.ts';

export interface ReadPaces {
  readonly responses: ReadPace;
  readonly watches: ReadPace;
}

interface ReadPaceOptions {
  readonly bytes: TokenBucket;
  /** Of milliseconds; several paces may share it. */
  readonly loop: TokenBucket;
  readonly clock: Clock;
}

export class ReadPace {
  readonly #options: ReadPaceOptions;

  constructor(options: ReadPaceOptions) {
    this.#options = options;
  }

  /** These bytes have arrived. Returns the milliseconds until more may be read. */
  spend(bytes: number): number {
    return Math.max(this.#options.bytes.spend(bytes), this.#options.loop.spend(0));
  }

  /** The time of `read` counts. */
  timed<T>(read: () => T): T {
    const { clock, loop } = this.#options;
    const startedMs = clock.monotonicMs();
    try {
      return read();
    } finally {
      loop.spend(clock.monotonicMs() - startedMs);
    }
  }
}
