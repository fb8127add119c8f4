/** A map whose entries are gone some time after they were set. */

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
