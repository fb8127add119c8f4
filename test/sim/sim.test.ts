/** A few histories in every test run; `npm run sim` runs any number. */

import { describe, expect, test } from 'vitest';
import { seededHistory } from './history/seeded-history.ts';
import { runHistory } from './sim-run.ts';

const SEEDS = Array.from({ length: 20 }, (_, at) => at + 1);

describe('simulated histories', () => {
  test('no seed violates an invariant', async () => {
    const violated: Record<number, string[]> = {};
    for (const seed of SEEDS) {
      const violations = await runHistory(seededHistory(seed, 40));
      if (violations.length > 0) violated[seed] = violations;
    }
    expect(violated).toEqual({});
  });

  test.each([7, 9, 18, 31])('seed %i repeats a history exactly', async (seed) => {
    const traceOf = async (): Promise<string[]> => {
      const lines: string[] = [];
      await runHistory({ ...seededHistory(seed, 30), trace: (line) => lines.push(line) });
      return lines;
    };
    expect(await traceOf()).toEqual(await traceOf());
  });

  test('hold imports on both sides, and a namespace, in the middle of their deletion', async () => {
    const lines: string[] = [];
    for (const seed of [11, 23])
      expect(await runHistory({ ...seededHistory(seed, 40), trace: (line) => lines.push(line) })).toEqual([]);
    for (const held of [
      /The copy .* in the virtual cluster/u,
      /The copy .* on the host/u,
      /namespace "team"/u,
    ])
      expect(lines.filter((line) => line.includes('event Terminating') && held.test(line))).not.toEqual([]);
  });
});
