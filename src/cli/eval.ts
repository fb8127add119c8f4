/** `eval`: expressions in the sandbox, from the command line or as lines of JSON. */

import { printableJson } from '../base/excerpt.ts';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { Option, type Command } from 'commander';
import { messageOf } from '../base/errors.ts';
import {
  textAt,
  type JsonObject,
  type JsonValue,
  isJsonObject,
  ownValue,
  setOwn,
  valueAt,
} from '../base/json.ts';
import { loadConfig } from './config/load.ts';
import { loaderInput } from './config-options.ts';
import { type ExitWith, usageError, tell } from './output/terminal.ts';
import { readMapping } from './output/objects.ts';
import {
  describePlace,
  EvalSession,
  type EvalInput,
  type EvalOutcome,
} from '../expressions/evaluation-session.ts';

type EvalContext = EvalInput['context'];

const DEFAULT_NAME = 'my-vcluster';

interface EvalFlags {
  value?: string;
  path: string;
  context?: string;
  config?: string;
  jsonl?: boolean;
  place?: boolean;
}

export function define(command: Command, exitWith: ExitWith): void {
  command
    .argument('[expression]', 'JavaScript with `value` and `context` in scope')
    .option('--value <json>', 'the value; if omitted, the path does not exist')
    .option('--path <path>', 'context.path', '')
    .option(
      '--context <file>',
      'file with {vcluster: {name, namespace, config}, hostObject, virtualObject}, or - for standard input',
    )
    .option('-c, --config <file>', 'configuration file: context.vcluster, unless --context has one')
    .addOption(
      new Option(
        '--jsonl',
        'read lines of {id, expression, value?, valueJson?, path?, context?, then?} from standard input',
      ).conflicts(['value', 'context', 'config']),
    )
    .option(
      '--place',
      'also say where the daemon evaluates it: in its own process, or in the sandbox, and why',
    )
    .action((expression: string | undefined, flags: EvalFlags) => {
      if ((flags.jsonl === true) === (expression !== undefined))
        command.error('error: specify an expression, or --jsonl to read expressions from standard input');
      return exitWith(() =>
        expression === undefined ? runLines(flags.place === true) : runOne(expression, command, flags),
      );
    });
}

async function runLines(showsPlace: boolean): Promise<number> {
  await using session = new EvalSession(showsPlace);
  let number = 0;
  for await (const line of linesOf(process.stdin)) {
    number += 1;
    if (line.trim() === '') continue;
    const result = await resultOf(line, number, session);
    if (!process.stdout.write(`${result}\n`)) await once(process.stdout, 'drain');
  }
  return 0;
}

async function runOne(expression: string, command: Command, flags: EvalFlags): Promise<number> {
  const context = {
    ...(flags.config === undefined ? {} : { vcluster: await configuredVcluster(command) }),
    ...(flags.context === undefined ? {} : await readMapping(flags.context)),
  };
  const parsed = flags.value === undefined ? { value: undefined } : parsedValue(flags.value);
  if ('error' in parsed)
    return usageError('--value is not JSON; a string needs its quotes: --value \'"text"\'');
  await using session = new EvalSession(flags.place === true);
  const input = { expression, ...parsed, path: flags.path, context: withName(readContext(context)) };
  return print(await session.evaluate(input));
}

async function configuredVcluster(command: Command): Promise<JsonObject> {
  const { config } = await loadConfig(loaderInput(command));
  return { name: config.name, namespace: config.host.namespace, config: config.vclusterValues };
}

/** The default name of the virtual cluster is that of the documentation, as in `patch`. */
function withName({ vcluster, objects }: EvalContext): EvalContext {
  const name = vcluster.name === '' ? DEFAULT_NAME : vcluster.name;
  const namespace = vcluster.namespace === '' ? `vcluster-${name}` : vcluster.namespace;
  return { vcluster: { ...vcluster, name, namespace }, objects };
}

function print(outcome: EvalOutcome): number {
  if ('place' in outcome) tell(describePlace(outcome));
  if ('error' in outcome) {
    const { kind, message, line, column } = outcome.error;
    const place = line === undefined ? '' : ` (line ${line}, column ${column ?? 1})`;
    tell(`${kind}: ${message}${place}`);
    return 1;
  }
  process.stdout.write(`${'value' in outcome ? printableJson(outcome.value, 0) : 'undefined'}\n`);
  return 0;
}

/** `{vcluster?: {name, namespace, config}, hostObject?, virtualObject?}`; what is missing is empty or null. */
function readContext(json: JsonObject): EvalContext {
  const vcluster = objectAt(json, 'vcluster') ?? {};
  return {
    vcluster: {
      name: textAt(vcluster, 'name'),
      namespace: textAt(vcluster, 'namespace'),
      config: objectAt(vcluster, 'config') ?? {},
    },
    objects: { hostObject: objectAt(json, 'hostObject'), virtualObject: objectAt(json, 'virtualObject') },
  };
}

function objectAt(object: JsonObject, key: string): JsonObject | null {
  const value = ownValue(object, key);
  return isJsonObject(value) ? value : null;
}

// Reads expressions as lines of JSON and writes their results as lines of JSON, in the same order. For a line that is not a valid request,
// the result is an error of kind `syntax` with the number of the line; its id is null if the line has none.

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
  const evaluate = (input: EvalInput | string): EvalOutcome | Promise<EvalOutcome> =>
    typeof input === 'string'
      ? { error: { kind: 'syntax', message: `line ${number}: ${input}` } }
      : session.evaluate(input);
  const parsed = parsedValue(line);
  if ('error' in parsed || !isJsonObject(parsed.value)) {
    const reason = 'error' in parsed ? parsed.error : 'not an object';
    return printableJson({ id: null, ...(await evaluate(reason)) }, 0);
  }
  const request = parsed.value;
  const read = readInput(request, undefined);
  const result: Record<string, unknown> = { id: ownValue(request, 'id') ?? null, ...(await evaluate(read)) };
  const then = ownValue(request, 'then');
  if (then !== undefined && typeof read !== 'string') {
    const second = isJsonObject(then) ? readInput(then, read) : '`then` is not an object';
    setOwn(result, 'then', await evaluate(second));
  }
  return printableJson(result, 0);
}

/** Returns the reason if the input is invalid. A second expression has the path and the context of the first. */
function readInput(json: JsonObject, first: EvalInput | undefined): EvalInput | string {
  const [expression, path, context] = ['expression', 'path', 'context'].map((key) => ownValue(json, key));
  if (typeof expression !== 'string') return '`expression` is not a string';
  if (path !== undefined && typeof path !== 'string') return '`path` is not a string';
  if (context !== undefined && context !== null && !isJsonObject(context))
    return '`context` is not an object';
  const value = readValue(json);
  if ('error' in value) return `\`valueJson\` is ${value.error}`;
  const ownPath = path ?? valueAt(context, ['path']);
  return {
    expression,
    value: value.value,
    path: typeof ownPath === 'string' ? ownPath : (first?.path ?? ''),
    context: isJsonObject(context) ? readContext(context) : (first?.context ?? readContext({})),
  };
}

function readValue(json: JsonObject): { value: JsonValue | undefined } | { error: string } {
  const text = ownValue(json, 'valueJson');
  if (text === undefined) return { value: ownValue(json, 'value') };
  return typeof text === 'string' ? parsedValue(text) : { error: 'not a string' };
}

function parsedValue(text: string): { value: JsonValue } | { error: string } {
  try {
    return { value: JSON.parse(text) as JsonValue }; // any JSON value
  } catch (error) {
    return { error: `not JSON: ${messageOf(error)}` };
  }
}
