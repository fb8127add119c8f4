/** Exponential back-off per key: `baseMs` × 2ⁿ, at most `maxMs`. Remembers only keys that failed. */

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
