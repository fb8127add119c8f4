/** Runs programs in Go, the language of kubectl, Helm and vCluster, beside ours. */

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseJson, type JsonValue } from '../../src/base/json.ts';

export const hasGo = spawnSync('go', ['version']).status === 0;

const OUTPUT_BYTES_MAX = 256 * 1024 * 1024;

/**
 * The program in `folder`, which reads lines of JSON and answers each with one. The first call builds it, which takes seconds.
 * `Result`: what it prints.
 */
export function goProgram<Result>(folder: string): (inputs: readonly unknown[]) => Result[] {
  let file: string | undefined;
  return (inputs) => {
    file ??= built(folder);
    const input = inputs.map((one) => `${JSON.stringify(one)}\n`).join('');
    const output = execFileSync(file, { input, encoding: 'utf8', maxBuffer: OUTPUT_BYTES_MAX });
    const lines = output === '' ? [] : output.trimEnd().split('\n');
    return lines.map((line): JsonValue => parseJson(line)) as unknown as Result[]; // what the program prints
  };
}

function built(folder: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'go-program-')), 'program');
  execFileSync('go', ['build', '-o', file, '.'], { cwd: folder });
  return file;
}
