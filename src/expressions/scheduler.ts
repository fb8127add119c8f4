/** Sends batches to one child. The requests of one turn of the event loop are sent together at its end, so an idle daemon adds no latency
 * and a full queue forms large batches; a second batch is in flight while the first is evaluated. Owners, the isolates of one, and the virtual
 * namespaces of an isolate take turns: a batch that takes long, or in which stops follow each other, gives way to what waits, and is no longer
 * waited for. */

import type { Timer } from '../base/clock.ts';
import { Turns } from '../base/turns.ts';
import { Batch, failJob, type IsolateSource, type Job, type KillReason, type Stop } from './batch.ts';
import type { SandboxChild } from './child.ts';
import { ChildPool, type PoolOptions } from './child-pool.ts';
import type { EvaluateError } from './types.ts';
import type { IsolateMessage, ProgramMessage } from './protocol.ts';

export interface SchedulerOptions extends PoolOptions {
  /** `isolate`: whose batch was being evaluated, if any. */
  killed(reason: KillReason, isolate: IsolateSource | undefined): void;
  /** Takes a queued job that is to run in the throttled process by now, and returns true. Undefined: this is that process. */
  readonly divert: ((job: Job) => boolean) | undefined;
  /** Receives the time that a batch of this owner has taken. */
  readonly charge?: ((owner: string, ms: number) => void) | undefined;
  readonly inFlightMax: number;
  /** A process without work ends after this time; undefined: it stays. */
  readonly idleMs?: number | undefined;
}

const BATCH_JOBS_MAX = 512;
const BATCH_MATCHES_MAX = 2048;
/** While expressions take long: the jobs of a batch are encoded again when it has given way. */
const SLOW_BATCH_JOBS_MAX = 64;
/** Each takes as long as an expression may, and the quarantine of one expression says nothing about others: a batch gives way then. */
const BATCH_STOPS_MAX = 2;
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

/** What waits for one isolate. */
interface Waiting {
  readonly isolate: IsolateSource;
  /** By virtual namespace. */
  readonly jobs: Turns<Job>;
  matches: number;
  /** Batches that are sent again, before new jobs. */
  readonly again: Batch[];
  /** Some of the jobs have given way to others: until there are none left, none is waited for. */
  isSlow: boolean;
  /** The next batch is of new jobs, if there are any. */
  isTurnOfNew: boolean;
}

/** When the oldest batch in flight became that. */
interface Head {
  readonly sinceMs: number;
  readonly processorMs: number | undefined;
}

