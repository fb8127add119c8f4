/** One member of the fleet: starts, reloads, restarts and stops the sync of a vCluster as decided, and says which state it is in. */

import { type Clock, sleep } from '../base/clock.ts';
import { isDefect, messageOf, TerminalError } from '../base/errors.ts';
import type { CheckResult } from '../base/health.ts';
import type { Logger } from '../base/logger.ts';
import type { Random } from '../base/random.ts';
import { RetryDelay } from '../base/retry.ts';
import type { TokenBucket } from '../base/token-bucket.ts';
import { type Config, diffConfig } from '../syncer/config/config.ts';
import type { CacheBudget, CacheLimits, CacheShare, Excess } from '../kube/informer/cache-budget.ts';
import type { Sync } from '../syncer/sync.ts';
import type { Membership } from './decide-member.ts';
import { LimitExceededError, resumeLimits } from './member-limits.ts';

export const MEMBER_STATES = [
  'starting',
  'joined',
  'degraded',
  'limited',
  'standby',
  'asleep',
  'invalid',
  'conflicting',
  'failed',
] as const;

export type MemberState = (typeof MEMBER_STATES)[number];

export interface MemberStatus {
  readonly state: MemberState;
  /** One line, '' if there is nothing to say. */
  readonly reason: string;
}

export interface StartOptions {
  readonly signal: AbortSignal;
  readonly onWait: (reason: string) => void;
  /** Of the caches of the sync. */
  readonly budget: CacheBudget;
}

export type MemberSync = Omit<Sync, 'report'>;

/** What it may hold beside the other members. */
export interface MemberCaches {
  create(limits: CacheLimits): CacheBudget;
  release(budget: CacheBudget): void;
  /** For as many bytes more. */
  hasRoom(bytes: number): boolean;
}

export interface MemberOptions {
  /** They may change, see {@link Member.limitsChanged}. */
  readonly limits: () => CacheLimits;
  readonly caches: MemberCaches;
  readonly startSync: (config: Config, options: StartOptions) => Promise<MemberSync>;
  readonly reported: (status: MemberStatus) => void;
  /** Starts and reloads: each takes one. */
  readonly changes: TokenBucket;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

interface Wanted {
  readonly config: Config;
  /** Of the Secret with the access. */
  readonly accessVersion: string;
}

interface Running {
  readonly sync: MemberSync;
  readonly budget: CacheBudget;
  /** What its configuration holds. */
  values: CacheShare;
  applied: Wanted;
  readonly stopping: AbortController;
  /** Its first pass is over, or another process leads. */
  isStarted: boolean;
}

const RESTART_DELAYS = { baseMs: 1000, maxMs: 60_000 };
/** Each attempt reads as much as the limit allows. */
const LIMITED_DELAYS = { baseMs: 30_000, maxMs: 300_000 };

export class Member {
  readonly #options: MemberOptions;
  readonly #delay: RetryDelay;
  readonly #limitedDelay: RetryDelay;
  readonly #loop: Promise<void>;
  #wanted: Wanted | undefined;
  #running: Running | undefined;
  /** Why {@link #running} cannot continue. */
  #failure: string | undefined;
  /** Its caches needed more than the limit, and it has not joined since. */
  #isLimited = false;
  /** What they held when those of all members needed more than there is, and it has not joined since. */
  #yielded: { readonly excess: Excess; readonly bytes: number } | undefined;
  /** Of the start in progress. */
  #starting: AbortController | undefined;
  #waking = Promise.withResolvers<void>();
  #isEnded = false;
  /** What the decision says, where it says more than the sync. */
  #decided: MemberStatus | undefined;
  #progress: MemberStatus = { state: 'starting', reason: '' };
  #reported = '';

  constructor(options: MemberOptions) {
    this.#options = options;
    this.#delay = new RetryDelay(options.random, RESTART_DELAYS);
    this.#limitedDelay = new RetryDelay(options.random, LIMITED_DELAYS);
    this.#loop = this.#run();
  }

  /** The configuration that was wanted last. */
  config: Config | undefined;

