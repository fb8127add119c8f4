/** A few histories with every test run; `npm run sim` runs as many as asked for. */

import { describe, expect, test } from 'vitest';
import { seededHistory } from './history/seeded-history.ts';
import { runHistory } from './sim-run.ts';

const SEEDS = Array.from({ length: 40 }, (_, at) => at + 1);

describe('simulated histories', () => {
  test.each(SEEDS)('seed %i is not violated', async (seed) => {
    expect(await runHistory(seededHistory(seed, 40))).toEqual([]);
  });

  test('a seed repeats a history exactly', async () => {
    const traceOf = async (): Promise<string[]> => {
      const lines: string[] = [];
      await runHistory({ ...seededHistory(7, 30), trace: (line) => lines.push(line) });
      return lines;
    };
    expect(await traceOf()).toEqual(await traceOf());
  });
});
