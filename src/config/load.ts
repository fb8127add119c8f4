/** Finds, reads and checks the configuration of one run. */

import { open } from 'node:fs/promises';
import { ConfigError, type ConfigProblem } from '../kube/errors.ts';
import { parseConfig } from './parse.ts';
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

/** What messages call a file. */
export function displayName(file: string): string {
  return file === '-' ? '<stdin>' : file;
}

/** The whole text of a file, or of standard input for `-`. Throws a `ConfigError` when it cannot be had. */
export async function readConfigText(file: string): Promise<string> {
  let content: Buffer;
  try {
    content = await readBounded(file === '-' ? process.stdin : chunksOf(file));
  } catch (error) {
    throw unreadable(file, `cannot be read: ${reasonOf(error)}`, error);
  }
  if (content.length > FILE_BYTES_MAX) throw unreadable(file, `is larger than ${FILE_BYTES_MAX} bytes`);
  try {
    // Drops a byte order mark too.
    return new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch (error) {
    throw unreadable(file, 'is not UTF-8 text', error);
  }
}

/** Stops soon after the limit: a file may be a pipe or a device without an end. */
async function readBounded(source: AsyncIterable<Buffer | string>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of source) {
    const part = Buffer.from(chunk);
    chunks.push(part);
    bytes += part.length;
    if (bytes > FILE_BYTES_MAX) break;
  }
  return Buffer.concat(chunks);
}

async function* chunksOf(file: string): AsyncIterable<Buffer> {
  await using handle = await open(file);
  for (;;) {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(64 * 1024));
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
  }
}

function unreadable(file: string, message: string, cause?: unknown): ConfigError {
  const problem: ConfigProblem = {
    file: displayName(file),
    line: 0,
    column: 0,
    path: '',
    severity: 'error',
    message,
    frame: '',
  };
  return new ConfigError([problem], { cause });
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  ENOTDIR: 'part of its path is not a folder',
  EACCES: 'this user may not read it',
  EPERM: 'this user may not read it',
};

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return REASONS[code] ?? (error instanceof Error ? error.message : String(error));
}
