/** Kills a child that is silent for too long or takes too much memory. Idle while the child has no work. */

import type { Clock, Timer } from '../../base/clock.ts';
import type { SandboxChild } from './child.ts';
import { PROCESSOR_SHARE, STARVED_FACTOR } from './guest-source.ts';

export type KillReason = 'timeout' | 'memory';

const TICK_MS = 10;
/** A silent child is checked every tick, a child that sends results less often. */
const RESPONSIVE_TICKS = 10;

export class Watchdog {
  readonly #clock: Clock;
  readonly #memoryBytes: number;
  readonly #kill: (reason: KillReason) => void;
  #child: SandboxChild | undefined;
  #timer: Timer | undefined;
  #heardMs = 0;
  #silenceMs = 0;
  #allowanceMs = 0;
  #processorMs: number | undefined;
  #ticks = 0;
  #isSuspect = false;

  /** `memoryBytes`: resident, above the baseline. */
  constructor(clock: Clock, memoryBytes: number, kill: (reason: KillReason) => void) {
    this.#clock = clock;
    this.#memoryBytes = memoryBytes;
    this.#kill = kill;
  }

  /** Starts watching: the child may be silent for `silenceMs`, and for `allowanceMs` more before its first response. */
  expect(child: SandboxChild, silenceMs: number, allowanceMs: number): void {
    this.#child = child;
    this.#silenceMs = silenceMs;
    this.heard();
    this.#allowanceMs = allowanceMs;
    this.#timer ??= this.#clock.schedule(TICK_MS, () => this.#tick());
  }

  /** The child has sent a message. */
  heard(): void {
    this.#heardMs = this.#clock.monotonicMs();
    this.#allowanceMs = 0;
    this.#isSuspect = false;
    this.#processorMs = undefined;
  }

  /** The child has no more work. */
  rest(): void {
    this.#child = undefined;
  }

  stop(): void {
    this.rest();
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #tick(): void {
    this.#timer = undefined;
    const child = this.#child;
    if (child === undefined) return;
    const reason = this.#killReason(child);
    if (reason !== undefined) {
      this.#kill(reason);
      return;
    }
    this.#timer = this.#clock.schedule(this.#isSuspect ? 1 : TICK_MS, () => this.#tick());
  }

  #killReason(child: SandboxChild): KillReason | undefined {
    this.#ticks += 1;
    const silenceMs = this.#clock.monotonicMs() - this.#heardMs;
    if (silenceMs >= TICK_MS || this.#ticks % RESPONSIVE_TICKS === 0) {
      const bytes = child.residentBytes();
      if (bytes !== undefined && bytes > child.baselineBytes + this.#memoryBytes) return 'memory';
    }
    this.#processorMs ??= silenceMs >= TICK_MS ? child.processorMs() : undefined;
    const limitMs = this.#silenceMs + this.#allowanceMs;
    if (silenceMs <= limitMs) return undefined;
    // If this process was delayed, the response may already be in the pipe, so check once more after the next turn of the event loop.
    if (!this.#isSuspect) {
      this.#isSuspect = true;
      return undefined;
    }
    return this.#isStarved(child, silenceMs, limitMs) ? undefined : 'timeout';
  }

  #isStarved(child: SandboxChild, silenceMs: number, limitMs: number): boolean {
    const now = child.processorMs();
    if (now === undefined || this.#processorMs === undefined || silenceMs > limitMs * STARVED_FACTOR)
      return false;
    return now - this.#processorMs < limitMs * PROCESSOR_SHARE;
  }
}
