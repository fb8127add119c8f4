/** One row for each state of a value that is being synced back. b: base, i: incoming, o: overtaken, x: another value. */

import { describe, expect, test } from 'vitest';
import {
  arrivedEntry,
  entryWith,
  hasArrivedAs,
  type Arrival,
  type SyncedEntry,
} from '../../../src/syncer/translate/last-synced.ts';

const pending: SyncedEntry = {
  virtual: 'b',
  host: 'h',
  isFromHost: true,
  incoming: { virtual: 'i', earlier: ['o'] },
};

interface Row {
  readonly virtual: string;
  readonly arrival: Arrival;
  readonly base: string;
  readonly is: 'settled' | 'due' | 'uncertain';
}

const ROWS: readonly Row[] = [
  { virtual: 'i', arrival: 'due', base: 'i', is: 'settled' },
  { virtual: 'i', arrival: 'unknown', base: 'i', is: 'settled' },
  { virtual: 'b', arrival: 'due', base: 'b', is: 'due' },
  { virtual: 'b', arrival: 'arrived', base: 'i', is: 'settled' },
  { virtual: 'b', arrival: 'unknown', base: 'i', is: 'uncertain' },
  { virtual: 'o', arrival: 'unknown', base: 'o', is: 'due' },
  { virtual: 'o', arrival: 'due', base: 'o', is: 'due' },
  { virtual: 'o', arrival: 'arrived', base: 'i', is: 'settled' },
  { virtual: 'x', arrival: 'due', base: 'i', is: 'settled' },
];

describe('the base that an entry gives', () => {
  test.each(ROWS)('virtual $virtual, $arrival: base $base, $is', ({ virtual, arrival, base, is }) => {
    expect(arrivedEntry(pending, virtual, arrival)).toEqual({
      entry: { virtual: base, host: 'h', isFromHost: true },
      isDue: is === 'due',
      isUncertain: is === 'uncertain',
    });
  });

  test('without an incoming value it is the entry itself', () => {
    const plain = { virtual: 'b', host: 'h', isFromHost: false };
    expect(arrivedEntry(plain, 'b', 'unknown')).toEqual({ entry: plain, isDue: false, isUncertain: false });
  });
});

describe('the entry to write', () => {
  const wanted = (virtual: string | undefined, host: string | undefined = 'h'): SyncedEntry => ({
    virtual,
    host,
    isFromHost: true,
  });

  test('names base and incoming value while the virtual side holds the base', () => {
    expect(entryWith(wanted('i'), 'b', undefined)).toEqual({
      ...pending,
      incoming: { virtual: 'i', earlier: [] },
    });
  });

  test('records values that were replaced before they arrived', () => {
    expect(entryWith(wanted('j', 'h2'), 'b', pending)).toMatchObject({
      virtual: 'b',
      incoming: { virtual: 'j', earlier: ['o', 'i'] },
    });
  });

  test('names no incoming value any more when it has arrived', () => {
    expect(entryWith(wanted('i'), 'i', pending)).toEqual(wanted('i'));
    expect(entryWith(wanted('i', 'h2'), 'i', pending)).toEqual(wanted('i', 'h2'));
  });

  test('is omitted if neither side has a value', () => {
    expect(
      entryWith({ virtual: undefined, host: undefined, isFromHost: true }, undefined, undefined),
    ).toBeUndefined();
  });

  test.each<[string, SyncedEntry | undefined, boolean]>([
    ['the incoming value', wanted('i'), true],
    ['the base', wanted('b'), false],
    ['the incoming value, and the host another one', wanted('i', 'h2'), false],
    ['another value on its way', { ...wanted('b'), incoming: { virtual: 'j', earlier: [] } }, false],
    ['nothing', undefined, false],
  ])('with an incoming value, followed by %s: has it arrived?', (_, now, hasArrived) => {
    expect(hasArrivedAs(pending, now)).toBe(hasArrived);
  });

  test('of a removal is obsolete once it has arrived', () => {
    const removal = entryWith({ virtual: undefined, host: undefined, isFromHost: true }, 'b', undefined);
    expect(removal && hasArrivedAs(removal, undefined)).toBe(true);
  });
});
