/** Requests that are sent to the child together, in the order of their arrival. A batch tracks its progress, so that the remaining part can be
 * sent again. Responses are validated, because the child is not trusted.
 */

import type { JsonValue } from '../../base/json.ts';
import type { ProgramEntry } from './program-entry.ts';
import type { ErrorMessage, JobMessage, ResultMessage } from './protocol.ts';
import type { EvaluateError, ObjectContext, ObjectIdentity } from './types.ts';

/** The matches of one request that have to be evaluated. */
export interface Job {
  readonly entry: ProgramEntry;
  readonly object: ObjectIdentity;
  readonly values: readonly (JsonValue | undefined)[];
  readonly paths: readonly string[] | undefined;
  /** Only the parts that the program reads. */
  readonly objects: ObjectContext;
  /** Called once, with one value or error per match. */
  complete(
    values: readonly (JsonValue | undefined)[],
    errors: ReadonlyMap<number, EvaluateError> | undefined,
  ): void;
}

/** Fails a job that was not sent. */
export function failJob(job: Job, error: EvaluateError): void {
  const values = job.values.map(() => undefined);
  job.complete(values, new Map(values.map((_, index) => [index, error])));
}

/** The progress of a batch. */
export interface Position {
  readonly job: Job;
  /** The job started in this batch, or in the part of it that was sent last. */
  readonly isFirstJob: boolean;
}

export class Batch {
  /** The programs of all jobs. */
  readonly entries = new Set<ProgramEntry>();
  #jobs: Job[] = [];
  /** The first job that is not finished, and its results so far. */
  #at = 0;
  #values: (JsonValue | undefined)[] = [];
  #errors: Map<number, EvaluateError> | undefined;
  /** The first job of the part that was sent last. */
  #sentAt = 0;
  #matchesLeft = 0;
  #isCareful = false;
  /** `matchesLeft` when it was last sent to a new process, because earlier matches may have used the memory. */
  retriedFreshAt: number | undefined;
  /** How often it was sent again because the child had too little processor time. */
  starvations = 0;

  add(job: Job): void {
    this.#jobs.push(job);
    this.entries.add(job.entry);
    this.#matchesLeft += job.values.length;
  }

  /** One call per match, so that a failure is attributed to one match. Free for a single match. */
  get isCareful(): boolean {
    return this.#isCareful || this.matchesLeft === 1;
  }

  set isCareful(isCareful: boolean) {
    this.#isCareful = isCareful;
  }

  /** The jobs that are not finished. */
  get jobs(): readonly Job[] {
    return this.#jobs.slice(this.#at);
  }

  get isFinished(): boolean {
    return this.#at >= this.#jobs.length;
  }

  get matchesLeft(): number {
    return this.#matchesLeft;
  }

  /** The remaining part as JSON. Throws a RangeError if a value is too deep or the text too long. */
  encode(): string {
    this.#sentAt = this.#at;
    const begun = this.#values.length;
    return JSON.stringify(this.jobs.map((job, i) => messageOf(job, i === 0 ? begun : 0)));
  }

