/** The child that works and, for a while after one was killed, a spare that takes its place. */

import type { Clock, Timer } from '../../../base/clock.ts';
import type { Logger } from '../../../base/logger.ts';
import { backoffDelayMs } from '../../../base/backoff.ts';
import { SandboxChild } from './child.ts';
import { oneLine } from '../../../base/excerpt.ts';
import type { GuestSource } from './guest-source.ts';
import type { Lane } from '../quarantine/quarantine.ts';
import type { KillReason } from './watchdog.ts';

export interface PoolOptions {
  readonly source: GuestSource;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The slow lane has no spare. */
  readonly lane: Lane;
  /** A child was ended, or ended. */
  killed(reason: KillReason | 'exit'): void;
}

export interface PoolEvents {
  /** There may be a child that can take work, or one may be started. */
  ready(): void;
  frame(child: SandboxChild, text: string): void;
  /** The child at work has ended; another is in its place already, or will be when it is asked for. */
  lost(child: SandboxChild, reason: KillReason | 'exit'): void;
  /** No child starts, several times in a row; the next attempt is some time away. */
  failed(message: string): void;
}

const START_MS_MAX = 10_000;
/** After so many failures in a row work fails at once. */
const START_FAILURES_MAX = 4;
const RESTART_FIRST_MS = 50;
const RESTART_MAX_MS = 30_000;
/** One kill is often followed by another: for so long a spare is worth its memory. */
const SPARE_MS = 5 * 60_000;

export class ChildPool {
  readonly #options: PoolOptions;
  readonly #events: PoolEvents;
  #active: SandboxChild | undefined;
  #spare: SandboxChild | undefined;
  /** While it runs, there is to be a spare. */
  #spareTimer: Timer | undefined;
  #killReason: KillReason | undefined;
  #restartTimer: Timer | undefined;
  #startFailures = 0;
  #failure = '';
  #endedProcessorMs = 0;
  #isClosed = false;

  constructor(options: PoolOptions, events: PoolEvents) {
    this.#options = options;
    this.#events = events;
  }

  /** The child at work, where it can take work; started if there is none. `ready` follows when it can. */
  get active(): SandboxChild | undefined {
    if (this.#active === undefined && this.#restartTimer === undefined) this.#active = this.#spawn();
    return this.#active?.isReady === true ? this.#active : undefined;
  }

  /** Why there will be no child for a while; undefined when all is well. */
  get failure(): string | undefined {
    return this.#startFailures < START_FAILURES_MAX ? undefined : this.#failure;
  }

  get children(): readonly SandboxChild[] {
    return [this.#active, this.#spare].flatMap((child) => (child === undefined ? [] : [child]));
  }

  /** Processor time of all children so far, milliseconds; undefined where the system does not report it. */
  get processorMs(): number | undefined {
    const used = this.children.map((child) => child.processorMs());
    if (used.some((ms) => ms === undefined)) return undefined;
    return used.reduce<number>((sum, ms) => sum + (ms ?? 0), this.#endedProcessorMs);
  }

  /** Ends the child at work; `lost` follows. */
  kill(reason: KillReason): void {
    this.#killReason = reason;
    this.#active?.kill();
  }

  /** The child has done its part and gets no more work; `lost` does not follow. */
  retire(child: SandboxChild): void {
    if (child !== this.#active) return;
    child.kill();
    this.#options.killed('memory');
    this.#replace();
  }

  close(): void {
    this.#isClosed = true;
    this.#spareTimer?.cancel();
    this.#restartTimer?.cancel();
    for (const child of this.children) child.kill();
    [this.#active, this.#spare] = [undefined, undefined];
  }

  #ended(child: SandboxChild, how: string): void {
    this.#endedProcessorMs += child.processorMs() ?? 0;
    if (child === this.#spare) this.#spare = undefined;
    if (child !== this.#active || this.#isClosed) return;
    const reason = this.#killReason ?? 'exit';
    const fields = { pid: child.pid, reason, how, stderr: oneLine(child.lastWords, 500) };
    this.#options.logger.warn(fields, 'the sandbox process was ended');
    this.#options.killed(reason);
    if (child.isReady) {
      this.#replace();
      this.#events.lost(child, reason);
      return;
    }
    this.#startFailed(how);
  }

  /** Tries again later, each time after a longer wait. */
  #startFailed(how: string): void {
    this.#active = undefined;
    this.#startFailures += 1;
    this.#failure = `the sandbox process does not start: ${oneLine(how, 100)}`;
    const delayMs = backoffDelayMs(this.#startFailures - 1, RESTART_FIRST_MS, RESTART_MAX_MS);
    this.#restartTimer = this.#options.clock.schedule(delayMs, () => {
      this.#restartTimer = undefined;
      this.#events.ready();
    });
    if (this.failure !== undefined) this.#events.failed(this.failure);
  }

  /** The spare takes over, and there is to be a new one. */
  #replace(): void {
    this.#killReason = undefined;
    this.#active = this.#spare;
    this.#spare = undefined;
    if (this.#options.lane === 'slow') return;
    this.#spareTimer?.cancel();
    this.#spareTimer = this.#options.clock.schedule(SPARE_MS, () => {
      this.#spareTimer = undefined;
      this.#spare?.kill();
    });
    this.#ensureSpare();
  }

  /** Started once the active child is, which work waits for. */
  #ensureSpare(): void {
    if (this.#spareTimer !== undefined && this.#active?.isReady === true) this.#spare ??= this.#spawn();
  }

  #spawn(): SandboxChild {
    const child: SandboxChild = new SandboxChild(this.#options.source, {
      ready: () => {
        this.#startFailures = 0;
        if (child !== this.#active) return;
        this.#events.ready();
        this.#ensureSpare();
      },
      frame: (text) => {
        if (child === this.#active) this.#events.frame(child, text);
      },
      ended: (how) => this.#ended(child, how),
    });
    this.#options.clock.schedule(START_MS_MAX, () => {
      if (!child.isReady) child.kill();
    });
    return child;
  }
}
