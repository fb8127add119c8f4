/** Decodes and validates a response of the child, which is not trusted. See `ColumnMessage`. */

import type { JsonValue } from '../../../base/json.ts';
import { acceptResult } from './result.ts';
import type { ErrorEntry } from '../process/protocol.ts';
import type { EvaluateError } from '../types.ts';

export interface ResponseColumn {
  /** Undefined if a quote in a result made the list invalid. */
  readonly values: (JsonValue | undefined)[] | undefined;
  readonly undefinedAt: readonly number[];
  readonly errors: readonly (ErrorEntry | EvaluateErrorAt)[];
}

/** An error that the daemon detected. */
export interface EvaluateErrorAt {
  readonly index: number;
  readonly error: EvaluateError;
}

const NONE: readonly never[] = [];

/** Undefined: not a valid response. */
export function readResponse(text: string): readonly ResponseColumn[] | undefined {
  const tab = text.indexOf('\t');
  const parsed = parse(text.slice(0, tab));
  if (tab === -1 || !Array.isArray(parsed)) return undefined;
  const columns: ResponseColumn[] = [];
  let at = tab + 1;
  for (const column of parsed as unknown[]) {
    if (!Array.isArray(column) || column.length !== 4) return undefined;
    const [count, content, undefinedAt, errors] = column as [unknown, unknown, unknown, unknown];
    if (!isCount(count) || !isIndices(undefinedAt, count) || !isErrors(errors, count)) return undefined;
    const lists = {
      undefinedAt: undefinedAt === 0 ? NONE : undefinedAt,
      errors: errors === 0 ? NONE : errors,
    };
    if (typeof content === 'number') {
      columns.push({ values: readStrings(text.slice(at, at + content), count), ...lists });
      at += content;
    } else if (Array.isArray(content) && content.length === count) {
      columns.push(readValues(content as JsonValue[], text, lists));
    } else {
      return undefined;
    }
  }
  return at === text.length ? columns : undefined;
}

/** A list of exactly `count` strings. The text has no backslash, so every quote starts or ends a string, and a quote inside a result would
 * yield another number of strings, another type, or invalid JSON.
 */
function readStrings(text: string, count: number): string[] | undefined {
  const strings = parse(text);
  if (!Array.isArray(strings) || strings.length !== count || text.includes('\\')) return undefined;
  for (let i = 0; i < count; i++) if (typeof strings[i] !== 'string') return undefined;
  return strings as string[];
}

function readValues(
  values: (JsonValue | undefined)[],
  text: string,
  lists: { readonly undefinedAt: readonly number[]; readonly errors: readonly ErrorEntry[] },
): ResponseColumn {
  // Lone surrogates are stringified as escapes, so one check of the text replaces a check of every string.
  const mayBeIllFormed = text.includes('\\ud');
  const found: EvaluateErrorAt[] = [];
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    if (value === null || (typeof value !== 'object' && (!mayBeIllFormed || typeof value !== 'string')))
      continue;
    const error = acceptResult(value, mayBeIllFormed);
    if (error !== undefined) found.push({ index, error });
  }
  return {
    values,
    undefinedAt: lists.undefinedAt,
    errors: found.length === 0 ? lists.errors : [...lists.errors, ...found],
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0;
}

function isIndices(value: unknown, count: number): value is readonly number[] | 0 {
  return value === 0 || (Array.isArray(value) && value.every((index) => isIndex(index, count)));
}

function isErrors(value: unknown, count: number): value is readonly ErrorEntry[] | 0 {
  if (value === 0) return true;
  return (
    Array.isArray(value) &&
    value.every((error: unknown) => Array.isArray(error) && error.length === 5 && isIndex(error[0], count))
  );
}

function isIndex(value: unknown, count: number): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < count;
}
