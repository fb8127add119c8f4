/** The queue of the throttled sandbox process: objects on which an expression had to be stopped, unknown objects of their namespaces, and what an owner needs
 * beyond its share of the main process. It runs one object at a time and uses a bounded share of one processor, so that these objects do not delay all others. */

import type { Clock, Timer } from '../base/clock.ts';
import { TokenBucket, type Rate } from '../base/token-bucket.ts';
import { failJob, type IsolateSource, type Job } from './batch.ts';
import { Scheduler, type SchedulerOptions } from './scheduler.ts';

/** Milliseconds of one processor that each owner may use, including starts of the process: 8 percent, and after a pause a second, so that an object that
 * only shares a namespace with a hostile one runs without delay. */
const BUDGET: Rate = { burst: 1000, perSecond: 80 };
/** All of them together. */
const TOTAL: Rate = { burst: 3000, perSecond: 240 };
/** Objects of an owner that may wait while the queue makes no progress; all others fail, and what does not need the expression is synced. */
const WAITING_MAX = 64;
const REJECTED_RETRY_MS = 5000;
/** An object that takes longer delays the others; more is allowed while the process starts. */
const STUCK_MS = 60;
const STUCK_STARTING_MS = 2000;
const OLDEST_EVERY = 4;
const ARRIVALS_MAX = 10_000;
const IDLE_MS = 30_000;

type ThrottledQueueOptions = Omit<SchedulerOptions, 'divert' | 'idleMs' | 'hasSpare' | 'inFlightMax'>;

/** What waits of one owner, and what it has used. */
class OwnerQueue {
  readonly budget: TokenBucket;
  /** Objects on which the expression was never stopped, by their arrival. */
  unknown: Job[] = [];
  /** Those on which it was, likewise. */
  retries: Job[] = [];
  isStuck = false;
  #taken = 0;

  constructor(clock: Clock) {
    this.budget = new TokenBucket(BUDGET, clock);
  }

  get jobs(): readonly Job[] {
    return [...this.unknown, ...this.retries];
  }

  get size(): number {
    return this.unknown.length + this.retries.length;
  }

  remove(isRemoved: (job: Job) => boolean): readonly Job[] {
    const removed = this.jobs.filter(isRemoved);
    if (removed.length === 0) return removed;
    this.unknown = this.unknown.filter((job) => !isRemoved(job));
    this.retries = this.retries.filter((job) => !isRemoved(job));
    return removed;
  }

  /** Unknown objects first, newest first, so that hostile objects that arrived earlier do not delay them. Every fourth is the oldest. */
  take(): Job | undefined {
    if (this.unknown.length === 0) return this.retries.shift();
    this.#taken += 1;
    return this.#taken % OLDEST_EVERY === 0 ? this.unknown.shift() : this.unknown.pop();
  }

  /** Rejects objects that were stopped before those that were not. */
  rejectSurplus(): void {
    this.isStuck = true;
    const message = 'too many objects wait for the throttled sandbox process';
    while (this.size > WAITING_MAX) {
      const job = this.retries.pop() ?? this.unknown.shift();
      if (job === undefined) return;
      setImmediate(() => failJob(job, { kind: 'killed', message, retryAfterMs: REJECTED_RETRY_MS }));
    }
  }
}

export class ThrottledQueue {
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  readonly #total: TokenBucket;
  /** In the order of their turns. */
  readonly #owners = new Map<string, OwnerQueue>();
  /** First arrivals since an object was evaluated here. One that is rejected, or withdrawn because it has changed, keeps its place when it is added again. */
  readonly #arrivals = new Map<string, number>();
  /** Processor time of the scheduler's processes that the budgets have paid for. */
  #chargedMs = 0;
  #isBusy = false;
  #serial = 0;
  #wakeTimer: Timer | undefined;
  #stuckTimer: Timer | undefined;

