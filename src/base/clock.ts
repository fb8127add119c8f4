/** Time as a port, so that tests control it. */

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall clock, milliseconds since the epoch. */
  now(): number;
  /** Monotonic, milliseconds with fractions, for durations only. */
  monotonicMs(): number;
  /** Runs `callback` once after `delayMs`; a pending timer keeps no process alive. */
  schedule(delayMs: number, callback: () => void): Timer;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  schedule(delayMs, callback) {
    let handle: NodeJS.Timeout;
    const wait = (leftMs: number): void => {
      const stepMs = Math.min(leftMs, TIMEOUT_MS_MAX);
      handle = setTimeout(() => (leftMs > stepMs ? wait(leftMs - stepMs) : callback()), stepMs);
      handle.unref();
    };
    wait(delayMs);
    return { cancel: () => clearTimeout(handle) };
  },
};

/** 24.8 days: setTimeout fires immediately for a longer delay. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** Resolves after `delayMs`, or when `signal` aborts. It never rejects: the caller checks the signal. */
export function sleep(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const done = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = clock.schedule(delayMs, done);
    signal.addEventListener('abort', done, { once: true });
  });
}

/** Resolves when the work is done, after `ms`, or when `signal` aborts. Rejects if the work does before that. */
export async function withinTime(
  work: Promise<unknown>,
  { clock, ms, signal }: { readonly clock: Clock; readonly ms: number; readonly signal: AbortSignal },
): Promise<void> {
  const done = new AbortController();
  try {
    await Promise.race([work, sleep(clock, ms, AbortSignal.any([signal, done.signal]))]);
  } finally {
    done.abort();
  }
}
