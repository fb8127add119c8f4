/** Loads the configuration of one run, with the sections of both products. */

import { ConfigError, type ConfigProblem } from '../../base/errors.ts';
import type { ManagementConfig } from '../../access-keys/config.ts';
import type { ConfigText } from '../../shared-config/layers.ts';
import type { Config } from '../../syncer/config/config.ts';
import type { ConfigFlags } from './command-line.ts';
import {
  configFile,
  InvalidConfigError,
  readConfigFiles,
  type ReadFiles,
  type ReadOptions,
} from './files.ts';
import { parseConfig, type ParseOptions, type ParseResult } from './parse.ts';

export interface LoadOptions extends Omit<ParseOptions, 'fileExists'>, Pick<ReadOptions, 'given'> {
  /** `-` is standard input; absent: ENDPOINT_SYNCER_CONFIG, else no file at all. */
  readonly file?: string;
}

export interface LoadedConfig extends Pick<ReadFiles, 'file' | 'files' | 'textHash'> {
  readonly config: Config;
  /** Of the key and token API. */
  readonly management: ManagementConfig;
  readonly warnings: readonly ConfigProblem[];
}

/** Precedence: flags, environment, file, vCluster's file, defaults. Throws a `ConfigError` with all problems. */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const checked = await checkConfig(configFile(options), options);
  const { config, management, problems, file, files, textHash } = checked;
  if (config === undefined || management === undefined) throw new InvalidConfigError(problems, files);
  return { config, management, warnings: problems, file, files, textHash };
}

/** The defaults, flags and environment alone. `fallbacks`: flags, for what these do not set. Throws a `ConfigError`. */
export function configWithoutFile(input: LoadOptions, fallbacks: ConfigFlags): Config {
  const name = input.env['VCLUSTER_NAME'] ?? '';
  const flags = { ...fallbacks, ...(name !== '' && { name }), ...input.flags };
  const { config, problems } = parseConfig({ text: '', file: '' }, { ...input, flags });
  if (config === undefined) throw new ConfigError(problems);
  return config;
}

export interface CheckOptions extends Omit<LoadOptions, 'file' | 'isNameOptional'>, ReadOptions {
  readonly isNameOptional?: boolean | ((source: ConfigText) => boolean);
}

export type CheckedConfig = ParseResult & Pick<LoadedConfig, 'file' | 'files' | 'textHash'>;

/** Reads and checks one configuration; `-` is standard input, undefined no file. Throws a `ConfigError` for a file that cannot be read. */
export async function checkConfig(file: string | undefined, options: CheckOptions): Promise<CheckedConfig> {
  const { isNameOptional = false } = options;
  const read = await readConfigFiles(file, options);
  const { source, vcluster, fileExists, described, ...files } = read;
  const result = parseConfig(
    source,
    {
      ...options,
      isNameOptional: typeof isNameOptional === 'boolean' ? isNameOptional : isNameOptional(source),
      ...(fileExists && { fileExists }),
    },
    vcluster,
  );
  return { ...result, ...files, problems: result.problems.map(described) };
}
