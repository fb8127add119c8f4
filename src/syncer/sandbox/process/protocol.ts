/**
 * Messages on the pipe: one line each, a type character and JSON. Types only, because the child runs as plain text and imports
 * nothing.
 *
 * To the child:
 * - `S` + {@link SetupMessage}: once, first. The child answers `H` when it is ready.
 * - `P` + {@link ProgramMessage}: a program, before it is first used. `D` + id drops it.
 * - `G`: no work follows for a while; collect garbage.
 * - `B` + {@link GroupMessage}[]: a batch. `C` + a digit + the same: one call and one answer per match; the digit
 *   says how often it was stopped without its share of processor time, and each time adds one limit to its timeout.
 *
 * From the child, for the oldest unfinished batch:
 * - `+` + {@link ColumnMessage}[]: results of the next matches, more will follow. `.` the same, and the batch is finished.
 * - `T` the call timed out, `S` the same but the process had too little processor time to attribute it to the expression, `L` the
 *   batch took too long as a whole, `X` the call failed: nothing more follows for this batch. `M` the isolate exceeded its memory
 *   limit, and the child ends.
 */

import type { JsonObject, JsonValue } from '../../../base/json.ts';

export interface SetupMessage {
  /** Where the native addon of isolated-vm is. */
  readonly addon: string;
  /** The global function that collects garbage, in every context of the child. */
  readonly collectorName: string;
  /** Source of the realm: a script whose value is `installRealm`. */
  readonly realm: string;
  readonly settings: RealmSettings;
  /** MiB of heap that the isolate may take. */
  readonly heapMiB: number;
  readonly expressionTimeoutMs: number;
  /** See `starvation.ts`. */
  readonly processorShare: number;
  readonly starvedFactor: number;
  readonly batchTimeoutMs: number;
}

export interface RealmSettings {
  readonly collectorName: string;
  /** A call returns its results after this time, so that the daemon sees progress. */
  readonly shareMs: number;
  /** `context.vcluster`. */
  readonly vcluster: JsonObject;
  readonly names: NamingRules;
}

/** For `virtualToHostDNS`: where objects of a virtual namespace are on the host. */
export interface NamingRules {
  readonly vcluster: string;
  readonly hostNamespace: string;
  readonly mode: 'single' | 'legacy-multi' | 'mappings';
  /** Virtual namespace (pattern) to host namespace (pattern), `${name}` already replaced. */
  readonly byName: Readonly<Record<string, string>>;
  readonly mappingsOnly: boolean;
}

export interface ProgramMessage {
  readonly id: number;
  /** An object literal: {@link ProgramParts}. */
  readonly source: string;
  /** It uses `context` as a whole. */
  readonly usesContext: boolean;
}

/** The matches of one program, columns in the same order; 0 for a column that the program does not read. */
export type GroupMessage = readonly [
  program: number,
  count: number,
  values: readonly (JsonValue | null)[] | 0,
  /** Indices of values that do not exist. */
  missing: readonly number[] | 0,
  paths: readonly string[] | 0,
  contexts: readonly ContextRun[] | LeafColumns | 0,
  /** 1: answer in JSON even where every result is a string, see {@link ColumnMessage}. */
  plainAnswer: 0 | 1,
];

/** This many matches in a row share two objects; `escapes` is 1 when the program can hold a reference to a part of them. */
export type ContextRun = readonly [
  count: number,
  hostObject: JsonValue,
  virtualObject: JsonValue,
  escapes: 0 | 1,
];

/** The same, each run's objects as leaves: one column for each path that is read. `counts` 0: one match a run. */
export interface LeafColumns {
  readonly counts: readonly number[] | 0;
  readonly leaves: readonly (readonly JsonValue[])[];
  readonly escapes: 0 | 1;
}

/**
 * Results of matches in a row of one group; null where the value is undefined or an error. When all are strings and none needs an
 * escape, `values` is the length of a text: the texts follow the columns after a tab, each a JSON list of its own. Joining strings is
 * three times as fast as stringifying them. Only a list of exactly `count` strings is taken for one: a quote in a result gives more,
 * or something else.
 */
export type ColumnMessage = readonly [
  count: number,
  values: readonly JsonValue[] | number,
  undefinedAt: readonly number[] | 0,
  errors: readonly ErrorEntry[] | 0,
];

/** `line` and `column` are 1-based places in the program's source, 0 when unknown. */
export type ErrorEntry = readonly [
  index: number,
  kind: 'runtime' | 'result' | 'result-size' | 'syntax',
  message: string,
  line: number,
  column: number,
];
