/**
 * Feeds one child with batches and answers for whatever happens to it. What is asked in one turn goes out together at its end, so an
 * idle daemon adds no waiting and a full queue forms large batches; a second batch is under way while the first is evaluated.
 *
 * When a child is stopped, what was finished stays; the rest is sent again carefully, one call per match, so that the match at fault is
 * known when it happens again. Only that match fails.
 */

import type { Clock, Timer } from '../lib/clock.ts';
import type { Logger } from '../observe/logger.ts';
import { Batch, failJob, type Job, type Position } from './batch.ts';
import { SandboxChild } from './child.ts';
import { oneLine } from './frame.ts';
import type { GuestSource } from './guest-source.ts';
import type { EvaluateError } from './types.ts';
import { Watchdog, type KillReason } from './watchdog.ts';

export interface SchedulerOptions {
  readonly source: GuestSource;
  readonly memoryBytes: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** A batch of so many matches was sent. */
  batched(matches: number): void;
  /** A child was ended, or ended. */
  killed(reason: KillReason | 'exit'): void;
}

/** One more than is evaluated: the child never waits for the daemon. */
const IN_FLIGHT_MAX = 2;
const BATCH_JOBS_MAX = 512;
const BATCH_MATCHES_MAX = 2048;
/** What an expression may overrun its time before the child is ended: the isolate stops most of them by itself. */
const GRACE_MS = 200;
const BLOATED_SHARE = 0.6;
const CHARS_PER_MS = 10_000;
const START_MS_MAX = 10_000;
const START_FAILURES_MAX = 5;
const STARVATIONS_MAX = 5;
/** A spare is kept for the next kill, but does not disturb the start of the daemon. */
const SPARE_DELAY_MS = 2000;

/** Why a batch did not come to its end: the child's own frames, or its end. */
type Stop = 'late' | 'timeout' | 'starved' | 'failed' | 'memory' | 'killed';

