/** Sends batches to one child. The requests of one turn of the event loop are sent together at its end, so an idle daemon adds no latency
 * and a full queue forms large batches; a second batch is in flight while the first is evaluated. */

import type { Timer } from '../../base/clock.ts';
import { Batch, failJob, type Job, type Stop, type StopOptions } from './batch.ts';
import type { SandboxChild } from './child.ts';
import { ChildPool, type PoolOptions } from './child-pool.ts';
import type { EvaluateError } from './types.ts';
import type { ProgramMessage, SetupMessage } from './protocol.ts';
import type { Route } from './quarantine.ts';

export interface SchedulerOptions extends PoolOptions {
  batched(matches: number): void;
  /** Receives queued jobs that the quarantine now assigns to the throttled process; undefined: this is that process. */
  readonly divert: ((job: Job) => void) | undefined;
  /** A process without work ends after this time; undefined: it stays. */
  readonly idleMs?: number | undefined;
}

const IN_FLIGHT_MAX = 2;
const BATCH_JOBS_MAX = 512;
const BATCH_MATCHES_MAX = 2048;
/** Share of the memory limit. Memory that remains allocated after a stop would count against the next expression. */
const BLOATED_SHARE = 0.6;
const PAUSE_MS = 1000;

const STOPS: ReadonlyMap<string, Stop> = new Map([
  ['T', 'timeout'],
  ['S', 'starved'],
  ['L', 'late'],
  ['X', 'failed'],
  ['M', 'memory'],
]);
const STOPS_BY_END = { timeout: 'killed', memory: 'memory', exit: 'lost' } as const;

