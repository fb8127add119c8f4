/** Messages on the pipe: one line each, a type character and JSON. Types only, because the child runs from source text without imports.
 *
 * To the child:
 * - `S` + {@link SetupMessage}: once, first. The child responds with `H` when it is ready.
 * - `I` + {@link IsolateMessage}: an isolate, before it is first used. `E` + id drops it.
 * - `P` + {@link ProgramMessage}: a program, before it is first used. `D` + [isolate, id] drops it.
 * - `G`: collect garbage, because the child is idle.
 * - `B` + id of an isolate + {@link JobMessage}[]: a batch. `C` + a digit + the same: one call and one response per match; the digit
 *   is the number of stops without enough processor time, each of which adds one time limit to the timeout.
 *
 * From the child, for the oldest unfinished batch:
 * - `+` + {@link ResultMessage}: results of the next matches, in the order of the batch; more follow. `.`: the same, and the batch is finished.
 * - `T`: the call timed out. `S`: the same, but the process had too little processor time to attribute it to the expression. `L`: the
 *   batch has had its turn. `X`: the call failed. No more results follow for this batch. `M`: the isolate exceeded its memory
 *   limit, and the child ends. */

import type { JsonObject, JsonValue } from '../base/json.ts';
import type { NamingRules } from './types.ts';

export interface SetupMessage {
  /** Path of the native addon of isolated-vm. */
  readonly addon: string;
  /** Name of the global function that collects garbage, in every context of the child. */
  readonly collectorName: string;
  /** Sources of the realm's modules by name; `realm` exports `installRealm`. */
  readonly modules: Readonly<Record<string, string>>;
  /** See `PROCESSOR_SHARE`. */
  readonly processorShare: number;
  readonly starvedFactor: number;
  /** Opened before the child is ready. */
  readonly isolates: readonly IsolateMessage[];
}

/** The programs of one configuration run in one isolate. */
export interface IsolateMessage {
  readonly id: number;
  readonly settings: RealmSettings;
  /** Heap limit, MiB. */
  readonly heapMiB: number;
  readonly expressionTimeoutMs: number;
  /** Of all matches of one object. */
  readonly batchTimeoutMs: number;
  /** After this time, a batch gives way to others. */
  readonly turnMs: number;
}

export interface RealmSettings {
  /** A call returns its results after this time, so that the daemon sees progress. */
  readonly shareMs: number;
  /** `context.vcluster`. */
  readonly vcluster: JsonObject;
  readonly names: NamingRules;
}

export interface ProgramMessage {
  readonly isolate: number;
  readonly id: number;
  /** See `generateSource`. */
  readonly source: string;
}

/** The matches of one program in one object. What the program does not read is absent. */
export interface JobMessage {
  readonly program: number;
  readonly count: number;
  /** In JSON, null for a value that does not exist. */
  readonly values: readonly (JsonValue | undefined)[] | undefined;
  /** Indices of values that do not exist; absent: none. */
  readonly missing: readonly number[] | undefined;
  readonly paths: readonly string[] | undefined;
  /** Absent also if there is no object. */
  readonly hostObject: JsonObject | undefined;
  readonly virtualObject: JsonObject | undefined;
}

/** Results of consecutive matches; null if the result is undefined or an error. */
export interface ResultMessage {
  readonly values: readonly JsonValue[];
  /** Absent: none. */
  readonly undefinedAt: readonly number[] | undefined;
  readonly errors: readonly ErrorMessage[] | undefined;
}

/** `line` and `column` are 1-based places in the program's source, 0 when unknown. */
export interface ErrorMessage {
  readonly index: number;
  readonly kind: 'runtime' | 'result' | 'result-size' | 'syntax';
  readonly message: string;
  readonly line: number;
  readonly column: number;
}
