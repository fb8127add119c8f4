/** Describes a thrown value as text. Reading it may run code of the expression, so this happens inside the timed call. Frames are removed
 * from `stack`, because they would reveal code of the host and numbers that differ between processes; the position of the error is kept
 * for the host only. Runs inside the isolate: only type imports.
 */

import type { ErrorMessage } from '../protocol.ts';

const MESSAGE_CHARS_MAX = 300;
const STACK_CHARS_MAX = 4000;

export type ErrorPlaces = WeakMap<object, ErrorPlace>;

export function describeThrown(thrown: unknown, index: number, places: ErrorPlaces): ErrorMessage {
  try {
    if (typeof thrown !== 'object' || thrown === null) {
      return runtimeError(index, `threw ${describePrimitive(thrown)}`);
    }
    const { name, message } = thrown as { name?: unknown; message?: unknown };
    const title = textOf(name, MESSAGE_CHARS_MAX) || 'an object';
    const text = textOf(message, MESSAGE_CHARS_MAX);
    const [line, column] = errorPlace(thrown, message, places) ?? [0, 0];
    return { ...runtimeError(index, text === '' ? `threw ${title}` : `${title}: ${text}`), line, column };
  } catch {
    return runtimeError(index, 'threw a value that cannot be described');
  }
}

function runtimeError(index: number, message: string): ErrorMessage {
  return { index, kind: 'runtime', message, line: 0, column: 0 };
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

interface CallSite {
  getFileName(): string | null;
  getLineNumber(): number | null;
  getColumnNumber(): number | null;
}

/** A place in a program's source, 1-based. */
type ErrorPlace = readonly [line: number, column: number];

const PROGRAM = 'program-';

/** V8 calls `prepareStackTrace` when `stack` is first read. Expressions can see it but not replace it. */
export function hideStacks(): WeakMap<object, ErrorPlace> {
  const places = new WeakMap<object, ErrorPlace>();
  const prepareStackTrace = (error: unknown, sites: unknown): string => {
    if (Array.isArray(sites) && typeof error === 'object' && error !== null) {
      const place = placeOf(sites as readonly CallSite[]);
      if (place !== undefined) places.set(error, place);
    }
    return Error.prototype.toString.call(error);
  };
  Object.defineProperty(Error, 'prepareStackTrace', { value: prepareStackTrace });
  return places;
}

function placeOf(sites: readonly CallSite[]): ErrorPlace | undefined {
  for (let i = 0; i < sites.length; i++) {
    const site = sites[i];
    // An expression can call this function with other objects.
    if (typeof site?.getFileName !== 'function' || !site.getFileName()?.startsWith(PROGRAM)) continue;
    return [site.getLineNumber() ?? 0, site.getColumnNumber() ?? 0];
  }
  return undefined;
}
