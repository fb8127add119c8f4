/** What a namespace may use outlives its members, and ends some time after them. */

import { expect, test } from 'vitest';
import { silentLogger } from '../../src/base/logger.ts';
import { Allowances } from '../../src/fleet/allowances.ts';
import { FakeClock } from '../support/fake-clock.ts';

const READ_BURST = 32 * 1024 * 1024;

test('a member gets what the one before it in its namespace has left, for ten minutes', () => {
  const clock = new FakeClock();
  const allowances = new Allowances({ clock, logger: silentLogger });
  const first = allowances.take('team-a');
  allowances.giveBack('team-a', first);
  clock.advance(10 * 60_000 - 1);
  expect(allowances.take('team-b')).not.toBe(first);
  expect(allowances.take('team-a')).toBe(first);
  allowances.giveBack('team-a', first);
  clock.advance(10 * 60_000);
  expect(allowances.take('team-a')).not.toBe(first);
});

test('what a member has used is whole again by then', () => {
  const clock = new FakeClock();
  const { changes, virtualClient } = new Allowances({ clock, logger: silentLogger }).take('team-a');
  while (changes.take() === 0);
  virtualClient.pace?.spend(2 * READ_BURST);
  clock.advance(10 * 60_000);
  expect([1, 2, 3, 4, 5, 6].map(() => changes.take())).toEqual([0, 0, 0, 0, 0, 10_000]);
  expect([virtualClient.pace?.spend(READ_BURST), virtualClient.pace?.spend(1)]).toEqual([
    0,
    expect.any(Number),
  ]);
});
