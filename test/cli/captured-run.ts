/** Runs a command in this process and returns its output. */

import { vi } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';

export interface CapturedRun {
  /** Exit code. */
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** One at a time: standard output and standard error are those of the process. */
export async function capturedRun(args: string[]): Promise<CapturedRun> {
  const result = { out: '', err: '' };
  const capture = (stream: 'out' | 'err') => (chunk: unknown) => {
    result[stream] += String(chunk);
    return true;
  };
  const spies = [
    vi.spyOn(process.stdout, 'write').mockImplementation(capture('out')),
    vi.spyOn(process.stderr, 'write').mockImplementation(capture('err')),
  ];
  try {
    return { code: await runProgram(args), ...result };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}
