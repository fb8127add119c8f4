/** Runs Helm: the program that `HELM` names, or one that is built once from its Go module into a cache outside the checkout. */

import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const FOLDER = join(import.meta.dirname, '..', 'helm');
export const CHART = join(import.meta.dirname, '..', '..', '..', 'charts', 'endpoint-syncer');
const run = promisify(execFile);

/** Runs Helm with its state below `home` and returns its standard output. */
export async function helm(home: string, ...args: readonly string[]): Promise<string> {
  const env = { PATH: process.env['PATH'], HOME: home, HELM_CACHE_HOME: home, HELM_CONFIG_HOME: home };
  const { stdout } = await run(await helmProgram(), args, { env, maxBuffer: 16 * 1024 * 1024 });
  return stdout;
}

/** Its path; the first call may build it. */
export async function helmProgram(): Promise<string> {
  const given = process.env['HELM'];
  if (given !== undefined) return given;
  const version = /helm\.sh\/helm\/v4 (v\S+)/u.exec(readFileSync(join(FOLDER, 'go.mod'), 'utf8'))?.[1] ?? '';
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const folder = join(cache, 'endpoint-syncer', 'helm', version);
  if (!existsSync(join(folder, 'helm.version'))) {
    process.stderr.write(`building helm ${version} into ${folder}, once\n`);
    await run(join(FOLDER, 'build.sh'), [folder], { maxBuffer: 64 * 1024 * 1024 });
  }
  return join(folder, 'helm');
}
