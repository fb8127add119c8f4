/** The sandbox: returns cached results immediately and evaluates all others in a child process. */

import type { NamespaceMode, SandboxLimits } from '../../config/types.ts';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import {
  everyError,
  everyRemembered,
  everyValue,
  quarantineError,
  rememberedOf,
} from './results/responses.ts';
import type { Job } from './batches/group.ts';
import { readGuestSource } from './process/guest-source.ts';
import { lookUp } from './results/lookup.ts';
import { Memo, type Remembered } from './results/memo.ts';
import { NOTHING } from './results/projection.ts';
import { ProgramEntry } from './program-entry.ts';
import { INPUT_DEPTH_MAX } from './results/result.ts';
import { Scheduler } from './batches/scheduler.ts';
import { ThrottledQueue } from './quarantine/throttled-queue.ts';
import type {
  EvaluateRequest,
  EvaluateResponse,
  Evaluator,
  ObjectIdentity,
  Program,
  ProgramId,
  VclusterContext,
} from './types.ts';

/** The sandbox's part of the daemon's metrics. */
export interface SandboxMetrics {
  memo(hits: number, misses: number): void;
  batched(matches: number): void;
  sandboxKilled(reason: 'timeout' | 'memory' | 'exit'): void;
}

export interface SandboxOptions {
  readonly programs: readonly Program[];
  readonly vcluster: VclusterContext;
  /** For `virtualToHostDNS`; default: single-namespace mode. */
  readonly namespaces?: NamespaceMode;
  readonly limits: SandboxLimits;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics?: SandboxMetrics;
  /** Backtracks of one match before a regular expression runs in linear time instead; see {@link GuestSource}. */
  readonly regexpBacktracksMax?: number;
}

/** One generation of programs. The first evaluation that needs a process starts it; it ends with the sandbox. */
export interface Sandbox extends Evaluator, AsyncDisposable {
  /** Adds a program; its id must be new. */
  define(program: Program): void;
  /** Removes a program that is no longer used. */
  forget(id: ProgramId): void;
  /** Process ids of the children that exist now. */
  readonly pids: readonly number[];
}

export async function createSandbox(options: SandboxOptions): Promise<Sandbox> {
  return new ProcessSandbox(options);
}

/** For programs that do not depend on an object. */
const NO_OBJECT: ObjectIdentity = { namespace: '', name: '' };

const NO_METRICS: SandboxMetrics = {
  memo: () => undefined,
  batched: () => undefined,
  sandboxKilled: () => undefined,
};

class ProcessSandbox implements Sandbox {
  readonly #options: SandboxOptions;
  readonly #metrics: SandboxMetrics;
  readonly #entries = new Map<ProgramId, ProgramEntry>();
  readonly #memo: Memo | undefined;
  /** Results of constant programs, which do not count against the memory limit of the memo. */
  readonly #folded = new Map<ProgramId, Remembered>();
  #queues: { readonly main: Scheduler; readonly throttled: ThrottledQueue } | undefined;
  #isClosed = false;

  constructor(options: SandboxOptions) {
    this.#options = options;
    this.#metrics = options.metrics ?? NO_METRICS;
    this.#memo = options.limits.memoBytes > 0 ? new Memo(options.limits.memoBytes) : undefined;
    for (const program of options.programs) this.define(program);
  }

  get pids(): readonly number[] {
    return this.#queues === undefined ? [] : [...this.#queues.main.pids, ...this.#queues.throttled.pids];
  }

  define(program: Program): void {
    this.#entries.set(program.id, new ProgramEntry(program, this.#memo, this.#options.clock));
  }

  forget(id: ProgramId): void {
    const memo = this.#entries.get(id)?.memo;
    if (memo !== undefined) this.#memo?.close(memo);
    this.#entries.delete(id);
    this.#folded.delete(id);
    this.#queues?.main.forget(id);
    this.#queues?.throttled.forget(id);
  }

  evaluate(
    request: EvaluateRequest,
    done: (response: EvaluateResponse) => void,
  ): EvaluateResponse | undefined {
    const count = request.values.length;
    const entry = this.#entries.get(request.program);
    if (entry === undefined || this.#isClosed) {
      const message = this.#isClosed ? 'the sandbox is closed' : 'unknown program';
      return everyError(count, { kind: 'killed', message });
    }
    if (count === 0) return { values: [], errors: undefined };
    if (entry.program.constant !== undefined) return everyValue(count, entry.program.constant.value);
    if (entry.isConstant) return this.#evaluateConstant(entry, count, done);
    return this.#evaluateMatches(entry, request, done);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#queues?.main.close();
    this.#queues?.throttled.close();
  }

  #evaluateConstant(
    entry: ProgramEntry,
    count: number,
    done: (response: EvaluateResponse) => void,
  ): EvaluateResponse | undefined {
    const known = this.#folded.get(entry.program.id);
    if (known !== undefined) return everyRemembered(count, known);
    const refused = this.#quarantined(entry, NO_OBJECT, count);
    if (refused !== undefined) return refused;
    this.#add({
      entry,
      object: NO_OBJECT,
      values: [undefined],
      paths: undefined,
      objects: NOTHING,
      complete: ([value], errors) => {
        const error = errors?.get(0);
        const result = rememberedOf(value, error);
        if (result !== undefined) this.#folded.set(entry.program.id, result);
        done(error === undefined ? everyValue(count, value) : everyError(count, error));
      },
    });
    return undefined;
  }

  #evaluateMatches(
    entry: ProgramEntry,
    request: EvaluateRequest,
    done: (response: EvaluateResponse) => void,
  ): EvaluateResponse | undefined {
    const lookup = lookUp(entry, request);
    if (lookup === undefined) {
      const message = `the value is nested deeper than ${INPUT_DEPTH_MAX} levels`;
      return everyError(request.values.length, { kind: 'runtime', message });
    }
    if (entry.memo !== undefined) this.#metrics.memo(lookup.hits, lookup.misses);
    if (lookup.response !== undefined) return lookup.response;
    const refused = this.#quarantined(entry, request.object, request.values.length);
    if (refused !== undefined) return refused;
    this.#add(lookup.job(done));
    return undefined;
  }

  #quarantined(entry: ProgramEntry, object: ObjectIdentity, count: number): EvaluateResponse | undefined {
    if (entry.quarantine.isEmpty) return undefined;
    const untilMs = entry.quarantine.waitUntil(object);
    if (untilMs === undefined) return undefined;
    return everyError(count, quarantineError(untilMs, this.#options.clock.now()));
  }

  #add(job: Job): void {
    this.#queues ??= this.#openQueues();
    this.#queues[job.entry.quarantine.routeOf(job.object)].add(job);
  }

  #openQueues(): { readonly main: Scheduler; readonly throttled: ThrottledQueue } {
    const { vcluster, namespaces, limits, clock, logger, regexpBacktracksMax } = this.#options;
    const source = readGuestSource(vcluster, namespaces ?? { kind: 'single' }, limits);
    const options = {
      source: regexpBacktracksMax === undefined ? source : { ...source, regexpBacktracksMax },
      memoryBytes: limits.memoryBytes,
      clock,
      logger,
      batched: (matches: number) => this.#metrics.batched(matches),
      killed: (reason: 'timeout' | 'memory' | 'exit') => this.#metrics.sandboxKilled(reason),
    };
    const throttled = new ThrottledQueue(options);
    const main = new Scheduler({ ...options, route: 'main', divert: (job) => throttled.add(job) });
    return { main, throttled };
  }
}
