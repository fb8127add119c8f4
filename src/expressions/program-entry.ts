/** What the daemon knows of a program: its cached results, and its quarantine. A result is a function of the inputs that the program reads, so these
 * are the key of the cache, which is limited in bytes over all programs. */

import { LRUCache } from 'lru-cache';
import type { Clock } from '../base/clock.ts';
import { isJsonObject, ownValue, setOwn, type JsonObject, type JsonValue } from '../base/json.ts';
import { Quarantine } from './quarantine.ts';
import type {
  EvaluateError,
  EvaluateRequest,
  EvaluateResponse,
  ObjectContext,
  ObjectIdentity,
  Program,
  ReadSet,
} from './types.ts';

export const NO_OBJECTS: ObjectContext = { hostObject: null, virtualObject: null };

export class ProgramEntry {
  readonly program: Program;
  readonly quarantine: Quarantine;
  /** Undefined: results are not cached. */
  readonly memo: ProgramMemo | undefined;
  /** It reads only the configuration, so one evaluation serves all matches. */
  readonly isConstant: boolean;
  /** Its outcome in that case, once it is known; does not count against the limit of the cache. */
  constant: Outcome | undefined;
  readonly #readsObjects: boolean;

  constructor(program: Program, memo: Memo | undefined, clock: Clock) {
    const { reads } = program;
    this.program = program;
    this.quarantine = new Quarantine(clock);
    this.memo = memo?.open(reads);
    this.#readsObjects = readsObjects(reads);
    this.isConstant = !reads.value && !reads.path && !this.#readsObjects;
    this.constant = program.constant && { value: program.constant.value, error: undefined };
  }

