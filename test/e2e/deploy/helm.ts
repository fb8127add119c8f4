/** Runs Helm: the program that `HELM` names, or one that is built once from its Go module. */

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { builtProgram } from './built-program.ts';

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
  return process.env['HELM'] ?? builtProgram('helm', 'helm.sh/helm/v4');
}
