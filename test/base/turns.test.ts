/** Entries by group: the order in which they are taken. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Turns } from '../../src/base/turns.ts';

const groupOf = (key: string): string => key.split('/')[0] ?? '';

function drained(turns: Turns<number>): string[] {
  const keys: string[] = [];
  for (let next = turns.take(); next !== undefined; next = turns.take()) keys.push(next[0]);
  return keys;
}

test('groups take turns, and keys of a group keep their order', () => {
  const turns = new Turns<number>(groupOf);
  for (const key of ['a/1', 'a/2', 'a/3', 'b/1', 'c/1', 'b/2']) turns.set(key, 0);
  turns.set('a/1', 1);
  turns.delete('b/2');
  turns.delete('d/1');
  expect([turns.size, turns.get('a/1'), turns.has('b/2')]).toEqual([5, 1, false]);
  expect(drained(turns)).toEqual(['a/1', 'b/1', 'c/1', 'a/2', 'a/3']);
  expect([turns.size, turns.take()]).toEqual([0, undefined]);
});

test('without groups, entries are taken in the order of a map', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.boolean())), (steps) => {
      const [turns, model] = [new Turns<number>(), new Map<string, number>()];
      for (const [at, [key, isSet]] of steps.entries())
        for (const one of [turns, model])
          if (isSet) one.set(key, at);
          else one.delete(key);
      expect(turns.size).toBe(model.size);
      expect(drained(turns)).toEqual([...model.keys()]);
    }),
  );
});

test('between two turns of a group, no other group has two', () => {
  const keys = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat(9)).map((parts) => parts.join('/')));
  fc.assert(
    fc.property(keys, (added) => {
      const turns = new Turns<number>(groupOf);
      for (const key of added) turns.set(key, 0);
      const taken = drained(turns);
      expect(taken.toSorted()).toEqual([...new Set(added)].toSorted());
      const left = taken.map(groupOf);
      for (const [at, group] of left.entries()) {
        const before = at === 0 ? -1 : left.lastIndexOf(group, at - 1);
        const since = before === -1 ? [] : left.slice(before + 1, at);
        expect(new Set(since).size).toBe(since.length);
      }
    }),
  );
});
