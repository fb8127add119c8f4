/** Evaluates batches, with text as input and output, so that one call into the isolate serves many matches. A call returns after a limited
 * time or output size, so that the daemon sees progress. Runs inside the isolate: only imports of types and of files beside it.
 */

import type { ErrorMessage, JobMessage, ResultMessage } from '../protocol.ts';
import { describeThrown, type ErrorPlaces } from './errors.ts';
import { PlainJsonCopier, ResultProblem, type PlainJson } from './plain-json.ts';

/** A program's source, see `generateSource`. */
export type ProgramFunction = (value: unknown, valueExists: boolean, context: unknown) => unknown;

interface ProgramRecord {
  readonly program: ProgramFunction | undefined;
  /** Why there is no program. */
  readonly problem: string;
}

/** A job is evaluated in parts of at most this many matches. The clock is read after as many, to the end of a part. */
const STRIDE_MAX = 32;
const OUTPUT_CHARS_MAX = 2 * 1024 * 1024;
/** A shorter string is within the size limit, whatever its characters are. */
const SMALL_CHARS = 100_000;
const NOT_KNOWN: ProgramRecord = {
  program: undefined,
  problem: 'the program is unknown',
};

/** Dependencies that the hardened realm does not provide. */
interface EvaluatorTools {
  readonly now: () => number;
  readonly vcluster: unknown;
  readonly shareMs: number;
  readonly places: ErrorPlaces;
}

export class BatchEvaluator {
  readonly #records = new Map<number, ProgramRecord>();
  readonly #copier = new PlainJsonCopier();
  readonly #tools: EvaluatorTools;
  #jobs: readonly JobMessage[] = [];
  #jobAt = 0;
  /** The next match of the job. */
  #matchAt = 0;

  constructor(tools: EvaluatorTools) {
    this.#tools = tools;
  }

  define(id: number, record: ProgramRecord): void {
    this.#records.set(id, record);
  }

  forget(id: number): void {
    this.#records.delete(id);
  }

  load(batch: string): void {
    this.#jobs = JSON.parse(batch) as readonly JobMessage[];
    [this.#jobAt, this.#matchAt] = [0, 0];
  }

  /** Evaluates up to `matchesMax` matches. The response starts with `.` when the batch is finished, else with `+`. */
  advance(matchesMax: number): string {
    const { now, shareMs, places } = this.#tools;
    const list = new ResultList(this.#copier, places);
    let [left, stride, unchecked] = [matchesMax, 1, 0];
    let checkedAt = now();
    const end = checkedAt + shareMs;
    for (let job = this.#jobs[this.#jobAt]; job !== undefined && left > 0; job = this.#jobs[this.#jobAt]) {
      const from = this.#matchAt;
      const count = job.values?.length ?? job.count ?? 0;
      this.#evaluate(job, Math.min(count, from + Math.min(stride, left)), list);
      unchecked += this.#matchAt - from;
      left -= this.#matchAt - from;
      if (this.#matchAt >= count) [this.#jobAt, this.#matchAt] = [this.#jobAt + 1, 0];
      if (unchecked < stride) continue;
      const time = now();
      // The clock is read often for slow matches, rarely for fast ones.
      stride = time - checkedAt > 1 ? 1 : Math.min(stride * 2, STRIDE_MAX);
      [checkedAt, unchecked] = [time, 0];
      if (time >= end || list.chars > OUTPUT_CHARS_MAX) left = 0;
    }
    const isFinished = this.#jobAt >= this.#jobs.length;
    if (isFinished) this.#jobs = [];
    return `${isFinished ? '.' : '+'}${JSON.stringify(list.toMessage())}`;
  }

  /** Evaluates the matches of the job up to `end`. */
  #evaluate(job: JobMessage, end: number, list: ResultList): void {
    const { values, missing, paths, hostObject = null, virtualObject = null } = job;
    const { program, problem } = this.#records.get(job.program) ?? NOT_KNOWN;
    // The program can keep a reference to them.
    if (hostObject !== null) freezeDeep(hostObject);
    if (virtualObject !== null) freezeDeep(virtualObject);
    const { vcluster } = this.#tools;
    const contextAt = (path: string): unknown => Object.freeze({ vcluster, hostObject, virtualObject, path });
    const shared = paths === undefined ? contextAt('') : undefined;
    for (let i = this.#matchAt; i < end; i++) {
      if (program === undefined) {
        list.refuse(new ResultProblem('syntax', problem));
        continue;
      }
      try {
        const exists = missing === undefined || !missing.includes(i);
        const value = exists ? (values === undefined ? null : values[i]) : undefined;
        list.accept(program(value, exists, shared ?? contextAt(paths?.[i] ?? '')));
      } catch (thrown) {
        list.fail(thrown);
      }
    }
    this.#matchAt = end;
  }
}

/** The results of consecutive matches: JSON values are kept, all others become errors. */
class ResultList {
  /** Approximate size. */
  chars = 0;
  readonly #copier: PlainJsonCopier;
  readonly #places: ErrorPlaces;
  /** null where there is none. */
  readonly #values: PlainJson[] = [];
  readonly #undefinedAt: number[] = [];
  readonly #errors: ErrorMessage[] = [];

  constructor(copier: PlainJsonCopier, places: ErrorPlaces) {
    this.#copier = copier;
    this.#places = places;
  }

  /** Adds any result. Throws, without adding it, if reading the result throws. */
  accept(result: unknown): void {
    switch (typeof result) {
      case 'string':
        this.chars += result.length;
        this.#add(result.length < SMALL_CHARS ? result : (this.#copier.checkText(result) ?? result));
        return;
      case 'boolean':
        this.#add(result);
        return;
      case 'number':
        this.#add(result - result === 0 ? result : unknownToJson(String(result)));
        return;
      case 'undefined':
        this.#undefinedAt.push(this.#values.length);
        this.#values.push(null);
        return;
      case 'object':
        this.#add(result === null ? null : this.#copier.copy(result));
        this.chars += this.#copier.lastBytes;
        return;
      default:
        this.refuse(unknownToJson(`a ${typeof result}`));
    }
  }

  refuse({ kind, message }: ResultProblem): void {
    this.#errors.push({ index: this.#values.length, kind, message, line: 0, column: 0 });
    this.#values.push(null);
  }

  fail(thrown: unknown): void {
    this.#errors.push(describeThrown(thrown, this.#values.length, this.#places));
    this.#values.push(null);
  }

  toMessage(): ResultMessage {
    return {
      values: this.#values,
      undefinedAt: this.#undefinedAt.length > 0 ? this.#undefinedAt : undefined,
      errors: this.#errors.length > 0 ? this.#errors : undefined,
    };
  }

  #add(result: PlainJson | ResultProblem): void {
    if (result instanceof ResultProblem) this.refuse(result);
    else this.#values.push(result);
  }
}

function unknownToJson(what: string): ResultProblem {
  return new ResultProblem('result', `the result is ${what}, which JSON does not know`);
}

/** Not recursive, because data may have any depth. */
export function freezeDeep(value: unknown): void {
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const next = pending.pop();
    if (typeof next !== 'object' || next === null || Object.isFrozen(next)) continue;
    Object.freeze(next);
    const members: unknown[] = Object.values(next);
    for (let i = 0; i < members.length; i++) pending.push(members[i]);
  }
}
