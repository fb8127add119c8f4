/**
 * Evaluates batches from text to text, so that one crossing serves many matches. Stops by itself after a share of time or space, so
 * that whoever waits learns how far it came. Runs inside the isolate: no imports that are more than types and the files in front of
 * this one.
 */

import type { ColumnFrame, ContextRun, ErrorFrame, GroupFrame, LeafColumns } from '../protocol.ts';
import { PlainJsonCopier, ResultProblem, type PlainJson } from './plain-json.ts';
import { describeThrown } from './thrown.ts';

/** What a program's source gives, see `generateSource`. */
export type ProgramFunction = (...inputs: ProgramInputs) => unknown;
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

/** What a program's frame gives. */
export interface ProgramParts {
  readonly factory: (vcluster: unknown) => ProgramFunction;
  readonly host: ObjectBuilder | null;
  readonly virtual: ObjectBuilder | null;
}

export interface ProgramRecord {
  readonly program: ProgramFunction | undefined;
  readonly parts: ProgramParts | undefined;
  readonly usesContext: boolean;
  /** Why there is no program. */
  readonly problem: string;
}

/** The clock is read once for so many matches at most. */
const STRIDE_MAX = 32;
const OUTPUT_CHARS_MAX = 2 * 1024 * 1024;
/** A longer string is measured. */
const SMALL_CHARS = 100_000;
const NOT_KNOWN: ProgramRecord = {
  program: undefined,
  parts: undefined,
  usesContext: false,
  problem: 'the program is not known here',
};

/** What must be at hand although the realm has it no more. */
export interface EvaluatorTools {
  readonly now: () => number;
  readonly vcluster: unknown;
  readonly shareMs: number;
}

