/** Reads responses of the child, which is not trusted: a response may have any content. */

import { oneLine } from '../../base/excerpt.ts';
import type { JsonValue } from '../../base/json.ts';
import type { ErrorMessage, ResultMessage } from './protocol.ts';
import type { EvaluateError, Program } from './types.ts';

/** Undefined: not a valid response. */
export function readResults(text: string): Results | undefined {
  const parsed = parse(text);
  if (!isResult(parsed)) return undefined;
  const { values, undefinedAt = [], errors = [] } = parsed;
  const all = [...errors];
  for (let index = 0; index < values.length; index++) {
    const message = acceptResult(values[index]);
    if (message !== undefined) all.push({ index, kind: 'result', message, line: 0, column: 0 });
  }
  for (const index of undefinedAt) values[index] = undefined;
  for (const { index } of all) values[index] = undefined;
  return { values, errors: all };
}

/** Valid results of consecutive matches. */
interface Results {
  readonly values: readonly (JsonValue | undefined)[];
  readonly errors: readonly ErrorMessage[];
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isResult(
  value: unknown,
): value is Omit<ResultMessage, 'values'> & { readonly values: (JsonValue | undefined)[] } {
  if (typeof value !== 'object' || value === null) return false;
  const { values, undefinedAt, errors } = value as Record<string, unknown>; // of any type
  if (!Array.isArray(values) || values.length === 0) return false;
  const isIndex = (index: unknown): boolean =>
    typeof index === 'number' && Number.isInteger(index) && index >= 0 && index < values.length;
  const isError = (error: unknown): boolean => {
    if (typeof error !== 'object' || error === null) return false;
    const { index, message } = error as Partial<Record<string, unknown>>; // of any type
    return isIndex(index) && typeof message === 'string';
  };
  return (
    (undefinedAt === undefined || (Array.isArray(undefinedAt) && undefinedAt.every(isIndex))) &&
    (errors === undefined || (Array.isArray(errors) && errors.every(isError)))
  );
}

const RESULT_DEPTH_MAX = 64;
const ILL_FORMED = 'the result contains a lone surrogate, which cannot be encoded as UTF-8';

/** Freezes a result, because it may be cached and returned again. Returns its problem, if any. */
function acceptResult(result: JsonValue | undefined): string | undefined {
  if (typeof result === 'string') return result.isWellFormed() ? undefined : ILL_FORMED;
  if (typeof result !== 'object' || result === null) return undefined;
  const pending: { value: object; depth: number }[] = [{ value: result, depth: 1 }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, depth } = next;
    if (depth > RESULT_DEPTH_MAX) return `the result is nested deeper than ${RESULT_DEPTH_MAX} levels`;
    Object.freeze(value);
    for (const [key, member] of Object.entries(value) as [string, unknown][]) {
      if (key === '__proto__') return 'the result has a member named `__proto__`';
      if (!key.isWellFormed() || (typeof member === 'string' && !member.isWellFormed())) return ILL_FORMED;
      if (typeof member === 'object' && member !== null) pending.push({ value: member, depth: depth + 1 });
    }
  }
  return undefined;
}

const KINDS: ReadonlySet<string> = new Set(['runtime', 'result', 'result-size', 'syntax']);
/** Longest message that an expression can put into a log line. */
const MESSAGE_CHARS_MAX = 300;

/** Converts an error of the child: validated, on one line, with the position in the user's expression. */
export function toEvaluateError(
  { kind, message, line, column }: ErrorMessage,
  { mappings }: Program,
): EvaluateError {
  const mapping = mappings.findLast((each) => each.line === line && each.column <= column);
  return {
    kind: KINDS.has(kind) ? kind : 'runtime',
    message: oneLine(message, MESSAGE_CHARS_MAX),
    ...(mapping && { line: mapping.toLine, column: mapping.toColumn }),
  };
}
