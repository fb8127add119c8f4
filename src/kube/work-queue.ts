/** A work queue of keys with client-go's guarantees: a key is in the queue at most once and processed by one worker at a time; a key that
 * is added while it is processed is queued again afterwards.
 */

import { createBackoff, type Backoff, boundedRetryAfterMs } from '../base/retry.ts';
import type { Clock, Timer } from '../base/clock.ts';
import { Turns } from '../base/turns.ts';

/** Metrics of a queue. Every method is called on the hot path and must be cheap. */
export interface QueueMetrics {
  depth(length: number): void;
  added(): void;
  retried(): void;
  /** Seconds that a key waited for a worker. */
  queued(seconds: number): void;
  /** Seconds that a worker spent on a key. */
  worked(seconds: number): void;
}

export interface WorkQueueOptions {
  clock: Clock;
  metrics: QueueMetrics;
  /** Delay of the first retry; doubles per failure. Default 5 ms. */
  retryBaseMs?: number;
  /** Longest delay of a retry. Default 1000 s. */
  retryMaxMs?: number;
  /** Groups of keys that take turns. Default: one. */
  groupOf?: (key: string) => string;
}

/** Highest first. `live`: from a watch event. `changed`: the first lists show a difference. `initial`: from the first lists, without a
 * known difference.
 */
const PRIORITIES = ['live', 'changed', 'initial'] as const;

export type KeyPriority = (typeof PRIORITIES)[number];

interface Delayed {
  readonly dueMs: number;
  readonly timer: Timer;
}

/** After this many consecutive keys of one priority, one key of the next lower priority is taken. */
const STREAK_MAX = 16;

export class WorkQueue {
  readonly #clock: Clock;
  readonly #metrics: QueueMetrics;
  readonly #backoff: Backoff;
  /** Queued keys in order, each with the time at which it was added. */
  readonly #waiting: Readonly<Record<KeyPriority, Turns<number>>>;
  /** Consecutive keys that were taken while keys of a lower priority were queued. */
  #streak = 0;
  /** Keys in progress, each with the time at which it was taken. */
  readonly #working = new Map<string, number>();
  /** Keys that were added while they were in progress. */
  readonly #again = new Set<string>();
  readonly #delayed = new Map<string, Delayed>();
  readonly #takers: ((key: string | undefined) => void)[] = [];
  #isShutDown = false;

  constructor({ clock, metrics, retryBaseMs = 5, retryMaxMs = 1_000_000, groupOf }: WorkQueueOptions) {
    this.#waiting = {
      live: new Turns(groupOf),
      changed: new Turns(groupOf),
      initial: new Turns(groupOf),
    };
    this.#clock = clock;
    this.#metrics = metrics;
    this.#backoff = createBackoff(retryBaseMs, retryMaxMs);
  }

  /** Adds a key now; a delayed addition of the same key is kept. Adding a queued key with a higher priority raises its priority. */
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

  /** Adds a key later; of several delays for a key, the shortest applies. */
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

  /**
   * Adds a key after its back-off: 5 ms × 2ⁿ, at most 1000 s. With the server's `retryAfterMs` the delay is that long, but not shorter than
   * the back-off and not longer than a minute.
   */
  addRateLimited(key: string, retryAfterMs?: number): void {
    this.#metrics.retried();
    const backoffMs = this.#backoff.next(key);
    this.addAfter(key, retryAfterMs === undefined ? backoffMs : boundedRetryAfterMs(backoffMs, retryAfterMs));
  }

  /** Resets the back-off of a key after success. */
  forget(key: string): void {
    this.#backoff.forget(key);
  }

  /** Consecutive failures of the key. */
  failures(key: string): number {
    return this.#backoff.failures(key);
  }

  /** The next key, by priority, or undefined once the queue is shut down and empty. */
  take(): Promise<string | undefined> {
    const next = this.#nextWaiting().take();
    if (next === undefined) {
      if (this.#isShutDown) return Promise.resolve(undefined);
      return new Promise((resolve) => this.#takers.push(resolve));
    }
    const [key, sinceMs] = next;
    this.#metrics.depth(this.#waitingCount);
    const now = this.#clock.monotonicMs();
    this.#metrics.queued((now - sinceMs) / 1000);
    this.#working.set(key, now);
    return Promise.resolve(key);
  }

  /**
   * Calls `work` with each key, for at most `workersMax` keys at a time, until the queue is shut down and empty. `work` never rejects, and calls
   * {@link done}. Only keys in progress take memory: 256 workers that waited for a key took 300 KiB.
   */
  async process(workersMax: number, work: (key: string) => Promise<void>): Promise<void> {
    let active = 0;
    let ended: (() => void) | undefined;
    const run = async (key: string): Promise<void> => {
      active += 1;
      await work(key);
      active -= 1;
      ended?.();
    };
    const untilFewer = async (count: number): Promise<void> => {
      while (active >= count) await new Promise<void>((resolve) => (ended = resolve));
    };
    for (let key = await this.take(); key !== undefined; key = await this.take()) {
      void run(key);
      await untilFewer(workersMax);
    }
    await untilFewer(1);
  }

  /** Must follow every `take`, after success or failure. */
  done(key: string): void {
    const sinceMs = this.#working.get(key);
    if (sinceMs === undefined) return;
    this.#metrics.worked((this.#clock.monotonicMs() - sinceMs) / 1000);
    this.#working.delete(key);
    if (this.#again.delete(key)) this.add(key);
  }

  /** Accepts no more keys; queued keys are still returned, delayed keys are dropped. */
  shutDown(): void {
    this.#isShutDown = true;
    this.#again.clear();
    for (const { timer } of this.#delayed.values()) timer.cancel();
    this.#delayed.clear();
    for (const taker of this.#takers.splice(0)) taker(undefined);
  }

  /** Shuts down and drops queued keys. Returns how many keys were queued or are still in progress. */
  abandon(): number {
    const left = this.size;
    this.shutDown();
    for (const waiting of Object.values(this.#waiting)) waiting.clear();
    this.#metrics.depth(0);
    return left;
  }

  /** Number of keys queued or in progress. */
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

  /** Higher priorities first, without starvation of lower ones. */
  #nextWaiting(): Turns<number> {
    const { live, changed, initial } = this.#waiting;
    const [first = initial, next] = [live, changed, initial].filter(({ size }) => size > 0);
    if (next === undefined || this.#streak >= STREAK_MAX) {
      this.#streak = 0;
      return next ?? first;
    }
    this.#streak += 1;
    return first;
  }

  /** True if the key is queued or in progress; a delayed key does not count. */
  has(key: string): boolean {
    return this.#working.has(key) || PRIORITIES.some((priority) => this.#waiting[priority].has(key));
  }

  /** True if no key is queued or in progress; delayed keys do not count. */
  get isIdle(): boolean {
    return this.size === 0;
  }
}
