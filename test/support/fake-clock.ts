/** A clock that a test advances. */

import type { Clock, Timer } from '../../src/base/clock.ts';

interface Pending {
  dueMs: number;
  readonly callback: () => void;
}

export class FakeClock implements Clock {
  #nowMs: number;
  #startMs: number;
  readonly #pending = new Set<Pending>();

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#startMs = startMs;
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs - this.#startMs;
  }

  schedule(delayMs: number, callback: () => void): Timer {
    const pending = { dueMs: this.#nowMs + Math.max(0, delayMs), callback };
    this.#pending.add(pending);
    return { cancel: () => void this.#pending.delete(pending) };
  }

  /** Sets the wall clock; no time passes, so timers have as long to wait as before. */
  step(byMs: number): void {
    this.#nowMs += byMs;
    this.#startMs += byMs;
    for (const pending of this.#pending) pending.dueMs += byMs;
  }

  /** Milliseconds to the next timer; undefined when none is set. */
  get nextDelayMs(): number | undefined {
    const due = [...this.#pending].map((pending) => pending.dueMs);
    return due.length === 0 ? undefined : Math.min(...due) - this.#nowMs;
  }

  /** Moves time on and runs what becomes due, in order, with the time that each asked for. */
  advance(byMs: number): void {
    const endMs = this.#nowMs + byMs;
    for (;;) {
      const next = [...this.#pending].sort((a, b) => a.dueMs - b.dueMs)[0];
      if (next === undefined || next.dueMs > endMs) break;
      this.#pending.delete(next);
      this.#nowMs = next.dueMs;
      next.callback();
    }
    this.#nowMs = endMs;
  }

  /** The same, with a turn of the event loop before every timer and at the end, so that promises settle. */
  async advanceAsync(byMs: number): Promise<void> {
    const endMs = this.#nowMs + byMs;
    for (;;) {
      await settle();
      const next = this.nextDelayMs;
      if (next === undefined || this.#nowMs + next > endMs) break;
      this.advance(next);
    }
    this.#nowMs = endMs;
    await settle();
  }
}

/** Lets every promise that can settle do so. */
export async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}
