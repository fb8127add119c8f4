/** One user gets a part of a limit, and the last part is for privileged users. */

import { expect, test } from 'vitest';
import { SharedLimit } from '../../../src/apiserver/http/client-limits.ts';

/** How many of these each user gets, one after another. */
function takenBy(limit: SharedLimit, names: readonly string[], isPrivileged: boolean): number[] {
  return names.map((name) => {
    let count = 0;
    while (limit.take({ name, isPrivileged })) count++;
    return count;
  });
}

test('a user gets a quarter, all ordinary users seven eighths, and privileged users the rest', () => {
  const limit = new SharedLimit(1000);
  expect(takenBy(limit, ['a', 'b', 'c', 'd', 'e'], false)).toEqual([250, 250, 250, 125, 0]);
  expect(takenBy(limit, ['a', 'root', 'cluster'], true)).toEqual([0, 125, 0]);
});

test('what is released can be taken again, by the same and by another user', () => {
  const limit = new SharedLimit(8);
  const ann = { name: 'ann', isPrivileged: false };
  expect(limit.take(ann, 2)).toBe(true);
  expect(limit.take(ann)).toBe(false);
  limit.release(ann);
  expect(limit.take(ann, 2)).toBe(false);
  expect(limit.take(ann)).toBe(true);
  limit.release(ann, 2);
  expect(takenBy(limit, ['a', 'b', 'c', 'd'], false)).toEqual([2, 2, 2, 1]);
});
