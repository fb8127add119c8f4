/** `validate`: reports every problem of one or more configuration files. */

import { printableJson } from '../base/excerpt.ts';
import { formatOption } from './output/listing.ts';
import { readdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Command } from 'commander';
import { readDocument } from '../config-file/document.ts';
import { checkConfig, type LoadOptions } from './config/load.ts';
import { configFile } from './config/files.ts';
import { inFileOrder } from '../shared-config/layers.ts';
import { displayName } from '../config-file/source-file.ts';
import type { ConfigText } from '../shared-config/layers.ts';
import { ConfigError, type ConfigProblem } from '../base/errors.ts';
import { isJsonObject, ownValue, jsonEquals, type JsonValue } from '../base/json.ts';
import {
  type ExitWith,
  paintFor,
  showProgress,
  formatProblems,
  problemToJson,
  tell,
} from './output/terminal.ts';
import { expressionPlaces } from './expression-places.ts';
import { addConfigOptions, ALL_FIELDS, loaderInput } from './config-options.ts';
import { systemClock } from '../base/clock.ts';
import { silentLogger } from '../base/logger.ts';
import { SHARED_FIELDS } from '../shared-config/shared.ts';
import { warningAtValue, type Finding } from '../config-file/finding.ts';
import type { Config } from '../syncer/config/config.ts';
import { asJson, isOfKind, type KubeObject } from '../kube/object.ts';
import type { SyncableKind } from '../syncer/kinds/kind.ts';
import { SYNCABLE_KINDS } from '../syncer/kinds/synced-kinds.ts';
import { sampleValues } from '../syncer/patch/check-patch.ts';
import { compilePatches, type CompiledPatch } from '../syncer/patch/compile.ts';
import { isListPath } from '../syncer/patch/empty-lists.ts';
import { valuesOf } from '../syncer/patch/walk.ts';
import { createSandbox } from '../expressions/sandbox.ts';
import type { EvaluateError, EvaluateResponse, Evaluator, Program } from '../expressions/types.ts';
import { sandboxSettings } from '../syncer/translation.ts';
import { trialOf, type Trial } from './patch-samples.ts';
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
    const found = (await sampleWarnings(config, checked.file)).map(locate);
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

// Warnings about expressions that fail on an empty list, and about reverse expressions that do not undo theirs, found by running them in the sandbox.

const SAMPLE = { apiVersion: 'v1', metadata: { name: 'web', namespace: 'default' } };

interface SampledPatch {
  readonly kind: SyncableKind;
  readonly patch: CompiledPatch;
  readonly forward: Program;
  /** Undefined: there is no way back. */
  readonly reverse: Program | undefined;
}

type TwoWayPatch = SampledPatch & { readonly reverse: Program };

/** `file`: the configuration file, whose test cases give values besides the built-in samples; undefined: there is none. */
async function sampleWarnings(config: Config, file: string | undefined): Promise<Finding[]> {
  const all = sampledPatches(config);
  const patches = all.filter((patch): patch is TwoWayPatch => patch.reverse !== undefined);
  const lists = all.filter(({ patch }) => isListPath(patch.segments));
  if (all.length === 0) return [];
  const objects = file === undefined ? [] : await objectsOfTestCases(file);
  await using sandbox = await createSandbox({
    ...sandboxSettings(config),
    programs: all.flatMap(({ patch, forward, reverse }) => [
      forward,
      ...(reverse === undefined ? [] : [reverse]),
      ...patch.filters.map(({ program }) => program),
    ]),
    clock: systemClock,
    logger: silentLogger,
  });
  const findings: Finding[] = [];
  const warn = ({ kind, patch }: SampledPatch, key: string, message?: string, offset?: number): void => {
    const path = ['sync', 'toHost', kind.key, 'patches', patch.index, key];
    if (message !== undefined) findings.push(warningAtValue(path, message, offset));
  };
  for (const patch of lists) {
    const error = (await evaluate(sandbox, patch.forward, [[]])).errors?.get(0);
    const message = 'fails on an empty list, as objects without addresses have it';
    warn(patch, 'expression', error && `${message}: ${error.message}`);
  }
  for (const patch of all) {
    warn(patch, 'expression', await failureOnAll(patch, objects, sandbox));
  }
  for (const patch of patches) {
    warn(patch, 'reverseExpression', await firstMismatch(patch, objects, sandbox));
    const changed = await changedDecision(patch, sandbox);
    warn(patch, 'path', changed?.message, changed?.offset);
  }
  return findings;
}

