/** Requests that are sent to the child together, grouped by program into columns; the responses are split into requests again. A batch
 * tracks its progress, so that the remaining part can be sent again.
 */

import type { ProgramEntry } from './program-entry.ts';
import type { GroupMessage, ContextRun, LeafColumns, ErrorEntry } from './protocol.ts';
import type { EvaluateError, ObjectIdentity } from './types.ts';
import type { JsonValue } from '../../base/json.ts';
import type { Projected } from './projection.ts';
import { acceptResult } from './result.ts';

/** Fails a job that was not sent. */
export function failJob(job: Job, error: EvaluateError): void {
  const values = job.values.map(() => undefined);
  job.complete(values, new Map(values.map((_, index) => [index, error])));
}

/** The progress of a batch. */
export interface Position {
  readonly job: Job;
  /** Index of the match in the job. */
  readonly match: number;
  /** The job started in this batch, or in the part of it that was sent last. */
  readonly isFirstJob: boolean;
}

export class Batch {
  readonly #groups: Group[] = [];
  #groupAt = 0;
  /** Start of the part that was sent last. */
  #sentGroup = 0;
  #sentMatch = 0;
  matches = 0;
  #isCareful = false;
  /** `matchesLeft` when it was last sent to a new process, because earlier matches may have used the memory. */
  retriedFreshAt: number | undefined;
  /** How often it was sent again because the child had too little processor time. */
  starvations = 0;
  /** The rest of its response is ignored. */
  isSpoiled = false;

  add(job: Job): void {
    let group = this.#groups.find(({ entry }) => entry === job.entry);
    if (group === undefined) {
      group = new Group(job.entry);
      this.#groups.push(group);
    }
    group.add(job);
    this.matches += job.values.length;
  }

  /** One call per match, so that a failure is attributed to one match. Free for a single match. */
  get isCareful(): boolean {
    return this.#isCareful || this.matchesLeft === 1;
  }

  set isCareful(isCareful: boolean) {
    this.#isCareful = isCareful;
  }

  get jobs(): readonly Job[] {
    return this.#groups.flatMap(({ jobs }) => jobs);
  }

  get entries(): readonly ProgramEntry[] {
    return this.#groups.map(({ entry }) => entry);
  }

  get isFinished(): boolean {
    return this.#groupAt >= this.#groups.length;
  }

