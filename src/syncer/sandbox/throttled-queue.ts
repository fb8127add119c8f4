/** The queue of the second sandbox process: objects on which an expression had to be stopped, and unknown objects of their namespaces.
 * It runs one object at a time and uses a bounded share of one processor, so that these objects do not delay all others. */

import type { Clock, Timer } from '../../base/clock.ts';
import { TokenBucket } from '../../base/token-bucket.ts';
import { failJob, type Job } from './batch.ts';
import { Scheduler, type SchedulerOptions } from './scheduler.ts';

/** Milliseconds of one processor that the process may use, including its start: 8 percent, and after a pause a second, so that an object that
 * only shares a namespace with a hostile one runs without delay. */
const BUDGET = { burst: 1000, perSecond: 80 };
/** Objects that may wait while the queue makes no progress; all others fail, and what does not need the expression is synced. */
const WAITING_MAX = 64;
const REJECTED_RETRY_MS = 5000;
/** An object that takes longer delays the others; more is allowed while the process starts. */
const STUCK_MS = 60;
const STUCK_STARTING_MS = 2000;
const OLDEST_EVERY = 4;
const ARRIVALS_MAX = 10_000;
const IDLE_MS = 30_000;

type ThrottledQueueOptions = Omit<SchedulerOptions, 'route' | 'divert' | 'idleMs'>;

export class ThrottledQueue {
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  readonly #budget: TokenBucket;
  /** Objects on which the expression was never stopped, by their arrival. */
  #unknown: Job[] = [];
  /** Those on which it was, likewise. */
  #retries: Job[] = [];
  /** First arrivals since an object was evaluated here. One that is rejected, or withdrawn because it has changed, keeps its place when it is added again. */
  readonly #arrivals = new Map<string, number>();
  /** Processor time of the scheduler's processes that the budget has paid for. */
  #chargedMs = 0;
  #isBusy = false;
  #isStuck = false;
  #taken = 0;
  #serial = 0;
  #wakeTimer: Timer | undefined;
  #stuckTimer: Timer | undefined;

  constructor(options: ThrottledQueueOptions) {
    this.#clock = options.clock;
    this.#budget = new TokenBucket(BUDGET, options.clock);
    this.#scheduler = new Scheduler({ ...options, route: 'throttled', divert: undefined, idleMs: IDLE_MS });
  }

  get pids(): readonly number[] {
    return this.#scheduler.pids;
  }

  /** INVARIANT: the engine does not wait for a job of this queue, so no number of jobs keeps it from other objects. */
  add(job: Job): void {
    job.postpone?.(() => this.#withdraw(job));
    this.#insert(job, job.entry.quarantine.wasStopped(job.object) ? this.#retries : this.#unknown);
    if (this.#isStuck) this.#rejectSurplus();
    this.#next();
  }

  #insert(job: Job, jobs: Job[]): void {
    const arrival = this.#arrivalOf(job);
    const later = jobs.findIndex((other) => this.#arrivalOf(other) > arrival);
    jobs.splice(later === -1 ? jobs.length : later, 0, job);
  }

  #withdraw(job: Job): void {
    const isOther = (other: Job): boolean => other !== job;
    if ([...this.#unknown, ...this.#retries].every(isOther)) return;
    [this.#unknown, this.#retries] = [this.#unknown.filter(isOther), this.#retries.filter(isOther)];
    failJob(job, { kind: 'killed', message: 'the request was withdrawn' });
  }

  #arrivalOf(job: Job): number {
    const key = arrivalKeyOf(job);
    const known = this.#arrivals.get(key);
    if (known !== undefined) return known;
    if (this.#arrivals.size >= ARRIVALS_MAX) this.#arrivals.clear();
    this.#serial += 1;
    this.#arrivals.set(key, this.#serial);
    return this.#serial;
  }

  forget(id: number): void {
    this.#scheduler.forget(id);
  }

  close(): void {
    this.#wakeTimer?.cancel();
    this.#stuckTimer?.cancel();
    const waiting = [...this.#unknown, ...this.#retries];
    [this.#unknown, this.#retries] = [[], []];
    for (const job of waiting) failJob(job, { kind: 'killed', message: 'the sandbox is closed' });
    this.#scheduler.close();
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
    const waitMs = this.#budget.spend(0);
    if (waitMs > 0) {
      this.#rejectSurplus();
      this.#wakeTimer ??= this.#clock.schedule(Math.ceil(waitMs), () => {
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
    this.#arrivals.delete(arrivalKeyOf(job));
    const startedMs = this.#clock.monotonicMs();
    const stuckMs = this.#scheduler.isReady ? STUCK_MS : STUCK_STARTING_MS;
    this.#stuckTimer = this.#clock.schedule(stuckMs, () => this.#rejectSurplus());
    this.#scheduler.add({
      ...job,
      complete: (values, errors) => {
        this.#charge(this.#clock.monotonicMs() - startedMs);
        [this.#isBusy, this.#isStuck] = [false, false];
        this.#stuckTimer?.cancel();
        job.complete(values, errors);
        this.#next();
      },
    });
  }

  /** Charges processor time if the system reports it, because on a busy machine elapsed time exceeds used time. */
  #charge(elapsedMs: number): void {
    const usedMs = this.#scheduler.processorMs ?? this.#chargedMs + elapsedMs;
    this.#budget.spend(Math.max(0, usedMs - this.#chargedMs));
    this.#chargedMs = Math.max(this.#chargedMs, usedMs);
  }
}

function arrivalKeyOf({ entry, object }: Job): string {
  return `${entry.program.id} ${object.namespace}/${object.name}`;
}
