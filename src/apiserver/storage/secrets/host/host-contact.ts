/** Knows whether the host still responds: while it does not, another replica may have changed any object. */

import type { Clock } from '../../../../base/clock.ts';
import type { Logger } from '../../../../base/logger.ts';

/** The host is asked again after this time, in the background. */
const ASK_AFTER_MS = 10_000;
/** While the host fails, what was read last is used for this long: an upgrade of the host cluster must not lock out all users. */
const SILENT_MS_MAX = 10 * 60_000;

export interface HostContactOptions {
  /** A read that only a host that can be reached answers. */
  ask(): Promise<unknown>;
  readonly clock: Clock;
  readonly logger: Logger;
}

type Phase = 'responding' | 'failing' | 'refusing';

export class HostContact {
  readonly #options: HostContactOptions;
  /** Monotonic time of the last request to which the host responded. */
  #respondedMs: number;
  #asking: Promise<void> | undefined;
  #phase: Phase = 'responding';

  /** The host has just responded. */
  constructor(options: HostContactOptions) {
    this.#options = options;
    this.#respondedMs = options.clock.monotonicMs();
  }

  /** Since the last response; 0 while the host responds. */
  get silentMs(): number {
    return this.#phase === 'responding' ? 0 : this.#options.clock.monotonicMs() - this.#respondedMs;
  }

  /** Undefined: the host has responded within ten minutes. Otherwise rejects unless it responds now. */
  confirmed(): Promise<void> | undefined {
    const ageMs = this.#options.clock.monotonicMs() - this.#respondedMs;
    if (ageMs < ASK_AFTER_MS) return undefined;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    if (ageMs >= SILENT_MS_MAX) return this.#asking;
    // Rejected later, after ten minutes.
    this.#asking.catch(() => undefined);
    return undefined;
  }

  async #ask(): Promise<void> {
    const { clock, logger } = this.#options;
    const startedMs = clock.monotonicMs();
    try {
      await this.#options.ask();
    } catch (error) {
      this.#failed(error, startedMs);
      throw error;
    }
    this.#respondedMs = startedMs;
    if (this.#phase !== 'responding') logger.info({}, 'the store of the access keys responds again');
    this.#phase = 'responding';
  }

  /** One line when the host stops responding, and one when keys are no longer accepted. */
  #failed(error: unknown, nowMs: number): void {
    const leftMs = this.#respondedMs + SILENT_MS_MAX - nowMs;
    const phase: Phase = leftMs > 0 ? 'failing' : 'refusing';
    if (phase === this.#phase) return;
    this.#phase = phase;
    const { logger } = this.#options;
    if (phase === 'refusing') {
      logger.error(
        { err: error },
        'the store of the access keys has not responded for ten minutes: requests get 503',
      );
      return;
    }
    const secondsLeft = Math.ceil(leftMs / 1000);
    logger.warn(
      { err: error, secondsLeft },
      'the store of the access keys does not respond: keys are accepted as last read, also revoked ones, then requests get 503',
    );
  }
}
