/** The active child process and, for some time after a kill, a spare that can replace it. */

import type { Timer } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { backoffDelayMs } from '../base/retry.ts';
import type { KillReason } from './batch.ts';
import { SandboxChild, type ChildOptions } from './child.ts';
import { oneLine } from '../base/excerpt.ts';

export interface PoolOptions extends ChildOptions {
  readonly logger: Logger;
  readonly hasSpare: boolean;
}

interface PoolEvents {
  /** The active child has become ready, or may be started again. */
  ready(): void;
  message(child: SandboxChild, line: string): void;
  /** The active child has ended. `active` gives its replacement. */
  lost(child: SandboxChild, reason: KillReason): void;
  /** Before `lost`, and also for a child that was not ready. */
  killed(reason: KillReason): void;
  /** Several starts in a row failed; the next attempt follows after a backoff. */
  failed(message: string): void;
}

const START_MS_MAX = 10_000;
/** After this many failures in a row, work fails immediately. */
const START_FAILURES_MAX = 4;
const RESTART_FIRST_MS = 50;
const RESTART_MAX_MS = 30_000;
/** A spare is kept for this long after a kill, because kills often occur in series. */
const SPARE_MS = 5 * 60_000;

export class ChildPool {
  readonly #options: PoolOptions;
  readonly #events: PoolEvents;
  #active: SandboxChild | undefined;
  #spare: SandboxChild | undefined;
  /** A spare is kept until this timer fires. */
  #spareTimer: Timer | undefined;
  #restartTimer: Timer | undefined;
  #startFailures = 0;
  #failure = '';
  #endedProcessorMs = 0;
  #isClosed = false;

  constructor(options: PoolOptions, events: PoolEvents) {
    this.#options = options;
    this.#events = events;
  }

  /** Undefined until it is ready: a child is started, and `ready` is called later. */
  get active(): SandboxChild | undefined {
    if (this.#active === undefined && this.#restartTimer === undefined) this.#active = this.#spawn();
    return this.#active?.isReady === true ? this.#active : undefined;
  }

  /** Why no child can be started; undefined unless several starts have failed. */
  get failure(): string | undefined {
    return this.#startFailures < START_FAILURES_MAX ? undefined : this.#failure;
  }

  get children(): readonly SandboxChild[] {
    return [this.#active, this.#spare].flatMap((child) => (child === undefined ? [] : [child]));
  }

  /** Of all children so far; undefined if the system does not report it. */
  get processorMs(): number | undefined {
    const used = this.children.map((child) => child.processorMs());
    if (used.some((ms) => ms === undefined)) return undefined;
    return used.reduce<number>((sum, ms) => sum + (ms ?? 0), this.#endedProcessorMs);
  }

  /** Replaces a child that has no work in flight; `lost` does not follow. */
  retire(child: SandboxChild): void {
    if (child !== this.#active) return;
    child.kill();
    this.#replace();
  }

  /** Ends the children, which have no work; the next work starts one. */
  rest(): void {
    this.#spareTimer?.cancel();
    const { children } = this;
    [this.#active, this.#spare] = [undefined, undefined];
    for (const child of children) child.kill();
  }

  close(): void {
    this.#isClosed = true;
    this.#spareTimer?.cancel();
    this.#restartTimer?.cancel();
    for (const child of this.children) child.kill();
    [this.#active, this.#spare] = [undefined, undefined];
  }

  #ended(child: SandboxChild, how: string, reason: KillReason): void {
    this.#endedProcessorMs += child.processorMs() ?? 0;
    if (child === this.#spare) this.#spare = undefined;
    if (child !== this.#active || this.#isClosed) return;
    const fields = { pid: child.pid, reason, how, stderr: oneLine(child.stderr, 500) };
    this.#options.logger.warn(fields, 'the sandbox process was ended');
    this.#events.killed(reason);
    if (child.isReady) {
      this.#replace();
      this.#events.lost(child, reason);
      return;
    }
    this.#startFailed(how);
  }

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

  #replace(): void {
    this.#active = this.#spare;
    this.#spare = undefined;
    if (!this.#options.hasSpare) return;
    this.#spareTimer?.cancel();
    this.#spareTimer = this.#options.clock.schedule(SPARE_MS, () => {
      this.#spareTimer = undefined;
      this.#spare?.kill();
    });
    this.#ensureSpare();
  }

  /** The spare starts after the active child, because requests wait for the active child. */
  #ensureSpare(): void {
    if (this.#spareTimer !== undefined && this.#active?.isReady === true) this.#spare ??= this.#spawn();
  }

  #spawn(): SandboxChild {
    const child: SandboxChild = new SandboxChild(this.#options, {
      ready: () => {
        this.#startFailures = 0;
        if (child !== this.#active) return;
        this.#events.ready();
        this.#ensureSpare();
      },
      message: (line) => {
        if (child === this.#active) this.#events.message(child, line);
      },
      ended: (how, reason) => this.#ended(child, how, reason ?? 'exit'),
    });
    this.#options.clock.schedule(START_MS_MAX, () => {
      if (!child.isReady) child.kill();
    });
    return child;
  }
}
