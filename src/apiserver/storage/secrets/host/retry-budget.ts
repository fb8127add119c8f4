/** How long one operation of the store goes on trying: a deadline, and longer and longer waits inside it. */

import type { RequestOptions } from '../../../../kube/types.ts';
import { sleep, type Clock } from '../../../../base/clock.ts';
import type { Random } from '../../../../base/random.ts';
import { RetryDelay } from '../../../../base/retry.ts';
import { closed } from '../../store.ts';
import { refusedByHost, unanswered, verdictOf } from './host-errors.ts';

export interface RetryBudgetOptions {
  readonly namespace: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Aborted when the store closes. */
  readonly signal: AbortSignal;
  /** Until the operation must have an end. */
  readonly timeoutMs: number;
}

const DELAYS = { baseMs: 50, maxMs: 2000 };
/** An attempt with less time is not worth its doubt. */
const ATTEMPT_MIN_MS = 500;

export class RetryBudget {
  readonly #options: RetryBudgetOptions;
  readonly #endMs: number;
  readonly #delay: RetryDelay;
  #isOutcomeUnknown = false;

  constructor(options: RetryBudgetOptions) {
    this.#options = options;
    this.#delay = new RetryDelay(options.random, DELAYS);
    this.#endMs = options.clock.monotonicMs() + options.timeoutMs;
  }

  get leftMs(): number {
    return Math.max(1, Math.ceil(this.#endMs - this.#options.clock.monotonicMs()));
  }

  /** For one request: half of the whole, so that a silent connection leaves time for another one. */
  get request(): RequestOptions {
    const { signal, timeoutMs } = this.#options;
    return { signal, isRetried: false, timeoutMs: Math.min(this.leftMs, Math.ceil(timeoutMs / 2)) };
  }

  get isOutcomeUnknown(): boolean {
    return this.#isOutcomeUnknown;
  }

  /** From now on the write may have happened, or happen late: a request whose answer is lost may still be on its way. */
  markOutcomeUnknown(): void {
    this.#isOutcomeUnknown = true;
  }

  /** Repeats a read until the host answers. Rejects with what the host answered, or with `StoreError` `unavailable` or `closed`. */
  async read<T>(attempt: (request: RequestOptions) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await attempt(this.request);
      } catch (error) {
        this.checkOpen();
        const verdict = verdictOf(error);
        if (verdict === 'answered') throw error;
        if (verdict === 'refused') throw refusedByHost(error, this.#options.namespace);
        await this.pause(error);
      }
    }
  }

  /** Waits before the next attempt; throws when there is no time for one. */
  async pause(error: unknown): Promise<void> {
    const { clock, signal } = this.#options;
    const delayMs = this.#delay.next({ error });
    if (clock.monotonicMs() + delayMs + ATTEMPT_MIN_MS >= this.#endMs) throw this.exhausted(error);
    await sleep(clock, delayMs, signal);
    this.checkOpen();
  }

  exhausted(error: unknown): Error {
    return unanswered(error, {
      namespace: this.#options.namespace,
      isOutcomeUnknown: this.#isOutcomeUnknown,
    });
  }

  checkOpen(): void {
    if (this.#options.signal.aborted) throw closed();
  }
}
