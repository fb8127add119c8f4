/** The contract between patches and the sandbox: programs, requests, responses. */

import type { PatchErrorKind } from '../base/errors.ts';
import type { JsonObject, JsonPrimitive, JsonValue } from '../base/json.ts';
import type { Budget } from './local/budget.ts';
import type { LocalEvaluator, LocalProgram } from './local/types.ts';

/** Maps a position in the generated source to one in the user's text; 1-based. */
export interface Mapping {
  readonly line: number;
  readonly column: number;
  readonly toLine: number;
  readonly toColumn: number;
}

export type ProgramId = number;

/** One expression, parsed, checked and regenerated from its syntax tree. */
export interface Program {
  readonly id: ProgramId;
  /** As the user wrote it, for messages. */
  readonly expression: string;
  /** The source that runs, see `generateSource`. */
  readonly source: string;
  readonly reads: ReadSet;
  /** The value of a literal, which needs no sandbox. */
  readonly constant: { readonly value: JsonPrimitive } | undefined;
  /** Positions in `source` → positions in `expression`, sorted by the former. */
  readonly mappings: readonly Mapping[];
  /** How the daemon evaluates it without a process, or what needs one. */
  readonly local: LocalProgram;
}

export interface SandboxLimits {
  readonly expressionTimeoutMs: number;
  readonly batchTimeoutMs: number;
  /** Resident memory that the child process may use above its baseline. */
  readonly memoryBytes: number;
  /** Size of the cache of expression results; 0 disables it. */
  readonly memoBytes: number;
}

/** The inputs that an expression reads. Only these are sent to the sandbox and are part of the cache key. */
export interface ReadSet {
  readonly value: boolean;
  readonly path: boolean;
  /** Paths below `context.hostObject`, each a list of keys; `[]` is the whole object; empty list: not read. */
  readonly hostObject: readonly (readonly string[])[];
  readonly virtualObject: readonly (readonly string[])[];
  /** No input of a request, because it is the same in all of them. */
  readonly vcluster: readonly (readonly string[])[];
}

/** The constant part of `context`, one per configuration. */
export interface VclusterContext {
  readonly name: string;
  readonly namespace: string;
  readonly config: JsonObject;
}

/** The part of `context` that belongs to one object; null if there is no such object. Shared and immutable. */
export interface ObjectContext {
  readonly hostObject: JsonObject | null;
  readonly virtualObject: JsonObject | null;
}

/** The object of a request, in both directions. Stops are counted by object. */
export interface ObjectIdentity {
  /** The virtual namespace. */
  readonly namespace: string;
  readonly name: string;
}

/** One program with all its matches in one object. In columns: at a thousand matches, a wrapper for each would cost more than the evaluation. */
export interface EvaluateRequest {
  readonly program: ProgramId;
  readonly object: ObjectIdentity;
  readonly context: ObjectContext;
  /** The matched values, in the order of the matches; undefined: the path does not exist. Shared with the object, so read-only. */
  readonly values: readonly (JsonValue | undefined)[];
  /** The concrete path of each match, `subsets.0.addresses.1.ip`; present exactly when the program reads `context.path`. */
  readonly paths: readonly string[] | undefined;
  /** What evaluations in the daemon may still cost, shared by all requests of one reconcile; default: this request has all of it. */
  readonly budget?: Budget;
  /** The evaluator of {@link Evaluator.local} has declined it. */
  readonly isDeclined?: boolean;
  /** Called if the request may wait for long, in the throttled process for minutes, so that the caller need not wait. Before it is sent, `withdraw` makes it
   * fail. Called again for another place where it waits. */
  readonly postpone?: (withdraw: () => void) => void;
}

/** The results of a request. The value `undefined` deletes the member, as null does. */
export interface EvaluateResponse {
  /** One per match, in order; undefined if `errors` has the match's index. Immutable, because they may be cached. */
  readonly values: readonly (JsonValue | undefined)[];
  /** By index of the match; undefined if every match succeeded. */
  readonly errors: ReadonlyMap<number, EvaluateError> | undefined;
}

export interface EvaluateError {
  readonly kind: PatchErrorKind;
  /** One line, bounded, control characters encoded. */
  readonly message: string;
  /** 1-based position in the expression, if known. */
  readonly line?: number;
  readonly column?: number;
  /** The same request fails for this many milliseconds. */
  readonly retryAfterMs?: number;
}

export interface Evaluator {
  /** Returns the response itself if all results are cached or constant. A promise never rejects: after the evaluator is closed, each match
   * fails with an error of kind `killed`. The requests of one turn of the event loop are sent together. That of a reconcile throws or rejects with `Postponed`. */
  evaluate(request: EvaluateRequest): EvaluateResponse | Promise<EvaluateResponse>;
  /** Evaluates in this process, without a request; undefined: only a request can. */
  local?(program: ProgramId): LocalEvaluator | undefined;
}

/** One generation of programs. The first evaluation that needs a process starts it. */
export interface Sandbox extends Evaluator, AsyncDisposable {
  define(program: Program): void;
  forget(id: ProgramId): void;
  readonly pids: readonly number[];
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