export class BatchEvaluator {
  readonly #records = new Map<number, ProgramRecord>();
  readonly #copier = new PlainJsonCopier();
  readonly #tools: EvaluatorTools;
  #groups: readonly GroupFrame[] = [];
  #groupAt = 0;
  /** The next match of the group; results take the place of the values before it. */
  #matchAt = 0;
  #runAt = 0;
  #runEnd = 0;
  #hostObject: unknown = null;
  #virtualObject: unknown = null;
  #outputChars = 0;
  /** Every result of the call in this group is a string so far. */
  #isText = true;
  /** Of the call at hand, indices from its first match in the group. */
  #undefinedAt: number[] = [];
  #errors: ErrorFrame[] = [];

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
    this.#groups = JSON.parse(batch) as readonly GroupFrame[];
    this.#groupAt = 0;
    this.#enterGroup();
  }

  /** Evaluates up to `matchesMax` matches; the answer starts with `.` when the batch is finished, else with `+`. */
  advance(matchesMax: number): string {
    const { now, shareMs } = this.#tools;
    const answer: ColumnFrame[] = [];
    let texts = '';
    this.#outputChars = 0;
    let left = matchesMax;
    let [checkedAt, stride] = [now(), 1];
    const end = checkedAt + shareMs;
    for (
      let group = this.#groups[this.#groupAt];
      group !== undefined && left > 0;
      group = this.#groups[this.#groupAt]
    ) {
      const from = this.#matchAt;
      const results = group[2] === 0 ? [] : (group[2] as PlainJson[]);
      const record = this.#records.get(group[0]) ?? NOT_KNOWN;
      while (this.#matchAt < group[1] && left > 0) {
        const to = Math.min(this.#matchAt + Math.min(stride, left), group[1]);
        left -= to - this.#matchAt;
        while (this.#matchAt < to) this.#evaluateRun(group, record, { results, from, to });
        const time = now();
        // Slow matches are watched closely, fast ones from afar.
        stride = time - checkedAt > 1 ? 1 : Math.min(stride * 2, STRIDE_MAX);
        checkedAt = time;
        if (time >= end || this.#outputChars > OUTPUT_CHARS_MAX) left = 0;
      }
      const text = this.#takeText(group, results, from);
      answer.push(this.#takeColumn(text ?? this.#slice(group, results, from), from));
      if (text !== undefined) texts += text;
      if (this.#matchAt < group[1]) break;
      this.#groupAt++;
      this.#enterGroup();
    }
    const isFinished = this.#groupAt >= this.#groups.length;
    if (isFinished) this.#groups = [];
    return `${isFinished ? '.' : '+'}${JSON.stringify(answer)}\t${texts}`;
  }

  #enterGroup(): void {
    [this.#matchAt, this.#runAt, this.#runEnd] = [0, 0, 0];
    [this.#hostObject, this.#virtualObject] = [null, null];
  }

  /** The results as a text of JSON, where that needs no escapes; quotes are for the other side to find. */
  #takeText(group: GroupFrame, results: PlainJson[], from: number): string | undefined {
    const isText = this.#isText && group[6] === 0;
    this.#isText = true;
    if (!isText) return undefined;
    // Strings, and null for what is missing, which joins as nothing.
    const strings = this.#slice(group, results, from) as (string | null)[];
    const text = `["${strings.join('","')}"]`;
    return text.includes('\\') || text.includes('\n') || !text.isWellFormed() ? undefined : text;
  }

  #slice(group: GroupFrame, results: PlainJson[], from: number): PlainJson[] {
    return from === 0 && this.#matchAt === group[1] ? results : results.slice(from, this.#matchAt);
  }

  #takeColumn(values: PlainJson[] | string, from: number): ColumnFrame {
    const column: ColumnFrame = [
      this.#matchAt - from,
      typeof values === 'string' ? values.length : values,
      this.#undefinedAt.length > 0 ? this.#undefinedAt : 0,
      this.#errors.length > 0 ? this.#errors : 0,
    ];
    if (this.#undefinedAt.length > 0) this.#undefinedAt = [];
    if (this.#errors.length > 0) this.#errors = [];
    return column;
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

  /** Matches that share their objects, up to `to`. */
  #evaluateRun(
    group: GroupFrame,
    record: ProgramRecord,
    place: { results: PlainJson[]; from: number; to: number },
  ): void {
    const { results, from } = place;
    // By index: taking a list apart costs as much as an evaluation.
    const values = group[2];
    const missing = group[3];
    const paths = group[4];
    const contexts = group[5];
    if (contexts !== 0 && this.#matchAt >= this.#runEnd) this.#nextRun(contexts, record);
    const to = contexts === 0 ? place.to : Math.min(place.to, this.#runEnd);
    const hostObject = this.#hostObject;
    const virtualObject = this.#virtualObject;
    const { program, usesContext } = record;
    let chars = 0;
    for (let i = this.#matchAt; i < to; i++) {
      if (program === undefined) {
        this.#refuse(i, from, results, new ResultProblem('syntax', record.problem));
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
          this.#accept(result, i, from, results);
        }
      } catch (thrown) {
        results[i] = null;
        this.#errors.push(describeThrown(thrown, i - from));
      }
    }
    this.#outputChars += chars;
    this.#matchAt = to;
  }

  #contextOf(hostObject: unknown, virtualObject: unknown, path: string): object {
    return Object.freeze({ vcluster: this.#tools.vcluster, hostObject, virtualObject, path });
  }

  #accept(result: unknown, at: number, from: number, results: PlainJson[]): void {
    switch (typeof result) {
      case 'boolean':
        this.#store(result, at, from, results);
        return;
      case 'number':
        if (result - result === 0) this.#store(result, at, from, results);
        else
          this.#refuse(
            at,
            from,
            results,
            new ResultProblem('result', `the result is ${result}, which JSON does not know`),
          );
        return;
      case 'undefined':
        results[at] = null;
        this.#undefinedAt.push(at - from);
        return;
      case 'string':
        this.#store(this.#copier.checkText(result) ?? result, at, from, results);
        this.#outputChars += result.length;
        return;
      case 'object':
        this.#store(result === null ? null : this.#copier.copy(result), at, from, results);
        this.#outputChars += this.#copier.lastBytes;
        return;
      default:
        this.#refuse(
          at,
          from,
          results,
          new ResultProblem('result', `the result is a ${typeof result}, which JSON does not know`),
        );
    }
  }

  #store(result: PlainJson | ResultProblem, at: number, from: number, results: PlainJson[]): void {
    if (result instanceof ResultProblem) this.#refuse(at, from, results, result);
    else {
      results[at] = result;
      if (typeof result !== 'string') this.#isText = false;
    }
  }

  #refuse(at: number, from: number, results: PlainJson[], problem: ResultProblem): void {
    results[at] = null;
    this.#errors.push([at - from, problem.kind, problem.message, 0, 0]);
  }
}

function isLeafColumns(contexts: readonly ContextRun[] | LeafColumns): contexts is LeafColumns {
  return !Array.isArray(contexts);
}

/** Without recursion: data may be as deep as it likes. */
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
