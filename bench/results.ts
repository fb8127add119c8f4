/** Writes the JSON and the charts of a benchmark: to `bench/results/`, which is tracked, with `--record`; else to `bench/results/local/`. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const RESULTS = join(import.meta.dirname, 'results');

/** Writes the result of one run, and pictures of it by file name. */
export type WriteResult = (result: unknown, pictures?: Readonly<Record<string, string>>) => void;

export function resultWriter(name: string, isRecorded: boolean): WriteResult {
  const file = join(RESULTS, ...(isRecorded ? [] : ['local']), `${name}.json`);
  return (result, pictures = {}) => {
    mkdirSync(dirname(file), { recursive: true });
    for (const [picture, text] of Object.entries(pictures)) writeFileSync(join(dirname(file), picture), text);
    writeFileSync(file, `${JSON.stringify(result, undefined, 2)}\n`);
  };
}