  /** The part of the context that is sent, and that is part of the cache key; null if an object does not exist or is not read. */
  readObjects({ hostObject, virtualObject }: ObjectContext): ObjectContext {
    if (!this.#readsObjects) return NO_OBJECTS;
    const { reads } = this.program;
    return {
      hostObject: prune(hostObject, reads.hostObject),
      virtualObject: prune(virtualObject, reads.virtualObject),
    };
  }

  /** An error thrown by the expression counts as success for the quarantine. */
  recordOutcome(object: ObjectIdentity, errors: EvaluateResponse['errors']): void {
    if (errors !== undefined) for (const error of errors.values()) if (!isDeterministic(error)) return;
    this.quarantine.recordSuccess(object);
  }
}

export interface Outcome {
  readonly value: JsonValue | undefined;
  readonly error: EvaluateError | undefined;
}

/** False if the outcome must not be cached, because it does not depend on the inputs alone. */
export function isDeterministic(error: EvaluateError | undefined): boolean {
  return error?.kind !== 'timeout' && error?.kind !== 'memory' && error?.kind !== 'killed';
}

interface Lookup {
  readonly known: EvaluateResponse;
  /** Matches that have to be evaluated, and their keys. */
  readonly missing: readonly number[];
  readonly keys: readonly string[];
}

export class Memo {
  readonly #bytesMax: number;
  readonly #programs = new Set<ProgramMemo>();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Estimated size of keys and results. */
  get bytes(): number {
    let sum = 0;
    for (const { bytes } of this.#programs) sum += bytes;
    return sum;
  }

  open(reads: ReadSet): ProgramMemo {
    const memo = new ProgramMemo(reads, this.#bytesMax, () => this.#evict());
    this.#programs.add(memo);
    return memo;
  }

  close(memo: ProgramMemo): void {
    this.#programs.delete(memo);
  }

  /** One program may use the whole limit until others need space; then the largest one evicts entries. */
  #evict(): void {
    for (let excess = this.bytes - this.#bytesMax; excess > 0; excess = this.bytes - this.#bytesMax) {
      const [largest] = [...this.#programs].sort((a, b) => b.bytes - a.bytes);
      largest?.dropOldest();
    }
  }
}

/** Overhead of an entry: two slots in a Map, five in the cache's arrays, two string headers, the outcome. */
const ENTRY_BYTES = 200;
const CHARACTER_BYTES = 2;

class ProgramMemo {
  readonly #cache: LRUCache<string, Outcome>;
  readonly #reads: ReadSet;
  readonly #isKeyedByValue: boolean;
  readonly #grown: () => void;

  constructor(reads: ReadSet, bytesMax: number, grown: () => void) {
    this.#reads = reads;
    this.#isKeyedByValue = reads.value && !reads.path && !readsObjects(reads);
    this.#cache = new LRUCache({ maxSize: bytesMax });
    this.#grown = grown;
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
    return { known: { values: found, errors }, missing, keys };
  }

  complete({ known, missing, keys }: Lookup, evaluated: EvaluateResponse): EvaluateResponse {
    const values = [...known.values];
    const all = new Map(known.errors);
    for (const [m, index] of missing.entries()) {
      const outcome = { value: evaluated.values[m], error: evaluated.errors?.get(m) };
      values[index] = outcome.value;
      if (outcome.error !== undefined) all.set(index, outcome.error);
      if (isDeterministic(outcome.error)) this.set(keys[m] ?? '', outcome);
    }
    return { values, errors: all.size === 0 ? undefined : all };
  }

  /** The part of the key that all matches of one request share. */
  objectsKey({ hostObject, virtualObject }: ObjectContext): string {
    return readsObjects(this.#reads) ? JSON.stringify([hostObject, virtualObject]) : '';
  }

  /** Up to three JSON texts, of which only the last may be a number, so the end of each is known. `undefined` is none of them. A string that is the
   * only input is its own key: building a text and hashing it would take longer than everything else. */
  keyOf(objectsKey: string, value: JsonValue | undefined, path: string): string {
    if (this.#isKeyedByValue && typeof value === 'string' && value.charCodeAt(0) !== 0) return value;
    const pathKey = this.#reads.path ? JSON.stringify(path) : '';
    const valueKey = this.#reads.value ? JSON.stringify(value) : '';
    return `\0${objectsKey}${pathKey}${valueKey}`;
  }

  get(key: string): Outcome | undefined {
    return this.#cache.get(key);
  }

  set(key: string, outcome: Outcome): void {
    const characters = key.length + charactersOf(outcome);
    this.#cache.set(key, outcome, { size: ENTRY_BYTES + characters * CHARACTER_BYTES });
    this.#grown();
  }

  dropOldest(): void {
    this.#cache.pop();
  }
}

/** What the program reads of a request, as text. Undefined if the values are too deep for one. */
export function inputsOf(
  { reads }: Program,
  { values, paths, context: { hostObject, virtualObject } }: EvaluateRequest,
): string | undefined {
  try {
    return JSON.stringify([
      values.length,
      reads.value ? values.map((value) => (value === undefined ? [] : [value])) : [],
      reads.path ? paths : [],
      prune(hostObject, reads.hostObject),
      prune(virtualObject, reads.virtualObject),
    ]);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function readsObjects(reads: ReadSet): boolean {
  return reads.hostObject.length > 0 || reads.virtualObject.length > 0;
}

function charactersOf({ value, error }: Outcome): number {
  if (error !== undefined) return error.message.length + 60;
  if (typeof value === 'string') return value.length;
  return typeof value === 'object' && value !== null ? JSON.stringify(value).length * 4 : 0;
}

type Path = readonly string[];

/** The object with only the values at these paths. Lists are kept as a whole, because their members such as `length` cannot be extracted. */
export function prune(object: JsonObject | null, paths: readonly Path[]): JsonObject | null {
  if (object === null || paths.length === 0) return null;
  if (paths.some((path) => path.length === 0)) return object;
  const part: JsonObject = {};
  for (const [key, below] of Map.groupBy(paths, ([first = '']) => first)) {
    const value = ownValue(object, key);
    if (value === undefined) continue;
    const rest = below.map((path) => path.slice(1));
    setOwn(part, key, isJsonObject(value) ? prune(value, rest) : value);
  }
  return part;
}
