/** Builds responses from one outcome, and converts outcomes to and from cached results. */

import type { JsonValue } from '../../../base/json.ts';
import { RememberedError, REMEMBERED_NULL, REMEMBERED_UNDEFINED, type Remembered } from './memo.ts';
import type { EvaluateError, EvaluateResponse } from '../types.ts';

export function everyValue(count: number, value: JsonValue | undefined): EvaluateResponse {
  return { values: Array.from({ length: count }, () => value), errors: undefined };
}

export function everyError(count: number, error: EvaluateError): EvaluateResponse {
  const values = Array.from({ length: count }, () => undefined);
  return { values, errors: new Map(values.map((_, index) => [index, error])) };
}

export function everyRemembered(count: number, known: Remembered): EvaluateResponse {
  return known instanceof RememberedError
    ? everyError(count, known.error)
    : everyValue(count, valueOf(known));
}

export function valueOf(known: Exclude<Remembered, RememberedError>): JsonValue | undefined {
  if (known === REMEMBERED_UNDEFINED) return undefined;
  return known === REMEMBERED_NULL ? null : known;
}

/** Undefined for an outcome that must not be cached, because it does not depend on the inputs alone. */
export function rememberedOf(
  value: JsonValue | undefined,
  error: EvaluateError | undefined,
): Remembered | undefined {
  if (error !== undefined) {
    const { kind } = error;
    return kind === 'timeout' || kind === 'memory' || kind === 'killed'
      ? undefined
      : new RememberedError(error);
  }
  if (value === undefined) return REMEMBERED_UNDEFINED;
  return value === null ? REMEMBERED_NULL : value;
}

/** The error for an object on which the expression does not run before `untilMs`. */
export function quarantineError(untilMs: number, nowMs: number): EvaluateError {
  const until = new Date(untilMs).toISOString();
  return {
    kind: 'killed',
    message: `this expression is quarantined until ${until} on this object: it had to be stopped before`,
    retryAfterMs: untilMs - nowMs,
  };
}
