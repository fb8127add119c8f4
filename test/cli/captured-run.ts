/** Runs a command, in this process or in one of its own, and returns its output. */

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';

/** The program, for a process of its own. */
export const MAIN = join(import.meta.dirname, '..', '..', 'src', 'main.ts');

export interface CapturedRun {
  /** Exit code. */
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The run that ended last, or has not ended. */
let previous: Promise<unknown> = Promise.resolve();

/** After the runs before it, of other tests too: standard output and standard error are those of the process. */
export function capturedRun(args: string[]): Promise<CapturedRun> {
  const run = previous.then(() => capture(args));
  previous = run.catch(() => undefined);
  return run;
}

async function capture(args: string[]): Promise<CapturedRun> {
  const result = { out: '', err: '' };
  const append = (stream: 'out' | 'err') => (chunk: unknown) => {
    result[stream] += String(chunk);
    return true;
  };
  const spies = [
    vi.spyOn(process.stdout, 'write').mockImplementation(append('out')),
    vi.spyOn(process.stderr, 'write').mockImplementation(append('err')),
  ];
  const before = listenerCounts();
  try {
    return { code: await runProgram(args), ...result };
  } finally {
    for (const spy of spies) spy.mockRestore();
    // A command that leaves one in the process of a caller is a leak, and from the eleventh on a warning on standard error.
    expect(listenerCounts(), `signals after ${args.join(' ')}`).toEqual(before);
  }
}

function listenerCounts(): number[] {
  return ['SIGTERM', 'SIGINT', 'SIGHUP'].map((name) => process.listenerCount(name));
}

/** In a process of its own with this standard input, and without the environment that sets a configuration. */
export function spawnedRun(args: readonly string[], input = ''): Promise<CapturedRun> {
  const { ENDPOINT_SYNCER_CONFIG: _file, VCLUSTER_NAME: _name, ...env } = process.env;
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: 'pipe', env });
  const result = { out: '', err: '' };
  child.stdout.on('data', (chunk: Buffer) => void (result.out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => void (result.err += chunk.toString()));
  child.stdin.end(input);
  return new Promise((resolve) => child.on('close', (code) => resolve({ code: code ?? -1, ...result })));
}
