/**
 * A work queue of keys with client-go's promises: a key is in the queue at most once, is handled by one worker at a time, and a key
 * that is added while it is handled comes again afterwards.
 */

import { createBackoff, type Backoff } from '../base/backoff.ts';
import type { Clock, Timer } from '../base/clock.ts';
import { boundedRetryAfterMs } from '../base/retry.ts';

/** What a queue reports; every method is called on the hot path and must be cheap. */
export interface QueueMetrics {
  depth(length: number): void;
  added(): void;
  retried(): void;
  /** How long a key waited before a worker took it, seconds. */
  queued(seconds: number): void;
  /** How long a worker had it, seconds. */
  worked(seconds: number): void;
}

export interface WorkQueueOptions {
  clock: Clock;
  metrics: QueueMetrics;
  /** Delay of the first retry; doubles per failure. Default 5 ms. */
  retryBaseMs?: number;
  /** Longest delay of a retry. Default 1000 s. */
  retryMaxMs?: number;
}

/** `initial`: the key is only known from the first list, so nothing says that it needs work. */
export type KeyPriority = 'live' | 'initial';

export interface WorkQueue {
  /** Adds a key now; a delayed addition of the same key stays. A waiting key that is added as `live` is no longer `initial`. */
  add(key: string, priority?: KeyPriority): void;
  /** Adds a key later; of several delays for a key the earliest counts. */
  addAfter(key: string, delayMs: number): void;
  /**
   * Adds a key after its back-off: 5 ms × 2ⁿ, at most 1000 s. With the server's `retryAfterMs` the delay is that long, but not shorter than
   * the back-off and not longer than a minute.
   */
  addRateLimited(key: string, retryAfterMs?: number): void;
  /** The key succeeded: its back-off starts from the beginning. */
  forget(key: string): void;
  /** How often in a row the key failed. */
  failures(key: string): number;
  /** The next key, live ones first, or undefined once the queue is shut down and empty. */
  take(): Promise<string | undefined>;
  /** Must follow every `take`, however the work ended. */
  done(key: string): void;
  /** Takes no more keys; what is queued is still handed out, what is delayed is dropped. */
  shutDown(): void;
  /** Shuts down and drops what waits. Returns how many keys were waiting or are still worked on. */
  abandon(): number;
  /** Keys waiting and keys being worked on. */
  readonly size: number;
  /** True when nothing waits, nothing is worked on; delayed keys do not count. */
  readonly isIdle: boolean;
}

interface Delayed {
  readonly dueMs: number;
  readonly timer: Timer;
}

/** After so many live keys in a row one initial key is taken. */
const LIVE_STREAK_MAX = 16;

export function createWorkQueue(options: WorkQueueOptions): WorkQueue {
  return new KeyQueue(options, createBackoff(options.retryBaseMs ?? 5, options.retryMaxMs ?? 1_000_000));
}

class KeyQueue implements WorkQueue {
  readonly #clock: Clock;
  readonly #metrics: QueueMetrics;
  readonly #backoff: Backoff;
  /** Waiting keys in order, each with the time at which it was added. */
  readonly #waiting: Readonly<Record<KeyPriority, Map<string, number>>> = {
    live: new Map(),
    initial: new Map(),
  };
  /** Live keys in a row that were taken while initial ones waited. */
  #liveStreak = 0;
  /** Keys in a worker's hands, each with the time it was taken. */
  readonly #working = new Map<string, number>();
  /** Keys that came again while they were worked on. */
  readonly #again = new Set<string>();
  readonly #delayed = new Map<string, Delayed>();
  readonly #takers: ((key: string | undefined) => void)[] = [];
  #isShutDown = false;

  constructor(options: WorkQueueOptions, backoff: Backoff) {
    this.#clock = options.clock;
    this.#metrics = options.metrics;
    this.#backoff = backoff;
  }

  add(key: string, priority: KeyPriority = 'live'): void {
    const { live, initial } = this.#waiting;
    if (this.#isShutDown || live.has(key)) return;
    const sinceMs = initial.get(key);
    if (sinceMs !== undefined) {
      if (priority === 'live' && initial.delete(key)) live.set(key, sinceMs);
      return;
    }
    if (this.#working.has(key)) {
      this.#again.add(key);
      return;
    }
    this.#metrics.added();
    const taker = this.#takers.shift();
    if (taker === undefined) {
      this.#waiting[priority].set(key, this.#clock.monotonicMs());
      this.#metrics.depth(this.#waitingCount);
      return;
    }
    this.#working.set(key, this.#clock.monotonicMs());
    this.#metrics.queued(0);
    taker(key);
  }

  addAfter(key: string, delayMs: number): void {
    if (this.#isShutDown) return;
    if (delayMs <= 0) {
      this.add(key);
      return;
    }
    const dueMs = this.#clock.monotonicMs() + delayMs;
    const known = this.#delayed.get(key);
    if (known !== undefined && known.dueMs <= dueMs) return;
    known?.timer.cancel();
    const timer = this.#clock.schedule(delayMs, () => {
      this.#delayed.delete(key);
      this.add(key);
    });
    this.#delayed.set(key, { dueMs, timer });
  }

  addRateLimited(key: string, retryAfterMs?: number): void {
    this.#metrics.retried();
    const backoffMs = this.#backoff.next(key);
    this.addAfter(key, retryAfterMs === undefined ? backoffMs : boundedRetryAfterMs(backoffMs, retryAfterMs));
  }

  forget(key: string): void {
    this.#backoff.forget(key);
  }

  failures(key: string): number {
    return this.#backoff.failures(key);
  }

  take(): Promise<string | undefined> {
    const waiting = this.#nextWaiting();
    const next = waiting.entries().next();
    if (next.done) {
      if (this.#isShutDown) return Promise.resolve(undefined);
      return new Promise((resolve) => this.#takers.push(resolve));
    }
    const [key, sinceMs] = next.value;
    waiting.delete(key);
    this.#metrics.depth(this.#waitingCount);
    const now = this.#clock.monotonicMs();
    this.#metrics.queued((now - sinceMs) / 1000);
    this.#working.set(key, now);
    return Promise.resolve(key);
  }

  done(key: string): void {
    const sinceMs = this.#working.get(key);
    if (sinceMs === undefined) return;
    this.#metrics.worked((this.#clock.monotonicMs() - sinceMs) / 1000);
    this.#working.delete(key);
    if (this.#again.delete(key)) this.add(key);
  }

  shutDown(): void {
    this.#isShutDown = true;
    this.#again.clear();
    for (const { timer } of this.#delayed.values()) timer.cancel();
    this.#delayed.clear();
    for (const taker of this.#takers.splice(0)) taker(undefined);
  }

  abandon(): number {
    const left = this.size;
    this.shutDown();
    for (const waiting of Object.values(this.#waiting)) waiting.clear();
    this.#metrics.depth(0);
    return left;
  }

  get size(): number {
    return this.#waitingCount + this.#working.size;
  }

  get #waitingCount(): number {
    return this.#waiting.live.size + this.#waiting.initial.size;
  }

  /** Changes come before the first list, which still advances while changes never end. */
  #nextWaiting(): Map<string, number> {
    const { live, initial } = this.#waiting;
    const isLive = initial.size === 0 || (live.size > 0 && this.#liveStreak < LIVE_STREAK_MAX);
    this.#liveStreak = isLive && initial.size > 0 ? this.#liveStreak + 1 : 0;
    return isLive ? live : initial;
  }

  get isIdle(): boolean {
    return this.size === 0;
  }
}
