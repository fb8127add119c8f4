/** Reading JSON of 4 MiB with integers beyond 2^53, in values and in strings, compared to `JSON.parse`: processor time, the best of several rounds. */

import { parseJson } from '../src/base/json.ts';
import type { WriteResult } from './results.ts';

const BYTES = 4 * 2 ** 20;
const ROUNDS = 15;
const LONG = '12345678901234567890';
const ADDRESS = ',{"ip":"10.0.0.1","hostname":"h1234"}';

/** A JSON list: the first text, then the second one, repeated up to the length. */
function list(first: string, more: string): string {
  return `[${first}${more.repeat(Math.floor((BYTES - first.length - 2) / more.length))}]`;
}

const TEXTS: Readonly<Record<string, string>> = {
  'addresses, digits in a string': list(`"a,${LONG},"`, ADDRESS),
  'addresses, one long integer': list(LONG, ADDRESS),
  'most values, digits in a string': list(`"a,${LONG},"`, ',0'),
  'most values, one long integer': list(LONG, ',0'),
  'small objects, one long integer': list(LONG, ',{"a":0}'),
  'strings of digits': list('""', `,"a,${LONG},"`),
  'long integers': list(LONG, `,${LONG}`),
};

function processorMs(work: () => void): number {
  let best = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    best = Math.min(best, (user + system) / 1000);
  }
  return best;
}

export function run(_args: readonly string[], writeResult: WriteResult): Promise<void> {
  const rows = Object.entries(TEXTS).map(([name, source]) => {
    // As it comes from a socket: in one piece.
    const text = Buffer.from(source).toString();
    const plainMs = processorMs(() => void JSON.parse(text));
    const exactMs = processorMs(() => void parseJson(text));
    return { name, plainMs, exactMs, ratio: exactMs / plainMs };
  });
  for (const { name, plainMs, exactMs, ratio } of rows)
    process.stdout.write(
      `${name.padEnd(34)}${plainMs.toFixed(1).padStart(8)} ms${exactMs.toFixed(1).padStart(8)} ms${ratio.toFixed(2).padStart(8)}\n`,
    );
  writeResult({ rows });
  return Promise.resolve();
}