  get matchesLeft(): number {
    let left = 0;
    for (let i = this.#groupAt; i < this.#groups.length; i++) left += this.#groups[i]?.matchesLeft ?? 0;
    return left;
  }

  /** The remaining part as JSON. Throws a RangeError if a value is too deep or the text too long. */
  encode(): string {
    this.#sentGroup = this.#groupAt;
    this.#sentMatch = this.#groups[this.#groupAt]?.done.length ?? 0;
    this.isSpoiled = false;
    const messages: GroupMessage[] = [];
    for (let i = this.#groupAt; i < this.#groups.length; i++) {
      const group = this.#groups[i];
      if (group !== undefined) messages.push(group.toMessage());
    }
    return JSON.stringify(messages);
  }

  /** Adds the next results. `foreign`: not a valid response to the request. `spoiled`: a result made its list undecodable; the remaining
   * part has to be sent again.
   */
  receive(text: string): 'taken' | 'spoiled' | 'foreign' {
    const columns = readResponse(text);
    if (columns === undefined) return 'foreign';
    for (const column of columns) {
      const group = this.#groups[this.#groupAt];
      if (group === undefined) return 'foreign';
      const outcome = this.#receiveColumn(group, column);
      if (outcome !== 'taken') return outcome;
    }
    return 'taken';
  }

  /** The next match; undefined if all are finished. */
  position(): Position | undefined {
    const group = this.#groups[this.#groupAt];
    if (group === undefined) return undefined;
    const at = group.jobAt(group.done.length);
    const [job, start = 0] = [group.jobs[at], group.starts[at]];
    if (job === undefined) return undefined;
    const isFirstJob = this.#groupAt === this.#sentGroup && at === group.jobAt(this.#sentMatch);
    return { job, match: group.done.length - start, isFirstJob };
  }

  /** Fails the next match and the rest of its job. */
  failNext(error: EvaluateError): void {
    const group = this.#groups[this.#groupAt];
    const position = this.position();
    if (group === undefined || position === undefined) return;
    group.failNext(position.job.values.length - position.match, error);
    this.#advance(group);
  }

  /** Removes the jobs that have not begun and that `isWanted` selects. */
  extract(isWanted: (job: Job) => boolean): Job[] {
    const extracted: Job[] = [];
    for (let i = this.#groups.length - 1; i >= this.#groupAt; i--) {
      const group = this.#groups[i];
      if (group === undefined) continue;
      extracted.push(...group.extract(isWanted));
      if (group.matchesLeft > 0) continue;
      this.#groups.splice(i, 1);
      if (group.jobs.length > 0) group.complete();
    }
    return extracted;
  }

  /** Fails all remaining matches. */
  failAll(error: EvaluateError): void {
    while (!this.isFinished) this.failNext(error);
  }

  #receiveColumn(group: Group, column: ResponseColumn): 'taken' | 'spoiled' | 'foreign' {
    if (column.values === undefined) {
      group.entry.needsPlainResponse = true;
      return 'spoiled';
    }
    if (!group.take(column.values, column.undefinedAt, column.errors)) return 'foreign';
    this.#advance(group);
    return 'taken';
  }

  #advance(group: Group): void {
    if (group.matchesLeft > 0) return;
    this.#groupAt++;
    group.complete();
  }
}

/** The matches of one request that have to be evaluated. */
export interface Job {
  readonly entry: ProgramEntry;
  readonly object: ObjectIdentity;
  readonly values: readonly (JsonValue | undefined)[];
  readonly paths: readonly string[] | undefined;
  readonly objects: Projected;
  /** Called once, with one value or error per match. */
  complete(
    values: readonly (JsonValue | undefined)[],
    errors: ReadonlyMap<number, EvaluateError> | undefined,
  ): void;
}

class Group {
  readonly entry: ProgramEntry;
  readonly jobs: Job[] = [];
  /** First match of each job. */
  readonly starts: number[] = [];
  count = 0;
  done: (JsonValue | undefined)[] = [];
  #errors: Map<number, EvaluateError> | undefined;

  constructor(entry: ProgramEntry) {
    this.entry = entry;
  }

  get matchesLeft(): number {
    return this.count - this.done.length;
  }

  add(job: Job): void {
    this.starts.push(this.count);
    this.jobs.push(job);
    this.count += job.values.length;
  }

  /** Removes the jobs that have not begun and that `isWanted` selects. */
  extract(isWanted: (job: Job) => boolean): Job[] {
    const extracted: Job[] = [];
    const begun = this.done.length;
    const kept: Job[] = [];
    for (const [i, job] of this.jobs.entries()) {
      const isUntouched = (this.starts[i] ?? 0) >= begun;
      (isUntouched && isWanted(job) ? extracted : kept).push(job);
    }
    if (extracted.length === 0) return extracted;
    [this.jobs.length, this.starts.length, this.count] = [0, 0, 0];
    for (const job of kept) this.add(job);
    return extracted;
  }

  /** Index of the job that a match belongs to. */
  jobAt(match: number): number {
    let [low, high] = [0, this.jobs.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.starts[middle] ?? 0) <= match) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Takes ownership of the next results. False when there are more than matches left. */
  take(
    values: (JsonValue | undefined)[],
    undefinedAt: readonly number[],
    errors: ResponseColumn['errors'],
  ): boolean {
    if (values.length > this.matchesLeft) return false;
    const base = this.done.length;
    for (const index of undefinedAt) values[index] = undefined;
    for (const error of errors) {
      const [index, found] =
        'error' in error ? [error.index, error.error] : [error[0], this.entry.errorOf(error)];
      values[index] = undefined;
      this.#fail(base + index, found);
    }
    this.#append(values);
    return true;
  }

