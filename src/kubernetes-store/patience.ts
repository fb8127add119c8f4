/** How long one operation of the store goes on trying: a deadline, and longer and longer waits inside it. */

import type { RequestOptions } from '../cluster/types.ts';
import { StatusError } from '../kube/status-error.ts';
import { sleep, type Clock } from '../lib/clock.ts';
import type { Random } from '../lib/random.ts';
import { backoffDelayMs } from '../queue/backoff.ts';
import { closed } from '../store/types.ts';
import { refusedByHost, unanswered, verdictOf } from './host-errors.ts';

export interface PatienceOptions {
  readonly namespace: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Aborted when the store closes. */
  readonly signal: AbortSignal;
  /** Until the operation must have an end. */
  readonly timeoutMs: number;
}

const WAIT_BASE_MS = 50;
const WAIT_MAX_MS = 2000;
/** An attempt with less time is not worth its doubt. */
const ATTEMPT_MIN_MS = 500;

export class Patience {
  readonly #options: PatienceOptions;
  readonly #endMs: number;
  #waits = 0;
  #isDoubtful = false;

  constructor(options: PatienceOptions) {
    this.#options = options;
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

  get isDoubtful(): boolean {
    return this.#isDoubtful;
  }

  /** From now on the write may have happened, or happen late: a request whose answer is lost may still be on its way. */
  doubt(): void {
    this.#isDoubtful = true;
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
    const { clock, random, signal } = this.#options;
    const capMs = backoffDelayMs(this.#waits, WAIT_BASE_MS, WAIT_MAX_MS);
    const askedMs = error instanceof StatusError ? (error.retryAfterMs ?? 0) : 0;
    const delayMs = askedMs + random() * capMs;
    this.#waits += 1;
    if (clock.monotonicMs() + delayMs + ATTEMPT_MIN_MS >= this.#endMs) throw this.exhausted(error);
    await sleep(clock, delayMs, signal);
    this.checkOpen();
  }

  exhausted(error: unknown): Error {
    return unanswered(error, { namespace: this.#options.namespace, isDoubtful: this.#isDoubtful });
  }

  checkOpen(): void {
    if (this.#options.signal.aborted) throw closed();
  }
}
