/** The contract between patches and the sandbox: what goes in, what comes out. */

import type { PatchErrorKind } from '../../base/errors.ts';
import type { JsonObject, JsonPrimitive, JsonValue } from '../../base/json.ts';

/** From a place in the generated source to one in the user's text; lines and columns 1-based, sorted by the generated place. */
export type Mapping = readonly [line: number, column: number, toLine: number, toColumn: number];

/** Identifies a compiled expression inside one sandbox generation. */
export type ProgramId = number;

/** One expression, already parsed, checked and regenerated from its tree. */
export interface Program {
  readonly id: ProgramId;
  /** As the user wrote it, for messages. */
  readonly expression: string;
  /** What runs, see `generateSource`. */
  readonly source: string;
  /** Which parts of `context` it reads. */
  readonly reads: ReadSet;
  /** It uses `context` in some way that needs the object itself, not only its members. */
  readonly usesContext: boolean;
  /** The value, where the expression is a literal: it needs no sandbox. */
  readonly constant: { readonly value: JsonPrimitive } | undefined;
  /** From places in `source` to places in `expression`. */
  readonly mappings: readonly Mapping[];
}

/** What an expression reads besides constants: only this crosses into the sandbox, and only this is part of a memo key. */
export interface ReadSet {
  readonly value: boolean;
  readonly path: boolean;
  /** Paths below `context.hostObject`, each a list of keys; `[]` is the whole object; empty list: not read. */
  readonly hostObject: readonly (readonly string[])[];
  /** The same for `context.virtualObject`. */
  readonly virtualObject: readonly (readonly string[])[];
}

/** The constant part of `context`, one per configuration. */
export interface VclusterContext {
  readonly name: string;
  readonly namespace: string;
  readonly config: JsonObject;
}

/** One object's part of `context`; null where there is none. Shared and immutable. */
export interface ObjectContext {
  readonly hostObject: JsonObject | null;
  readonly virtualObject: JsonObject | null;
}

/** Which object a request is about, whichever cluster it is in: stops are counted by it. */
export interface ObjectIdentity {
  /** The virtual namespace. */
  readonly namespace: string;
  readonly name: string;
}

/**
 * One program on all of its matches in one object. Columns, not one object per match: at a thousand matches per object the
 * wrappers would cost more than the work.
 */
export interface EvaluateRequest {
  readonly program: ProgramId;
  readonly object: ObjectIdentity;
  readonly context: ObjectContext;
  /** The matched values, in the order of the matches; undefined: the path does not exist. Shared with the object, never to be changed. */
  readonly values: readonly (JsonValue | undefined)[];
  /** The concrete path of each match, `subsets.0.addresses.1.ip`; present exactly when the program reads `context.path`. */
  readonly paths: readonly string[] | undefined;
}

/** What came of a request. `undefined` is a value: the member is to be deleted, as for null. */
export interface EvaluateResponse {
  /** One per match, in order; undefined where `errors` has the match's index. Immutable: they may be remembered and given out again. */
  readonly values: readonly (JsonValue | undefined)[];
  /** By index of the match; undefined when every match went well. */
  readonly errors: ReadonlyMap<number, EvaluateError> | undefined;
}

export interface EvaluateError {
  readonly kind: PatchErrorKind;
  /** One line, bounded, control characters encoded. */
  readonly message: string;
  /** 1-based place in the expression, when known. */
  readonly line?: number;
  readonly column?: number;
  /** The same request fails until so many milliseconds have passed. */
  readonly retryAfterMs?: number;
}

/** Runs programs where they can do no harm. */
export interface Evaluator {
  /**
   * Returns the response where it is known already (everything remembered or constant); else returns undefined and calls `done`
   * exactly once, in a later turn. A callback and not a promise, because a promise per request costs as much as the evaluation itself.
   * `done` must not throw. A closed evaluator answers every match with an error of kind `killed`.
   */
  evaluate(
    request: EvaluateRequest,
    done: (response: EvaluateResponse) => void,
  ): EvaluateResponse | undefined;
}
