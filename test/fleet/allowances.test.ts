/** What a namespace may use outlives its members, and ends some time after them. */

import { expect, test } from 'vitest';
import { silentLogger } from '../../src/base/logger.ts';
import { type Allowance, Allowances } from '../../src/fleet/allowances.ts';
import { FakeClock } from '../support/fake-clock.ts';

const MIB = 1024 * 1024;

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
  const { pace } = virtualClient;
  pace?.responses.spend(64 * MIB);
  pace?.watches.spend(64 * MIB);
  clock.advance(10 * 60_000);
  expect([1, 2, 3, 4, 5, 6].map(() => changes.take())).toEqual([0, 0, 0, 0, 0, 10_000]);
  expect([pace?.responses.spend(32 * MIB), pace?.watches.spend(2 * MIB)]).toEqual([0, 0]);
  expect(pace?.responses.spend(1)).toBeGreaterThan(0);
  expect(pace?.watches.spend(1)).toBeGreaterThan(0);
});

test('what reading takes of the event loop counts for all members of a namespace, past their end, and for no other one', () => {
  const clock = new FakeClock();
  const allowances = new Allowances({ clock, logger: silentLogger });
  const [one, two] = [allowances.take('team-a'), allowances.take('team-a')];
  const paces = ({ virtualClient: { pace } }: Allowance) => [
    pace?.watches.spend(0),
    pace?.responses.spend(0),
  ];
  one.virtualClient.pace?.watches.timed(() => clock.advance(60_000));
  expect(paces(allowances.take('team-b'))).toEqual([0, 0]);
  for (const of of [one, two, allowances.take('team-a')]) expect(paces(of)).toEqual([595_000, 595_000]);
  for (const of of [one, two]) allowances.giveBack('team-a', of);
  clock.advance(60_000);
  expect(Math.min(...paces(allowances.take('team-a')).map(Number))).toBeGreaterThan(400_000);
});
