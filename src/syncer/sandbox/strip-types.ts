/** Converts TypeScript to JavaScript as Node does, but in a separate process, because the converter would keep 17 MiB in this one. That
 * process needs 100 ms of processor time, so the output is stored in Node's compile cache folder, if there is one.
 */

import { execFileSync } from 'node:child_process';
import { hash, randomBytes } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { join } from 'node:path';

const BYTES_MAX = 16 * 1024 * 1024;
const TIMEOUT_MS = 30_000;

const STRIP = `
const { readFileSync } = require('node:fs');
const { stripTypeScriptTypes } = require('node:module');
const texts = JSON.parse(readFileSync(0, 'utf8'));
process.stdout.write(JSON.stringify(texts.map((text) => stripTypeScriptTypes(text, { mode: 'strip' }))));
`;

/** Removes the types from the texts. `folder`: cache of the output, trusted as code is; undefined disables the cache. */
export function stripTypes(texts: readonly string[], folder = getCompileCacheDir()): string[] {
  const input = JSON.stringify(texts);
  if (folder === undefined) return parsed(strip(input));
  // Another version of Node may strip differently.
  const file = join(folder, `stripped-${hash('sha256', `${process.version} ${input}`, 'hex')}`);
  const kept = read(file);
  if (kept !== undefined) return parsed(kept);
  const output = strip(input);
  keep(file, output);
  return parsed(output);
}

function strip(input: string): string {
  return execFileSync(process.execPath, ['--no-warnings', '-e', STRIP], {
    input,
    encoding: 'utf8',
    env: {},
    maxBuffer: BYTES_MAX,
    timeout: TIMEOUT_MS,
  });
}

function parsed(output: string): string[] {
  return JSON.parse(output) as string[]; // what the script above writes
}

/** Undefined if there is none, or it is incomplete after a full disk or a power failure. */
function read(file: string): string | undefined {
  try {
    const [sum = '', output = ''] = readFileSync(file, 'utf8').split('\n', 2);
    return hash('sha256', output, 'hex') === sum ? output : undefined;
  } catch {
    return undefined;
  }
}

/** Atomic. A read-only folder is not an error. */
function keep(file: string, output: string): void {
  const unfinished = `${file}.${randomBytes(6).toString('hex')}`;
  try {
    writeFileSync(unfinished, `${hash('sha256', output, 'hex')}\n${output}`, { mode: 0o600, flag: 'wx' });
    renameSync(unfinished, file);
  } catch {
    rmSync(unfinished, { force: true });
  }
}
