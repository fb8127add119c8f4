/** `validate`: reports every problem of one or more configuration files. */

import { type Command, Option } from 'commander';
import { readDocument } from '../../config/source/document.ts';
import { checkConfig, configFile, type LoadOptions } from '../../config/load.ts';
import { inFileOrder } from '../../config/parse.ts';
import { displayName } from '../../config/source/text-file.ts';
import type { ConfigText } from '../../config/layers.ts';
import { ConfigError, type ConfigProblem } from '../../base/errors.ts';
import { isJsonObject, ownValue } from '../../base/json.ts';
import { paintFor, showProgress } from '../output/terminal.ts';
import { addConfigOptions, ALL_FIELDS, loaderInput } from './config-options.ts';
import { formatProblems, problemToJson } from '../output/config-report.ts';
import { reverseWarnings } from './reverse-warnings.ts';

/** The fields of `endpointSyncer` that `api` reads. */
const API_KEYS = ['host', 'http', 'log'];

export function define(command: Command, exit: (code: number) => void): void {
  command.argument(
    '[files...]',
    'configuration files, or - for standard input; default: the file that run reads',
  );
  command.addOption(
    new Option('-o, --output <format>', 'text or json').choices(['text', 'json']).default('text'),
  );
  command.option('--strict', 'treat warnings as errors');
  addConfigOptions(command, ALL_FIELDS);
  command.action(async (files: string[], { output, strict }: { output: string; strict?: true }) => {
    const code = await validate(
      filesToCheck(files, command),
      { ...loaderInput(command), isStart: true },
      {
        output,
        isStrict: strict === true,
      },
    );
    exit(code);
  });
}

/** Undefined stands for a configuration without a file: flags and environment only. */
function filesToCheck(files: readonly string[], command: Command): readonly (string | undefined)[] {
  return files.length > 0 ? files : [configFile(loaderInput(command))];
}

async function validate(
  files: readonly (string | undefined)[],
  options: LoadOptions,
  { output, isStrict }: { readonly output: string; readonly isStrict: boolean },
): Promise<number> {
  const found: ConfigProblem[] = [];
  using progress = showProgress('checking');
  for (const [index, file] of files.entries()) {
    found.push(...(await problemsOf(file, options)));
    progress.update(index + 1, files.length);
  }
  progress[Symbol.dispose]();
  const problems = isStrict ? found.map((problem) => ({ ...problem, severity: 'error' as const })) : found;
  const errors = problems.filter((problem) => problem.severity === 'error').length;
  if (output === 'json') {
    process.stdout.write(`${JSON.stringify(problems.map(problemToJson), null, 2)}\n`);
  } else {
    process.stdout.write(formatProblems(problems, paintFor(process.stdout)));
    const subject = files[0] === undefined ? 'without a file' : counted(files.length, 'file');
    process.stderr.write(`${subject}: ${summary(errors, problems.length - errors)}\n`);
  }
  return errors > 0 ? 2 : 0;
}

async function problemsOf(file: string | undefined, options: LoadOptions): Promise<readonly ConfigProblem[]> {
  try {
    const checked = await checkConfig(file, { ...options, isNameOptional: isForApiOnly });
    if (checked.config === undefined) return checked.problems;
    const found = (await reverseWarnings(checked.config, checked.file)).map(checked.locate);
    return inFileOrder([...checked.problems, ...found], displayName(file ?? ''));
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

/** A file that only `api` uses needs no name of a virtual cluster. */
function isForApiOnly({ file, text }: ConfigText): boolean {
  const { value } = readDocument(file, text);
  if (ownValue(value, 'managementApi') === undefined || Object.hasOwn(value, 'sync')) return false;
  const own = ownValue(value, 'endpointSyncer') ?? {};
  return isJsonObject(own) && Object.keys(own).every((key) => API_KEYS.includes(key));
}

function summary(errors: number, warnings: number): string {
  const found = [
    errors > 0 ? counted(errors, 'error') : '',
    warnings > 0 ? counted(warnings, 'warning') : '',
  ];
  return found.filter((part) => part !== '').join(' and ') || 'valid';
}

function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}
