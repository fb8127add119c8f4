/**
 * Feeds one child with batches. What is asked in one turn goes out together at its end, so an idle daemon adds no waiting and a full
 * queue forms large batches; a second batch is under way while the first is evaluated.
 */

import type { Timer } from '../../../base/clock.ts';
import { Batch, failJob } from './batch.ts';
import type { Job } from './group.ts';
import type { SandboxChild } from '../process/child.ts';
import { ChildPool, type PoolOptions } from '../process/child-pool.ts';
import type { EvaluateError } from '../types.ts';
import { handleStop, type Stop, type StopOptions } from '../quarantine/stops.ts';
import { Watchdog } from '../process/watchdog.ts';

export interface SchedulerOptions extends PoolOptions {
  /** Resident memory of the child above its baseline. */
  readonly memoryBytes: number;
  /** A batch of so many matches was sent. */
  batched(matches: number): void;
  /** Takes jobs that have come to belong to the slow lane while they waited; undefined: there is no other lane. */
  readonly divert: ((job: Job) => void) | undefined;
}

/** One more than is evaluated: the child never waits for the daemon. */
const IN_FLIGHT_MAX = 2;
const BATCH_JOBS_MAX = 512;
const BATCH_MATCHES_MAX = 2048;
/**
 * How long one match may be silent until the child is ended: in times of its limit, and at least. The isolate stops most of them by
 * itself, but only between two steps, and one that copies a long text takes its time.
 */
const CAREFUL_SILENCE = 4;
const CAREFUL_SILENCE_MIN_MS = 400;
/** In the slow lane the time of a process is dearer than the difference between a timeout and a kill. */
const SLOW_SILENCE = 1.5;
/** A match that is silent in a batch of many is only sent again alone: no need to wait as long. */
const FAST_SILENCE = 1;
/** A share of the memory limit: after a stop there may be memory that never comes back, and the next expression is not to pay for it. */
const BLOATED_SHARE = 0.6;
const CHARS_PER_MS = 10_000;
const PAUSE_MS = 1000;

const STOPS: ReadonlyMap<string, Stop> = new Map([
  ['T', 'timeout'],
  ['S', 'starved'],
  ['L', 'late'],
  ['X', 'failed'],
  ['M', 'memory'],
]);

