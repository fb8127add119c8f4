/** Lists: pages, revisions, selectors; a very long one does not block the event loop. */

import { describe, expect, test } from 'vitest';
import { textAt } from '../../support/cases.ts';
import type { RawAnswer } from '../../contract/raw-client.ts';
import { Keys, metadata } from '../key-requests.ts';
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

function names(answer: RawAnswer): unknown[] {
  const { items = [] } = answer.json as { items?: { metadata: { name: string } }[] }; // a list
  return items.map((item) => item.metadata.name);
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

describe('lists', () => {
  test('show one revision on all pages, despite later writes', async () => {
    await using keys = await Keys.open();
    for (const name of ['p0', 'p1', 'p2', 'p3', 'p4']) await keys.create(name);
    const first = await keys.send('GET', '?limit=2');
    await keys.create('p00');
    const token = encodeURIComponent(textAt(metadata(first), 'continue'));
    const second = await keys.send('GET', `?limit=2&continue=${token}`);
    expect(names(first)).toEqual(['p0', 'p1']);
    expect(metadata(first)['remainingItemCount']).toBe(3);
    expect(names(second)).toEqual(['p2', 'p3']);
    expect(metadata(second)['resourceVersion']).toBe(metadata(first)['resourceVersion']);
  });

  test('of a compacted revision are 410, with a token for the rest of the current list', async () => {
    await using keys = await Keys.open();
    for (const name of ['p0', 'p1', 'p2']) await keys.create(name);
    const first = await keys.send('GET', '?limit=2');
    await keys.create('p3');
    await keys.api.store.compact(await keys.api.store.revision());
    const token = encodeURIComponent(textAt(metadata(first), 'continue'));
    const gone = await keys.send('GET', `?limit=2&continue=${token}`);
    expect(gone.json).toMatchObject({ code: 410, reason: 'Expired' });
    const rest = encodeURIComponent(textAt(metadata(gone), 'continue'));
    expect(names(await keys.send('GET', `?limit=2&continue=${rest}`))).toEqual(['p2', 'p3']);
  });

  test('with a selector are limited after selecting', async () => {
    await using keys = await Keys.open();
    for (let i = 0; i < 6; i++) await keys.create(`k${i}`, { labels: { even: String(i % 2 === 0) } });
    const first = await keys.send('GET', '?limit=2&labelSelector=even%3Dtrue');
    expect(names(first)).toEqual(['k0', 'k2']);
    expect(metadata(first)).not.toHaveProperty('remainingItemCount');
    const token = encodeURIComponent(textAt(metadata(first), 'continue'));
    const second = await keys.send('GET', `?limit=2&labelSelector=even%3Dtrue&continue=${token}`);
    expect(names(second)).toEqual(['k4']);
    expect(metadata(second)).not.toHaveProperty('continue');
  });

  test('can show an exact resourceVersion', async () => {
    await using keys = await Keys.open();
    const version = textAt(metadata(await keys.create('a')), 'resourceVersion');
    await keys.create('b');
    expect(names(await keys.send('GET', `?resourceVersion=${version}&resourceVersionMatch=Exact`))).toEqual([
      'a',
    ]);
    expect(names(await keys.send('GET', `?resourceVersion=${version}`))).toEqual(['a', 'b']);
  });
});
