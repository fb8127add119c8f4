/** Splits a request into cached results and matches to evaluate, and merges both again. */

import type { JsonValue } from '../../../base/json.ts';
import { rememberedOf, valueOf } from './responses.ts';
import type { Job } from '../batches/group.ts';
import { RememberedError, type MemoKey, type ProgramMemo } from './memo.ts';
import { NOTHING, type Projected } from './projection.ts';
import type { ProgramEntry } from '../program-entry.ts';
import { INPUT_DEPTH_MAX, isDeeperThan } from './result.ts';
import type { EvaluateError, EvaluateRequest, EvaluateResponse } from '../types.ts';

export interface Lookup {
  readonly hits: number;
  readonly misses: number;
  /** Set if all results were cached. */
  readonly response: EvaluateResponse | undefined;
  /** The matches to evaluate; `done` receives the complete response. */
  job(done: (response: EvaluateResponse) => void): Job;
}

/** Undefined when the inputs are too deep to be sent. */
export function lookUp(entry: ProgramEntry, request: EvaluateRequest): Lookup | undefined {
  const objects = entry.projection.cut(request.context);
  const { reads } = entry.program;
  if (reads.value && isAnyTooDeep(request.values)) return undefined;
  if (
    objects !== NOTHING &&
    isAnyTooDeep([...(objects.leaves ?? []), objects.hostObject, objects.virtualObject])
  ) {
    return undefined;
  }
  if (entry.memo === undefined) return new WholeRequest(entry, request, objects);
  return new PartialRequest(entry, request, objects);
}

function isAnyTooDeep(values: readonly (JsonValue | undefined)[]): boolean {
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (typeof value === 'object' && isDeeperThan(value, INPUT_DEPTH_MAX)) return true;
  }
  return false;
}

class WholeRequest implements Lookup {
  readonly hits = 0;
  readonly misses: number;
  readonly response = undefined;
  readonly #entry: ProgramEntry;
  readonly #request: EvaluateRequest;
  readonly #objects: Projected;

  constructor(entry: ProgramEntry, request: EvaluateRequest, objects: Projected) {
    this.#entry = entry;
    this.#request = request;
    this.#objects = objects;
    this.misses = request.values.length;
  }

  job(done: (response: EvaluateResponse) => void): Job {
    const { object, values, paths } = this.#request;
    const complete: Job['complete'] = (results, errors) => {
      this.#entry.recordOutcome(object, errors);
      done({ values: results, errors });
    };
    return { entry: this.#entry, object, values, paths, objects: this.#objects, complete };
  }
}

class PartialRequest implements Lookup {
  readonly #entry: ProgramEntry;
  readonly #request: EvaluateRequest;
  readonly #objects: Projected;
  readonly #results: (JsonValue | undefined)[] = [];
  #errors: Map<number, EvaluateError> | undefined;
  /** Matches that have to be evaluated, and their keys. */
  readonly #missing: number[] = [];
  readonly #keys: MemoKey[] = [];

  constructor(entry: ProgramEntry, request: EvaluateRequest, objects: Projected) {
    this.#entry = entry;
    this.#request = request;
    this.#objects = objects;
    if (entry.memo !== undefined) this.#lookUpAll(entry.memo);
  }

  get hits(): number {
    return this.#request.values.length - this.#missing.length;
  }

  get misses(): number {
    return this.#missing.length;
  }

  get response(): EvaluateResponse | undefined {
    return this.#missing.length > 0 ? undefined : { values: this.#results, errors: this.#errors };
  }

  job(done: (response: EvaluateResponse) => void): Job {
    const { object, values, paths } = this.#request;
    const isAll = this.#missing.length === values.length;
    return {
      entry: this.#entry,
      object,
      values: isAll ? values : this.#missing.map((index) => values[index]),
      paths: isAll || paths === undefined ? paths : this.#missing.map((index) => paths[index] ?? ''),
      objects: this.#objects,
      complete: (results, errors) => {
        this.#entry.recordOutcome(object, errors);
        this.#remember(results, errors);
        done({ values: this.#results, errors: this.#errors });
      },
    };
  }

  #lookUpAll(memo: ProgramMemo): void {
    const { values, paths } = this.#request;
    const requestKey = memo.requestKey(this.#objects);
    const results = this.#results;
    for (let i = 0; i < values.length; i++) {
      const key = memo.keyOf(requestKey, values[i], paths === undefined ? '' : (paths[i] ?? ''));
      const known = memo.get(key);
      if (known === undefined) {
        this.#missing.push(i);
        this.#keys.push(key);
        results.push(undefined);
      } else if (typeof known === 'string') {
        results.push(known);
      } else if (known instanceof RememberedError) {
        this.#fail(i, known.error);
        results.push(undefined);
      } else {
        results.push(valueOf(known));
      }
    }
  }

  #remember(
    results: readonly (JsonValue | undefined)[],
    errors: ReadonlyMap<number, EvaluateError> | undefined,
  ): void {
    for (let m = 0; m < this.#missing.length; m++) {
      const index = this.#missing[m] ?? 0;
      const error = errors?.get(m);
      this.#results[index] = results[m];
      if (error !== undefined) this.#fail(index, error);
      const key = this.#keys[m];
      const outcome = rememberedOf(results[m], error);
      if (key !== undefined && outcome !== undefined) this.#entry.memo?.set(key, outcome);
    }
  }

  #fail(index: number, error: EvaluateError): void {
    this.#errors ??= new Map();
    this.#errors.set(index, error);
  }
}
