/** The contract between patches and the sandbox: what goes in, what comes out. */

import type { PatchErrorKind } from '../kube/errors.ts';
import type { JsonObject, JsonValue } from '../lib/json.ts';

/** Identifies a compiled expression inside one sandbox generation. */
export type ProgramId = number;

/** One expression, already parsed, checked and regenerated from its tree. */
export interface Program {
  readonly id: ProgramId;
  /** As the user wrote it, for messages. */
  readonly expression: string;
  /** Regenerated source of a function body that takes `(value, valueExists, context)`. */
  readonly source: string;
  /** Which parts of `context` it reads. */
  readonly reads: ReadSet;
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

/** One program on all of its matches in one object. */
export interface EvaluateRequest {
  readonly program: ProgramId;
  readonly context: ObjectContext;
  readonly matches: readonly Match[];
}

export interface Match {
  /** Undefined: the path does not exist. */
  readonly value: JsonValue | undefined;
  /** The concrete path, `subsets.0.addresses.1.ip`. */
  readonly path: string;
}

/** `undefined` is a value here: the member is to be deleted, as for null. */
export type EvaluateResult =
  | { readonly ok: true; readonly value: JsonValue | undefined }
  | { readonly ok: false; readonly error: EvaluateError };

export interface EvaluateError {
  readonly kind: PatchErrorKind;
  /** One line, bounded, control characters encoded. */
  readonly message: string;
  /** 1-based place in the expression, when known. */
  readonly line?: number;
  readonly column?: number;
}

/** Runs programs where they can do no harm. */
export interface Evaluator {
  /** Results in the order of the matches. Rejects only when the evaluator itself is closed. */
  evaluate(request: EvaluateRequest): Promise<readonly EvaluateResult[]>;
}
