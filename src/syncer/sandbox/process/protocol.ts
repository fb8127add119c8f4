/**
 * What crosses the pipe: one line of JSON a frame, told apart by the first character. Types only: the child runs as plain text and
 * imports nothing.
 *
 * To the child:
 * - `S` + {@link SetupFrame}: once, first. Answered with `H` when the child can take work.
 * - `P` + {@link ProgramFrame}: a program, before it is first used. `D` + id drops it.
 * - `G`: nothing is expected for a while, garbage may be collected.
 * - `B` + {@link GroupFrame}[]: a batch. `C` + a digit + the same: one call and one answer per match; the digit says how
 *   often it was stopped without having had its processor time: that many times its limit is added to the time that it may take.
 *
 * From the child, for the oldest batch that is not finished:
 * - `+` + {@link ColumnFrame}[]: results of the next matches, more will follow. `.` the same, and the batch is finished.
 * - `T` the call did not end in time and was stopped, `S` the same but the process got too little processor time to blame anybody,
 *   `L` the batch took too long as a whole, `X` the call failed: nothing more follows for this batch. `M` the isolate passed its
 *   memory limit: the child ends.
 */

import type { JsonObject, JsonValue } from '../../../base/json.ts';

export interface SetupFrame {
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
  /** After so long a call gives what it has: whoever waits for it learns how far it came. */
  readonly shareMs: number;
  /** `context.vcluster`. */
  readonly vcluster: JsonObject;
  readonly names: NamingFrame;
}

/** What `virtualToHostDNS` needs to know: where objects of a virtual namespace are on the host. */
export interface NamingFrame {
  readonly vcluster: string;
  readonly hostNamespace: string;
  readonly mode: 'single' | 'legacy-multi' | 'mappings';
  /** Virtual namespace (pattern) to host namespace (pattern), `${name}` already replaced. */
  readonly byName: Readonly<Record<string, string>>;
  readonly mappingsOnly: boolean;
}

export interface ProgramFrame {
  readonly id: number;
  /** An object literal: {@link ProgramParts}. */
  readonly source: string;
  /** Does it take the whole `context`? */
  readonly usesContext: boolean;
}

/** The matches of one program, columns in the same order; 0 stands for a column that the program does not read. */
export type GroupFrame = readonly [
  program: number,
  count: number,
  values: readonly (JsonValue | null)[] | 0,
  /** Indices of values that do not exist. */
  missing: readonly number[] | 0,
  paths: readonly string[] | 0,
  contexts: readonly ContextRun[] | LeafColumns | 0,
  /** 1: answer in JSON even where every result is a string, see {@link ColumnFrame}. */
  plainAnswer: 0 | 1,
];

/** So many matches in a row share these two objects; `escapes` is 1 when the program can get hold of an object in them. */
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
 * escape, `values` is the length of a text: the texts follow the frames after a tab, each a JSON list of its own. Joining strings is
 * three times as fast as stringifying them. Only a list of exactly `count` strings is taken for one: a quote in a result gives more,
 * or something else.
 */
export type ColumnFrame = readonly [
  count: number,
  values: readonly JsonValue[] | number,
  undefinedAt: readonly number[] | 0,
  errors: readonly ErrorFrame[] | 0,
];

/** `line` and `column` are 1-based places in the program's source, 0 when unknown. */
export type ErrorFrame = readonly [
  index: number,
  kind: 'runtime' | 'result' | 'result-size' | 'syntax',
  message: string,
  line: number,
  column: number,
];
