/** The cache of results. A result is a function of the inputs that the program reads, so these form the key. Limited in bytes over all
 * programs. Timeouts and kills are never cached.
 */

import { LRUCache } from 'lru-cache';
import type { JsonValue } from '../../base/json.ts';
import type { EvaluateError, EvaluateRequest, EvaluateResponse, ObjectContext, ReadSet } from './types.ts';

/** The result of one match. */
export interface Outcome {
  readonly value: JsonValue | undefined;
  readonly error: EvaluateError | undefined;
}

/** A request, split into cached results and matches that have to be evaluated. */
export interface Lookup {
  readonly values: (JsonValue | undefined)[];
  readonly errors: Map<number, EvaluateError> | undefined;
  /** Matches that have to be evaluated, and their keys. */
  readonly missing: readonly number[];
  readonly keys: readonly string[];
}

/** Overhead of an entry: two slots in a Map, five in the cache's arrays, two string headers, the outcome. */
const ENTRY_BYTES = 200;
const CHARACTER_BYTES = 2;

/** All cached results of one sandbox. */
export class Memo {
  readonly #bytesMax: number;
  readonly #programs = new Set<ProgramMemo>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Estimated size of keys and results. */
  get bytes(): number {
    return this.#bytes;
  }

  open(reads: ReadSet): ProgramMemo {
    const memo = new ProgramMemo(reads, this.#bytesMax, (bytes) => this.#account(bytes));
    this.#programs.add(memo);
    return memo;
  }

  close(memo: ProgramMemo): void {
    if (this.#programs.delete(memo)) this.#bytes -= memo.bytes;
  }

  /** One program may use the whole limit until others need space; then the largest one evicts entries. */
  #account(bytes: number): void {
    this.#bytes += bytes;
    while (this.#bytes > this.#bytesMax) {
      let largest: ProgramMemo | undefined;
      for (const memo of this.#programs) if (memo.bytes > (largest?.bytes ?? 0)) largest = memo;
      if (largest === undefined) return;
      this.#bytes -= largest.dropOldest();
    }
  }
}

/** Cached results of one program. */
export class ProgramMemo {
  readonly #account: (bytes: number) => void;
  readonly #cache: LRUCache<string, Outcome>;
  readonly #reads: ReadSet;
  readonly #isKeyedByValue: boolean;

  constructor(reads: ReadSet, bytesMax: number, account: (bytes: number) => void) {
    this.#account = account;
    this.#reads = reads;
    this.#isKeyedByValue = reads.value && !reads.path && !readsObjects(reads);
    this.#cache = new LRUCache({ maxSize: bytesMax });
  }

  get bytes(): number {
    return this.#cache.calculatedSize;
  }

  lookUp({ values, paths }: EvaluateRequest, objects: ObjectContext): Lookup {
    const objectsKey = this.objectsKey(objects);
    const found: (JsonValue | undefined)[] = [];
    let errors: Map<number, EvaluateError> | undefined;
    const missing: number[] = [];
    const keys: string[] = [];
    for (let i = 0; i < values.length; i++) {
      const key = this.keyOf(objectsKey, values[i], paths?.[i] ?? '');
      const known = this.get(key);
      found.push(known?.value);
      if (known === undefined) {
        missing.push(i);
        keys.push(key);
      } else if (known.error !== undefined) {
        errors ??= new Map();
        errors.set(i, known.error);
      }
    }
    return { values: found, errors, missing, keys };
  }

  /** Adds the results of the missing matches to the cached ones, and to the cache. */
  complete({ values, errors, missing, keys }: Lookup, evaluated: EvaluateResponse): EvaluateResponse {
    const all = new Map(errors);
    for (let m = 0; m < missing.length; m++) {
      const index = missing[m] ?? 0;
      const outcome = { value: evaluated.values[m], error: evaluated.errors?.get(m) };
      values[index] = outcome.value;
      if (outcome.error !== undefined) all.set(index, outcome.error);
      const key = keys[m];
      if (key !== undefined && isDeterministic(outcome.error)) this.set(key, outcome);
    }
    return { values, errors: all.size === 0 ? undefined : all };
  }

  /** The part of the key that all matches of one request share. */
  objectsKey({ hostObject, virtualObject }: ObjectContext): string {
    return readsObjects(this.#reads) ? JSON.stringify([hostObject, virtualObject]) : '';
  }

  keyOf(objectsKey: string, value: JsonValue | undefined, path: string): string {
    if (this.#isKeyedByValue) {
      // The value itself if possible: no text is built, and the hash of the string is already computed.
      return typeof value === 'string' && value.charCodeAt(0) !== 0 ? value : `\0${JSON.stringify(value)}`;
    }
    const valueKey = this.#reads.value ? JSON.stringify(value) : '';
    // JSON has no line breaks, so only the path, which is last, may contain one.
    return `${objectsKey}\n${valueKey}\n${this.#reads.path ? path : ''}`;
  }

  get(key: string): Outcome | undefined {
    return this.#cache.get(key);
  }

  set(key: string, outcome: Outcome): void {
    const before = this.#cache.calculatedSize;
    const characters = key.length + charactersOf(outcome);
    this.#cache.set(key, outcome, { size: ENTRY_BYTES + characters * CHARACTER_BYTES });
    this.#account(this.#cache.calculatedSize - before);
  }

  /** Returns the freed bytes. */
  dropOldest(): number {
    const before = this.#cache.calculatedSize;
    this.#cache.pop();
    return before - this.#cache.calculatedSize;
  }
}

/** False if the outcome must not be cached, because it does not depend on the inputs alone. */
export function isDeterministic(error: EvaluateError | undefined): boolean {
  return error?.kind !== 'timeout' && error?.kind !== 'memory' && error?.kind !== 'killed';
}

function readsObjects(reads: ReadSet): boolean {
  return reads.hostObject.length > 0 || reads.virtualObject.length > 0;
}

function charactersOf({ value, error }: Outcome): number {
  if (error !== undefined) return error.message.length + 60;
  if (typeof value === 'string') return value.length;
  return typeof value === 'object' && value !== null ? JSON.stringify(value).length * 4 : 0;
}
