/**
 * What an expression threw, as text. It may do anything when it is looked at, and it is looked at inside the timed call. Runs inside
 * the isolate: no imports that are more than types.
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
    return [index, 'runtime', 'threw something that cannot be shown', 0, 0];
  }
}

function describePrimitive(thrown: unknown): string {
  if (typeof thrown === 'string') return textOf(thrown, MESSAGE_CHARS_MAX);
  if (typeof thrown === 'symbol' || typeof thrown === 'function') return `a ${typeof thrown}`;
  return String(thrown as number);
}

/** Reading `stack` notes the place. Behind a long message that would copy all of it. */
function errorPlace(thrown: object, message: unknown, places: ErrorPlaces): ErrorPlace | undefined {
  if (typeof message === 'string' && message.length > STACK_CHARS_MAX) return undefined;
  void (thrown as { stack?: unknown }).stack;
  return places.get(thrown);
}

/** Never longer than asked for, however long the text is. */
function textOf(value: unknown, lengthMax: number): string {
  return typeof value === 'string' ? value.slice(0, lengthMax) : '';
}
