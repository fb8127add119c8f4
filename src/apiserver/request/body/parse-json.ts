/** Parses JSON of a client, with limits that allow the rest of the server to walk the value recursively and in bounded time. */

import type { JsonValue } from '../../../base/json.ts';
import { DecodeError } from '../../schema/decode-scalar.ts';
import { checkComplexity } from '../../schema/json-text.ts';

/** JSON.parse with Go's error messages. Throws {@link DecodeError}, or a 413 `StatusError` for a text that is too complex. */
export function parseJsonText(text: string): JsonValue {
  checkComplexity(text);
  try {
    return JSON.parse(text) as JsonValue; // JSON.parse yields JSON
  } catch (cause) {
    throw new DecodeError(isCutShort(text, cause) ? 'unexpected end of JSON input' : 'invalid JSON syntax', {
      cause,
    });
  }
}

/** The error is at the end of the text: the parser expected more. */
function isCutShort(text: string, error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const position = /at position (\d+)/.exec(error.message)?.[1];
  return position === undefined
    ? /end of JSON/.test(error.message)
    : Number(position) >= text.trimEnd().length;
}
