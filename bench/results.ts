/** Where the JSON of a benchmark goes: `bench/results/`, which is tracked, with `--record`; else `bench/results/local/`. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const RESULTS = join(import.meta.dirname, 'results');

/** Writes the result of one run. */
export type WriteResult = (result: unknown) => void;

export function resultWriter(name: string, isRecorded: boolean): WriteResult {
  const file = join(RESULTS, ...(isRecorded ? [] : ['local']), `${name}.json`);
  return (result) => {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${JSON.stringify(result, undefined, 2)}\n`);
  };
}
