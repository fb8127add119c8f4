/** Requests that are sent to the child together, in the order of their arrival, and its responses, which are validated, because the child is not
 * trusted. A batch tracks its progress: after a stop, finished matches keep their results, and the rest is sent again or fails. */

import type { Clock } from '../base/clock.ts';
import { oneLine } from '../base/excerpt.ts';
import type { JsonValue } from '../base/json.ts';
import type { Logger } from '../base/logger.ts';
import type { ProgramEntry } from './program-entry.ts';
import type { ErrorMessage, IsolateMessage, JobMessage, ResultMessage } from './protocol.ts';
import type { EvaluateError, EvaluateRequest, ObjectContext, ObjectIdentity, Program } from './types.ts';

/** The matches of one request that have to be evaluated. */
export interface Job {
  readonly isolate: IsolateSource;
  readonly entry: ProgramEntry;
  readonly object: ObjectIdentity;
  readonly values: readonly (JsonValue | undefined)[];
  readonly paths: readonly string[] | undefined;
  /** Only the parts that the program reads. */
  readonly objects: ObjectContext;
  readonly postpone?: EvaluateRequest['postpone'] | undefined;
  /** Called once, with one value or error per match. */
  complete(
    values: readonly (JsonValue | undefined)[],
    errors: ReadonlyMap<number, EvaluateError> | undefined,
  ): void;
}

/** Where the programs of one sandbox run: in an isolate of their own in each process that evaluates them. */
export interface IsolateSource {
  readonly message: IsolateMessage;
  /** Owners take turns; '' if there is only one. */
  readonly owner: string;
  /** Of the main process that evaluates them; an owner always has the same one. */
  readonly main: string;
  readonly clock: Clock;
  readonly logger: Logger;
  batched(matches: number): void;
  killed(reason: KillReason): void;
}

export type KillReason = 'timeout' | 'memory' | 'exit';

export function failJob(job: Job, error: EvaluateError): void {
  const values = job.values.map(() => undefined);
  job.complete(values, new Map(values.map((_, index) => [index, error])));
}

export type Stop =
  /** The call timed out. */
  | 'timeout'
  /** The same, but the child got too little processor time to attribute it to an expression. */
  | 'starved'
  /** The batch has had its turn; of an object, all of its matches together took too long. */
  | 'late'
  /** The call failed for a reason outside the expression. */
  | 'failed'
  /** The isolate or the child exceeded its memory limit. */
  | 'memory'
  /** The child did not respond and was killed. */
  | 'killed'
  /** The child ended for an unknown reason. */
  | 'lost';

const STARVATIONS_MAX = 5;
const KIND_OF_STOP: Readonly<Record<Stop, EvaluateError['kind']>> = {
  late: 'timeout',
  timeout: 'timeout',
  starved: 'timeout',
  memory: 'memory',
  killed: 'killed',
  lost: 'killed',
  failed: 'killed',
};

export class Batch {
  readonly entries = new Set<ProgramEntry>();
  /** Length of the message that was sent last. */
  sentChars = 0;
  /** How often it was sent again because the child had too little processor time. */
  starvations = 0;
  /** Matches that were stopped. */
  stops = 0;
  #isCareful: boolean;
  #jobs: { readonly job: Job; readonly text: string }[] = [];
  #matchesLeft = 0;
  /** The first job that is not finished, and its results so far. */
  #at = 0;
  #values: (JsonValue | undefined)[] = [];
  #errors: Map<number, EvaluateError> | undefined;
  /** The first job of the part that was sent last. */
  #sentAt = 0;
  /** That the first job has had to itself, without being finished. */
  #turns = 0;
  /** `matchesLeft` when it was last sent to a new process, because earlier matches may have used the memory. */
  #retriedFreshAt: number | undefined;
  /** It is to be the first in a new process. */
  #needsFresh = false;

  /** `isCareful`: one call per match, so that a failure is attributed to one match. */
  constructor(isCareful = false) {
    this.#isCareful = isCareful;
  }

  /** Free for a single match. */
  get isCareful(): boolean {
    return this.#isCareful || this.#matchesLeft === 1;
  }

  /** A match of it may take long: no other batch waits behind it. */
  get isSuspect(): boolean {
    return this.#isCareful;
  }

  get needsFresh(): boolean {
    return this.#needsFresh;
  }

  /** All jobs of a batch have the same. Undefined: it is empty. */
  get isolate(): IsolateSource | undefined {
    return this.#jobs[0]?.job.isolate;
  }

  get isFinished(): boolean {
    return this.#at >= this.#jobs.length;
  }

  get matchesLeft(): number {
    return this.#matchesLeft;
  }

  get nextJob(): Job | undefined {
    return this.#jobs[this.#at]?.job;
  }

  /** Fails the job instead if its values are too large for a text, or too deep; in a later turn, because its callback may add jobs. */
  add(job: Job): void {
    const text = encode(job);
    if (text === undefined) {
      const message = 'the value is too large or too deep for the sandbox';
      setImmediate(() => failJob(job, { kind: 'runtime', message }));
      return;
    }
    this.#jobs.push({ job, text });
    this.entries.add(job.entry);
    this.#matchesLeft += job.values.length;
  }

