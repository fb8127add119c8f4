/** Virtual time: callbacks run in the order in which they are due, and nothing else makes time pass. */

import type { Clock, Timer } from './clock.ts';

interface Entry {
  readonly dueMs: number;
  /** Breaks ties, so that a run is repeatable. */
  readonly order: number;
  readonly callback: () => void;
  isCancelled: boolean;
}

export class VirtualClock implements Clock {
  readonly #startMs: number;
  #nowMs = 0;
  #order = 0;
  /** A binary heap, the earliest entry first. */
  readonly #heap: Entry[] = [];

  /** `startMs`: the wall clock at the start, milliseconds since the epoch. */
  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  /** Milliseconds since the start. */
  get nowMs(): number {
    return this.#nowMs;
  }

  now(): number {
    return this.#startMs + this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  schedule(delayMs: number, callback: () => void): Timer {
    const entry: Entry = {
      // As Node's timers: whole milliseconds, at least one.
      dueMs: this.#nowMs + Math.max(1, Math.trunc(delayMs)),
      order: this.#order++,
      callback,
      isCancelled: false,
    };
    this.#heap.push(entry);
    this.#up(this.#heap.length - 1);
    return { cancel: () => void (entry.isCancelled = true) };
  }

  /** Runs the next callback that is due by `endMs`; false when there is none, and then it is `endMs`. */
  step(endMs: number): boolean {
    for (;;) {
      const next = this.#heap[0];
      if (next === undefined || next.dueMs > endMs) {
        this.#nowMs = Math.max(this.#nowMs, endMs);
        return false;
      }
      this.#pop();
      if (next.isCancelled) continue;
      this.#nowMs = next.dueMs;
      next.callback();
      return true;
    }
  }

  #up(at: number): void {
    for (let i = at; i > 0;) {
      const parent = (i - 1) >> 1;
      if (!this.#swapIfBefore(i, parent)) return;
      i = parent;
    }
  }

  #pop(): void {
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return;
    this.#heap[0] = last;
    for (let i = 0; ;) {
      const left = 2 * i + 1;
      const child = this.#isBefore(left + 1, left) ? left + 1 : left;
      if (!this.#swapIfBefore(child, i)) return;
      i = child;
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [x, y] = [this.#heap[a], this.#heap[b]];
    if (x === undefined || y === undefined) return false;
    return x.dueMs < y.dueMs || (x.dueMs === y.dueMs && x.order < y.order);
  }

  #swapIfBefore(a: number, b: number): boolean {
    const [x, y] = [this.#heap[a], this.#heap[b]];
    if (x === undefined || y === undefined || !this.#isBefore(a, b)) return false;
    [this.#heap[a], this.#heap[b]] = [y, x];
    return true;
  }
}
