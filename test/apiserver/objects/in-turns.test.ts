/** Lists of very many objects do not block the event loop. */

import { describe, expect, test } from 'vitest';
import { filterInTurns, mapInTurns } from '../../../src/apiserver/objects/list-objects.ts';

const ITEMS = Array.from({ length: 10_000 }, (_, index) => index);

/** The number of turns of the event loop while `work` runs. */
async function turnsOf(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isRunning = true;
  const count = (): void => {
    turns++;
    if (isRunning) setImmediate(count);
  };
  setImmediate(count);
  await work();
  isRunning = false;
  return turns;
}

describe('a long list', () => {
  test('is filtered in order and in several turns', async () => {
    let even: number[] = [];
    const turns = await turnsOf(async () => {
      even = await filterInTurns(ITEMS, (item) => item % 2 === 0, Number.POSITIVE_INFINITY);
    });
    expect(even).toEqual(ITEMS.filter((item) => item % 2 === 0));
    expect(turns).toBeGreaterThan(2);
  });

  test('is mapped in order and in several turns', async () => {
    let texts: string[] = [];
    const turns = await turnsOf(async () => {
      texts = await mapInTurns(ITEMS, String);
    });
    expect(texts).toEqual(ITEMS.map(String));
    expect(turns).toBeGreaterThan(2);
  });

  test('is filtered no further than its limit', async () => {
    const seen: number[] = [];
    const matches = (item: number): boolean => seen.push(item) > 0;
    expect(await filterInTurns(ITEMS, matches, 3)).toEqual([0, 1, 2]);
    expect(seen).toHaveLength(3);
  });
});
