/** The cache of results. A result is a function of the inputs that the program reads, so these form the key. Limited in bytes over all
 * programs. Timeouts and kills are never cached.
 */

import { LRUCache } from 'lru-cache';
import type { JsonValue } from '../../base/json.ts';
import type { Projected } from './projection.ts';
import type { EvaluateError, ReadSet } from './types.ts';

/** A deterministic failure. */
export class RememberedError {
  readonly error: EvaluateError;

  constructor(error: EvaluateError) {
    this.error = error;
  }
}

/** Placeholders for values that the LRU cache cannot hold. */
export const REMEMBERED_NULL: unique symbol = Symbol('null');
export const REMEMBERED_UNDEFINED: unique symbol = Symbol('undefined');

export type Remembered =
  | Exclude<JsonValue, null>
  | RememberedError
  | typeof REMEMBERED_NULL
  | typeof REMEMBERED_UNDEFINED;

export type MemoKey = string | number | boolean | symbol;

/** Overhead of an entry: two slots in a Map, five in the cache's arrays, two string headers. */
const ENTRY_BYTES = 160;
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

/** Cached results of one program. A key is built by {@link requestKey} once per request and {@link keyOf} once per match. */
export class ProgramMemo {
  readonly #account: (bytes: number) => void;
  readonly #cache: LRUCache<MemoKey, Remembered>;
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

  /** The part of the key that all matches of one request share. */
  requestKey({ leaves, hostObject, virtualObject }: Projected): string {
    if (!readsObjects(this.#reads)) return '';
    const text = JSON.stringify(leaves ?? [hostObject, virtualObject]);
    return `${leaves === undefined ? 'o' : 'l'}${text.length}:${text}`;
  }

  keyOf(requestKey: string, value: JsonValue | undefined, path: string): MemoKey {
    if (this.#isKeyedByValue) {
      // The value itself if possible: no text is built, and the hash of the string is already computed.
      if (typeof value === 'string') return value.charCodeAt(0) === 0 ? `\0s${value}` : value;
      if (typeof value === 'number' || typeof value === 'boolean') return value;
      if (value === null) return REMEMBERED_NULL;
      return value === undefined ? REMEMBERED_UNDEFINED : `\0j${JSON.stringify(value)}`;
    }
    const pathPart = this.#reads.path ? `${path.length}:${path}` : '';
    if (!this.#reads.value) return requestKey + pathPart;
    if (typeof value === 'string') return `${requestKey}${pathPart}s${value}`;
    return `${requestKey}${pathPart}${value === undefined ? 'u' : `j${JSON.stringify(value)}`}`;
  }

  get(key: MemoKey): Remembered | undefined {
    return this.#cache.get(key);
  }

  set(key: MemoKey, result: Remembered): void {
    const before = this.#cache.calculatedSize;
    const characters = (typeof key === 'string' ? key.length : 0) + charactersOf(result);
    this.#cache.set(key, result, { size: ENTRY_BYTES + characters * CHARACTER_BYTES });
    this.#account(this.#cache.calculatedSize - before);
  }

  /** Returns the freed bytes. */
  dropOldest(): number {
    const before = this.#cache.calculatedSize;
    this.#cache.pop();
    return before - this.#cache.calculatedSize;
  }
}

function readsObjects(reads: ReadSet): boolean {
  return reads.hostObject.length > 0 || reads.virtualObject.length > 0;
}

function charactersOf(result: Remembered): number {
  if (typeof result === 'string') return result.length;
  if (result instanceof RememberedError) return result.error.message.length + 60;
  return typeof result === 'object' ? JSON.stringify(result).length * 4 : 0;
}
