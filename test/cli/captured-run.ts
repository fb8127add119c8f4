/** Runs a command in this process and returns its output. */

import { vi } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';

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
  try {
    return { code: await runProgram(args), ...result };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}
