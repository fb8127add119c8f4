/** The processes that evaluate the expressions of one sandbox, or of all members of a fleet: main ones, and the throttled one. Each is started by the first
 * request for it. */

import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { chosenPlace } from '../base/rendezvous.ts';
import { TokenBuckets, type Rate } from '../base/token-bucket.ts';
import type { IsolateSource, Job, KillReason } from './batch.ts';
import { isolateMessage, readGuestSource, type IsolateOptions } from './guest-source.ts';
import { Scheduler } from './scheduler.ts';
import { ThrottledQueue } from './throttled-queue.ts';

export interface ProcessesOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Resident memory that each process may use above its baseline. */
  readonly memoryBytes: number;
  readonly regexpBacktracksMax?: number | undefined;
  /** Owners that do not trust each other share this number of processes, the throttled one included. Undefined: there is one owner. */
  readonly sharedBy?: number;
}

/** Milliseconds of a shared main process that an owner may use; what it needs beyond them is throttled. */
const MAIN_SHARE: Rate = { burst: 2000, perSecond: 200 };
/** A shared process ends when it had no work for this time; that of one owner stays, for latency. */
const IDLE_MS = 30_000;

interface Queues {
  readonly mains: ReadonlyMap<string, Scheduler>;
  readonly throttled: ThrottledQueue;
}

export class SandboxProcesses implements Disposable {
  readonly memoryBytes: number;
  readonly #options: ProcessesOptions;
  readonly #mainNames: readonly string[];
  readonly #isolates = new Set<IsolateSource>();
  readonly #shares: TokenBuckets;
  #lastId = 0;
  #queues: Queues | undefined;

  constructor(options: ProcessesOptions) {
    this.#options = options;
    const { sharedBy } = options;
    this.#mainNames = Array.from(
      { length: sharedBy === undefined ? 1 : sharedBy - 1 },
      (_, at) => `main-${at}`,
    );
    this.#shares = new TokenBuckets(MAIN_SHARE, options.clock);
    this.memoryBytes = options.memoryBytes;
  }

  openIsolate(
    parts: Omit<IsolateSource, 'main' | 'message'>,
    { limits, ...options }: IsolateOptions,
  ): IsolateSource {
    this.#lastId += 1;
    const { memoryBytes } = this;
    const isolate = {
      ...parts,
      main: chosenPlace(parts.owner, this.#mainNames) ?? '',
      message: isolateMessage(this.#lastId, { ...options, limits: { ...limits, memoryBytes } }),
    };
    this.#isolates.add(isolate);
    return isolate;
  }

  closeIsolate(isolate: IsolateSource): void {
    this.#isolates.delete(isolate);
    for (const queue of this.#queuesOf(isolate)) queue.closeIsolate(isolate);
  }

  /** Those that evaluate for this isolate, as far as they run. */
  pidsOf(isolate: IsolateSource): readonly number[] {
    return this.#queuesOf(isolate).flatMap(({ pids }) => pids);
  }

  add(job: Job): void {
    this.#queues ??= this.#open();
    if (!this.#divert(job)) this.#queues.mains.get(job.isolate.main)?.add(job);
  }

  forget(isolate: IsolateSource, program: number): void {
    for (const queue of this.#queuesOf(isolate)) queue.forget(isolate, program);
  }

  [Symbol.dispose](): void {
    for (const main of this.#queues?.mains.values() ?? []) main.close();
    this.#queues?.throttled.close();
  }

  #queuesOf(isolate: IsolateSource): readonly (Scheduler | ThrottledQueue)[] {
    const queues = this.#queues;
    if (queues === undefined) return [];
    const main = queues.mains.get(isolate.main);
    return [...(main === undefined ? [] : [main]), queues.throttled];
  }

  /** True: the throttled process has it. */
  #divert(job: Job): boolean {
    const { isolate, entry, object } = job;
    const isThrottled =
      entry.quarantine.routeOf(object) === 'throttled' || this.#shares.spend(isolate.owner, 0) > 0;
    if (isThrottled) this.#queues?.throttled.add(job);
    return isThrottled;
  }

  #open(): Queues {
    const { sharedBy, regexpBacktracksMax, ...options } = this.#options;
    const isShared = sharedBy !== undefined;
    // Where there is one isolate, a spare has it open.
    const source = readGuestSource(isShared ? [] : [...this.#isolates].map(({ message }) => message));
    const parts = {
      ...options,
      source: regexpBacktracksMax === undefined ? source : { ...source, regexpBacktracksMax },
      killed: (reason: KillReason, isolate: IsolateSource | undefined) =>
        (isolate ?? (isShared ? undefined : [...this.#isolates][0]))?.killed(reason),
    };
    const mains = this.#mainNames.map((name): [string, Scheduler] => [
      name,
      new Scheduler({
        ...parts,
        divert: (job) => this.#divert(job),
        hasSpare: !isShared,
        inFlightMax: isShared ? 1 : IN_FLIGHT_MAX,
        ...(isShared && { idleMs: IDLE_MS, charge: (owner, ms) => void this.#shares.spend(owner, ms) }),
      }),
    ]);
    return { mains: new Map(mains), throttled: new ThrottledQueue(parts) };
  }
}

/** The second batch waits in the pipe. Where owners share the process, each batch is a turn. */
const IN_FLIGHT_MAX = 2;
