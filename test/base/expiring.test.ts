/** A map whose entries are gone some time after they were set. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Expiring } from '../../src/base/expiring.ts';
import { FakeClock } from '../support/fake-clock.ts';

test('each entry is kept as long as its value says, from when it was set last', () => {
  const clock = new FakeClock();
  const entries = new Expiring<string, number>(clock, (seconds) => seconds * 1000);
  entries.set('a', 1);
  entries.set('b', 3);
  clock.advance(999);
  expect([entries.get('a'), entries.get('b'), entries.get('c')]).toEqual([1, 3, undefined]);
  entries.set('b', 3);
  clock.advance(1);
  expect([entries.get('a'), entries.get('b')]).toEqual([undefined, 3]);
  clock.advance(2998);
  expect(entries.get('b')).toBe(3);
  clock.advance(1);
  expect(entries.get('b')).toBeUndefined();
});

test('an entry that is deleted is gone, and can be set again', () => {
  const entries = new Expiring<string, true>(new FakeClock(), () => 1000);
  entries.set('a', true);
  entries.delete('a');
  expect(entries.get('a')).toBeUndefined();
  entries.set('a', true);
  expect(entries.get('a')).toBe(true);
});

test('an entry that has expired is not held once another one is set, whatever was set before it', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const step = fc.record({
    key: fc.constantFrom(...names),
    seconds: fc.constantFrom(1, 2, 60),
    passes: fc.nat({ max: 3 }),
    isDeleted: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const clock = new FakeClock();
      const entries = new Expiring<string, number>(clock, (seconds) => seconds * 1000);
      const endsMs = new Map<string, number>();
      for (const { key, seconds, passes, isDeleted } of steps) {
        clock.advance(passes * 1000);
        if (isDeleted) {
          entries.delete(key);
          endsMs.delete(key);
        }
        entries.set('last', seconds);
        endsMs.set('last', clock.monotonicMs() + seconds * 1000);
        if (!isDeleted) {
          entries.set(key, seconds);
          endsMs.set(key, clock.monotonicMs() + seconds * 1000);
        }
        const live = [...endsMs].filter(([, endMs]) => endMs > clock.monotonicMs());
        expect(entries.size).toBe(live.length);
        for (const name of names)
          expect(entries.get(name) !== undefined).toBe(live.some(([one]) => one === name));
      }
    }),
  );
});
