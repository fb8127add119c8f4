/** What is left to do for a key is one value. */

import { expect, test } from 'vitest';
import {
  again,
  anotherRun,
  earliest,
  later,
  retry,
  waitMsOf,
  type Left,
} from '../../../src/syncer/reconcile/left.ts';

const [NOW, SOON, LATE, SOMETIME] = [again('now'), later('soon', 1), later('late', 1000), retry('failed')];

test.each<[string, readonly (Left | undefined)[], Left | undefined]>([
  ['nothing', [], undefined],
  ['nothing of nothing', [undefined, undefined], undefined],
  ['all that there is', [undefined, SOMETIME], SOMETIME],
  ['what is due first', [LATE, SOMETIME, SOON], SOON],
  ['what is due now', [SOON, NOW], NOW],
  ['a time before a retry', [SOMETIME, LATE], LATE],
  ['the first of two at the same time', [NOW, again('as well')], NOW],
])('of several, %s is left', (_, all, left) => {
  expect(earliest(...all)).toBe(left);
});

test.each<[string, Left | undefined, number | undefined]>([
  ['nothing', undefined, undefined],
  ['a run now', NOW, 0],
  ['a run at a time', LATE, 1000],
  ['a retry, of which another decides', SOMETIME, undefined],
])('the key is queued for %s', (_, left, waitMs) => {
  expect(waitMsOf(left)).toBe(waitMs);
});

test('runs in a row for one reason end', () => {
  let left: Left | undefined;
  const runs = Array.from({ length: 6 }, () => (left = anotherRun('why', left, 4)));
  expect(runs.map((one) => one?.kind === 'again' && one.runs)).toEqual([1, 2, 3, 4, false, 1]);
  expect(anotherRun('why', NOW, 4)).toMatchObject({ runs: 1 });
});
