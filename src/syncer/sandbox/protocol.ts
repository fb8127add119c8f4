/** Messages on the pipe: one line each, a type character and JSON. Types only, because the child runs from source text without imports.
 *
 * To the child:
 * - `S` + {@link SetupMessage}: once, first. The child responds with `H` when it is ready.
 * - `P` + {@link ProgramMessage}: a program, before it is first used. `D` + id drops it.
 * - `G`: collect garbage, because the child is idle.
 * - `B` + {@link GroupMessage}[]: a batch. `C` + a digit + the same: one call and one response per match; the digit
 *   is the number of stops without enough processor time, each of which adds one time limit to the timeout.
 *
 * From the child, for the oldest unfinished batch:
 * - `+` + {@link ColumnMessage}[]: results of the next matches; more follow. `.`: the same, and the batch is finished.
 * - `T`: the call timed out. `S`: the same, but the process had too little processor time to attribute it to the expression. `L`: the
 *   whole batch took too long. `X`: the call failed. No more results follow for this batch. `M`: the isolate exceeded its memory
 *   limit, and the child ends.
 */

import type { JsonObject, JsonValue } from '../../base/json.ts';

export interface SetupMessage {
  /** Path of the native addon of isolated-vm. */
  readonly addon: string;
  /** Name of the global function that collects garbage, in every context of the child. */
  readonly collectorName: string;
  /** Source of the realm: a script whose value is `installRealm`. */
  readonly realm: string;
  readonly settings: RealmSettings;
  /** Heap limit of the isolate, MiB. */
  readonly heapMiB: number;
  readonly expressionTimeoutMs: number;
  /** See `processor-share.ts`. */
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

/** For `virtualToHostDNS`: how virtual namespaces and names are translated. */
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
  /** 1: respond in JSON even if every result is a string, see {@link ColumnMessage}. */
  plainResponse: 0 | 1,
];

/** `count` consecutive matches share both objects. `escapes` is 1 if the program can keep a reference to a part of them. */
export type ContextRun = readonly [
  count: number,
  hostObject: JsonValue,
  virtualObject: JsonValue,
  escapes: 0 | 1,
];

/** The same with the objects as leaves: one column for each path that is read. `counts` 0: one match per run. */
export interface LeafColumns {
  readonly counts: readonly number[] | 0;
  readonly leaves: readonly (readonly JsonValue[])[];
  readonly escapes: 0 | 1;
}

/** Results of consecutive matches of one group; null if the value is undefined or an error. If all are strings and none needs an escape,
 * `values` is the length of a text: the texts follow the columns after a tab, each a JSON list. Joining strings is three times as fast as
 * stringifying them. The receiver accepts only a list of exactly `count` strings, because a quote in a result would change the list.
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
