/** `validate`: reports every problem of one or more configuration files. */

import { printableJson } from '../base/excerpt.ts';
import { formatOption } from './output/listing.ts';
import { readdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Command } from 'commander';
import { readDocument } from '../config-file/document.ts';
import { checkConfig, type LoadOptions } from './config/load.ts';
import { configFile } from './config/files.ts';
import { inFileOrder, type ConfigText } from '../shared-config/layers.ts';
import { displayName } from '../config-file/source-file.ts';
import { ConfigError, type ConfigProblem } from '../base/errors.ts';
import { isJsonObject, ownValue } from '../base/json.ts';
import {
  type ExitWith,
  paintFor,
  showProgress,
  formatProblems,
  problemToJson,
  tell,
} from './output/terminal.ts';
import { expressionPlaces, trialWarnings } from '../syncer/rehearsal/expression-checks.ts';
import { addConfigOptions, ALL_FIELDS, loaderInput } from './config-options.ts';
import { SHARED_FIELDS } from '../shared-config/shared.ts';
import type { KubeObject } from '../kube/object.ts';
import { readTestFile, TEST_FILE_SUFFIX } from './test/test-file.ts';

export function define(command: Command, exitWith: ExitWith): void {
  const help = 'configuration files, or - for standard input; default: the file that run reads';
  command.argument('[files...]', help);
  command.addOption(formatOption(['text', 'json']));
  command.option('--strict', 'treat warnings as errors');
  command.option('--place', 'with -o json: also say where the daemon evaluates each expression, and why');
  addConfigOptions(command, ALL_FIELDS, true);
  command.action((files: string[], { output, ...flags }: { output: string; strict?: true; place?: true }) => {
    const { strict = false, place = false } = flags;
    if (place && output !== 'json') command.error('error: --place needs -o json');
    const input = { ...loaderInput(command), isStart: true };
    // Undefined stands for a configuration without a file: flags and environment only.
    const checked = files.length > 0 ? files : [configFile(input)];
    return exitWith(() => validate(checked, input, { output, strict, place }));
  });
}

async function validate(
  files: readonly (string | undefined)[],
  options: LoadOptions,
  { output, strict, place }: { readonly output: string; readonly strict: boolean; readonly place: boolean },
): Promise<number> {
  const found: ConfigProblem[] = [];
  const places: object[] = [];
  using progress = showProgress('checking');
  for (const [index, file] of files.entries()) {
    const checked = await check(file, options, place);
    found.push(...checked.problems);
    places.push(...checked.places);
    progress.update(index + 1, files.length);
  }
  progress[Symbol.dispose]();
  const problems = strict ? found.map((problem) => ({ ...problem, severity: 'error' as const })) : found;
  const errors = problems.filter((problem) => problem.severity === 'error').length;
  if (output === 'json') {
    process.stdout.write(`${printableJson([...problems.map(problemToJson), ...places])}\n`);
  } else {
    process.stdout.write(formatProblems(problems, paintFor(process.stdout)));
    const subject = files[0] === undefined ? 'without a file' : counted(files.length, 'file');
    tell(`${subject}: ${summary(errors, problems.length - errors)}`);
  }
  return errors > 0 ? 2 : 0;
}

interface Checked {
  readonly problems: readonly ConfigProblem[];
  /** As JSON, shaped as problems are, with the severity `info`: where the daemon evaluates each expression. */
  readonly places: readonly object[];
}

async function check(file: string | undefined, options: LoadOptions, hasPlaces: boolean): Promise<Checked> {
  try {
    const checked = await checkConfig(file, {
      ...options,
      isNameOptional: isForApiOnly,
      acceptsFleet: true,
      acceptsChart: true,
    });
    const { config, locate } = checked;
    if (config === undefined) return { problems: checked.problems, places: [] };
    const objects = checked.file === undefined ? [] : await objectsOfTestCases(checked.file);
    const found = (await trialWarnings(config, objects)).map(locate);
    const problems = inFileOrder([...checked.problems, ...found], displayName(file ?? ''));
    const places = hasPlaces ? expressionPlaces(config) : [];
    return {
      problems,
      places: places.map(({ place, finding }) => ({
        ...problemToJson(locate(finding)),
        severity: 'info',
        place,
      })),
    };
  } catch (error) {
    if (error instanceof ConfigError) return { problems: error.problems, places: [] };
    throw error;
  }
}

/** A file that only `api` uses needs no name of a virtual cluster. */
function isForApiOnly(source: ConfigText): boolean {
  const { value } = readDocument(source.file, source.text, source);
  if (ownValue(value, 'managementApi') === undefined || Object.hasOwn(value, 'sync')) return false;
  const own = ownValue(value, 'endpointSyncer') ?? {};
  return isJsonObject(own) && Object.keys(own).every((key) => Object.hasOwn(SHARED_FIELDS, key));
}

function summary(errors: number, warnings: number): string {
  const found = [
    ...(errors > 0 ? [counted(errors, 'error')] : []),
    ...(warnings > 0 ? [counted(warnings, 'warning')] : []),
  ];
  return found.join(' and ') || 'valid';
}

function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}

/** The virtual objects of the test cases in the folder of the configuration. `test` reports files that cannot be read. */
async function objectsOfTestCases(file: string): Promise<readonly KubeObject[]> {
  const folder = dirname(file);
  const names = (await readdir(folder)).filter((name) => name.endsWith(TEST_FILE_SUFFIX));
  const objects: KubeObject[] = [];
  for (const name of names.toSorted()) {
    try {
      const { config, cases } = await readTestFile(join(folder, name));
      if (resolve(config) === resolve(file)) objects.push(...cases.flatMap(({ virtual }) => virtual));
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
    }
  }
  return objects;
}
