/**
 * The queue of the second sandbox process: objects on which an expression had to be stopped, and unknown objects of their namespaces.
 * It runs one object at a time and uses a bounded share of one processor, so that these objects do not delay all others.
 */

import type { Clock, Timer } from '../../base/clock.ts';
import { failJob, type Job } from './batch.ts';
import { Scheduler, type SchedulerOptions } from './scheduler.ts';

/** Share of one processor that the process may use, including its start. */
const SHARE = 0.08;
/** Budget after a pause: an object that only shares a namespace with a hostile one runs without delay. */
const BURST_MS = 1000;
/** Objects that may wait while the queue makes no progress: each occupies a worker of the engine. */
const WAITING_MAX = 64;
const REJECTED_RETRY_MS = 5000;
/** An object that takes longer delays the others; more is allowed while the process starts. */
const STUCK_MS = 60;
const STUCK_STARTING_MS = 2000;
const OLDEST_EVERY = 4;
const ARRIVALS_MAX = 10_000;
const IDLE_MS = 30_000;

type ThrottledQueueOptions = Omit<SchedulerOptions, 'route' | 'divert'>;

export class ThrottledQueue {
  readonly #options: ThrottledQueueOptions;
  readonly #clock: Clock;
  /** Objects on which the expression was never stopped, by the time of their first arrival. */
  #unknown: Job[] = [];
  /** First arrivals. A rejected object keeps its place when it is added again. */
  readonly #arrivals = new Map<string, number>();
  #retries: Job[] = [];
  #scheduler: Scheduler | undefined;
  #budgetMs = BURST_MS;
  /** Processor time of the scheduler's processes that the budget has paid for. */
  #chargedMs = 0;
  #refilledMs: number;
  #isBusy = false;
  #isStuck = false;
  #taken = 0;
  #serial = 0;
  #wakeTimer: Timer | undefined;
  #idleTimer: Timer | undefined;
  #stuckTimer: Timer | undefined;

  constructor(options: ThrottledQueueOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#refilledMs = this.#clock.monotonicMs();
  }

  get pids(): readonly number[] {
    return this.#scheduler?.pids ?? [];
  }

  add(job: Job): void {
    if (job.entry.quarantine.wasStopped(job.object)) this.#retries.push(job);
    else this.#insert(job);
    if (this.#isStuck) this.#rejectSurplus();
    this.#next();
  }

  #insert(job: Job): void {
    const arrival = this.#arrivalOf(job);
    const later = this.#unknown.findIndex((other) => this.#arrivalOf(other) > arrival);
    this.#unknown.splice(later === -1 ? this.#unknown.length : later, 0, job);
  }

  #arrivalOf({ entry, object }: Job): number {
    const key = `${entry.program.id} ${object.namespace}/${object.name}`;
    const known = this.#arrivals.get(key);
    if (known !== undefined) return known;
    if (this.#arrivals.size >= ARRIVALS_MAX) this.#arrivals.clear();
    this.#serial += 1;
    this.#arrivals.set(key, this.#serial);
    return this.#serial;
  }

  forget(id: number): void {
    this.#scheduler?.forget(id);
  }

  close(): void {
    for (const timer of [this.#wakeTimer, this.#idleTimer, this.#stuckTimer]) timer?.cancel();
    const waiting = [...this.#unknown, ...this.#retries];
    [this.#unknown, this.#retries] = [[], []];
    for (const job of waiting) failJob(job, { kind: 'killed', message: 'the sandbox is closed' });
    this.#scheduler?.close();
    this.#scheduler = undefined;
  }

  /** Rejects objects that were stopped before those that were not. */
  #rejectSurplus(): void {
    this.#isStuck = true;
    const message = 'too many objects wait for the throttled sandbox process';
    while (this.#unknown.length + this.#retries.length > WAITING_MAX) {
      const job = this.#retries.pop() ?? this.#unknown.shift();
      if (job === undefined) return;
      setImmediate(() => failJob(job, { kind: 'killed', message, retryAfterMs: REJECTED_RETRY_MS }));
    }
  }

  #next(): void {
    if (this.#isBusy || this.#unknown.length + this.#retries.length === 0) return;
    this.#refill();
    if (this.#budgetMs <= 0) {
      this.#rejectSurplus();
      const waitMs = Math.ceil(-this.#budgetMs / SHARE) + 1;
      this.#wakeTimer ??= this.#clock.schedule(waitMs, () => {
        this.#wakeTimer = undefined;
        this.#next();
      });
      return;
    }
    this.#isStuck = false;
    const job = this.#take();
    if (job !== undefined) this.#run(job);
  }

  /** Unknown objects first, newest first, so that hostile objects that arrived earlier do not delay them. Every fourth is the oldest. */
  #take(): Job | undefined {
    if (this.#unknown.length === 0) return this.#retries.shift();
    this.#taken += 1;
    return this.#taken % OLDEST_EVERY === 0 ? this.#unknown.shift() : this.#unknown.pop();
  }

  #run(job: Job): void {
    this.#isBusy = true;
    this.#idleTimer?.cancel();
    this.#scheduler ??= new Scheduler({ ...this.#options, route: 'throttled', divert: undefined });
    const startedMs = this.#clock.monotonicMs();
    const stuckMs = this.#scheduler.isReady ? STUCK_MS : STUCK_STARTING_MS;
    this.#stuckTimer = this.#clock.schedule(stuckMs, () => this.#rejectSurplus());
    this.#scheduler.add({
      ...job,
      complete: (values, errors) => {
        this.#charge(this.#clock.monotonicMs() - startedMs);
        [this.#isBusy, this.#isStuck] = [false, false];
        this.#stuckTimer?.cancel();
        this.#idleTimer = this.#clock.schedule(IDLE_MS, () => this.#stopIdle());
        job.complete(values, errors);
        this.#next();
      },
    });
  }

  #stopIdle(): void {
    if (this.#isBusy) return;
    this.#scheduler?.close();
    this.#scheduler = undefined;
    this.#chargedMs = 0;
  }

  /** Charges processor time if the system reports it, because on a busy machine elapsed time exceeds used time. */
  #charge(elapsedMs: number): void {
    const usedMs = this.#scheduler?.processorMs;
    if (usedMs === undefined) {
      this.#budgetMs -= elapsedMs;
      return;
    }
    this.#budgetMs -= Math.max(0, usedMs - this.#chargedMs);
    this.#chargedMs = Math.max(this.#chargedMs, usedMs);
  }

  #refill(): void {
    const now = this.#clock.monotonicMs();
    this.#budgetMs = Math.min(BURST_MS, this.#budgetMs + (now - this.#refilledMs) * SHARE);
    this.#refilledMs = now;
  }
}