export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #stopOptions: StopOptions;
  readonly #pool: ChildPool;
  #jobs: Job[] = [];
  #matches = 0;
  /** Batches that are sent again, before new jobs. */
  #again: Batch[] = [];
  #inFlight: Batch[] = [];
  #collectTimer: Timer | undefined;
  #idleTimer: Timer | undefined;
  #isFlushDue = false;
  #isClosed = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    const { clock, source, logger } = options;
    this.#stopOptions = { ...source.setup, clock, logger };
    this.#pool = new ChildPool(options, {
      ready: () => this.#flush(),
      message: (child, line) => this.#receive(child, line),
      lost: (child, reason) => this.#stopped(child, STOPS_BY_END[reason], true),
      failed: (message) => this.#failEverything({ kind: 'killed', message }),
    });
  }

  get pids(): readonly number[] {
    return this.#pool.children.map(({ pid }) => pid);
  }

  get isReady(): boolean {
    return this.#pool.children.some((child) => child.isReady);
  }

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

  close(): void {
    this.#isClosed = true;
    this.#collectTimer?.cancel();
    this.#idleTimer?.cancel();
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
      const batch = again ?? this.#nextBatch();
      if (!batch.isFinished) this.#send(child, batch);
    }
  }

  #nextBatch(): Batch {
    const batch = new Batch(this.#options.route === 'throttled');
    let taken = 0;
    while (taken < this.#jobs.length && taken < BATCH_JOBS_MAX && batch.matchesLeft < BATCH_MATCHES_MAX) {
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
    return (
      this.#options.divert !== undefined && !quarantine.isEmpty && quarantine.routeOf(object) === 'throttled'
    );
  }

  #divertFrom(batch: Batch): void {
    const { divert } = this.#options;
    if (divert === undefined || [...batch.entries].every(({ quarantine }) => quarantine.isEmpty)) return;
    for (const job of batch.extract((each) => this.#isDiverted(each))) divert(job);
  }

  #send(child: SandboxChild, batch: Batch): void {
    for (const { program } of batch.entries) {
      const message: ProgramMessage = { id: program.id, source: program.source };
      if (child.programs.has(message.id)) continue;
      child.programs.add(message.id);
      child.sendLater(`P${JSON.stringify(message)}`);
    }
    child.send(batch.encode());
    this.#inFlight.push(batch);
    this.#idleTimer?.cancel();
    this.#options.batched(batch.matchesLeft);
    if (this.#inFlight.length === 1) this.#watchHead(child);
  }

  #watchHead(child: SandboxChild): void {
    const [head] = this.#inFlight;
    if (head === undefined) {
      child.expectNothing();
      return;
    }
    const { silenceMs, allowanceMs } = silenceOf(head, this.#options.route, this.#options.source.setup);
    child.expectResponse(silenceMs, allowanceMs);
  }

  #receive(child: SandboxChild, line: string): void {
    const [head] = this.#inFlight;
    if (head === undefined) return;
    const stop = STOPS.get(line);
    if (stop !== undefined) {
      this.#stopped(child, stop, false);
      return;
    }
    const isLast = line.startsWith('.');
    if (!(isLast || line.startsWith('+')) || !takeResponse(child, head, line.slice(1), isLast)) {
      // A violation of the protocol: the child is compromised.
      child.kill();
      return;
    }
    if (!isLast) return;
    this.#inFlight.shift();
    this.#sendNext(child);
  }

  #sendNext(child: SandboxChild): void {
    this.#watchHead(child);
    this.#flush();
    if (this.#inFlight.length + this.#again.length + this.#jobs.length > 0) return;
    const { clock, idleMs } = this.#options;
    // An idle child collects its garbage.
    this.#collectTimer ??= clock.schedule(PAUSE_MS, () => {
      this.#collectTimer = undefined;
      if (this.#inFlight.length === 0 && !this.#isClosed) this.#pool.active?.send('G');
    });
    if (idleMs === undefined) return;
    this.#idleTimer?.cancel();
    this.#idleTimer = clock.schedule(idleMs, () => this.#pool.rest());
  }

  /** The first batch was stopped, by the end of the child or by its message. Batches behind it have not started. */
  #stopped(child: SandboxChild, stop: Stop, hasEnded: boolean): void {
    const { isFresh } = child;
    const first = this.#inFlight.shift();
    const isBloated = !hasEnded && (stop === 'memory' || this.#isBloated(child));
    if (hasEnded || isBloated) this.#again.unshift(...this.#inFlight.splice(0));
    if (isBloated) this.#pool.retire(child);
    if (first?.handleStop(stop, isFresh, this.#stopOptions) === true) this.#again.unshift(first);
    this.#sendNext(child);
  }

  #isBloated(child: SandboxChild): boolean {
    const limit = child.baselineBytes + this.#options.memoryBytes * BLOATED_SHARE;
    return (child.residentBytes() ?? 0) > limit;
  }

  #failEverything(error: EvaluateError): void {
    const batches = [...this.#inFlight, ...this.#again];
    const jobs = this.#jobs;
    [this.#inFlight, this.#again, this.#jobs, this.#matches] = [[], [], [], 0];
    for (const batch of batches) batch.failAll(error);
    for (const job of jobs) failJob(job, error);
  }
}

/** False if the text is not a valid response to the batch. */
function takeResponse(child: SandboxChild, batch: Batch, text: string, isLast: boolean): boolean {
  const before = batch.matchesLeft;
  const isValid = batch.receive(text);
  if (batch.matchesLeft < before) child.isFresh = false;
  return isValid && isLast === batch.isFinished;
}

/** A multiple of the time limit of one match, and a minimum. The isolate's own timeout stops most matches, but not within a builtin, such as
 * one that copies a long text. */
const CAREFUL_SILENCE = 4;
const CAREFUL_SILENCE_MIN_MS = 400;
/** Shorter in the throttled process, whose time is scarce. */
const THROTTLED_SILENCE = 1.5;
/** Shorter for a batch of many, which is sent again with one call per match. */
const BATCH_SILENCE = 1;
const CHARS_PER_MS = 10_000;

interface Silence {
  readonly silenceMs: number;
  /** Applies only before the first response: decoding a long text and compiling programs does not count against an expression. */
  readonly allowanceMs: number;
}

function silenceOf(batch: Batch, route: Route, { expressionTimeoutMs, settings }: SetupMessage): Silence {
  const carefulMs =
    route === 'throttled'
      ? expressionTimeoutMs * THROTTLED_SILENCE
      : Math.max(expressionTimeoutMs * CAREFUL_SILENCE, CAREFUL_SILENCE_MIN_MS);
  const silenceMs = batch.isCareful
    ? carefulMs + expressionTimeoutMs * batch.starvations
    : expressionTimeoutMs * BATCH_SILENCE;
  return {
    silenceMs: silenceMs + settings.shareMs,
    allowanceMs: batch.sentChars / CHARS_PER_MS + batch.entries.size,
  };
}