  failNext(count: number, error: EvaluateError): void {
    for (let i = 0; i < count; i++) this.#fail(this.done.length + i, error);
    this.#append(Array.from({ length: count }, () => undefined));
  }

  /** Reports its results to each job. */
  complete(): void {
    const [only] = this.jobs;
    if (only !== undefined && this.jobs.length === 1) {
      only.complete(this.done, this.#errors);
      return;
    }
    for (let i = 0; i < this.jobs.length; i++) {
      const [job, start] = [this.jobs[i], this.starts[i] ?? 0];
      if (job === undefined) continue;
      const end = start + job.values.length;
      const values = end - start === 1 ? [this.done[start]] : this.done.slice(start, end);
      job.complete(values, this.#errors && errorsBetween(this.#errors, start, end));
    }
  }

  /** The columns of the remaining matches. */
  toMessage(): GroupMessage {
    const { reads, id } = this.entry.program;
    const from = this.done.length;
    const values: (JsonValue | null)[] = [];
    const missing: number[] = [];
    const paths: string[] = [];
    const firstJob = this.jobAt(from);
    for (let i = firstJob; i < this.jobs.length; i++) {
      const [job, start] = [this.jobs[i], this.starts[i] ?? 0];
      if (job === undefined) continue;
      const { length } = job.values;
      const first = from > start ? from - start : 0;
      if (reads.value) {
        for (let m = first; m < length; m++) {
          const value = job.values[m];
          if (value === undefined) missing.push(values.length);
          values.push(value ?? null);
        }
      }
      if (reads.path) for (let m = first; m < length; m++) paths.push(job.paths?.[m] ?? '');
    }
    return [
      id,
      this.matchesLeft,
      reads.value ? values : 0,
      missing.length > 0 ? missing : 0,
      reads.path ? paths : 0,
      this.entry.projection.isEmpty ? 0 : this.#contexts(firstJob, from),
      this.entry.needsPlainResponse ? 1 : 0,
    ];
  }

  #contexts(firstJob: number, from: number): LeafColumns | readonly ContextRun[] {
    const jobs = firstJob === 0 ? this.jobs : this.jobs.slice(firstJob);
    const skipped = from - (this.starts[firstJob] ?? 0);
    const leaves: JsonValue[][] = [];
    let isSingle = true;
    let escapes = false;
    for (const { objects, values } of jobs) {
      const picked = objects.leaves;
      if (picked === undefined) return this.#runs(jobs, skipped);
      for (let k = 0; k < picked.length; k++) (leaves[k] ??= []).push(picked[k] ?? null);
      isSingle &&= values.length === 1;
      escapes ||= this.entry.projection.escapes(objects);
    }
    const counts = isSingle ? 0 : jobs.map(({ values }, i) => values.length - (i === 0 ? skipped : 0));
    return { counts, leaves, escapes: escapes ? 1 : 0 };
  }

  /** If an object does not have one of the read paths, all contexts are sent as objects. */
  #runs(jobs: readonly Job[], skipped: number): readonly ContextRun[] {
    const { projection } = this.entry;
    return jobs.map(({ objects, values }, i) => {
      const { hostObject, virtualObject } = projection.pruned(objects);
      const count = values.length - (i === 0 ? skipped : 0);
      return [count, hostObject, virtualObject, projection.escapes(objects) ? 1 : 0];
    });
  }

  #append(values: (JsonValue | undefined)[]): void {
    if (this.done.length === 0) this.done = values;
    else for (const value of values) this.done.push(value);
  }

  #fail(index: number, error: EvaluateError): void {
    this.#errors ??= new Map();
    this.#errors.set(index, error);
  }
}

