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

/**
 * Highest first. `live`: an event came. `changed`: the first lists show that the key needs work. `initial`: the key is only known from the
 * first lists, so nothing says that it needs work.
 */
const PRIORITIES = ['live', 'changed', 'initial'] as const;

export type KeyPriority = (typeof PRIORITIES)[number];

export interface WorkQueue {
  /** Adds a key now; a delayed addition of the same key stays. A waiting key that is added with a higher priority gets it. */
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
  /** The next key, by priority, or undefined once the queue is shut down and empty. */
  take(): Promise<string | undefined>;
  /** Must follow every `take`, however the work ended. */
  done(key: string): void;
  /** Accepts no more keys; queued keys are still returned, delayed keys are dropped. */
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

/** After so many keys of one priority in a row one key of the next lower priority is taken. */
const STREAK_MAX = 16;

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
    changed: new Map(),
    initial: new Map(),
  };
  /** Keys in a row that were taken while keys of a lower priority waited. */
  #streak = 0;
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
    if (this.#isShutDown) return;
    const waiting = PRIORITIES.find((one) => this.#waiting[one].has(key));
    if (waiting !== undefined) {
      this.#raise(key, waiting, priority);
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
    return PRIORITIES.reduce((sum, priority) => sum + this.#waiting[priority].size, 0);
  }

  #raise(key: string, from: KeyPriority, to: KeyPriority): void {
    if (PRIORITIES.indexOf(to) >= PRIORITIES.indexOf(from)) return;
    const sinceMs = this.#waiting[from].get(key);
    this.#waiting[from].delete(key);
    this.#waiting[to].set(key, sinceMs ?? this.#clock.monotonicMs());
  }

  /** Higher priorities first; lower ones still advance while events never end. */
  #nextWaiting(): Map<string, number> {
    const { live, changed, initial } = this.#waiting;
    const [first = initial, next] = [live, changed, initial].filter(({ size }) => size > 0);
    if (next === undefined || this.#streak >= STREAK_MAX) {
      this.#streak = 0;
      return next ?? first;
    }
    this.#streak += 1;
    return first;
  }

  get isIdle(): boolean {
    return this.size === 0;
  }
}