  get status(): MemberStatus {
    if (this.#decided !== undefined) return this.#decided;
    const { state } = this.#progress;
    const failed = state === 'joined' ? (this.#running?.sync.failedChecks() ?? []) : [];
    return failed.length === 0 ? this.#progress : { state: 'degraded', reason: failed.join('; ') };
  }

  get isSyncing(): boolean {
    return this.#running !== undefined;
  }

  /** Its sync is being started, or has not reconciled all objects of its first lists yet. */
  get isStarting(): boolean {
    if (this.#wanted === undefined || ['failed', 'limited'].includes(this.#progress.state)) return false;
    return this.#running?.isStarted !== true;
  }

  /** For readiness, which no member decides. */
  check(): CheckResult {
    const { state, reason } = this.status;
    return { isOk: true, detail: reason === '' ? state : `${state}: ${reason}` };
  }

  follow(decision: Membership, accessVersion: string): void {
    switch (decision.kind) {
      case 'joined':
        this.#decided = undefined;
        this.config = decision.config;
        this.#want({ config: decision.config, accessVersion });
        break;
      case 'asleep':
      case 'conflicting':
        this.#decided = { state: decision.kind, reason: decision.reason };
        this.#want(undefined);
        break;
      case 'invalid':
        this.#rejected(decision.reason);
        break;
      case 'waiting':
        // What runs has its access, and vCluster writes the Secret again.
        this.#decided =
          this.#wanted === undefined ? { state: 'starting', reason: decision.reason } : undefined;
        break;
    }
    this.#report();
  }

  /** Applied to what runs; a member that is limited is tried again. */
  limitsChanged(): void {
    this.#running?.budget.use(this.#options.limits());
    this.#limitedDelay.reset();
    if (this.#isLimited) this.#wake();
  }

  async end(): Promise<void> {
    this.#isEnded = true;
    this.#want(undefined);
    this.#wake();
    await this.#loop;
  }

  /** What ran before continues, as a daemon does whose file becomes invalid. */
  #rejected(reason: string): void {
    const rest = this.#wanted === undefined ? '' : '; the configuration before is still in use';
    this.#decided = { state: 'invalid', reason: `${reason}${rest}` };
    this.#running?.sync.reloadFailed(reason);
  }

  #want(wanted: Wanted | undefined): void {
    const before = this.#wanted;
    const isSame =
      before?.accessVersion === wanted?.accessVersion && isSameConfig(before?.config, wanted?.config);
    if (isSame) return;
    this.#wanted = wanted;
    this.#starting?.abort();
    this.#wake();
  }

  #wake(): void {
    this.#waking.resolve();
    this.#waking = Promise.withResolvers();
  }

  async #run(): Promise<void> {
    for (;;) {
      const woken = this.#waking.promise;
      try {
        if (await this.#step(woken)) continue;
        // It may have ended since the step found nothing left to do.
        if (this.#isEnded && this.#running === undefined) return;
        await woken;
      } catch (error) {
        await this.#failed(error, woken);
      }
    }
  }

  /** One step to what is wanted; false if nothing is left to do. `woken`: something else is wanted. */
  async #step(woken: Promise<void>): Promise<boolean> {
    const [wanted, running, failure] = [this.#wanted, this.#running, this.#failure];
    if (running !== undefined && failure !== undefined) {
      const { bytes, excess } = running.budget;
      this.#yielded = excess?.of === 'bytes of all members' ? { bytes, excess } : undefined;
      await this.#stop(running);
      throw excess === undefined
        ? new TerminalError(failure)
        : new LimitExceededError(excess, this.#options.limits());
    }
    if (wanted === undefined) {
      if (running === undefined) return false;
      await this.#stop(running);
      return true;
    }
    if (wanted === running?.applied) return false;
    const waitMs = this.#options.changes.take();
    if (waitMs > 0) await this.#wait(waitMs, woken);
    else if (running === undefined) await this.#start(wanted);
    else await this.#apply(running, wanted);
    return true;
  }

  async #start(wanted: Wanted): Promise<void> {
    const { caches, startSync } = this.#options;
    const limits = this.#options.limits();
    const yielded = this.#yielded;
    if (yielded !== undefined && !caches.hasRoom(yielded.bytes))
      throw new LimitExceededError(yielded.excess, limits);
    const starting = new AbortController();
    this.#starting = starting;
    this.#enter('starting', '');
    const isLimited = this.#isLimited && yielded === undefined;
    const budget = caches.create(isLimited ? resumeLimits(limits) : limits);
    let running: Running | undefined;
    try {
      const sync = await startSync(wanted.config, {
        signal: starting.signal,
        onWait: (reason) => this.#enter('starting', reason),
        budget,
      });
      const values = heldBy(budget, wanted.config);
      running = { sync, budget, values, applied: wanted, stopping: new AbortController(), isStarted: false };
      this.#failure = undefined;
      this.#running = running;
      void this.#observe(running);
    } catch (error) {
      if (!starting.signal.aborted) throw error;
    } finally {
      if (running === undefined) caches.release(budget);
      this.#starting = undefined;
    }
  }

  async #observe(running: Running): Promise<void> {
    const { sync, stopping } = running;
    void sync.failed.then((reason) => {
      if (this.#running !== running) return;
      this.#failure = reason;
      this.#wake();
    });
    if (await sync.isStandby(stopping.signal)) {
      running.isStarted = true;
      this.#enter('standby', standbyReason(sync));
    }
    await sync.whenLeading(stopping.signal);
    if (!(await sync.whenCached(stopping.signal))) return;
    this.#delay.reset();
    this.#isLimited = false;
    this.#yielded = undefined;
    running.budget.use(this.#options.limits());
    this.#enter('joined', '');
    await sync.firstPass(stopping.signal);
    running.isStarted = true;
  }

  async #apply(running: Running, wanted: Wanted): Promise<void> {
    const { live, restart } = diffConfig(running.applied.config, wanted.config);
    if (restart.length > 0) {
      this.#options.logger.info({ paths: restart }, 'configuration changes restart this member');
      await this.#stop(running);
      if (this.#wanted !== undefined) await this.#start(this.#wanted);
      return;
    }
    // A reload waits for a virtual cluster that does not respond; what is wanted next does not.
    const superseded = this.#waking.promise.then(() => false);
    const reloading = live.length === 0 ? true : reload(running.sync, wanted.config);
    const isReloaded = await Promise.race([reloading, superseded]);
    if (isReloaded) {
      running.applied = wanted;
      running.values.release();
      running.values = heldBy(running.budget, wanted.config);
    } else await this.#stop(running);
    if (isReloaded && this.#progress.state === 'failed') this.#enter('joined', '');
  }

  async #stop({ budget, sync, stopping }: Running): Promise<void> {
    stopping.abort();
    this.#running = undefined;
    this.#failure = undefined;
    const left = await sync.stop();
    this.#options.caches.release(budget);
    this.#options.logger.info({ left }, 'the sync of this member stopped');
  }

  /** Waits before the next attempt, or until something else is wanted. */
  async #failed(error: unknown, woken: Promise<void>): Promise<void> {
    const { logger } = this.#options;
    if (error instanceof Error && isDefect(error))
      logger.error({ err: error }, 'the sync of this member failed');
    const isLimited = error instanceof LimitExceededError;
    this.#isLimited ||= isLimited;
    const delayMs = (isLimited ? this.#limitedDelay : this.#delay).next({ error });
    this.#enter(isLimited ? 'limited' : 'failed', messageOf(error));
    await this.#wait(delayMs, woken);
  }

  async #wait(ms: number, woken: Promise<void>): Promise<void> {
    const waiting = new AbortController();
    void woken.then(() => waiting.abort());
    await sleep(this.#options.clock, ms, waiting.signal);
  }

  /** A limited member that is tried again is limited until it joins. */
  #enter(state: MemberState, reason: string): void {
    if (state === 'starting' && this.#progress.state === 'limited') return;
    this.#progress = { state, reason };
    this.#report();
  }

  #report(): void {
    const status = this.#decided ?? this.#progress;
    const text = `${status.state} ${status.reason}`;
    if (this.#isEnded || text === this.#reported) return;
    this.#reported = text;
    this.#options.reported(status);
  }
}

function heldBy(budget: CacheBudget, { vclusterValues }: Config): CacheShare {
  const share = budget.share();
  share.hold(vclusterValues);
  return share;
}

/** Rejects where the sync continues with the configuration before; a later attempt may succeed. */
async function reload(sync: MemberSync, config: Config): Promise<boolean> {
  try {
    await sync.reload(config);
    return true;
  } catch (error) {
    const reason = messageOf(error);
    sync.reloadFailed(reason);
    throw new TerminalError(`the changed configuration is not applied: ${reason}`, { cause: error });
  }
}

function isSameConfig(a: Config | undefined, b: Config | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  const { live, restart } = diffConfig(a, b);
  return live.length === 0 && restart.length === 0;
}

function standbyReason(sync: MemberSync): string {
  const { detail = '' } = sync.checks()['leader-election']?.() ?? {};
  return `${detail}: another replica of the fleet, or a sidecar, which is to be removed, or the label of this vCluster`;
}
