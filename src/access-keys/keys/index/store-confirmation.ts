/** Knows whether the store still responds: while it does not, another replica may have revoked any key. */

import type { Store } from '../../../apiserver/storage/store.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Logger } from '../../../base/logger.ts';

/** The store is asked again after this time, in the background. */
const CONFIRM_AFTER_MS = 10_000;
/** While the store fails, the index is used for this long: an upgrade of the host cluster must not lock out all users. */
const UNCONFIRMED_MS_MAX = 10 * 60_000;

export interface StoreConfirmationOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
}

type Phase = 'responding' | 'failing' | 'refusing';

export class StoreConfirmation {
  readonly #options: StoreConfirmationOptions;
  /** Monotonic time of the last request to which the store responded. */
  #confirmedMs = Number.NEGATIVE_INFINITY;
  #confirming: Promise<void> | undefined;
  #phase: Phase = 'responding';

  constructor(options: StoreConfirmationOptions) {
    this.#options = options;
  }

  /** Since the last response; 0 while the store responds. */
  get unconfirmedMs(): number {
    return this.#phase === 'responding' ? 0 : this.#options.clock.monotonicMs() - this.#confirmedMs;
  }

  /** The store responded to a request of this monotonic time. */
  responded(startedMs: number): void {
    this.#confirmedMs = startedMs;
    if (this.#phase !== 'responding') {
      this.#options.logger.info({}, 'the store of the access keys responds again');
    }
    this.#phase = 'responding';
  }

  /** See `KeyIndex.confirmed`. */
  confirmed(): Promise<void> | undefined {
    const ageMs = this.#options.clock.monotonicMs() - this.#confirmedMs;
    if (ageMs < CONFIRM_AFTER_MS) return undefined;
    this.#confirming ??= this.#confirm().finally(() => {
      this.#confirming = undefined;
    });
    if (ageMs >= UNCONFIRMED_MS_MAX) return this.#confirming;
    // Rejected later, when the index is too old.
    this.#confirming.catch(() => undefined);
    return undefined;
  }

  async #confirm(): Promise<void> {
    const startedMs = this.#options.clock.monotonicMs();
    try {
      await this.#options.store.revision();
    } catch (error) {
      this.#failed(error, startedMs);
      throw error;
    }
    this.responded(startedMs);
  }

  /** One line when the store stops responding, and one when keys are no longer accepted. */
  #failed(error: unknown, nowMs: number): void {
    const leftMs = this.#confirmedMs + UNCONFIRMED_MS_MAX - nowMs;
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
