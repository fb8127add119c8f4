/** `eval`: expressions in the sandbox, from the command line or as lines of JSON. */

import { once } from 'node:events';
import { Option, type Command } from 'commander';
import { ConfigError } from '../../base/errors.ts';
import type { JsonObject, JsonValue } from '../../base/json.ts';
import { loadConfig } from '../../config/load.ts';
import { loaderInput } from '../configuration/config-options.ts';
import { reportConfigError } from '../output/config-report.ts';
import { evaluateLines } from './eval-lines.ts';
import { EvalSession, readContext, type EvalContext, type EvalOutcome } from './eval-session.ts';
import { readObject } from '../objects/one-object.ts';

/** The default of `context.vcluster.name`. */
const DEFAULT_NAME = 'my-vcluster';

interface EvalFlags {
  value?: string;
  path: string;
  context?: string;
  config?: string;
  jsonl?: boolean;
}

export function define(command: Command, exit: (code: number) => void): void {
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
    .action(async (expression: string | undefined, flags: EvalFlags) => {
      if ((flags.jsonl === true) === (expression !== undefined))
        command.error('error: specify an expression, or --jsonl to read expressions from standard input');
      exit(flags.jsonl === true ? await runLines() : await runOne(expression ?? '', command, flags));
    });
}

async function runLines(): Promise<number> {
  await using session = new EvalSession();
  await evaluateLines(process.stdin, session, async (line) => {
    if (!process.stdout.write(`${line}\n`)) await once(process.stdout, 'drain');
  });
  return 0;
}

async function runOne(expression: string, command: Command, flags: EvalFlags): Promise<number> {
  let context: JsonObject;
  try {
    context = {
      ...(flags.config === undefined ? {} : { vcluster: await configuredVcluster(command) }),
      ...(flags.context === undefined ? {} : await readObject(flags.context)),
    };
  } catch (error) {
    if (error instanceof ConfigError) return reportConfigError(error);
    throw error;
  }
  const value = flags.value === undefined ? { value: undefined } : parseValue(flags.value);
  if (value === undefined) {
    process.stderr.write('error: --value is not JSON; a string needs its quotes: --value \'"text"\'\n');
    return 2;
  }
  await using session = new EvalSession();
  const input = { expression, value: value.value, path: flags.path, context: withName(readContext(context)) };
  return print(await session.evaluate(input));
}

async function configuredVcluster(command: Command): Promise<JsonObject> {
  const { config } = await loadConfig(loaderInput(command));
  return { name: config.name, namespace: config.host.namespace, config: config.vclusterConfig };
}

/** The default name of the virtual cluster is that of the documentation, as in `patch`. */
function withName({ vcluster, objects }: EvalContext): EvalContext {
  const name = vcluster.name === '' ? DEFAULT_NAME : vcluster.name;
  const namespace = vcluster.namespace === '' ? `vcluster-${name}` : vcluster.namespace;
  return { vcluster: { ...vcluster, name, namespace }, objects };
}

function print(outcome: EvalOutcome): number {
  if ('error' in outcome) {
    const { kind, message, line, column } = outcome.error;
    const place = line === undefined ? '' : ` (line ${line}, column ${column ?? 1})`;
    process.stderr.write(`${kind}: ${message}${place}\n`);
    return 1;
  }
  process.stdout.write(`${'value' in outcome ? JSON.stringify(outcome.value) : 'undefined'}\n`);
  return 0;
}

function parseValue(text: string): { value: JsonValue } | undefined {
  try {
    return { value: JSON.parse(text) as JsonValue }; // any JSON value
  } catch {
    return undefined;
  }
}
