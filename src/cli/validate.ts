/** `validate`: every problem of one or more configuration files at once. */

import { type Command, Option } from 'commander';
import { readDocument } from '../config/document.ts';
import { configFile, type LoadOptions, parseConfig, readConfigText } from '../config/load.ts';
import { formatProblems, problemToJson } from '../config/report.ts';
import { displayName } from '../config/text-file.ts';
import { ConfigError, type ConfigProblem } from '../kube/errors.ts';
import { ownValue } from '../lib/json.ts';
import { addConfigOptions, ALL_FIELDS, loaderInput } from './config-options.ts';

const OF_A_SYNC = ['endpointSyncer', 'sync'];

export function define(command: Command, exit: (code: number) => void): void {
  command.argument(
    '[files...]',
    'configuration files, - is standard input; none: the file that a run would read',
  );
  command.addOption(
    new Option('-o, --output <format>', 'text or json').choices(['text', 'json']).default('text'),
  );
  addConfigOptions(command, ALL_FIELDS);
  command.action(async (files: string[], { output }: { output: string }) => {
    exit(await validate(filesToCheck(files, command), loaderInput(command), output));
  });
}

/** Undefined stands for a run without any file. */
function filesToCheck(files: readonly string[], command: Command): readonly (string | undefined)[] {
  return files.length > 0 ? files : [configFile(loaderInput(command))];
}

async function validate(
  files: readonly (string | undefined)[],
  options: LoadOptions,
  output: string,
): Promise<number> {
  const problems: ConfigProblem[] = [];
  for (const file of files) problems.push(...(await problemsOf(file, options)));
  const errors = problems.filter((problem) => problem.severity === 'error').length;
  if (output === 'json') {
    process.stdout.write(`${JSON.stringify(problems.map(problemToJson), null, 2)}\n`);
  } else {
    process.stdout.write(formatProblems(problems));
    const subject = files[0] === undefined ? 'without a file' : counted(files.length, 'file');
    process.stderr.write(`${subject}: ${verdict(errors, problems.length - errors)}\n`);
  }
  return errors > 0 ? 2 : 0;
}

async function problemsOf(file: string | undefined, options: LoadOptions): Promise<readonly ConfigProblem[]> {
  try {
    const text = file === undefined ? '' : await readConfigText(file);
    const name = displayName(file ?? '');
    return parseConfig({ text, file: name }, { ...options, isNameOptional: isForApiAlone(name, text) })
      .problems;
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

/** What `api` reads has nothing to do with a virtual cluster, which would need a name. */
function isForApiAlone(name: string, text: string): boolean {
  const { value } = readDocument(name, text);
  return (
    ownValue(value, 'managementApi') !== undefined && !OF_A_SYNC.some((key) => Object.hasOwn(value, key))
  );
}

function verdict(errors: number, warnings: number): string {
  const found = [
    errors > 0 ? counted(errors, 'error') : '',
    warnings > 0 ? counted(warnings, 'warning') : '',
  ];
  const said = found.filter((part) => part !== '').join(' and ');
  return said === '' ? 'valid' : said;
}

function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}
