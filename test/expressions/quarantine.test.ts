/** Delays of objects after a stopped expression, and their assignment to processes. */

import { describe, expect, test } from 'vitest';
import { Quarantine } from '../../src/expressions/quarantine.ts';
import { FakeClock } from '../support/fake-clock.ts';

const EVIL = { namespace: 'hostile', name: 'evil' };
const MINUTE_MS = 60_000;

describe('an object', () => {
  test('waits longer after each stop, up to five minutes', () => {
    const clock = new FakeClock();
    const quarantine = new Quarantine(clock);
    const waits: number[] = [];
    for (let i = 0; i < 11; i++) {
      waits.push(quarantine.recordStop(EVIL) - clock.now());
      expect(quarantine.waitUntil(EVIL)).toBe(clock.now() + (waits.at(-1) ?? 0));
      clock.advance(waits.at(-1) ?? 0);
      expect(quarantine.waitUntil(EVIL)).toBeUndefined();
    }
    const doubling = Array.from({ length: 9 }, (_, i) => 1000 * 2 ** i);
    expect(waits).toEqual([...doubling, 5 * MINUTE_MS, 5 * MINUTE_MS]);
  });

  test('is released ten minutes after its last stop', () => {
    const clock = new FakeClock();
    const quarantine = new Quarantine(clock);
    quarantine.recordStop(EVIL);
    clock.advance(10 * MINUTE_MS);
    expect(quarantine.routeOf(EVIL)).toBe('throttled');
    clock.advance(1);
    expect(quarantine.routeOf(EVIL)).toBe('main');
    expect(quarantine.isEmpty).toBe(true);
  });

  test('does not wait because of another one', () => {
    const quarantine = new Quarantine(new FakeClock());
    for (let i = 0; i < 20_000; i++) quarantine.recordStop({ namespace: 'hostile', name: `${i}` });
    expect(quarantine.waitUntil({ namespace: 'hostile', name: 'web' })).toBeUndefined();
    // There is a limit to how many are known.
    expect(quarantine.wasStopped({ namespace: 'hostile', name: '0' })).toBe(false);
    expect(quarantine.wasStopped({ namespace: 'hostile', name: '19999' })).toBe(true);
  });
});

describe('the route', () => {
  const neighbour = { namespace: 'hostile', name: 'web' };
  const other = { namespace: 'shop', name: 'web' };

  test('of a stopped object is the throttled process, whether it succeeded before or since', () => {
    const quarantine = new Quarantine(new FakeClock());
    quarantine.recordSuccess(EVIL);
    expect(quarantine.routeOf(EVIL)).toBe('main');
    quarantine.recordStop(EVIL);
    quarantine.recordSuccess(EVIL);
    expect(quarantine.routeOf(EVIL)).toBe('throttled');
  });

  test('of its neighbours is the throttled process until they have succeeded', () => {
    const quarantine = new Quarantine(new FakeClock());
    quarantine.recordStop(EVIL);
    expect(quarantine.routeOf(neighbour)).toBe('throttled');
    quarantine.recordSuccess(neighbour);
    expect(quarantine.routeOf(neighbour)).toBe('main');
    expect(quarantine.routeOf(other)).toBe('main');
  });

  test('of objects that succeeded before stays the main process', () => {
    const quarantine = new Quarantine(new FakeClock());
    quarantine.recordSuccess(neighbour);
    for (let i = 0; i < 100; i++) quarantine.recordStop({ namespace: 'hostile', name: `${i}` });
    expect(quarantine.routeOf(neighbour)).toBe('main');
  });

  test('of a namespace whose objects succeeded only to be stopped later is the throttled process', () => {
    const quarantine = new Quarantine(new FakeClock());
    quarantine.recordSuccess(neighbour);
    const traitors = ['a', 'b', 'c'].map((name) => ({ namespace: 'hostile', name }));
    for (const traitor of traitors) {
      quarantine.recordSuccess(traitor);
      expect(quarantine.routeOf(neighbour)).toBe('main');
    }
    for (const traitor of traitors) quarantine.recordStop(traitor);
    expect(quarantine.routeOf(neighbour)).toBe('throttled');
    quarantine.recordSuccess(neighbour);
    expect(quarantine.routeOf(neighbour)).toBe('main');
  });

  test('of unknown objects anywhere is the throttled process once three namespaces had stops', () => {
    const quarantine = new Quarantine(new FakeClock());
    quarantine.recordSuccess(other);
    for (const namespace of ['a', 'b', 'c']) {
      expect(quarantine.routeOf({ namespace: 'new', name: 'web' })).toBe('main');
      quarantine.recordStop({ namespace, name: 'evil' });
    }
    expect(quarantine.routeOf({ namespace: 'new', name: 'web' })).toBe('throttled');
    expect(quarantine.routeOf(other)).toBe('main');
  });
});
