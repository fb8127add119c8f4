/** The results of consecutive matches: JSON values are kept, all others become errors. Runs inside the isolate: only imports of types and of
 * files that precede it in `REALM_FILES`.
 */

import type { ColumnMessage, ErrorEntry } from '../process/protocol.ts';
import { ResultProblem, type PlainJson, type PlainJsonCopier } from './plain-json.ts';
import { describeThrown, type ErrorPlaces } from './thrown.ts';

/** A shorter string is within the size limit, whatever its characters are. */
export const SMALL_CHARS = 100_000;

export interface ColumnTools {
  readonly copier: PlainJsonCopier;
  readonly places: ErrorPlaces;
}

export class ResultColumn {
  /** By index of the match in its group; null where there is none. */
  readonly results: PlainJson[];
  /** Characters stored through this class. */
  chars = 0;
  readonly #copier: PlainJsonCopier;
  readonly #places: ErrorPlaces;
  /** Index of the first match. */
  readonly #from: number;
  readonly #undefinedAt: number[] = [];
  readonly #errors: ErrorEntry[] = [];
  #isText = true;

  /** Takes ownership of `results`. */
  constructor(results: PlainJson[], from: number, tools: ColumnTools) {
    this.results = results;
    this.#from = from;
    this.#copier = tools.copier;
    this.#places = tools.places;
  }

  /** Stores any result. A caller may store small strings directly. Throws if reading the result throws. */
  accept(result: unknown, at: number): void {
    switch (typeof result) {
      case 'boolean':
        this.#store(result, at);
        return;
      case 'number':
        if (result - result === 0) this.#store(result, at);
        else this.refuse(at, unknownToJson(String(result)));
        return;
      case 'undefined':
        this.results[at] = null;
        this.#undefinedAt.push(at - this.#from);
        return;
      case 'string':
        this.#store(result.length < SMALL_CHARS ? result : (this.#copier.checkText(result) ?? result), at);
        this.chars += result.length;
        return;
      case 'object':
        this.#store(result === null ? null : this.#copier.copy(result), at);
        this.chars += this.#copier.lastBytes;
        return;
      default:
        this.refuse(at, unknownToJson(`a ${typeof result}`));
    }
  }

  refuse(at: number, problem: ResultProblem): void {
    this.results[at] = null;
    this.#errors.push([at - this.#from, problem.kind, problem.message, 0, 0]);
  }

  fail(at: number, thrown: unknown): void {
    this.results[at] = null;
    this.#errors.push(describeThrown(thrown, at - this.#from, this.#places));
  }

  /** The message for the matches up to `end`, and its text, see `ColumnMessage`. */
  take(end: number, isWhole: boolean, plainResponse: 0 | 1): { message: ColumnMessage; text: string } {
    const values = isWhole ? this.results : this.results.slice(this.#from, end);
    const text = this.#isText && plainResponse === 0 ? joined(values as (string | null)[]) : undefined;
    const message: ColumnMessage = [
      end - this.#from,
      text === undefined ? values : text.length,
      this.#undefinedAt.length > 0 ? this.#undefinedAt : 0,
      this.#errors.length > 0 ? this.#errors : 0,
    ];
    return { message, text: text ?? '' };
  }

  #store(result: PlainJson | ResultProblem, at: number): void {
    if (result instanceof ResultProblem) {
      this.refuse(at, result);
      return;
    }
    this.results[at] = result;
    if (typeof result !== 'string') this.#isText = false;
  }
}

function unknownToJson(what: string): ResultProblem {
  return new ResultProblem('result', `the result is ${what}, which JSON does not know`);
}

/** A list of strings as JSON, if no string needs an escape. Quotes are detected by the receiver. null becomes an empty string. */
function joined(strings: readonly (string | null)[]): string | undefined {
  const text = `["${strings.join('","')}"]`;
  return text.includes('\\') || text.includes('\n') || !text.isWellFormed() ? undefined : text;
}
