/** The sandbox: returns cached results immediately and evaluates all others in a child process. */

import type { NamespaceMode, SandboxLimits } from '../../config/types.ts';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import type { Job } from './batch.ts';
import { readGuestSource } from './guest-source.ts';
import {
  Memo,
  type Remembered,
  RememberedError,
  type MemoKey,
  type ProgramMemo,
  REMEMBERED_NULL,
  REMEMBERED_UNDEFINED,
} from './memo.ts';
import { NOTHING, type Projected } from './projection.ts';
import { ProgramEntry } from './program-entry.ts';
import { INPUT_DEPTH_MAX, isDeeperThan } from './result.ts';
import { Scheduler } from './scheduler.ts';
import { ThrottledQueue } from './throttled-queue.ts';
import type {
  EvaluateRequest,
  EvaluateResponse,
  Evaluator,
  ObjectIdentity,
  Program,
  ProgramId,
  VclusterContext,
  EvaluateError,
} from './types.ts';
import type { JsonValue } from '../../base/json.ts';

/** The sandbox's part of the daemon's metrics. */
interface SandboxMetrics {
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

interface Lookup {
  readonly hits: number;
  readonly misses: number;
  /** Set if all results were cached. */
  readonly response: EvaluateResponse | undefined;
  /** The matches to evaluate; `done` receives the complete response. */
  job(done: (response: EvaluateResponse) => void): Job;
}

/** Undefined when the inputs are too deep to be sent. */
function lookUp(entry: ProgramEntry, request: EvaluateRequest): Lookup | undefined {
  const objects = entry.projection.cut(request.context);
  const { reads } = entry.program;
  if (reads.value && isAnyTooDeep(request.values)) return undefined;
  if (
    objects !== NOTHING &&
    isAnyTooDeep([...(objects.leaves ?? []), objects.hostObject, objects.virtualObject])
  ) {
    return undefined;
  }
  if (entry.memo === undefined) return new WholeRequest(entry, request, objects);
  return new PartialRequest(entry, request, objects);
}

function isAnyTooDeep(values: readonly (JsonValue | undefined)[]): boolean {
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (typeof value === 'object' && isDeeperThan(value, INPUT_DEPTH_MAX)) return true;
  }
  return false;
}

class WholeRequest implements Lookup {
  readonly hits = 0;
  readonly misses: number;
  readonly response = undefined;
  readonly #entry: ProgramEntry;
  readonly #request: EvaluateRequest;
  readonly #objects: Projected;

  constructor(entry: ProgramEntry, request: EvaluateRequest, objects: Projected) {
    this.#entry = entry;
    this.#request = request;
    this.#objects = objects;
    this.misses = request.values.length;
  }

  job(done: (response: EvaluateResponse) => void): Job {
    const { object, values, paths } = this.#request;
    const complete: Job['complete'] = (results, errors) => {
      this.#entry.recordOutcome(object, errors);
      done({ values: results, errors });
    };
    return { entry: this.#entry, object, values, paths, objects: this.#objects, complete };
  }
}

class PartialRequest implements Lookup {
  readonly #entry: ProgramEntry;
  readonly #request: EvaluateRequest;
  readonly #objects: Projected;
  readonly #results: (JsonValue | undefined)[] = [];
  #errors: Map<number, EvaluateError> | undefined;
  /** Matches that have to be evaluated, and their keys. */
  readonly #missing: number[] = [];
  readonly #keys: MemoKey[] = [];

  constructor(entry: ProgramEntry, request: EvaluateRequest, objects: Projected) {
    this.#entry = entry;
    this.#request = request;
    this.#objects = objects;
    if (entry.memo !== undefined) this.#lookUpAll(entry.memo);
  }

  get hits(): number {
    return this.#request.values.length - this.#missing.length;
  }

  get misses(): number {
    return this.#missing.length;
  }

  get response(): EvaluateResponse | undefined {
    return this.#missing.length > 0 ? undefined : { values: this.#results, errors: this.#errors };
  }

  job(done: (response: EvaluateResponse) => void): Job {
    const { object, values, paths } = this.#request;
    const isAll = this.#missing.length === values.length;
    return {
      entry: this.#entry,
      object,
      values: isAll ? values : this.#missing.map((index) => values[index]),
      paths: isAll || paths === undefined ? paths : this.#missing.map((index) => paths[index] ?? ''),
      objects: this.#objects,
      complete: (results, errors) => {
        this.#entry.recordOutcome(object, errors);
        this.#remember(results, errors);
        done({ values: this.#results, errors: this.#errors });
      },
    };
  }

  #lookUpAll(memo: ProgramMemo): void {
    const { values, paths } = this.#request;
    const requestKey = memo.requestKey(this.#objects);
    const results = this.#results;
    for (let i = 0; i < values.length; i++) {
      const key = memo.keyOf(requestKey, values[i], paths === undefined ? '' : (paths[i] ?? ''));
      const known = memo.get(key);
      if (known === undefined) {
        this.#missing.push(i);
        this.#keys.push(key);
        results.push(undefined);
      } else if (typeof known === 'string') {
        results.push(known);
      } else if (known instanceof RememberedError) {
        this.#fail(i, known.error);
        results.push(undefined);
      } else {
        results.push(valueOf(known));
      }
    }
  }

  #remember(
    results: readonly (JsonValue | undefined)[],
    errors: ReadonlyMap<number, EvaluateError> | undefined,
  ): void {
    for (let m = 0; m < this.#missing.length; m++) {
      const index = this.#missing[m] ?? 0;
      const error = errors?.get(m);
      this.#results[index] = results[m];
      if (error !== undefined) this.#fail(index, error);
      const key = this.#keys[m];
      const outcome = rememberedOf(results[m], error);
      if (key !== undefined && outcome !== undefined) this.#entry.memo?.set(key, outcome);
    }
  }

  #fail(index: number, error: EvaluateError): void {
    this.#errors ??= new Map();
    this.#errors.set(index, error);
  }
}

function everyValue(count: number, value: JsonValue | undefined): EvaluateResponse {
  return { values: Array.from({ length: count }, () => value), errors: undefined };
}

function everyError(count: number, error: EvaluateError): EvaluateResponse {
  const values = Array.from({ length: count }, () => undefined);
  return { values, errors: new Map(values.map((_, index) => [index, error])) };
}

function everyRemembered(count: number, known: Remembered): EvaluateResponse {
  return known instanceof RememberedError
    ? everyError(count, known.error)
    : everyValue(count, valueOf(known));
}

function valueOf(known: Exclude<Remembered, RememberedError>): JsonValue | undefined {
  if (known === REMEMBERED_UNDEFINED) return undefined;
  return known === REMEMBERED_NULL ? null : known;
}

/** Undefined for an outcome that must not be cached, because it does not depend on the inputs alone. */
function rememberedOf(
  value: JsonValue | undefined,
  error: EvaluateError | undefined,
): Remembered | undefined {
  if (error !== undefined) {
    const { kind } = error;
    return kind === 'timeout' || kind === 'memory' || kind === 'killed'
      ? undefined
      : new RememberedError(error);
  }
  if (value === undefined) return REMEMBERED_UNDEFINED;
  return value === null ? REMEMBERED_NULL : value;
}

/** The error for an object on which the expression does not run before `untilMs`. */
function quarantineError(untilMs: number, nowMs: number): EvaluateError {
  const until = new Date(untilMs).toISOString();
  return {
    kind: 'killed',
    message: `this expression is quarantined until ${until} on this object: it had to be stopped before`,
    retryAfterMs: untilMs - nowMs,
  };
}
