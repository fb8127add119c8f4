/** Delays between attempts: exponential back-off with full jitter, per key or per request, and a bounded `Retry-After`. */

import { sleep, type Clock } from './clock.ts';
import type { Random } from './random.ts';

/** The longest `Retry-After` that is obeyed. */
export const RETRY_AFTER_MAX_MS = 60_000;

/**
 * The delay before the next attempt when a server has sent `Retry-After`: not shorter than our own back-off, because `0` or a date in the
 * past would make a hot loop, and not longer than a minute.
 */
export function boundedRetryAfterMs(backoffMs: number, retryAfterMs: number): number {
  return Math.min(Math.max(backoffMs, retryAfterMs), RETRY_AFTER_MAX_MS);
}

/** The delay that an error requests, milliseconds; undefined: none. `StatusError` of `kube/` has this member. */
function retryAfterOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('retryAfterMs' in error)) return undefined;
  return typeof error.retryAfterMs === 'number' ? error.retryAfterMs : undefined;
}

export interface BackoffLimits {
  readonly baseMs: number;
  readonly maxMs: number;
}

/** The delays of one series of attempts. */
export class RetryDelay {
  readonly #random: Random;
  readonly #limits: BackoffLimits;
  #failures = 0;

  constructor(random: Random, limits: BackoffLimits) {
    this.#random = random;
    this.#limits = limits;
  }

  /** Failures since the last {@link reset}. */
  get failures(): number {
    return this.#failures;
  }

  /**
   * Counts one more failure and returns the delay, milliseconds. After `Retry-After` the jitter comes on top, so that not all clients return
   * at the same moment. `isShort`: this delay is that of a first failure.
   */
  next({ error, isShort = false }: { readonly error?: unknown; readonly isShort?: boolean } = {}): number {
    const { baseMs, maxMs } = this.#limits;
    const backoffMs = this.#random() * backoffDelayMs(isShort ? 0 : this.#failures, baseMs, maxMs);
    this.#failures += 1;
    const retryAfterMs = retryAfterOf(error);
    return retryAfterMs === undefined ? backoffMs : boundedRetryAfterMs(backoffMs, retryAfterMs + backoffMs);
  }

  reset(): void {
    this.#failures = 0;
  }
}

export interface RetryOptions extends BackoffLimits {
  readonly clock: Clock;
  readonly random: Random;
  readonly signal: AbortSignal;
  /** Attempts in total. Absent: until the signal aborts. */
  readonly attemptsMax?: number;
  /** No attempt begins later than this after the first one; one in progress is completed. Absent: until the signal aborts. */
  readonly durationMs?: number | undefined;
  /** False for an error that another attempt cannot change. */
  isRetryable(error: unknown): boolean;
  /** Called before each wait. */
  onRetry?(error: unknown, delayMs: number): void;
}

/** Repeats `attempt` until it resolves. Rejects with its last error, or with the signal's reason. */
export async function retry<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { clock, signal, attemptsMax = Infinity, durationMs = Infinity } = options;
  const delay = new RetryDelay(options.random, options);
  const endMs = clock.monotonicMs() + durationMs;
  for (;;) {
    signal.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      signal.throwIfAborted();
      const leftMs = endMs - clock.monotonicMs();
      if (!options.isRetryable(error) || delay.failures + 1 >= attemptsMax || leftMs <= 0) throw error;
      const delayMs = Math.min(delay.next({ error }), leftMs);
      options.onRetry?.(error, delayMs);
      await sleep(clock, delayMs, signal);
    }
  }
}

// Exponential back-off per key: `baseMs` × 2ⁿ, at most `maxMs`. Remembers only keys that failed.

export interface Backoff {
  /** Counts one more failure and returns the delay, milliseconds. */
  next(key: string): number;
  failures(key: string): number;
  forget(key: string): void;
}

export function createBackoff(baseMs: number, maxMs: number): Backoff {
  const failures = new Map<string, number>();
  return {
    next(key) {
      const count = failures.get(key) ?? 0;
      failures.set(key, count + 1);
      return backoffDelayMs(count, baseMs, maxMs);
    },
    failures: (key) => failures.get(key) ?? 0,
    forget: (key) => void failures.delete(key),
  };
}

/** The delay after `failures` earlier failures. The exponent is limited, so that the result is finite. */
export function backoffDelayMs(failures: number, baseMs: number, maxMs: number): number {
  return Math.min(baseMs * 2 ** Math.min(failures, 52), maxMs);
}
