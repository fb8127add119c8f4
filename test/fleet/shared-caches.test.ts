/** What the caches of all members hold together: who is ended for the others. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SharedCaches } from '../../src/fleet/shared-caches.ts';
import type { CacheBudget } from '../../src/kube/informer/cache-budget.ts';

const LIMITS = { objectsMax: 1000, bytesMax: Infinity };
const KIB = 1024;

/** A budget that holds so many bytes more, about. */
function hold(budget: CacheBudget, bytes: number): void {
  budget.share().hold('x'.repeat(bytes));
}

test('the largest member of the namespace that has most is ended, and no other', () => {
  const caches = new SharedCaches(100 * KIB);
  const evil = [10, 15, 12, 11].map((kib) => {
    const budget = caches.budget('evil', LIMITS);
    hold(budget, kib * KIB);
    return budget;
  });
  const good = caches.budget('good', LIMITS);
  hold(good, 45 * KIB);
  expect([...evil, good].map(({ excess }) => excess)).toEqual(Array.from({ length: 5 }, () => undefined));
  hold(good, 1 * KIB);
  const small = caches.budget('other', LIMITS);
  hold(small, 7 * KIB);
  expect(evil.map(({ excess }) => excess?.of)).toEqual([
    undefined,
    'bytes of all members',
    undefined,
    undefined,
  ]);
  expect([good, small].map(({ excess }) => excess)).toEqual([undefined, undefined]);
  // What the ended one holds until it is stopped ends no other.
  expect(caches.hasRoom(10 * KIB)).toBe(true);
  expect(caches.hasRoom(20 * KIB)).toBe(false);
});

test('whatever grows and ends, those that go on hold no more than the limit, and a namespace below its share is left alone', () => {
  const step = fc.record({
    member: fc.nat(8),
    bytes: fc.integer({ min: 1, max: 40 * KIB }),
    isStopped: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const caches = new SharedCaches(100 * KIB);
      const namespaceOf = (member: number): string => `team-${member % 3}`;
      const budgets = new Map<number, CacheBudget>();
      for (const { member, bytes, isStopped } of steps) {
        const budget = budgets.get(member) ?? caches.budget(namespaceOf(member), LIMITS);
        budgets.set(member, budget);
        hold(budget, bytes);
        for (const [one, ended] of budgets)
          if (ended.excess !== undefined || (isStopped && one === member)) {
            caches.release(ended);
            budgets.delete(one);
          }
        const held = [...budgets.values()].reduce((sum, one) => sum + one.bytes, 0);
        expect(held).toBeLessThanOrEqual(100 * KIB);
        expect(caches.hasRoom(100 * KIB - held)).toBe(true);
        expect(caches.hasRoom(100 * KIB - held + 1)).toBe(false);
      }
    }),
  );
});