  encode(): string {
    this.#sentAt = this.#at;
    this.#needsFresh = false;
    const begun = this.#values.length;
    const texts = this.#jobs
      .slice(this.#at)
      .map(({ job, text }, i) => (i === 0 && begun > 0 ? JSON.stringify(messageOf(job, begun)) : text));
    const mode = this.isCareful ? `C${this.starvations}` : 'B';
    const text = `${mode}${this.isolate?.message.id}[${texts.join(',')}]`;
    this.sentChars = text.length;
    return text;
  }

  /** False if the text is not a valid response to the request. */
  receive(text: string): boolean {
    const results = readResults(text);
    if (results === undefined || results.values.length > this.#matchesLeft) return false;
    const { values, errors } = results;
    const errorAt = new Map(errors.map((error) => [error.index, error]));
    for (let at = 0; at < values.length;) {
      const job = this.nextJob;
      if (job === undefined) return true; // failed by a callback
      const begun = this.#values.length;
      const count = Math.min(values.length - at, job.values.length - begun);
      if (begun === 0) this.#values = values.slice(at, at + count);
      else for (let i = at; i < at + count; i++) this.#values.push(values[i]);
      for (let i = at; errorAt.size > 0 && i < at + count; i++) {
        const error = errorAt.get(i);
        if (error !== undefined) this.#fail(begun + i - at, toEvaluateError(error, job.entry.program));
      }
      at += count;
      this.#matchesLeft -= count;
      if (this.#values.length === job.values.length) this.#finish(job);
    }
    return true;
  }

  /** If the cause is unknown, the rest is to be sent again with one call per match; if one match is the cause, it and the rest of its object fail.
   * `isFresh`: the child had evaluated nothing before. True: a part has to be sent again. */
  handleStop(stop: Stop, isFresh: boolean): boolean {
    const job = this.nextJob;
    if (job === undefined) return false;
    if (stop === 'starved' && this.isCareful && this.starvations < STARVATIONS_MAX) {
      this.starvations += 1;
    } else if (stop === 'late') {
      const { batchTimeoutMs, turnMs } = job.isolate.message;
      // Only the first object can have had the whole turn.
      this.#turns = this.#at === this.#sentAt ? this.#turns + 1 : 0;
      if (this.#turns * turnMs >= batchTimeoutMs) this.#failNext(recordStop(job, stop));
    } else if (!this.isCareful) {
      this.#isCareful = true;
    } else if (isAmbiguous(stop, isFresh) && this.#retriedFreshAt !== this.#matchesLeft) {
      this.#retriedFreshAt = this.#matchesLeft;
      this.#needsFresh = true;
    } else {
      // The rest stays in careful mode, because a stop often affects several matches, and each search may cost a process. The patch fails
      // on the object in any case, so its other matches are not evaluated and do not delay other objects.
      this.#failNext(recordStop(job, stop));
      this.stops += 1;
      this.starvations = 0;
    }
    return !this.isFinished;
  }

  failAll(error: EvaluateError): void {
    while (!this.isFinished) this.#failNext(error);
  }

  /** Removes the jobs that have not begun and that `isWanted` selects. */
  extract(isWanted: (job: Job) => boolean): Job[] {
    const firstUntouched = this.#values.length === 0 ? this.#at : this.#at + 1;
    const extracted = this.#jobs.filter(({ job }, i) => i >= firstUntouched && isWanted(job));
    this.#jobs = this.#jobs.filter((each) => !extracted.includes(each));
    for (const { job } of extracted) this.#matchesLeft -= job.values.length;
    return extracted.map(({ job }) => job);
  }

  /** Fails the next match and the rest of its job. */
  #failNext(error: EvaluateError): void {
    const job = this.nextJob;
    if (job === undefined) return;
    this.#matchesLeft -= job.values.length - this.#values.length;
    while (this.#values.length < job.values.length) this.#fail(this.#values.push(undefined) - 1, error);
    this.#finish(job);
  }

  #fail(index: number, error: EvaluateError): void {
    this.#errors ??= new Map();
    this.#errors.set(index, error);
  }

  #finish(job: Job): void {
    const [values, errors] = [this.#values, this.#errors];
    [this.#values, this.#errors] = [[], undefined];
    this.#at++;
    this.#turns = 0;
    job.complete(values, errors);
  }
}

function encode(job: Job): string | undefined {
  try {
    return JSON.stringify(messageOf(job, 0));
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function messageOf({ entry, values, paths, objects }: Job, from: number): JobMessage {
  const { id, reads } = entry.program;
  const left = from === 0 ? values : values.slice(from);
  return {
    program: id,
    count: left.length,
    values: reads.value ? left : undefined,
    missing: reads.value && left.includes(undefined) ? indicesOfUndefined(left) : undefined,
    paths: reads.path ? paths?.slice(from) : undefined,
    hostObject: objects.hostObject ?? undefined,
    virtualObject: objects.virtualObject ?? undefined,
  };
}

function indicesOfUndefined(values: readonly (JsonValue | undefined)[]): readonly number[] {
  return [...values.keys()].filter((index) => values[index] === undefined);
}

/** Earlier matches may have used the memory, or the system may have killed the process. A retry in a new process decides. */
function isAmbiguous(stop: Stop, isFresh: boolean): boolean {
  return stop === 'lost' || (stop === 'memory' && !isFresh);
}

/** Puts the object of the job into quarantine. Returns the error for its matches. */
function recordStop({ isolate, entry, object }: Job, stop: Stop): EvaluateError {
  const { clock, logger, message } = isolate;
  const kind = KIND_OF_STOP[stop];
  const retryAfterMs = Math.max(0, entry.quarantine.recordStop(object) - clock.now());
  const expression = oneLine(entry.program.expression, 200);
  logger.warn({ expression, ...object, kind, retryAfterMs }, 'an expression was stopped');
  return { kind, message: explain(stop, message), retryAfterMs };
}

function explain(stop: Stop, { expressionTimeoutMs, batchTimeoutMs }: IsolateMessage): string {
  switch (stop) {
    case 'late':
      return `all matches of one object together took longer than ${batchTimeoutMs} ms`;
    case 'timeout':
    case 'starved':
      return `took longer than ${expressionTimeoutMs} ms`;
    case 'memory':
      return 'exceeded the memory limit of the sandbox';
    case 'killed':
      return `did not stop after ${expressionTimeoutMs} ms, so its process was ended`;
    case 'lost':
      return 'ended the process that it ran in';
    case 'failed':
      return 'the sandbox could not run it';
    default:
      return stop satisfies never;
  }
}

export function readResults(text: string): Results | undefined {
  const parsed = parse(text);
  if (!isResult(parsed)) return undefined;
  const { values, undefinedAt = [], errors = [] } = parsed;
  const all = [...errors];
  for (let index = 0; index < values.length; index++) {
    const message = acceptResult(values[index]);
    if (message !== undefined) all.push({ index, kind: 'result', message, line: 0, column: 0 });
  }
  for (const index of undefinedAt) values[index] = undefined;
  for (const { index } of all) values[index] = undefined;
  return { values, errors: all };
}

/** Valid results of consecutive matches. */
interface Results {
  readonly values: readonly (JsonValue | undefined)[];
  readonly errors: readonly ErrorMessage[];
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isResult(
  value: unknown,
): value is Omit<ResultMessage, 'values'> & { readonly values: (JsonValue | undefined)[] } {
  if (typeof value !== 'object' || value === null) return false;
  const { values, undefinedAt, errors } = value as Record<string, unknown>; // of any type
  if (!Array.isArray(values) || values.length === 0) return false;
  const isIndex = (index: unknown): boolean =>
    typeof index === 'number' && Number.isInteger(index) && index >= 0 && index < values.length;
  const isError = (error: unknown): boolean => {
    if (typeof error !== 'object' || error === null) return false;
    const { index, message } = error as Partial<Record<string, unknown>>; // of any type
    return isIndex(index) && typeof message === 'string';
  };
  return (
    (undefinedAt === undefined || (Array.isArray(undefinedAt) && undefinedAt.every(isIndex))) &&
    (errors === undefined || (Array.isArray(errors) && errors.every(isError)))
  );
}

const RESULT_DEPTH_MAX = 64;
const ILL_FORMED = 'the result contains a lone surrogate, which cannot be encoded as UTF-8';

/** Freezes a result, because it may be cached and returned again. Returns its problem, if any. */
function acceptResult(result: JsonValue | undefined): string | undefined {
  if (typeof result === 'string') return result.isWellFormed() ? undefined : ILL_FORMED;
  if (typeof result !== 'object' || result === null) return undefined;
  const pending: { value: object; depth: number }[] = [{ value: result, depth: 1 }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, depth } = next;
    if (depth > RESULT_DEPTH_MAX) return `the result is nested deeper than ${RESULT_DEPTH_MAX} levels`;
    Object.freeze(value);
    for (const [key, member] of Object.entries(value) as [string, unknown][]) {
      if (key === '__proto__') return 'the result has a member named `__proto__`';
      if (!key.isWellFormed() || (typeof member === 'string' && !member.isWellFormed())) return ILL_FORMED;
      if (typeof member === 'object' && member !== null) pending.push({ value: member, depth: depth + 1 });
    }
  }
  return undefined;
}

const KINDS: ReadonlySet<string> = new Set(['runtime', 'result', 'result-size', 'syntax']);
/** Longest message that an expression can put into a log line. */
const MESSAGE_CHARS_MAX = 300;

/** Validated, on one line, with the position in the user's expression. */
function toEvaluateError(
  { kind, message, line, column }: ErrorMessage,
  { mappings }: Program,
): EvaluateError {
  const mapping = mappings.findLast((each) => each.line === line && each.column <= column);
  return {
    kind: KINDS.has(kind) ? kind : 'runtime',
    message: oneLine(message, MESSAGE_CHARS_MAX),
    ...(mapping && { line: mapping.toLine, column: mapping.toColumn }),
  };
}
