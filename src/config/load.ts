/** Finds, reads and checks the configuration of one run. */

import { ConfigError, type ConfigProblem } from '../kube/errors.ts';
import { parseConfig } from './parse.ts';
import { displayName, readTextFile } from './text-file.ts';
import type { Config, ConfigChecks, ConfigFlags } from './types.ts';

export { parseConfig } from './parse.ts';

export interface LoadOptions {
  /** `-` is standard input; absent: ENDPOINT_SYNCER_CONFIG, else no file at all. */
  readonly file?: string;
  readonly env: NodeJS.ProcessEnv;
  readonly flags: ConfigFlags;
  readonly checks: ConfigChecks;
  /** For commands that have nothing to do with a virtual cluster. */
  readonly isNameOptional?: boolean;
}

export interface LoadedConfig {
  readonly config: Config;
  readonly warnings: readonly ConfigProblem[];
  /** A file that may be read again; undefined for standard input and when there is none. */
  readonly file: string | undefined;
  readonly text: string;
}

/** A ConfigMap holds no more than this either. */
export const FILE_BYTES_MAX = 1024 * 1024;

/** Flags over environment over file over defaults. Throws a `ConfigError` with every problem at once. */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const file = configFile(options);
  const text = file === undefined ? '' : await readConfigText(file);
  const { config, problems } = parseConfig({ text, file: displayName(file ?? '') }, options);
  if (config === undefined) throw new ConfigError(problems);
  return { config, warnings: problems, file: file === '-' ? undefined : file, text };
}

/** The file that a run would read. */
export function configFile(options: Pick<LoadOptions, 'file' | 'env'>): string | undefined {
  const file = options.file ?? options.env['ENDPOINT_SYNCER_CONFIG'] ?? '';
  return file === '' ? undefined : file;
}

/** The whole text of a configuration file, or of standard input for `-`. Throws a `ConfigError` when it cannot be had. */
export function readConfigText(file: string): Promise<string> {
  return readTextFile(file, FILE_BYTES_MAX);
}
