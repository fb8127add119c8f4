/** The machine that a benchmark ran on: processor, memory, versions and load. */

import { cpus, loadavg, totalmem } from 'node:os';

export interface Machine {
  /** Over the minute before the benchmark: other work on the machine distorts every number. */
  readonly loadAverage: number;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  /** `v26.1.0`. */
  readonly node: string;
}

/** Call before the benchmark adds its own load. */
export function thisMachine(): Machine {
  const [loadAverage = 0] = loadavg();
  return {
    loadAverage,
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
  };
}
