/** The clock of a simulated process. */

import { VirtualClock, type Clock, type Timer } from '../../../src/base/clock.ts';

/** All times of a run count from here; any date would do. */
export function simClock(): VirtualClock {
  return new VirtualClock(Date.UTC(2026, 0, 1));
}

/** Far more than any history needs; a loop that never waits is found by it. */
const STEPS_MAX = 400_000;
export const NEVER_WAITS = `more than ${STEPS_MAX} steps: something never waits`;

/** Runs what is due, up to a number of steps in all. */
export class Steps {
  readonly #clock: VirtualClock;
  #taken = 0;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  /** False if there were more steps than any history needs. */
  async run(toMs: number): Promise<boolean> {
    for (;;) {
      // Promises that can settle do so before the next thing happens.
      await new Promise((resolve) => setImmediate(resolve));
      if (!this.#clock.step(toMs)) return true;
      if (++this.#taken > STEPS_MAX) return false;
    }
  }
}

/** The clock of one process: its wall clock may be wrong, and a process that has crashed or is paused runs nothing. */
export class ProcessClock implements Clock {
  readonly #clock: VirtualClock;
  #state: 'running' | 'paused' | 'dead' = 'running';
  #held: (() => void)[] = [];
  /** How far the wall clock is off. */
  skewMs = 0;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  get isDead(): boolean {
    return this.#state === 'dead';
  }

  get isPaused(): boolean {
    return this.#state === 'paused';
  }

  now(): number {
    return this.#clock.now() + this.skewMs;
  }

  monotonicMs(): number {
    return this.#clock.nowMs;
  }

  schedule(delayMs: number, callback: () => void): Timer {
    return this.#clock.schedule(delayMs, () => this.run(callback));
  }

  /** Everything that reaches the process from outside comes through here. */
  run(callback: () => void): void {
    if (this.#state === 'running') callback();
    else if (this.#state === 'paused') this.#held.push(callback);
  }

  crash(): void {
    this.#state = 'dead';
    this.#held = [];
  }

  pause(): void {
    if (this.#state === 'running') this.#state = 'paused';
  }

  resume(): void {
    if (this.#state !== 'paused') return;
    this.#state = 'running';
    const held = this.#held;
    this.#held = [];
    for (const callback of held) callback();
  }
}
