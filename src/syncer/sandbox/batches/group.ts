/** The part of a batch that one program evaluates: the columns of several requests one after the other. */

import type { JsonValue } from '../../../base/json.ts';
import type { ResponseColumn } from '../results/response-text.ts';
import type { ProgramEntry } from '../program-entry.ts';
import type { Projected } from '../results/projection.ts';
import type { ContextRun, GroupMessage, LeafColumns } from '../process/protocol.ts';
import type { EvaluateError, ObjectIdentity } from '../types.ts';

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

export class Group {
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