  constructor(options: ThrottledQueueOptions) {
    this.#clock = options.clock;
    this.#total = new TokenBucket(TOTAL, options.clock);
    this.#scheduler = new Scheduler({
      ...options,
      divert: undefined,
      hasSpare: false,
      inFlightMax: 1,
      idleMs: IDLE_MS,
    });
  }

  get pids(): readonly number[] {
    return this.#scheduler.pids;
  }

  /** INVARIANT: the engine does not wait for a job of this queue, so no number of jobs keeps it from other objects. */
  add(job: Job): void {
    const owner = this.#ownerOf(job.isolate);
    job.postpone?.(() => this.#withdraw(owner, job));
    this.#insert(job, job.entry.quarantine.wasStopped(job.object) ? owner.retries : owner.unknown);
    if (owner.isStuck) owner.rejectSurplus();
    this.#next();
  }

  forget(isolate: IsolateSource, id: number): void {
    this.#scheduler.forget(isolate, id);
  }

  closeIsolate(isolate: IsolateSource): void {
    this.#fail((job) => job.isolate === isolate);
    this.#scheduler.closeIsolate(isolate);
  }

  close(): void {
    this.#wakeTimer?.cancel();
    this.#stuckTimer?.cancel();
    this.#fail(() => true);
    this.#scheduler.close();
  }

  #fail(isFailed: (job: Job) => boolean): void {
    const failed = [...this.#owners.values()].flatMap((owner) => owner.remove(isFailed));
    for (const job of failed) failJob(job, { kind: 'killed', message: 'the sandbox is closed' });
  }

  #ownerOf({ owner }: IsolateSource): OwnerQueue {
    const known = this.#owners.get(owner);
    if (known !== undefined) return known;
    const queue = new OwnerQueue(this.#clock);
    this.#owners.set(owner, queue);
    return queue;
  }

  #insert(job: Job, jobs: Job[]): void {
    const arrival = this.#arrivalOf(job);
    const later = jobs.findIndex((other) => this.#arrivalOf(other) > arrival);
    jobs.splice(later === -1 ? jobs.length : later, 0, job);
  }

  #withdraw(owner: OwnerQueue, job: Job): void {
    for (const one of owner.remove((other) => other === job))
      failJob(one, { kind: 'killed', message: 'the request was withdrawn' });
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

  #next(): void {
    if (this.#isBusy) return;
    const totalMs = this.#total.spend(0);
    let waitMs = Infinity;
    for (const [name, owner] of this.#owners) {
      if (owner.size === 0) continue;
      const ownMs = Math.max(totalMs, owner.budget.spend(0));
      if (ownMs > 0) {
        waitMs = Math.min(waitMs, ownMs);
        owner.rejectSurplus();
        continue;
      }
      // The last in the order of turns from now on.
      this.#owners.delete(name);
      this.#owners.set(name, owner);
      owner.isStuck = false;
      const job = owner.take();
      if (job !== undefined) this.#run(owner, job);
      return;
    }
    if (waitMs === Infinity) return;
    this.#wakeTimer?.cancel();
    this.#wakeTimer = this.#clock.schedule(Math.ceil(waitMs), () => this.#next());
  }

  #run(owner: OwnerQueue, job: Job): void {
    this.#isBusy = true;
    this.#arrivals.delete(arrivalKeyOf(job));
    const startedMs = this.#clock.monotonicMs();
    const stuckMs = this.#scheduler.isReady ? STUCK_MS : STUCK_STARTING_MS;
    this.#stuckTimer = this.#clock.schedule(stuckMs, () => {
      for (const each of this.#owners.values()) each.rejectSurplus();
    });
    this.#scheduler.add({
      ...job,
      postpone: undefined,
      complete: (values, errors) => {
        this.#charge(owner, this.#clock.monotonicMs() - startedMs);
        this.#isBusy = false;
        for (const each of this.#owners.values()) each.isStuck = false;
        this.#stuckTimer?.cancel();
        job.complete(values, errors);
        this.#next();
      },
    });
  }

  /** Charges processor time if the system reports it, because on a busy machine elapsed time exceeds used time. */
  #charge(owner: OwnerQueue, elapsedMs: number): void {
    const usedMs = this.#scheduler.processorMs ?? this.#chargedMs + elapsedMs;
    const ms = Math.max(0, usedMs - this.#chargedMs);
    owner.budget.spend(ms);
    this.#total.spend(ms);
    this.#chargedMs += ms;
  }
}

function arrivalKeyOf({ isolate, entry, object }: Job): string {
  return `${isolate.message.id} ${entry.program.id} ${object.namespace}/${object.name}`;
}