export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #pool: ChildPool;
  readonly #waiting = new Turns<Waiting>(namespaceOf);
  /** The first batch of a new process: whether it or one before it has used the memory shows there. */
  #first: Batch | undefined;
  #inFlight: Batch[] = [];
  #head: Head | undefined;
  #collectTimer: Timer | undefined;
  #idleTimer: Timer | undefined;
  #serial = 0;
  #isFlushDue = false;
  #isClosed = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#pool = new ChildPool(options, {
      ready: () => this.#flush(),
      message: (child, line) => this.#receive(child, line),
      lost: (child, reason) => this.#stopped(child, STOPS_BY_END[reason], true),
      killed: (reason) => options.killed(reason, this.#inFlight[0]?.isolate),
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
    const waiting = this.#waitingFor(job.isolate);
    this.#enqueue(waiting, job);
    if (!this.#hasRoom) return;
    if (waiting.jobs.size >= BATCH_JOBS_MAX || waiting.matches >= BATCH_MATCHES_MAX) {
      this.#flush();
    } else if (!this.#isFlushDue) {
      this.#isFlushDue = true;
      setImmediate(() => {
        this.#isFlushDue = false;
        this.#flush();
      });
    }
  }

  forget({ message }: IsolateSource, id: number): void {
    for (const child of this.#pool.children) {
      if (child.isolates.get(message.id)?.delete(id) === true)
        child.sendLater(`D${JSON.stringify([message.id, id])}`);
    }
  }

  /** What waits for it fails; what is in flight for it too, and its response is ignored. */
  closeIsolate(isolate: IsolateSource): void {
    const closed: EvaluateError = { kind: 'killed', message: 'the sandbox is closed' };
    const waiting = this.#waiting.get(isolateKey(isolate));
    this.#waiting.delete(isolateKey(isolate));
    const others = [...this.#inFlight, ...(this.#first === undefined ? [] : [this.#first])];
    const batches = [...(waiting?.again ?? []), ...others.filter((batch) => batch.isolate === isolate)];
    for (const batch of batches) batch.failAll(closed);
    for (const [, job] of waiting?.jobs.entries() ?? []) failJob(job, closed);
    const { id } = isolate.message;
    for (const child of this.#pool.children) if (child.isolates.delete(id)) child.sendLater(`E${id}`);
  }

  close(): void {
    this.#isClosed = true;
    this.#collectTimer?.cancel();
    this.#idleTimer?.cancel();
    this.#pool.close();
    this.#failEverything({ kind: 'killed', message: 'the sandbox is closed' });
  }

  #waitingFor(isolate: IsolateSource): Waiting {
    const known = this.#waiting.get(isolateKey(isolate));
    if (known !== undefined) return known;
    const waiting: Waiting = {
      isolate,
      jobs: new Turns(namespaceOf),
      matches: 0,
      again: [],
      isSlow: false,
      isTurnOfNew: false,
    };
    this.#waiting.set(isolateKey(isolate), waiting);
    return waiting;
  }

  #enqueue(waiting: Waiting, job: Job): void {
    const key = `${job.object.namespace}/${(this.#serial += 1)}`;
    waiting.jobs.set(key, job);
    waiting.matches += job.values.length;
    if (waiting.isSlow) this.#postpone(waiting, key, job);
  }

  #postpone(waiting: Waiting, key: string, job: Job): void {
    const { jobs } = waiting;
    job.postpone?.(() => {
      if (!jobs.has(key)) return;
      jobs.delete(key);
      waiting.matches -= job.values.length;
      failJob(job, { kind: 'killed', message: 'the request was withdrawn' });
    });
  }

  get #hasRoom(): boolean {
    const isSuspect = this.#inFlight.some((batch) => batch.isSuspect);
    return this.#inFlight.length < (isSuspect ? 1 : this.#options.inFlightMax);
  }

  #flush(): void {
    while (!this.#isClosed && this.#hasRoom) {
      if (this.#first === undefined && this.#waiting.size === 0) return;
      const child = this.#pool.active;
      if (child === undefined) return;
      const batch = this.#nextBatch();
      if (batch.isolate !== undefined && !batch.isFinished) this.#send(child, batch, batch.isolate);
    }
  }

  #nextBatch(): Batch {
    const first = this.#first;
    this.#first = undefined;
    if (first !== undefined) return first;
    const [key, waiting] = this.#waiting.take() ?? [];
    if (key === undefined || waiting === undefined) return new Batch();
    const isNew = waiting.isTurnOfNew && waiting.jobs.size > 0;
    waiting.isTurnOfNew = false;
    const again = isNew ? undefined : waiting.again.shift();
    if (again !== undefined) this.#divertFrom(again);
    const batch = again ?? this.#batchOf(waiting);
    if (waiting.again.length + waiting.jobs.size > 0) this.#waiting.set(key, waiting);
    return batch;
  }

  #batchOf(waiting: Waiting): Batch {
    const { divert } = this.#options;
    const { jobs, isSlow } = waiting;
    const batch = new Batch(divert === undefined || isSlow);
    const jobsMax = isSlow ? SLOW_BATCH_JOBS_MAX : BATCH_JOBS_MAX;
    for (let taken = 0; taken < jobsMax && batch.matchesLeft < BATCH_MATCHES_MAX; taken++) {
      const [, job] = jobs.take() ?? [];
      if (job === undefined) break;
      waiting.matches -= job.values.length;
      // A stop may have come after this job was queued.
      if (divert?.(job) !== true) batch.add(job);
    }
    return batch;
  }

  #divertFrom(batch: Batch): void {
    const { divert } = this.#options;
    if (divert !== undefined) batch.extract(divert);
  }

  #send(child: SandboxChild, batch: Batch, isolate: IsolateSource): void {
    const { message } = isolate;
    let programs = child.isolates.get(message.id);
    if (programs === undefined) {
      child.isolates.set(message.id, (programs = new Set()));
      child.sendLater(`I${JSON.stringify(message)}`);
    }
    for (const { program } of batch.entries) {
      const text: ProgramMessage = { isolate: message.id, id: program.id, source: program.source };
      if (programs.has(text.id)) continue;
      programs.add(text.id);
      child.sendLater(`P${JSON.stringify(text)}`);
    }
    child.send(batch.encode());
    this.#inFlight.push(batch);
    this.#idleTimer?.cancel();
    isolate.batched(batch.matchesLeft);
    if (this.#inFlight.length === 1) this.#watchHead(child);
  }

  #watchHead(child: SandboxChild): void {
    const { charge, clock, divert } = this.#options;
    const [head] = this.#inFlight;
    if (head?.isolate === undefined) {
      child.expectNothing();
      return;
    }
    if (charge !== undefined) this.#head = { sinceMs: clock.monotonicMs(), processorMs: child.processorMs() };
    const { silenceMs, allowanceMs } = silenceOf(head, head.isolate.message, divert === undefined);
    child.expectResponse(silenceMs, allowanceMs);
  }

  /** Processor time if the system reports it, in hundredths of a second: on a busy machine elapsed time exceeds it. */
  #charge(child: SandboxChild, batch: Batch | undefined): void {
    const { charge, clock } = this.#options;
    const head = this.#head;
    this.#head = undefined;
    if (charge === undefined || head === undefined || batch?.isolate === undefined) return;
    const usedMs = (child.processorMs() ?? Infinity) - (head.processorMs ?? 0) + PROCESSOR_TICK_MS;
    charge(batch.isolate.owner, Math.min(clock.monotonicMs() - head.sinceMs, usedMs));
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
    const isExpected = isLast || line.startsWith('+');
    // Where all of it has failed meanwhile, nothing of it is awaited.
    if (!isExpected || (!head.isFinished && !takeResponse(child, head, line.slice(1), isLast))) {
      // A violation of the protocol: the child is compromised.
      child.kill();
      return;
    }
    if (!isLast) return;
    this.#charge(child, this.#inFlight.shift());
    this.#sendNext(child);
  }

  #sendNext(child: SandboxChild): void {
    this.#watchHead(child);
    this.#flush();
    if (this.#inFlight.length + this.#waiting.size > 0 || this.#first !== undefined) return;
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
    this.#charge(child, first);
    const isBloated = !hasEnded && (stop === 'memory' || this.#isBloated(child));
    if (hasEnded || isBloated) for (const batch of this.#inFlight.splice(0)) this.#sendAgain(batch);
    if (isBloated) {
      this.#pool.retire(child);
      this.#options.killed('memory', first?.isolate);
    }
    if (first?.handleStop(stop, isFresh) === true) {
      const isLong = stop === 'late' || first.stops >= BATCH_STOPS_MAX;
      if (isLong && !first.needsFresh) this.#giveWay(first);
      else this.#sendAgain(first);
    }
    this.#sendNext(child);
  }

  /** What has not begun waits for the next turn of its namespace, and what has begun is continued after the next batch. Reconciles do not wait that long. */
  #giveWay(batch: Batch): void {
    const { isolate, nextJob } = batch;
    if (isolate === undefined || nextJob === undefined) return;
    const waiting = this.#waitingFor(isolate);
    if (!waiting.isSlow) for (const [key, job] of waiting.jobs.entries()) this.#postpone(waiting, key, job);
    waiting.isSlow = true;
    waiting.isTurnOfNew = true;
    for (const job of batch.extract(() => true)) this.#enqueue(waiting, job);
    if (batch.isFinished) return;
    nextJob.postpone?.(() => undefined);
    waiting.again.push(batch);
  }

  #sendAgain(batch: Batch): void {
    const { isolate } = batch;
    if (isolate === undefined || batch.isFinished) return;
    if (batch.needsFresh) this.#first = batch;
    else this.#waitingFor(isolate).again.unshift(batch);
  }

  #isBloated(child: SandboxChild): boolean {
    const limit = child.baselineBytes + this.#options.memoryBytes * BLOATED_SHARE;
    return (child.residentBytes() ?? 0) > limit;
  }

  #failEverything(error: EvaluateError): void {
    const batches = [...this.#inFlight, ...(this.#first === undefined ? [] : [this.#first])];
    const jobs: Job[] = [];
    for (let next = this.#waiting.take(); next !== undefined; next = this.#waiting.take()) {
      batches.push(...next[1].again);
      for (const [, job] of next[1].jobs.entries()) jobs.push(job);
    }
    [this.#inFlight, this.#first] = [[], undefined];
    for (const batch of batches) batch.failAll(error);
    for (const job of jobs) failJob(job, error);
  }
}

function isolateKey({ owner, message }: IsolateSource): string {
  return `${owner}/${message.id}`;
}

function namespaceOf(key: string): string {
  return key.slice(0, key.indexOf('/'));
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
/** An isolate may have to be opened. */
const OPENING_MS = 20;
const PROCESSOR_TICK_MS = 10;

interface Silence {
  readonly silenceMs: number;
  /** Applies only before the first response: decoding a long text, opening an isolate and compiling programs does not count against an expression. */
  readonly allowanceMs: number;
}

function silenceOf(
  batch: Batch,
  { expressionTimeoutMs, settings }: IsolateMessage,
  isThrottled: boolean,
): Silence {
  const carefulMs = isThrottled
    ? expressionTimeoutMs * THROTTLED_SILENCE
    : Math.max(expressionTimeoutMs * CAREFUL_SILENCE, CAREFUL_SILENCE_MIN_MS);
  const silenceMs = batch.isCareful
    ? carefulMs + expressionTimeoutMs * batch.starvations
    : expressionTimeoutMs * BATCH_SILENCE;
  return {
    silenceMs: silenceMs + settings.shareMs,
    allowanceMs: batch.sentChars / CHARS_PER_MS + batch.entries.size + OPENING_MS,
  };
}