export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #watchdog: Watchdog;
  #jobs: Job[] = [];
  #matches = 0;
  /** Sent before anything new. */
  #again: Batch[] = [];
  #inFlight: { batch: Batch; text: string }[] = [];
  #child: SandboxChild | undefined;
  #spare: SandboxChild | undefined;
  #spareTimer: Timer | undefined;
  #startTimer: Timer | undefined;
  #killReason: KillReason | undefined;
  #startFailures = 0;
  #isFlushDue = false;
  #isClosed = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    const { memoryBytes, clock, source } = options;
    const { expressionTimeoutMs, settings } = source.setup;
    const silenceMs = expressionTimeoutMs + settings.shareMs + GRACE_MS;
    this.#watchdog = new Watchdog(clock, { silenceMs, memoryBytes }, (reason) => this.#kill(reason));
  }

  add(job: Job): void {
    if (this.#isClosed) {
      failJob(job, { kind: 'killed', message: 'the sandbox is closed' });
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

  /** Processes that exist now. */
  get pids(): readonly number[] {
    return [this.#child, this.#spare].flatMap((child) => (child === undefined ? [] : [child.pid]));
  }

  forget(id: number): void {
    for (const child of [this.#child, this.#spare]) {
      if (child?.programs.delete(id)) child.sendLater(`D${id}`);
    }
  }

  /** Ends the children; whatever waits fails. */
  close(): void {
    this.#isClosed = true;
    this.#watchdog.stop();
    this.#spareTimer?.cancel();
    this.#startTimer?.cancel();
    const children = [this.#child, this.#spare];
    [this.#child, this.#spare] = [undefined, undefined];
    for (const child of children) child?.kill();
    this.#failEverything({ kind: 'killed', message: 'the sandbox is closed' });
  }

  #flush(): void {
    while (!this.#isClosed && this.#inFlight.length < IN_FLIGHT_MAX) {
      if (this.#again.length === 0 && this.#jobs.length === 0) return;
      const child = (this.#child ??= this.#start());
      if (!child.isReady) return;
      const ready = encode(this.#again.shift() ?? this.#nextBatch());
      if (ready !== undefined) this.#send(child, ready.batch, ready.text);
    }
  }

  #nextBatch(): Batch {
    const batch = new Batch();
    let taken = 0;
    for (
      ;
      taken < this.#jobs.length && taken < BATCH_JOBS_MAX && batch.matches < BATCH_MATCHES_MAX;
      taken++
    ) {
      const job = this.#jobs[taken];
      if (job !== undefined) batch.add(job);
    }
    this.#jobs = taken === this.#jobs.length ? [] : this.#jobs.slice(taken);
    this.#matches -= batch.matches;
    // Careful costs nothing extra here, and the culprit is known at once.
    batch.isCareful = batch.matches === 1;
    return batch;
  }

  #send(child: SandboxChild, batch: Batch, text: string): void {
    for (const { frame } of batch.entries) {
      if (child.programs.has(frame.id)) continue;
      child.programs.add(frame.id);
      child.sendLater(`P${JSON.stringify(frame)}`);
    }
    child.send((batch.isCareful ? 'C' : 'B') + text);
    this.#inFlight.push({ batch, text });
    this.#options.batched(batch.matchesLeft);
    if (this.#inFlight.length === 1) this.#watchHead();
  }

  #watchHead(): void {
    const [head] = this.#inFlight;
    const child = this.#child;
    if (head === undefined || child === undefined) {
      this.#watchdog.rest();
      return;
    }
    const allowanceMs = head.text.length / CHARS_PER_MS + head.batch.entries.length;
    this.#watchdog.expect(child, allowanceMs);
  }

  #receive(child: SandboxChild, frame: string): void {
    const [head] = this.#inFlight;
    if (child !== this.#child || head === undefined) return;
    this.#watchdog.heard();
    const stop = STOPS.get(frame);
    if (stop !== undefined) {
      this.#inFlight.shift();
      if (stop === 'memory' || this.#isBloated(child)) this.#retire(child);
      this.#settle(head.batch, stop, child);
      this.#watchHead();
      this.#flush();
      return;
    }
    const isLast = frame.startsWith('.');
    if (!(isLast || frame.startsWith('+')) || !this.#take(child, head.batch, frame.slice(1), isLast)) {
      // Not the protocol: whoever speaks there is not ours any more.
      child.kill();
      return;
    }
    if (!isLast) return;
    this.#inFlight.shift();
    if (head.batch.isSpoiled) this.#again.unshift(head.batch);
    this.#watchHead();
    this.#planSpare(SPARE_DELAY_MS);
    this.#flush();
  }

  /** False when this cannot be an answer to the batch. */
  #take(child: SandboxChild, batch: Batch, text: string, isLast: boolean): boolean {
    if (batch.isSpoiled) return true;
    const before = batch.matchesLeft;
    const outcome = batch.receive(text);
    child.completed += before - batch.matchesLeft;
    batch.isSpoiled = outcome === 'spoiled';
    return outcome !== 'foreign' && (batch.isSpoiled || isLast === batch.isFinished);
  }

  /** What becomes of a batch that stopped: someone is to blame, or it is sent again. */
  #settle(batch: Batch, stop: Stop, child: SandboxChild): void {
    const position = batch.position();
    if (position === undefined) return;
    if (stop === 'starved' && ++batch.starvations <= STARVATIONS_MAX) {
      batch.isCareful = true;
    } else if (stop === 'late') {
      // Whoever had all of the time to itself has had enough; others begin anew.
      if (position.isFirstJob) this.#blame(batch, position, 'late');
    } else if (!batch.isCareful) {
      batch.isCareful = true;
    } else if (stop === 'memory' && child.completed > 0 && !batch.isRetriedFresh) {
      // The memory may be that of those before: on a process of its own it is clear.
      batch.isRetriedFresh = true;
    } else {
      this.#blame(batch, position, stop);
      batch.isCareful = batch.matchesLeft === 1;
    }
    if (!batch.isFinished) this.#again.unshift(batch);
  }

  #blame(batch: Batch, position: Position, stop: Stop): void {
    const { job, match } = position;
    const { entry } = job;
    const error = { kind: KINDS[stop], message: this.#explain(stop) };
    const input = entry.inputKey(job.values[match], job.paths?.[match] ?? '', job.objects);
    const isQuarantined = stop !== 'failed' && entry.quarantine.strike(input);
    const fields = { expression: oneLine(entry.program.expression, 200), kind: error.kind };
    this.#options.logger.warn(fields, 'an expression was stopped');
    if (isQuarantined)
      this.#options.logger.warn(fields, 'an expression is not run for a while: too many inputs stopped it');
    batch.failNext(error, stop === 'late' ? 'job' : 'match');
  }

  #explain(stop: Stop): string {
    const { expressionTimeoutMs, batchTimeoutMs } = this.#options.source.setup;
    switch (stop) {
      case 'late':
        return `all matches of one object together took longer than ${batchTimeoutMs} ms`;
      case 'timeout':
      case 'starved':
        return `took longer than ${expressionTimeoutMs} ms`;
      case 'memory':
        return 'needed more memory than the sandbox has';
      case 'killed':
        return `did not stop after ${expressionTimeoutMs} ms, so its process was ended`;
      case 'failed':
        return 'the sandbox could not run it';
      default:
        return stop satisfies never;
    }
  }

  #kill(reason: KillReason): void {
    this.#killReason = reason;
    this.#child?.kill();
  }

  /** After a stop there may be memory that never comes back; the next expression is not to pay for it. */
  #isBloated(child: SandboxChild): boolean {
    const bytes = child.residentBytes() ?? 0;
    return bytes > child.baselineBytes + this.#options.memoryBytes * BLOATED_SHARE;
  }

  /** Ended or about to: no more work for it. */
  #retire(child: SandboxChild): void {
    if (child !== this.#child) return;
    child.kill();
    this.#options.killed(this.#killReason ?? 'memory');
    this.#replace();
  }

  #ended(child: SandboxChild, how: string): void {
    if (child === this.#spare) this.#spare = undefined;
    if (child !== this.#child || this.#isClosed) return;
    const reason = this.#killReason ?? 'exit';
    const fields = { pid: child.pid, reason, how, stderr: oneLine(child.lastWords, 500) };
    this.#options.logger.warn(fields, 'the sandbox process was ended');
    this.#options.killed(reason);
    if (!child.isReady) {
      this.#startFailed(how);
      return;
    }
    const [head, ...rest] = this.#inFlight;
    this.#inFlight = [];
    this.#again.unshift(...rest.map(({ batch }) => batch));
    this.#replace();
    if (head !== undefined) this.#settle(head.batch, reason === 'memory' ? 'memory' : 'killed', child);
    this.#flush();
  }

  /** The spare takes over, and a new spare is started. */
  #replace(): void {
    this.#watchdog.rest();
    this.#killReason = undefined;
    this.#again.unshift(...this.#inFlight.splice(0).map(({ batch }) => batch));
    this.#child = this.#spare;
    this.#spare = undefined;
    // Where one had to go another may soon.
    this.#planSpare(0);
  }

  #start(): SandboxChild {
    this.#startTimer?.cancel();
    const child = this.#spawn();
    this.#startTimer = this.#options.clock.schedule(START_MS_MAX, () => {
      if (!child.isReady) child.kill();
    });
    return child;
  }

  #startFailed(how: string): void {
    this.#child = undefined;
    this.#startFailures += 1;
    if (this.#startFailures >= START_FAILURES_MAX) {
      this.#startFailures = 0;
      this.#failEverything({
        kind: 'killed',
        message: `the sandbox process does not start: ${oneLine(how, 100)}`,
      });
      return;
    }
    this.#flush();
  }

  #planSpare(delayMs: number): void {
    if (this.#spare !== undefined) return;
    if (this.#spareTimer !== undefined && delayMs > 0) return;
    this.#spareTimer?.cancel();
    this.#spareTimer = this.#options.clock.schedule(delayMs, () => {
      this.#spareTimer = undefined;
      if (!this.#isClosed && this.#child !== undefined) this.#spare ??= this.#spawn();
    });
  }

  #spawn(): SandboxChild {
    return new SandboxChild(this.#options.source, {
      ready: (child) => {
        this.#startFailures = 0;
        if (child === this.#child) this.#flush();
      },
      frame: (child, text) => this.#receive(child, text),
      ended: (child, how) => this.#ended(child, how),
    });
  }

  #failEverything(error: EvaluateError): void {
    const batches = [...this.#inFlight.map(({ batch }) => batch), ...this.#again];
    const jobs = this.#jobs;
    [this.#inFlight, this.#again, this.#jobs, this.#matches] = [[], [], [], 0];
    for (const batch of batches) batch.failAll(error);
    for (const job of jobs) failJob(job, error);
  }
}

const STOPS: ReadonlyMap<string, Stop> = new Map([
  ['L', 'late'],
  ['T', 'timeout'],
  ['S', 'starved'],
  ['X', 'failed'],
  ['M', 'memory'],
]);

const KINDS: Readonly<Record<Stop, EvaluateError['kind']>> = {
  late: 'timeout',
  timeout: 'timeout',
  starved: 'timeout',
  memory: 'memory',
  killed: 'killed',
  failed: 'killed',
};

/** The batch and its text, without jobs that cannot be written down; undefined when none can. */
function encode(batch: Batch): { batch: Batch; text: string } | undefined {
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
  rest.isCareful = rest.matches === 1;
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
