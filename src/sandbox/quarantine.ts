/**
 * Who may not run for a while. An input that stopped a program is not tried again at once, and a program that was stopped by several
 * inputs is not tried at all; both come back, each time later.
 */

import type { Clock } from '../lib/clock.ts';
import { backoffDelayMs } from '../queue/backoff.ts';

/** Different inputs that must have stopped a program within the window before all of it waits. */
const STRIKES_MAX = 3;
const WINDOW_MS = 60_000;
const INPUT_FIRST_MS = 1000;
const PROGRAM_FIRST_MS = 5000;
const BENCH_MAX_MS = 5 * 60_000;
/** After so long without trouble everything is forgotten. */
const FORGET_MS = 10 * 60_000;
const INPUTS_MAX = 1000;

interface Bench {
  strikes: number;
  untilMs: number;
  lastMs: number;
}

/** The record of one program. Times are the clock's `now()`. */
export class Quarantine {
  readonly #clock: Clock;
  /** By what identifies an input. */
  readonly #inputs = new Map<string, Bench>();
  readonly #program: Bench = { strikes: 0, untilMs: 0, lastMs: 0 };
  #recent: number[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Is there any input to ask about? */
  get hasInputs(): boolean {
    return this.#inputs.size > 0;
  }

  /** Until when the program waits; undefined when it may run. */
  programUntil(): number | undefined {
    const { untilMs } = this.#program;
    // Nearly always 0, and asking the clock costs as much as a remembered answer.
    return untilMs > 0 && untilMs > this.#clock.now() ? untilMs : undefined;
  }

  inputUntil(input: string): number | undefined {
    const bench = this.#inputs.get(input);
    if (bench === undefined) return undefined;
    const now = this.#clock.now();
    if (now - bench.lastMs > FORGET_MS) this.#inputs.delete(input);
    return bench.untilMs > now ? bench.untilMs : undefined;
  }

  /** This input had to be stopped. True when the whole program waits from now on. */
  strike(input: string): boolean {
    const now = this.#clock.now();
    const known = this.#inputs.get(input);
    const bench = known ?? { strikes: 0, untilMs: 0, lastMs: now };
    this.#inputs.delete(input);
    this.#inputs.set(input, bench);
    for (const oldest of this.#inputs.keys()) {
      if (this.#inputs.size <= INPUTS_MAX) break;
      this.#inputs.delete(oldest);
    }
    // One object that is tried again later says nothing about the others; one that was under way already is another object.
    const isRetry = known !== undefined && known.untilMs <= now;
    extend(bench, INPUT_FIRST_MS, now);
    if (isRetry) return false;
    this.#recent = [...this.#recent.filter((time) => now - time < WINDOW_MS), now];
    const isOnProbation = this.#program.strikes > 0 && now - this.#program.untilMs < WINDOW_MS;
    if (this.#recent.length < STRIKES_MAX && !isOnProbation) return false;
    if (now - this.#program.lastMs > FORGET_MS) this.#program.strikes = 0;
    this.#recent = [];
    extend(this.#program, PROGRAM_FIRST_MS, now);
    return true;
  }
}

function extend(bench: Bench, firstMs: number, now: number): void {
  bench.untilMs = now + backoffDelayMs(bench.strikes, firstMs, BENCH_MAX_MS);
  bench.strikes += 1;
  bench.lastMs = now;
}
