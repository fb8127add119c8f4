/** Evaluates batches, with text as input and output, so that one call into the isolate serves many matches. A call returns after a limited
 * time or output size, so that the daemon sees progress. Runs inside the isolate: only imports of types and of files that precede it in
 * `REALM_FILES`.
 */

import type { ColumnMessage, ContextRun, GroupMessage, LeafColumns, ErrorEntry } from '../protocol.ts';
import { PlainJsonCopier, ResultProblem, type PlainJson } from './plain-json.ts';
import { type ErrorPlaces, describeThrown } from './errors.ts';

/** The function that a program's source returns, see `generateSource`. */
type ProgramFunction = (...inputs: ProgramInputs) => unknown;
type ProgramInputs = [
  value: unknown,
  valueExists: boolean,
  path: string,
  hostObject: unknown,
  virtualObject: unknown,
  context: unknown,
];

/** Builds an object from columns of leaves, see `Projection`. */
type ObjectBuilder = (leaves: LeafColumns['leaves'], at: number) => unknown;

/** The value of the source in a program message. */
export interface ProgramParts {
  readonly factory: (vcluster: unknown) => ProgramFunction;
  readonly host: ObjectBuilder | null;
  readonly virtual: ObjectBuilder | null;
}

interface ProgramRecord {
  readonly program: ProgramFunction | undefined;
  readonly parts: ProgramParts | undefined;
  readonly usesContext: boolean;
  /** Why there is no program. */
  readonly problem: string;
}

