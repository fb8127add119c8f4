/** Finds, reads and checks the configuration of one run. */

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { ConfigError, type ConfigProblem } from '../base/errors.ts';
import { folderOf, vclusterFileOf, type ConfigText, type VclusterText } from './layers.ts';
import { parseConfig, type ParseOptions, type ParseResult } from './parse.ts';
import { overridesOfCommandLine } from './overrides.ts';
import { displayName, readTextFile } from './source-file.ts';
import type { Config, ConfigFlags } from './config.ts';
import { readDocument } from './document.ts';
import { chartKeyOf, vclusterDefaults, withoutHeading } from './vcluster-values.ts';

export interface LoadOptions extends Omit<ParseOptions, 'overrides' | 'fileExists'> {
  /** `-` is standard input; absent: ENDPOINT_SYNCER_CONFIG, else no file at all. */
  readonly file?: string;
  /** Instead of files: what they name may not exist here. */
  readonly given?: { readonly source: ConfigText; readonly vcluster?: VclusterText };
}

/** Text by path; undefined for a file that could not be read. */
export type FileTexts = ReadonlyMap<string, string | undefined>;

export interface LoadedConfig {
  readonly config: Config;
  readonly warnings: readonly ConfigProblem[];
  /** Undefined for standard input, and if there is no file. */
  readonly file: string | undefined;
  /** Of the text of the configuration file, see {@link configurationTextHash}; '' if there is none. */
  readonly textHash: string;
  /** What a reload reads again: that file, and vCluster's own values. */
  readonly files: FileTexts;
}

/** The limit of a ConfigMap. */
export const FILE_BYTES_MAX = 1024 * 1024;

export class InvalidConfigError extends ConfigError {
  /** See {@link LoadedConfig.files}. */
  readonly files: FileTexts;

  constructor(problems: readonly ConfigProblem[], files: FileTexts) {
    super(problems);
    this.files = files;
  }
}

/** Precedence: flags, environment, file, vCluster's file, defaults. Throws a `ConfigError` with all problems. */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const { config, problems, file, files, textHash } = await checkConfig(configFile(options), options);
  if (config === undefined) throw new InvalidConfigError(problems, files);
  return { config, warnings: problems, file, files, textHash };
}

/** Tells which ConfigMap or Secret has the configuration in use: what else they contain may be written by a tenant. */
export function configurationTextHash(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** The defaults, flags and environment alone. `fallbacks`: flags, for what these do not set. Throws a `ConfigError`. */
export function configWithoutFile(input: LoadOptions, fallbacks: ConfigFlags): Config {
  const name = input.env['VCLUSTER_NAME'] ?? '';
  const flags = { ...fallbacks, ...(name !== '' && { name }), ...input.flags };
  const { config, problems } = parseConfig({ text: '', file: '' }, { ...input, flags });
  if (config === undefined) throw new ConfigError(problems);
  return config;
}

/** Most likely the file was forgotten, not the name alone. */
function asMissingFile(problem: ConfigProblem): ConfigProblem {
  if (problem.path !== 'endpointSyncer.name' || problem.line > 0 || problem.file !== '') return problem;
  const message =
    'there is no configuration file: use --config FILE or set ENDPOINT_SYNCER_CONFIG; without one, --name is required';
  return { ...problem, path: '', message };
}

export interface CheckOptions extends Omit<LoadOptions, 'file' | 'isNameOptional'> {
  /** Values of the chart, as `helm get values` prints them too, stand for the configuration in them. */
  readonly acceptsChart?: boolean;
  readonly isNameOptional?: boolean | ((source: ConfigText) => boolean);
}

export type CheckedConfig = ParseResult & Pick<LoadedConfig, 'file' | 'files' | 'textHash'>;

/** Reads and checks one configuration; `-` is standard input, undefined no file. Throws a `ConfigError` for a file that cannot be read. */
export async function checkConfig(file: string | undefined, options: CheckOptions): Promise<CheckedConfig> {
  const { isNameOptional = false, given, acceptsChart = false } = options;
  const text = given?.source.text ?? (file === undefined ? '' : await readConfigText(file));
  const plain: ConfigText = given?.source ?? {
    text,
    file: displayName(file ?? ''),
    ...folderOf(file ?? ''),
  };
  const source = acceptsChart ? withoutChart(plain) : plain;
  const vclusterFile = vclusterFileOf(source, overridesOfCommandLine(options));
  const vclusterText =
    given === undefined && vclusterFile !== '' ? await readVclusterText(vclusterFile) : given?.vcluster;
  const result = parseConfig(
    source,
    {
      ...options,
      isNameOptional: typeof isNameOptional === 'boolean' ? isNameOptional : isNameOptional(source),
      ...(given === undefined && { fileExists: existsSync }),
    },
    vclusterText,
  );
  const own = file === '-' ? undefined : file;
  const files = new Map<string, string | undefined>();
  if (own !== undefined) files.set(own, text);
  if (vclusterText !== undefined)
    files.set(vclusterFile, 'text' in vclusterText ? vclusterText.text : undefined);
  const problems =
    file === undefined && given === undefined ? result.problems.map(asMissingFile) : result.problems;
  const textHash = text === '' ? '' : configurationTextHash(text);
  return { ...result, problems, file: own, files, textHash };
}

function withoutChart(source: ConfigText): ConfigText {
  const text = withoutHeading(source.text);
  const below = chartKeyOf(readDocument(source.file, text).value, vclusterDefaults());
  return below === undefined ? source : { ...source, text, below };
}

/** A file that cannot be read is a finding at the field that names it. */
async function readVclusterText(file: string): Promise<VclusterText> {
  try {
    return { text: withoutHeading(await readConfigText(file)), file };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { file, failure: error.problems.map(({ message }) => message).join(', ') };
  }
}

export function configFile(options: Pick<LoadOptions, 'file' | 'env'>): string | undefined {
  const file = options.file ?? options.env['ENDPOINT_SYNCER_CONFIG'] ?? '';
  return file === '' ? undefined : file;
}

export function readConfigText(file: string): Promise<string> {
  return readTextFile(file, FILE_BYTES_MAX);
}