function errorsBetween(
  errors: ReadonlyMap<number, EvaluateError>,
  start: number,
  end: number,
): ReadonlyMap<number, EvaluateError> | undefined {
  const found = new Map<number, EvaluateError>();
  for (const [index, error] of errors) {
    if (index >= start && index < end) found.set(index - start, error);
  }
  return found.size > 0 ? found : undefined;
}

interface ResponseColumn {
  /** Undefined if a quote in a result made the list invalid. */
  readonly values: (JsonValue | undefined)[] | undefined;
  readonly undefinedAt: readonly number[];
  readonly errors: readonly (ErrorEntry | EvaluateErrorAt)[];
}

/** An error that the daemon detected. */
interface EvaluateErrorAt {
  readonly index: number;
  readonly error: EvaluateError;
}

const NONE: readonly never[] = [];

/** Undefined: not a valid response. */
export function readResponse(text: string): readonly ResponseColumn[] | undefined {
  const tab = text.indexOf('\t');
  const parsed = parse(text.slice(0, tab));
  if (tab === -1 || !Array.isArray(parsed)) return undefined;
  const columns: ResponseColumn[] = [];
  let at = tab + 1;
  for (const column of parsed as unknown[]) {
    if (!Array.isArray(column) || column.length !== 4) return undefined;
    const [count, content, undefinedAt, errors] = column as [unknown, unknown, unknown, unknown];
    if (!isCount(count) || !isIndices(undefinedAt, count) || !isErrors(errors, count)) return undefined;
    const lists = {
      undefinedAt: undefinedAt === 0 ? NONE : undefinedAt,
      errors: errors === 0 ? NONE : errors,
    };
    if (typeof content === 'number') {
      columns.push({ values: readStrings(text.slice(at, at + content), count), ...lists });
      at += content;
    } else if (Array.isArray(content) && content.length === count) {
      columns.push(readValues(content as JsonValue[], text, lists));
    } else {
      return undefined;
    }
  }
  return at === text.length ? columns : undefined;
}

/** A list of exactly `count` strings. The text has no backslash, so every quote starts or ends a string, and a quote inside a result would
 * yield another number of strings, another type, or invalid JSON.
 */
function readStrings(text: string, count: number): string[] | undefined {
  const strings = parse(text);
  if (!Array.isArray(strings) || strings.length !== count || text.includes('\\')) return undefined;
  for (let i = 0; i < count; i++) if (typeof strings[i] !== 'string') return undefined;
  return strings as string[];
}

function readValues(
  values: (JsonValue | undefined)[],
  text: string,
  lists: { readonly undefinedAt: readonly number[]; readonly errors: readonly ErrorEntry[] },
): ResponseColumn {
  // Lone surrogates are stringified as escapes, so one check of the text replaces a check of every string.
  const mayBeIllFormed = text.includes('\\ud');
  const found: EvaluateErrorAt[] = [];
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    if (value === null || (typeof value !== 'object' && (!mayBeIllFormed || typeof value !== 'string')))
      continue;
    const error = acceptResult(value, mayBeIllFormed);
    if (error !== undefined) found.push({ index, error });
  }
  return {
    values,
    undefinedAt: lists.undefinedAt,
    errors: found.length === 0 ? lists.errors : [...lists.errors, ...found],
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0;
}

function isIndices(value: unknown, count: number): value is readonly number[] | 0 {
  return value === 0 || (Array.isArray(value) && value.every((index) => isIndex(index, count)));
}

function isErrors(value: unknown, count: number): value is readonly ErrorEntry[] | 0 {
  if (value === 0) return true;
  return (
    Array.isArray(value) &&
    value.every((error: unknown) => Array.isArray(error) && error.length === 5 && isIndex(error[0], count))
  );
}

function isIndex(value: unknown, count: number): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < count;
}
