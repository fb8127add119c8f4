/** Virtual time: callbacks run in the order in which they are due, and nothing else makes time pass. */

import type { Clock, Timer } from '../../../src/base/clock.ts';

interface Entry {
  readonly dueMs: number;
  /** Breaks ties, so that a run is repeatable. */
  readonly order: number;
  readonly callback: () => void;
  isCancelled: boolean;
}

/** Any date will do; all times of a run count from here. */
const EPOCH_MS = Date.UTC(2026, 0, 1);

export class SimClock {
  #nowMs = 0;
  #order = 0;
  /** A binary heap, the earliest entry first. */
  readonly #heap: Entry[] = [];

  /** Milliseconds since the start of the run. */
  get nowMs(): number {
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

/** The clock of one process: its wall clock may be wrong, and a process that has crashed or is paused runs nothing. */
export class ProcessClock implements Clock {
  readonly #clock: SimClock;
  #state: 'running' | 'paused' | 'dead' = 'running';
  #held: (() => void)[] = [];
  /** How far the wall clock is off. */
  skewMs = 0;

  constructor(clock: SimClock) {
    this.#clock = clock;
  }

  get isDead(): boolean {
    return this.#state === 'dead';
  }

  get isPaused(): boolean {
    return this.#state === 'paused';
  }

  now(): number {
    return EPOCH_MS + this.#clock.nowMs + this.skewMs;
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
