/** Describes a thrown value as text. Reading it may run code of the expression, so this happens inside the timed call. Runs inside the
 * isolate: only type imports.
 */

import type { ErrorEntry } from '../process/protocol.ts';
import type { ErrorPlace } from './error-places.ts';

const MESSAGE_CHARS_MAX = 300;
const STACK_CHARS_MAX = 4000;

export type ErrorPlaces = WeakMap<object, ErrorPlace>;

export function describeThrown(thrown: unknown, index: number, places: ErrorPlaces): ErrorEntry {
  try {
    if (typeof thrown !== 'object' || thrown === null) {
      return [index, 'runtime', `threw ${describePrimitive(thrown)}`, 0, 0];
    }
    const { name, message } = thrown as { name?: unknown; message?: unknown };
    const title = textOf(name, MESSAGE_CHARS_MAX) || 'an object';
    const text = textOf(message, MESSAGE_CHARS_MAX);
    const [line, column] = errorPlace(thrown, message, places) ?? [0, 0];
    return [index, 'runtime', text === '' ? `threw ${title}` : `${title}: ${text}`, line, column];
  } catch {
    return [index, 'runtime', 'threw a value that cannot be described', 0, 0];
  }
}

function describePrimitive(thrown: unknown): string {
  if (typeof thrown === 'string') return textOf(thrown, MESSAGE_CHARS_MAX);
  if (typeof thrown === 'symbol' || typeof thrown === 'function') return `a ${typeof thrown}`;
  return String(thrown as number);
}

/** Reading `stack` records the position. Skipped for long messages, because it would copy them. */
function errorPlace(thrown: object, message: unknown, places: ErrorPlaces): ErrorPlace | undefined {
  if (typeof message === 'string' && message.length > STACK_CHARS_MAX) return undefined;
  void (thrown as { stack?: unknown }).stack;
  return places.get(thrown);
}

function textOf(value: unknown, lengthMax: number): string {
  return typeof value === 'string' ? value.slice(0, lengthMax) : '';
}