export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #stopOptions: StopOptions;
  readonly #watchdog: Watchdog;
  readonly #pool: ChildPool;
  #jobs: Job[] = [];
  #matches = 0;
  /** Sent before anything new. */
  #again: Batch[] = [];
  #inFlight: { batch: Batch; text: string }[] = [];
  #collectTimer: Timer | undefined;
  #isFlushDue = false;
  #isClosed = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    const { memoryBytes, clock, source, logger } = options;
    this.#stopOptions = { ...source.setup, clock, logger };
    this.#watchdog = new Watchdog(clock, memoryBytes, (reason) => this.#pool.kill(reason));
    this.#pool = new ChildPool(options, {
      ready: () => this.#flush(),
      frame: (child, text) => this.#receive(child, text),
      lost: (child, reason) =>
        this.#lost(child, reason === 'timeout' ? 'killed' : reason === 'exit' ? 'lost' : reason),
      failed: (message) => this.#failEverything({ kind: 'killed', message }),
    });
  }

  /** Processes that exist now. */
  get pids(): readonly number[] {
    return this.#pool.children.map(({ pid }) => pid);
  }

  /** A process is there to take work at once. */
  get isReady(): boolean {
    return this.#pool.children.some((child) => child.isReady);
  }

  /** See `ChildPool.processorMs`. */
  get processorMs(): number | undefined {
    return this.#pool.processorMs;
  }

  add(job: Job): void {
    const failure = this.#isClosed ? 'the sandbox is closed' : this.#pool.failure;
    if (failure !== undefined) {
      setImmediate(() => failJob(job, { kind: 'killed', message: failure }));
      return;
    }
    this.#jobs.push(job);
    this.#matches += job.values.length;
    if (this.#inFlight.length >= IN_FLIGHT_MAX) return;
    if (this.#jobs.length >= BATCH_JOBS_MAX || this.#matches >= BATCH_MATCHES_MAX) {
      this.#flush();
    } else if (!this.#isFlushDue) {
      this.#isFlushDue = true;
      setImmediate(() => {
        this.#isFlushDue = false;
        this.#flush();
      });
    }
  }

  forget(id: number): void {
    for (const child of this.#pool.children) {
      if (child.programs.delete(id)) child.sendLater(`D${id}`);
    }
  }

  /** Ends the children; whatever waits fails. */
  close(): void {
    this.#isClosed = true;
    this.#watchdog.stop();
    this.#collectTimer?.cancel();
    this.#pool.close();
    this.#failEverything({ kind: 'killed', message: 'the sandbox is closed' });
  }

  #flush(): void {
    while (!this.#isClosed && this.#inFlight.length < IN_FLIGHT_MAX) {
      if (this.#again.length === 0 && this.#jobs.length === 0) return;
      const child = this.#pool.active;
      if (child === undefined) return;
      const again = this.#again.shift();
      if (again !== undefined) this.#divertFrom(again);
      const ready = encode(again ?? this.#nextBatch());
      if (ready !== undefined) this.#send(child, ready.batch, ready.text);
    }
  }

  #nextBatch(): Batch {
    const batch = new Batch();
    batch.isCareful = this.#options.lane === 'slow';
    let taken = 0;
    while (taken < this.#jobs.length && taken < BATCH_JOBS_MAX && batch.matches < BATCH_MATCHES_MAX) {
      const job = this.#jobs[taken++];
      if (job === undefined) continue;
      this.#matches -= job.values.length;
      if (this.#isDiverted(job)) this.#options.divert?.(job);
      else batch.add(job);
    }
    this.#jobs = taken === this.#jobs.length ? [] : this.#jobs.slice(taken);
    return batch;
  }

  /** A stop may have come after this job was queued. */
  #isDiverted({ entry, object }: Job): boolean {
    const { quarantine } = entry;
    return this.#options.divert !== undefined && !quarantine.isEmpty && quarantine.laneOf(object) === 'slow';
  }

  #divertFrom(batch: Batch): void {
    const { divert } = this.#options;
    if (divert === undefined || batch.entries.every(({ quarantine }) => quarantine.isEmpty)) return;
    for (const job of batch.extract((each) => this.#isDiverted(each))) divert(job);
  }

  #send(child: SandboxChild, batch: Batch, text: string): void {
    for (const { frame } of batch.entries) {
      if (child.programs.has(frame.id)) continue;
      child.programs.add(frame.id);
      child.sendLater(`P${JSON.stringify(frame)}`);
    }
    child.send((batch.isCareful ? `C${batch.starvations}` : 'B') + text);
    this.#inFlight.push({ batch, text });
    this.#options.batched(batch.matchesLeft);
    if (this.#inFlight.length === 1) this.#watchHead();
  }

  #watchHead(): void {
    const [head] = this.#inFlight;
    const child = head && this.#pool.active;
    if (head === undefined || child === undefined) {
      this.#watchdog.rest();
      return;
    }
    const { batch, text } = head;
    const { expressionTimeoutMs, settings } = this.#options.source.setup;
    const carefulMs =
      this.#options.lane === 'slow'
        ? expressionTimeoutMs * SLOW_SILENCE
        : Math.max(expressionTimeoutMs * CAREFUL_SILENCE, CAREFUL_SILENCE_MIN_MS);
    const silenceMs = batch.isCareful
      ? carefulMs + expressionTimeoutMs * batch.starvations
      : expressionTimeoutMs * FAST_SILENCE;
    // Reading a long text and compiling programs is no fault of an expression.
    const allowanceMs = text.length / CHARS_PER_MS + batch.entries.length;
    this.#watchdog.expect(child, silenceMs + settings.shareMs, allowanceMs);
  }

  #receive(child: SandboxChild, frame: string): void {
    const [head] = this.#inFlight;
    if (head === undefined) return;
    this.#watchdog.heard();
    const stop = STOPS.get(frame);
    if (stop !== undefined) {
      this.#stopped(child, head.batch, stop);
      return;
    }
    const isLast = frame.startsWith('.');
    if (!(isLast || frame.startsWith('+')) || !take(child, head.batch, frame.slice(1), isLast)) {
      // Not the protocol: whoever speaks there is not ours any more.
      child.kill();
      return;
    }
    if (!isLast) return;
    this.#inFlight.shift();
    if (head.batch.isSpoiled) this.#again.unshift(head.batch);
    this.#watchHead();
    this.#flush();
    if (this.#inFlight.length === 0) this.#collectTimer ??= this.#scheduleCollection();
  }

  /** Before a pause the child gives back what the work has left behind. */
  #scheduleCollection(): Timer {
    return this.#options.clock.schedule(PAUSE_MS, () => {
      this.#collectTimer = undefined;
      if (this.#inFlight.length === 0 && !this.#isClosed) this.#pool.active?.send('G');
    });
  }

  #stopped(child: SandboxChild, batch: Batch, stop: Stop): void {
    this.#inFlight.shift();
    const isFresh = child.completed === 0;
    const limit = child.baselineBytes + this.#options.memoryBytes * BLOATED_SHARE;
    if (stop === 'memory' || (child.residentBytes() ?? 0) > limit) {
      this.#again.unshift(...this.#inFlight.splice(0).map((each) => each.batch));
      this.#pool.retire(child);
    }
    if (handleStop(batch, stop, isFresh, this.#stopOptions)) this.#again.unshift(batch);
    this.#watchHead();
    this.#flush();
  }

  /** The child is gone with all that it had. Only the first batch had begun. */
  #lost(child: SandboxChild, stop: Stop): void {
    this.#watchdog.rest();
    const [first, ...rest] = this.#inFlight.splice(0).map(({ batch }) => batch);
    this.#again.unshift(...rest);
    const isFresh = child.completed === 0;
    if (first !== undefined && handleStop(first, stop, isFresh, this.#stopOptions))
      this.#again.unshift(first);
    this.#flush();
  }

  #failEverything(error: EvaluateError): void {
    const batches = [...this.#inFlight.map(({ batch }) => batch), ...this.#again];
    const jobs = this.#jobs;
    [this.#inFlight, this.#again, this.#jobs, this.#matches] = [[], [], [], 0];
    for (const batch of batches) batch.failAll(error);
    for (const job of jobs) failJob(job, error);
  }
}

/** False when this cannot be an answer to the batch. */
function take(child: SandboxChild, batch: Batch, text: string, isLast: boolean): boolean {
  if (batch.isSpoiled) return true;
  const before = batch.matchesLeft;
  const outcome = batch.receive(text);
  child.completed += before - batch.matchesLeft;
  batch.isSpoiled = outcome === 'spoiled';
  return outcome !== 'foreign' && (batch.isSpoiled || isLast === batch.isFinished);
}

/** The batch and its text, without jobs that cannot be written down; undefined when nothing is left. */
function encode(batch: Batch): { batch: Batch; text: string } | undefined {
  if (batch.isFinished) return undefined;
  try {
    return { batch, text: batch.encode() };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  const rest = new Batch();
  for (const job of batch.jobs) {
    if (isWritable(job)) rest.add(job);
    else failJob(job, { kind: 'runtime', message: 'the value is too large or too deep for the sandbox' });
  }
  return rest.isFinished ? undefined : { batch: rest, text: rest.encode() };
}

function isWritable({ values, objects }: Job): boolean {
  try {
    return JSON.stringify([values, objects]).length > 0;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}
