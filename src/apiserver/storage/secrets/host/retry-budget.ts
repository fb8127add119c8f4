/** The retries of one store operation: a deadline, and exponential backoff before it. */

import type { RequestOptions } from '../../../../kube/types.ts';
import { sleep, type Clock } from '../../../../base/clock.ts';
import type { Random } from '../../../../base/random.ts';
import { RetryDelay } from '../../../../base/retry.ts';
import { closed } from '../../store.ts';
import { failureKindOf, rejectedByHost, unreachable } from './host-errors.ts';

export interface RetryBudgetOptions {
  readonly namespace: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Aborted when the store closes. */
  readonly signal: AbortSignal;
  /** Deadline of the operation. */
  readonly timeoutMs: number;
}

const DELAYS = { baseMs: 50, maxMs: 2000 };
/** With less time left, no attempt is made: its timeout would only make the outcome unknown. */
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

  /** The options of one request. Its timeout is half of the deadline, so that a silent connection leaves time for another attempt. */
  get request(): RequestOptions {
    const { signal, timeoutMs } = this.#options;
    return { signal, isRetried: false, timeoutMs: Math.min(this.leftMs, Math.ceil(timeoutMs / 2)) };
  }

  get isOutcomeUnknown(): boolean {
    return this.#isOutcomeUnknown;
  }

  /** The write may have happened, or may still happen: a request without a response may still arrive. */
  markOutcomeUnknown(): void {
    this.#isOutcomeUnknown = true;
  }

  /** Retries a read until the host responds. Rejects with the error of the host, or with `StoreError` `unavailable` or `closed`. */
  async read<T>(attempt: (request: RequestOptions) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await attempt(this.request);
      } catch (error) {
        this.checkOpen();
        const kind = failureKindOf(error);
        if (kind === 'decided') throw error;
        if (kind === 'permanent') throw rejectedByHost(error, this.#options.namespace);
        await this.pause(error);
      }
    }
  }

  /** Waits before the next attempt; throws when the deadline leaves no time for one. */
  async pause(error: unknown): Promise<void> {
    const { clock, signal } = this.#options;
    const delayMs = this.#delay.next({ error });
    if (clock.monotonicMs() + delayMs + ATTEMPT_MIN_MS >= this.#endMs) throw this.exhausted(error);
    await sleep(clock, delayMs, signal);
    this.checkOpen();
  }

  exhausted(error: unknown): Error {
    return unreachable(error, {
      namespace: this.#options.namespace,
      isOutcomeUnknown: this.#isOutcomeUnknown,
    });
  }

  checkOpen(): void {
    if (this.#options.signal.aborted) throw closed();
  }
}