  /** Adds the next results. False if the text is not a valid response to the request. */
  receive(text: string): boolean {
    const results = readResults(text);
    if (results === undefined || results.values.length > this.#matchesLeft) return false;
    const { values, errors } = results;
    const errorAt = new Map(errors.map((error) => [error.index, error]));
    for (let at = 0; at < values.length;) {
      const job = this.#jobs[this.#at];
      if (job === undefined) return true; // failed by a callback
      const count = Math.min(values.length - at, job.values.length - this.#values.length);
      const begun = this.#values.length;
      if (begun === 0) this.#values = values.slice(at, at + count);
      else for (let i = at; i < at + count; i++) this.#values.push(values[i]);
      for (let i = at; errorAt.size > 0 && i < at + count; i++) {
        const error = errorAt.get(i);
        if (error !== undefined) this.#fail(begun + i - at, job.entry.errorOf(error));
      }
      at += count;
      this.#matchesLeft -= count;
      if (this.#values.length === job.values.length) this.#finish(job);
    }
    return true;
  }

  /** The next match; undefined if all are finished. */
  position(): Position | undefined {
    const job = this.#jobs[this.#at];
    return job && { job, isFirstJob: this.#at === this.#sentAt };
  }

  /** Fails the next match and the rest of its job. */
  failNext(error: EvaluateError): void {
    const job = this.#jobs[this.#at];
    if (job === undefined) return;
    this.#matchesLeft -= job.values.length - this.#values.length;
    while (this.#values.length < job.values.length) this.#fail(this.#values.push(undefined) - 1, error);
    this.#finish(job);
  }

  /** Fails all remaining matches. */
  failAll(error: EvaluateError): void {
    while (!this.isFinished) this.failNext(error);
  }

  /** Removes the jobs that have not begun and that `isWanted` selects. */
  extract(isWanted: (job: Job) => boolean): Job[] {
    const firstUntouched = this.#values.length === 0 ? this.#at : this.#at + 1;
    const extracted = this.#jobs.filter((job, i) => i >= firstUntouched && isWanted(job));
    const removed = new Set(extracted);
    this.#jobs = this.#jobs.filter((job) => !removed.has(job));
    for (const { values } of extracted) this.#matchesLeft -= values.length;
    return extracted;
  }

  #fail(index: number, error: EvaluateError): void {
    this.#errors ??= new Map();
    this.#errors.set(index, error);
  }

  #finish(job: Job): void {
    const [values, errors] = [this.#values, this.#errors];
    [this.#values, this.#errors] = [[], undefined];
    this.#at++;
    job.complete(values, errors);
  }
}

/** The matches of a job from an index on. */
function messageOf({ entry, values, paths, objects }: Job, from: number): JobMessage {
  const { id, reads } = entry.program;
  const left = from === 0 ? values : values.slice(from);
  return {
    program: id,
    count: reads.value ? undefined : left.length,
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

/** Undefined: not a valid response. */
export function readResults(text: string): Results | undefined {
  const parsed = parse(text);
  if (!isResult(parsed)) return undefined;
  const { values, undefinedAt = NONE, errors = NONE } = parsed;
  // Lone surrogates are stringified as escapes, so one check of the text replaces a check of every string.
  const refused = refusedValues(values, text.includes('\\ud'));
  const all = refused.length === 0 ? errors : [...errors, ...refused];
  for (const index of undefinedAt) values[index] = undefined;
  for (const { index } of all) values[index] = undefined;
  return { values, errors: all };
}

/** Valid results of consecutive matches. */
interface Results {
  readonly values: readonly (JsonValue | undefined)[];
  readonly errors: readonly ErrorMessage[];
}

const NONE: readonly never[] = [];

function refusedValues(
  values: readonly (JsonValue | undefined)[],
  mayBeIllFormed: boolean,
): readonly ErrorMessage[] {
  const refused: ErrorMessage[] = [];
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    if (typeof value !== 'object' && !mayBeIllFormed) continue;
    const message = acceptResult(value, mayBeIllFormed);
    if (message !== undefined) refused.push({ index, kind: 'result', message, line: 0, column: 0 });
  }
  return refused;
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

/** Freezes a result, because it may be cached and returned again. Returns its problem, if any. */
function acceptResult(result: JsonValue | undefined, mayBeIllFormed: boolean): string | undefined {
  const pending: { value: unknown; depth: number }[] = [{ value: result, depth: 0 }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, depth } = next;
    if (typeof value === 'string') {
      if (mayBeIllFormed && !value.isWellFormed())
        return 'the result contains a lone surrogate, which cannot be encoded as UTF-8';
      continue;
    }
    if (typeof value !== 'object' || value === null) continue;
    if (depth >= RESULT_DEPTH_MAX) return `the result is nested deeper than ${RESULT_DEPTH_MAX} levels`;
    Object.freeze(value);
    for (const [key, member] of Object.entries(value)) {
      if (key === '__proto__') return 'the result has a member named `__proto__`';
      if (mayBeIllFormed) pending.push({ value: key, depth: depth + 1 });
      if (mayBeIllFormed || typeof member === 'object') pending.push({ value: member, depth: depth + 1 });
    }
  }
  return undefined;
}
