import { describe, expect, test } from 'vitest';
import { Quarantine } from '../../src/sandbox/quarantine.ts';
import { FakeClock } from '../fake-clock.ts';

describe('an input', () => {
  test('waits longer each time it had to be stopped', () => {
    const clock = new FakeClock();
    const quarantine = new Quarantine(clock);
    for (const waitMs of [1000, 2000, 4000, 8000]) {
      quarantine.strike('evil');
      expect(quarantine.inputUntil('evil')).toBe(clock.now() + waitMs);
      clock.advance(waitMs);
      expect(quarantine.inputUntil('evil')).toBeUndefined();
    }
  });

  test('that is tried again and again does not stop the program', () => {
    const clock = new FakeClock();
    const quarantine = new Quarantine(clock);
    for (let i = 0; i < 20; i++) {
      expect(quarantine.strike('evil')).toBe(false);
      clock.advance((quarantine.inputUntil('evil') ?? 0) - clock.now());
    }
    expect(quarantine.programUntil()).toBeUndefined();
  });

  test('is forgotten in the end, and there is a limit to how many are known', () => {
    const clock = new FakeClock();
    const quarantine = new Quarantine(clock);
    quarantine.strike('evil');
    clock.advance(11 * 60_000);
    expect(quarantine.inputUntil('evil')).toBeUndefined();
    expect(quarantine.hasInputs).toBe(false);
    for (let i = 0; i < 1100; i++) quarantine.strike(`input ${i}`);
    expect(quarantine.inputUntil('input 0')).toBeUndefined();
    expect(quarantine.inputUntil('input 1099')).toBeDefined();
  });
});

describe('a program', () => {
  test('waits after three inputs within a minute, and longer the next time', () => {
    const clock = new FakeClock();
    const quarantine = new Quarantine(clock);
    expect(['a', 'b', 'c'].map((input) => quarantine.strike(input))).toEqual([false, false, true]);
    expect(quarantine.programUntil()).toBe(clock.now() + 5000);
    clock.advance(5000);
    expect(quarantine.programUntil()).toBeUndefined();
    // On probation one is enough.
    expect(quarantine.strike('d')).toBe(true);
    expect(quarantine.programUntil()).toBe(clock.now() + 10_000);
  });

  test('waits after three objects with the same input at the same time', () => {
    const quarantine = new Quarantine(new FakeClock());
    expect(['a', 'a', 'a'].map((input) => quarantine.strike(input))).toEqual([false, false, true]);
  });

  test('does not wait when they are rare', () => {
    const clock = new FakeClock();
    const quarantine = new Quarantine(clock);
    for (let i = 0; i < 10; i++) {
      expect(quarantine.strike(`input ${i}`)).toBe(false);
      clock.advance(31_000);
    }
  });
});
