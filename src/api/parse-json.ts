/** JSON text of a client → JSON that the rest may walk by recursion. */

import type { JsonValue } from '../lib/json.ts';
import { DEPTH_MAX } from './limits.ts';
import { DecodeError } from './schema/decode-scalar.ts';

/** JSON.parse with Go's words for a text that is none. */
export function parseJsonText(text: string): JsonValue {
  try {
    return shallow(JSON.parse(text) as JsonValue); // JSON.parse yields JSON
  } catch (cause) {
    if (cause instanceof DecodeError) throw cause;
    throw new DecodeError(isCutShort(text, cause) ? 'unexpected end of JSON input' : 'invalid JSON syntax', {
      cause,
    });
  }
}

function shallow(value: JsonValue): JsonValue {
  let level: JsonValue[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > DEPTH_MAX) throw new DecodeError('exceeded max depth');
    level = level.flatMap((item) => (typeof item === 'object' && item !== null ? Object.values(item) : []));
  }
  return value;
}

/** The error stands at the end of the text: more was to come. */
function isCutShort(text: string, error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const position = /at position (\d+)/.exec(error.message)?.[1];
  return position === undefined
    ? /end of JSON/.test(error.message)
    : Number(position) >= text.trimEnd().length;
}
