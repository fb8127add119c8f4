/** The sandbox: returns cached results immediately and evaluates all others in a child process. */

import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { IsolateSource, KillReason } from './batch.ts';
import type {
  NamingRules,
  EvaluateRequest,
  EvaluateResponse,
  ObjectContext,
  ObjectIdentity,
  Program,
  ProgramId,
  Sandbox,
  VclusterContext,
  EvaluateError,
  SandboxLimits,
} from './types.ts';
import { LocalFirst } from './local/local-first.ts';
import { SandboxProcesses } from './processes.ts';
import { isDeterministic, Memo, NO_OBJECTS, ProgramEntry, type Outcome } from './program-entry.ts';
import { isDeeperThan, type JsonValue } from '../base/json.ts';

interface SandboxMetrics {
  memo(hits: number, misses: number): void;
  batched(matches: number): void;
  sandboxKilled(reason: 'timeout' | 'memory' | 'exit'): void;
  evaluated(place: 'daemon' | 'sandbox', matches: number): void;
}

export interface SandboxOptions {
  readonly programs: readonly Program[];
  readonly vcluster: VclusterContext;
  /** For `virtualToHostDNS`; default: all copies are in the namespace of the virtual cluster. */
  readonly names?: NamingRules;
  readonly limits: SandboxLimits;
  /** Whether this process evaluates the expressions of which it knows that they end; default: a sandbox process evaluates all. */
  readonly localEvaluation?: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics?: SandboxMetrics;
  readonly regexpBacktracksMax?: number;
  /** Processes that other sandboxes use, too, and the owner as which this one takes turns; default: processes of its own, which end with it. */
  readonly shared?: { readonly processes: SandboxProcesses; readonly owner: string };
}

export async function createSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { programs, vcluster, names = singleNamespace(vcluster), metrics } = options;
  const sandbox = new ProcessSandbox({ ...options, names });
  if (options.localEvaluation !== true) return sandbox;
  return new LocalFirst(sandbox, {
    programs,
    vcluster,
    names,
    evaluated: (place, matches) => metrics?.evaluated(place, matches),
  });
}

function singleNamespace({ name, namespace }: VclusterContext): NamingRules {
  return { vcluster: name, hostNamespace: namespace, mode: 'single', byName: {}, mappingsOnly: false };
}

const NO_OBJECT: ObjectIdentity = { namespace: '', name: '' };

class ProcessSandbox implements Sandbox {
  readonly #options: SandboxOptions;
  readonly #entries = new Map<ProgramId, ProgramEntry>();
  readonly #memo: Memo | undefined;
  readonly #processes: SandboxProcesses;
  readonly #isolate: IsolateSource;
  #isClosed = false;

  constructor(options: SandboxOptions & { readonly names: NamingRules }) {
    this.#options = options;
    this.#memo = options.limits.memoBytes > 0 ? new Memo(options.limits.memoBytes) : undefined;
    const { vcluster, names, limits, clock, logger, metrics, shared } = options;
    this.#processes =
      shared?.processes ?? new SandboxProcesses({ ...options, memoryBytes: limits.memoryBytes });
    const parts = {
      owner: shared?.owner ?? '',
      clock,
      logger,
      batched: (matches: number) => metrics?.batched(matches),
      killed: (reason: KillReason) => metrics?.sandboxKilled(reason),
    };
    this.#isolate = this.#processes.openIsolate(parts, { vcluster, names, limits });
    for (const program of options.programs) this.define(program);
  }

  get pids(): readonly number[] {
    return this.#processes.pidsOf(this.#isolate);
  }

  define(program: Program): void {
    this.#entries.set(program.id, new ProgramEntry(program, this.#memo, this.#options.clock));
  }

  forget(id: ProgramId): void {
    const memo = this.#entries.get(id)?.memo;
    if (memo !== undefined) this.#memo?.close(memo);
    this.#entries.delete(id);
    this.#processes.forget(this.#isolate, id);
  }

