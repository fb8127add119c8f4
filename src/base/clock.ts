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

interface Entry {
  readonly dueMs: number;
  readonly callback: () => void;
  isCancelled: boolean;
}

/** Virtual time: callbacks run in the order in which they are due, and nothing else makes time pass. */
export class VirtualClock implements Clock {
  readonly #startMs: number;
  #nowMs = 0;
  /** The next one last; of those that are due at the same time, the oldest. */
  readonly #entries: Entry[] = [];

  /** `startMs`: the wall clock at the start, milliseconds since the epoch. */
  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  /** Milliseconds since the start. */
  get nowMs(): number {
    return this.#nowMs;
  }

  now(): number {
    return this.#startMs + this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  schedule(delayMs: number, callback: () => void): Timer {
    // As Node's timers: whole milliseconds, at least one.
    const dueMs = this.#nowMs + Math.max(1, Math.trunc(delayMs));
    const entry: Entry = { dueMs, callback, isCancelled: false };
    const later = this.#entries.findLastIndex((other) => other.dueMs > dueMs);
    this.#entries.splice(later + 1, 0, entry);
    return { cancel: () => void (entry.isCancelled = true) };
  }

  /** Runs the next callback that is due by `endMs`; false when there is none, and then it is `endMs`. */
  step(endMs: number): boolean {
    for (;;) {
      const next = this.#entries.at(-1);
      if (next === undefined || next.dueMs > endMs) {
        this.#nowMs = Math.max(this.#nowMs, endMs);
        return false;
      }
      this.#entries.pop();
      if (next.isCancelled) continue;
      this.#nowMs = next.dueMs;
      next.callback();
      return true;
    }
  }
}
