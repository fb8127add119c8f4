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
    file ??= builtGoProgram(folder);
    const input = inputs.map((one) => `${JSON.stringify(one)}\n`).join('');
    const output = execFileSync(file, { input, encoding: 'utf8', maxBuffer: OUTPUT_BYTES_MAX });
    const lines = output === '' ? [] : output.trimEnd().split('\n');
    return lines.map((line): JsonValue => parseJson(line)) as unknown as Result[]; // what the program prints
  };
}

/** Path of the program that the main package in `folder` builds to. With the flags of the Kubernetes programs, whose packages Go has compiled then. */
export function builtGoProgram(folder: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'go-program-')), 'program');
  const env = { ...process.env, CGO_ENABLED: '0' };
  execFileSync('go', ['build', '-trimpath', '-o', file, '.'], { cwd: folder, env });
  return file;
}