  evaluate(request: EvaluateRequest): EvaluateResponse | Promise<EvaluateResponse> {
    const count = request.values.length;
    const entry = this.#entries.get(request.program);
    if (entry === undefined || this.#isClosed) {
      const message = this.#isClosed ? 'the sandbox is closed' : 'unknown program';
      return everyError(count, { kind: 'killed', message });
    }
    if (count === 0) return { values: [], errors: undefined };
    if (entry.constant !== undefined) return everyOutcome(count, entry.constant);
    if (entry.isConstant) return this.#evaluateConstant(entry, request);
    return this.#evaluateMatches(entry, request);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    if (this.#options.shared === undefined) this.#processes[Symbol.dispose]();
    else this.#processes.closeIsolate(this.#isolate);
  }

  #evaluateConstant(
    entry: ProgramEntry,
    { values: { length: count }, postpone }: EvaluateRequest,
  ): EvaluateResponse | Promise<EvaluateResponse> {
    const refused = this.#quarantined(entry, NO_OBJECT, count);
    if (refused !== undefined) return refused;
    return new Promise((resolve) =>
      this.#processes.add({
        isolate: this.#isolate,
        entry,
        object: NO_OBJECT,
        values: [undefined],
        paths: undefined,
        objects: NO_OBJECTS,
        postpone,
        complete: ([value], errors) => {
          const outcome = { value, error: errors?.get(0) };
          if (isDeterministic(outcome.error)) entry.constant = outcome;
          resolve(everyOutcome(count, outcome));
        },
      }),
    );
  }

  #evaluateMatches(
    entry: ProgramEntry,
    request: EvaluateRequest,
  ): EvaluateResponse | Promise<EvaluateResponse> {
    const { object, values, paths } = request;
    const objects = entry.readObjects(request.context);
    if (isTooDeep(objects, entry.program.reads.value ? values : [])) {
      const message = `the value is nested deeper than ${INPUT_DEPTH_MAX} levels`;
      return everyError(values.length, { kind: 'runtime', message });
    }
    const { memo } = entry;
    const lookup = memo?.lookUp(request, objects);
    const missing = lookup?.missing;
    if (missing !== undefined) this.#options.metrics?.memo(values.length - missing.length, missing.length);
    if (lookup?.missing.length === 0) return lookup.known;
    const refused = this.#quarantined(entry, object, values.length);
    if (refused !== undefined) return refused;
    return new Promise((resolve) =>
      this.#processes.add({
        isolate: this.#isolate,
        entry,
        object,
        values: missing === undefined ? values : missing.map((index) => values[index]),
        paths: missing === undefined ? paths : paths && missing.map((index) => paths[index] ?? ''),
        objects,
        postpone: request.postpone,
        complete: (results, errors) => {
          entry.recordOutcome(object, errors);
          const evaluated = { values: results, errors };
          resolve(memo === undefined || lookup === undefined ? evaluated : memo.complete(lookup, evaluated));
        },
      }),
    );
  }

  #quarantined(entry: ProgramEntry, object: ObjectIdentity, count: number): EvaluateResponse | undefined {
    if (entry.quarantine.isEmpty) return undefined;
    const untilMs = entry.quarantine.waitUntil(object);
    if (untilMs === undefined) return undefined;
    return everyError(count, quarantineError(untilMs, this.#options.clock.now()));
  }
}

/** API servers accept 10 000 levels; real objects have about ten. Deeper values are not sent, because the daemon traverses them. */
const INPUT_DEPTH_MAX = 1000;

function isTooDeep(
  { hostObject, virtualObject }: ObjectContext,
  values: readonly (JsonValue | undefined)[],
): boolean {
  const isDeep = (value: JsonValue | undefined): boolean => isDeeperThan(value, INPUT_DEPTH_MAX);
  return isDeep(hostObject) || isDeep(virtualObject) || values.some(isDeep);
}

function everyOutcome(count: number, { value, error }: Outcome): EvaluateResponse {
  if (error !== undefined) return everyError(count, error);
  return { values: Array.from({ length: count }, () => value), errors: undefined };
}

function everyError(count: number, error: EvaluateError): EvaluateResponse {
  const values = Array.from({ length: count }, () => undefined);
  return { values, errors: new Map(values.map((_, index) => [index, error])) };
}

function quarantineError(untilMs: number, nowMs: number): EvaluateError {
  const until = new Date(untilMs).toISOString();
  return {
    kind: 'killed',
    message: `this expression is quarantined until ${until} on this object: it had to be stopped before`,
    retryAfterMs: untilMs - nowMs,
  };
}
