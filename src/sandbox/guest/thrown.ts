/**
 * What an expression threw, as text. It may do anything when it is looked at, and it is looked at inside the timed call. Runs inside
 * the isolate: no imports that are more than types.
 */

import type { ErrorFrame } from '../protocol.ts';

const MESSAGE_CHARS_MAX = 300;
const STACK_CHARS_MAX = 4000;
const PLACE = /program-\d+:(\d+):(\d+)/;

export function describeThrown(thrown: unknown, index: number): ErrorFrame {
  try {
    if (typeof thrown !== 'object' || thrown === null) {
      return [index, 'runtime', `threw ${describePrimitive(thrown)}`, 0, 0];
    }
    const { name, message } = thrown as { name?: unknown; message?: unknown };
    const title = textOf(name, MESSAGE_CHARS_MAX) || 'an object';
    const text = textOf(message, MESSAGE_CHARS_MAX);
    const place = PLACE.exec(stackOf(thrown, message));
    const [line, column] = [Number(place?.[1] ?? 0), Number(place?.[2] ?? 0)];
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

/** The message comes first in it: behind a long one no place would be found, and V8 would copy all of it. */
function stackOf(thrown: object, message: unknown): string {
  if (typeof message === 'string' && message.length > STACK_CHARS_MAX) return '';
  return textOf((thrown as { stack?: unknown }).stack, STACK_CHARS_MAX);
}

/** Never longer than asked for, however long the text is. */
function textOf(value: unknown, lengthMax: number): string {
  return typeof value === 'string' ? value.slice(0, lengthMax) : '';
}
