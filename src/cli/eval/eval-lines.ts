/**
 * Reads expressions as lines of JSON and writes their results as lines of JSON, in the same order. For a line that is not a valid request,
 * the result is an error of kind `syntax` with the number of the line; its id is null if the line has none.
 */

import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { messageOf } from '../../base/errors.ts';
import { isJsonObject, ownValue, setOwn, type JsonObject, type JsonValue } from '../../base/json.ts';
import {
  readContext,
  type EvalError,
  type EvalInput,
  type EvalOutcome,
  type EvalSession,
} from './eval-session.ts';

/** `print` gets each result without a line break. */
export async function evaluateLines(
  input: Readable,
  session: EvalSession,
  print: (line: string) => Promise<void>,
): Promise<void> {
  let number = 0;
  for await (const line of linesOf(input)) {
    number += 1;
    if (line.trim() !== '') await print(await resultOf(line, number, session));
  }
}

/** Splits only at line feeds: JSON may contain U+2028, at which `readline` splits as well. */
async function* linesOf(input: Readable): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8');
  let parts: string[] = [];
  for await (const chunk of input) {
    const pieces = decoder.write(chunk as Buffer).split('\n'); // no encoding is set on the stream
    for (const piece of pieces.slice(0, -1)) {
      yield [...parts, piece].join('');
      parts = [];
    }
    parts.push(pieces.at(-1) ?? '');
  }
  yield parts.join('') + decoder.end();
}

async function resultOf(line: string, number: number, session: EvalSession): Promise<string> {
  const parsed = parseJson(line);
  if ('error' in parsed) return text(null, malformed(number, parsed.error));
  const request = parsed.value;
  if (!isJsonObject(request)) return text(null, malformed(number, 'not an object'));
  const id = ownValue(request, 'id') ?? null;
  const read = readInput(request, undefined);
  if (typeof read === 'string') return text(id, malformed(number, read));
  const outcome = plain(await session.evaluate(read));
  const then = ownValue(request, 'then');
  if (then === undefined) return text(id, outcome);
  const next = isJsonObject(then) ? readInput(then, read) : '`then` is not an object';
  const after = typeof next === 'string' ? malformed(number, next) : plain(await session.evaluate(next));
  setOwn(outcome, 'then', after);
  return text(id, outcome);
}

function text(id: JsonValue, outcome: JsonObject): string {
  return JSON.stringify({ id, ...outcome });
}

/** Returns the reason if the input is invalid. A second expression has the path and the context of the first. */
function readInput(json: JsonObject, first: EvalInput | undefined): EvalInput | string {
  const [expression, path, context] = [
    ownValue(json, 'expression'),
    ownValue(json, 'path'),
    ownValue(json, 'context'),
  ];
  if (typeof expression !== 'string') return '`expression` is not a string';
  if (path !== undefined && typeof path !== 'string') return '`path` is not a string';
  if (context !== undefined && context !== null && !isJsonObject(context))
    return '`context` is not an object';
  const value = readValue(json);
  if ('error' in value) return `\`valueJson\` is ${value.error}`;
  const ownPath = path ?? (isJsonObject(context) ? ownValue(context, 'path') : undefined);
  return {
    expression,
    value: value.value,
    path: typeof ownPath === 'string' ? ownPath : (first?.path ?? ''),
    context:
      isJsonObject(context) || first === undefined
        ? readContext(isJsonObject(context) ? context : {})
        : first.context,
  };
}

function readValue(json: JsonObject): { value: JsonValue | undefined } | { error: string } {
  const text = ownValue(json, 'valueJson');
  if (text === undefined) return { value: ownValue(json, 'value') };
  return typeof text === 'string' ? parseJson(text) : { error: 'not a string' };
}

function parseJson(text: string): { value: JsonValue } | { error: string } {
  try {
    return { value: JSON.parse(text) as JsonValue }; // any JSON value
  } catch (error) {
    return { error: `not JSON: ${messageOf(error)}` };
  }
}

function plain(outcome: EvalOutcome): JsonObject {
  if ('error' in outcome) return { error: plainError(outcome.error) };
  return 'value' in outcome ? { value: outcome.value } : { undefined: true };
}

function plainError({ kind, message, line, column }: EvalError): JsonObject {
  return {
    kind,
    message,
    ...(line === undefined ? {} : { line }),
    ...(column === undefined ? {} : { column }),
  };
}

function malformed(number: number, reason: string): JsonObject {
  return { error: { kind: 'syntax', message: `line ${number}: ${reason}` } };
}