function sampledPatches({ sync }: Config): readonly SampledPatch[] {
  let programs = 0;
  return SYNCABLE_KINDS.flatMap((kind) => {
    const compiled = compilePatches(sync[kind.key].patches, programs);
    programs += compiled.programs.length;
    return compiled.patches.flatMap((patch) => {
      const { toHost, toVirtual } = patch.actions;
      if (toHost.kind !== 'evaluate') return [];
      const reverse = toVirtual.kind === 'evaluate' ? toVirtual.program : undefined;
      return [{ kind, patch, forward: toHost.program, reverse }];
    });
  });
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

/** Of an expression that fails on every sample. */
async function failureOnAll(
  { kind, patch, forward }: SampledPatch,
  objects: readonly KubeObject[],
  evaluator: Evaluator,
): Promise<string | undefined> {
  const trial = trialOf(forward.expression, patch, kind.sample);
  const values = [...(trial?.values ?? []), ...matchesIn(objects, kind, patch)];
  if (trial === undefined || values.length === 0) return undefined;
  const { errors } = await evaluate(evaluator, forward, values);
  const first = errors?.get(0);
  if (first === undefined || values.some((_, at) => !isCounted(errors?.get(at), trial))) return undefined;
  return `fails on every value that was tried, such as ${shown(values[0] ?? null)}: ${first.message}`;
}

function isCounted(error: EvaluateError | undefined, { counts }: Trial): boolean {
  return error !== undefined && counts(error);
}

/** Values that the expression rejects or deletes are skipped. */
async function firstMismatch(
  { kind, patch, forward, reverse }: TwoWayPatch,
  objects: readonly KubeObject[],
  evaluator: Evaluator,
): Promise<string | undefined> {
  const values = [...matchesIn(objects, kind, patch), ...sampleValues(patch.segments)];
  const there = await evaluate(evaluator, forward, values);
  const kept = values.flatMap((value, at) => {
    const host = there.values[at] ?? null;
    return host === null || there.errors?.has(at) ? [] : [{ value, host }];
  });
  const hosts = kept.map(({ host }) => host);
  const back = await evaluate(evaluator, reverse, hosts);
  for (const [at, { value, host }] of kept.entries()) {
    const error = back.errors?.get(at);
    const becomes = `${shown(value)} becomes ${shown(host)} on the host`;
    if (error !== undefined) return `fails on a result of expression: ${becomes}, then ${error.message}`;
    const returned = back.values[at] ?? null;
    if (!jsonEquals(value, returned))
      return `does not undo expression: ${becomes}, and ${shown(returned)} on the way back`;
  }
  return undefined;
}

/** A value for which the last filter selects an element, and no longer selects it with the result of the expression. */
async function changedDecision(
  { patch, forward }: TwoWayPatch,
  evaluator: Evaluator,
): Promise<{ readonly message: string; readonly offset: number } | undefined> {
  const filter = patch.filters.at(-1);
  if (filter === undefined) return undefined;
  const { program, offset } = filter;
  const below = patch.segments.slice(patch.segments.findLastIndex(({ kind }) => kind === 'filter') + 1);
  const elementWith = (value: JsonValue): JsonValue =>
    below.reduceRight<JsonValue>(
      (inner, segment) => (segment.kind === 'key' ? { [segment.key]: inner } : [inner]),
      value,
    );
  const values = [...sampleValues(patch.segments), ...literalsIn(program.expression)];
  const there = await evaluate(evaluator, forward, values);
  const results = values.map((_, at) => there.values[at] ?? null);
  const before = await evaluate(evaluator, program, values.map(elementWith));
  const after = await evaluate(evaluator, program, results.map(elementWith));
  const found = values.findIndex((_, at) => before.values[at] === true && after.values[at] === false);
  if (found < 0) return undefined;
  const [was, is] = [shown(values[found] ?? null), shown(results[found] ?? null)];
  const message =
    `the filter selects ${was}, and not ${is}, which the expression makes of it: a change on the host would not ` +
    'come back; decide on a field that the patch leaves as it is';
  return { message, offset };
}

function literalsIn(filter: string): JsonValue[] {
  const texts = [...filter.matchAll(/"([^"\\]*)"|'([^'\\]*)'/g)].map(
    ([, double, single]) => double ?? single ?? '',
  );
  const numbers = [...filter.matchAll(/\b\d+\b/g)].map(([number]) => Number(number));
  return [...texts, ...numbers];
}

function matchesIn(
  objects: readonly KubeObject[],
  { resource }: SyncableKind,
  { paths }: CompiledPatch,
): JsonValue[] {
  return objects
    .filter((object) => isOfKind(object, resource))
    .flatMap((object) => valuesOf(paths.toVirtual, asJson(object)))
    .filter((value) => value !== undefined);
}

async function evaluate(
  evaluator: Evaluator,
  program: Program,
  values: readonly JsonValue[],
): Promise<EvaluateResponse> {
  return evaluator.evaluate({
    program: program.id,
    object: { namespace: 'default', name: 'web' },
    context: { hostObject: null, virtualObject: SAMPLE },
    values,
    paths: program.reads.path ? values.map(() => '') : undefined,
  });
}

function shown(value: JsonValue): string {
  const text = printableJson(value, 0);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