/** Maximum number of matches between two reads of the clock. */
const STRIDE_MAX = 32;
const OUTPUT_CHARS_MAX = 2 * 1024 * 1024;
const NOT_KNOWN: ProgramRecord = {
  program: undefined,
  parts: undefined,
  usesContext: false,
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
  readonly #columnTools: ColumnTools;
  readonly #tools: EvaluatorTools;
  #groups: readonly GroupMessage[] = [];
  #groupAt = 0;
  /** The next match of the group. */
  #matchAt = 0;
  #runAt = 0;
  #runEnd = 0;
  #hostObject: unknown = null;
  #virtualObject: unknown = null;

  constructor(tools: EvaluatorTools) {
    this.#tools = tools;
    this.#columnTools = { copier: new PlainJsonCopier(), places: tools.places };
  }

  define(id: number, record: ProgramRecord): void {
    this.#records.set(id, record);
  }

  forget(id: number): void {
    this.#records.delete(id);
  }

  load(batch: string): void {
    this.#groups = JSON.parse(batch) as readonly GroupMessage[];
    this.#enterGroup(0);
  }

  /** Evaluates up to `matchesMax` matches. The response starts with `.` when the batch is finished, else with `+`. */
  advance(matchesMax: number): string {
    const { now, shareMs } = this.#tools;
    const columns: ColumnMessage[] = [];
    let [texts, chars, left, stride] = ['', 0, matchesMax, 1];
    let checkedAt = now();
    const end = checkedAt + shareMs;
    for (let group = this.#group; group !== undefined && left > 0; group = this.#group) {
      const from = this.#matchAt;
      // Each value is read once, so its slot can hold the result.
      const column = new ResultColumn(
        group[2] === 0 ? [] : (group[2] as PlainJson[]),
        from,
        this.#columnTools,
      );
      const record = this.#records.get(group[0]) ?? NOT_KNOWN;
      while (this.#matchAt < group[1] && left > 0) {
        const to = Math.min(this.#matchAt + Math.min(stride, left), group[1]);
        left -= to - this.#matchAt;
        while (this.#matchAt < to) this.#evaluateRun(group, record, column, to);
        const time = now();
        // The clock is read often for slow matches, rarely for fast ones.
        stride = time - checkedAt > 1 ? 1 : Math.min(stride * 2, STRIDE_MAX);
        checkedAt = time;
        if (time >= end || chars + column.chars > OUTPUT_CHARS_MAX) left = 0;
      }
      chars += column.chars;
      const isWhole = from === 0 && this.#matchAt === group[1];
      const { message, text } = column.take(this.#matchAt, isWhole, group[6]);
      columns.push(message);
      texts += text;
      if (this.#matchAt === group[1]) this.#enterGroup(this.#groupAt + 1);
    }
    const isFinished = this.#group === undefined;
    if (isFinished) this.#groups = [];
    return `${isFinished ? '.' : '+'}${JSON.stringify(columns)}\t${texts}`;
  }

  get #group(): GroupMessage | undefined {
    return this.#groups[this.#groupAt];
  }

  #enterGroup(at: number): void {
    [this.#groupAt, this.#matchAt, this.#runAt, this.#runEnd] = [at, 0, 0, 0];
    [this.#hostObject, this.#virtualObject] = [null, null];
  }

  #nextRun(contexts: readonly ContextRun[] | LeafColumns, { parts }: ProgramRecord): void {
    const at = this.#runAt++;
    let escapes: 0 | 1 = 0;
    if (isLeafColumns(contexts)) {
      const { counts, leaves } = contexts;
      this.#runEnd = this.#matchAt + (counts === 0 ? 1 : (counts[at] ?? 1));
      this.#hostObject = parts?.host?.(leaves, at) ?? null;
      this.#virtualObject = parts?.virtual?.(leaves, at) ?? null;
      ({ escapes } = contexts);
    } else {
      let count = 0;
      [count, this.#hostObject, this.#virtualObject, escapes] = contexts[at] ?? [1, null, null, 0];
      this.#runEnd = this.#matchAt + count;
    }
    if (escapes === 0) return;
    freezeDeep(this.#hostObject);
    freezeDeep(this.#virtualObject);
  }

  /** Evaluates matches that share their objects, up to `end`. */
  #evaluateRun(group: GroupMessage, record: ProgramRecord, column: ResultColumn, end: number): void {
    // By index, because destructuring costs as much as an evaluation.
    const values = group[2];
    const missing = group[3];
    const paths = group[4];
    const contexts = group[5];
    if (contexts !== 0 && this.#matchAt >= this.#runEnd) this.#nextRun(contexts, record);
    const to = contexts === 0 ? end : Math.min(end, this.#runEnd);
    const hostObject = this.#hostObject;
    const virtualObject = this.#virtualObject;
    const { program, usesContext } = record;
    const { results } = column;
    let chars = 0;
    for (let i = this.#matchAt; i < to; i++) {
      if (program === undefined) {
        column.refuse(i, new ResultProblem('syntax', record.problem));
        continue;
      }
      try {
        const exists = missing === 0 || !missing.includes(i);
        const value = !exists ? undefined : values === 0 ? null : values[i];
        const path = paths === 0 ? '' : (paths[i] ?? '');
        const context = usesContext ? this.#contextOf(hostObject, virtualObject, path) : undefined;
        const result = program(value, exists, path, hostObject, virtualObject, context);
        if (typeof result === 'string' && result.length < SMALL_CHARS) {
          results[i] = result;
          chars += result.length;
        } else {
          column.accept(result, i);
        }
      } catch (thrown) {
        column.fail(i, thrown);
      }
    }
    column.chars += chars;
    this.#matchAt = to;
  }

  #contextOf(hostObject: unknown, virtualObject: unknown, path: string): object {
    return Object.freeze({ vcluster: this.#tools.vcluster, hostObject, virtualObject, path });
  }
}

function isLeafColumns(contexts: readonly ContextRun[] | LeafColumns): contexts is LeafColumns {
  return !Array.isArray(contexts);
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

/** A shorter string is within the size limit, whatever its characters are. */
const SMALL_CHARS = 100_000;

interface ColumnTools {
  readonly copier: PlainJsonCopier;
  readonly places: ErrorPlaces;
}

class ResultColumn {
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
