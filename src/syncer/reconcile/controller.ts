/** Workers that take keys from the queue, reconcile them, and requeue, log and count each result or error. */

import { PatchError, Postponed, TerminalError, messageOf } from '../../base/errors.ts';
import { parseKey, type ObjectKey } from '../../kube/object.ts';
import { isReported, type LogFields } from '../../base/logger.ts';
import { backoffDelayMs } from '../../base/retry.ts';
import { WorkQueue, type KeyPriority } from '../../kube/work-queue.ts';
import {
  StatusError,
  isAlreadyExists,
  isConflict,
  isForbidden,
  isNamespaceMissing,
  isNamespaceTerminating,
} from '../../kube/status-error.ts';
import { TransportError } from '../../kube/types.ts';
import type { ControllerSeries, ReconcileLabel } from '../metrics/metrics.ts';
import type { VirtualObjectId } from './dry-run.ts';
import { createHostNamespace, namespaceAdvice, type SyncEnvironment } from './environment.ts';
import { again, waitMsOf, type Again, type ReconcileResult, type Wait } from './left.ts';

/** Rejects with {@link Postponed} instead of waiting for something that one tenant can make last. */
export type Reconcile = (key: ObjectKey) => Promise<ReconcileResult>;

const WAITS: readonly string[] = [
  'pending',
  'terminating',
  'refused',
  'contested',
] satisfies Wait['outcome'][];

export function isWait(result: ReconcileResult): result is Wait {
  return WAITS.includes(result.outcome);
}

export const UNCHANGED: ReconcileResult = { outcome: 'unchanged' };

export const STALE: Again = { outcome: 'again', left: again('a cache was behind its API server') };

/** Keys reconciled concurrently. More than requests in flight, so that expressions form batches; not many more, because a copy that waits for a free
 * request takes memory: with 256 of them, daemon and sandbox together need 18 MiB more for 1000 Endpoints, and are no faster. */
const DECISIONS_MAX = 64;

/** Reconciles without I/O may block the event loop for this long. */
const TURN_MS = 5;

const REFUSAL_BASE_MS = 1000;
const REFUSAL_MAX_MS = 5 * 60_000;

export interface ControllerOptions extends Pick<
  SyncEnvironment,
  'config' | 'clients' | 'names' | 'expectedDeletions' | 'dryRun' | 'clock' | 'logger' | 'metrics'
> {
  readonly reconcile: Reconcile;
  readonly name: string;
  readonly decisionsMax?: number | undefined;
  readonly identify: (key: ObjectKey) => VirtualObjectId;
  /** All that is known of the key, for the log. */
  readonly stateOf: (key: ObjectKey) => object | undefined;
  readonly warn: (key: ObjectKey, warning: NonNullable<Outcome['warning']>) => void;
}

/** When the oldest event came that a reconcile handles, and whether only the first lists have queued the key. */
interface Arrival {
  readonly sinceMs: number;
  readonly isInitial: boolean;
}

/** What the controller knows of a key that is not synced yet; a key that is has none. */
class Progress {
  sinceMs: number | undefined;
  isInitial = false;
  problem: { readonly text: string; readonly count: number } | undefined;
  blockedBy: string | undefined;
  refusals = 0;

  get isOver(): boolean {
    const { sinceMs, problem, blockedBy, refusals } = this;
    return sinceMs === undefined && problem === undefined && blockedBy === undefined && refusals === 0;
  }
}

export class Controller {
  readonly queue: WorkQueue;
  readonly #options: ControllerOptions;
  readonly #series: ControllerSeries;
  /** Keys that are queued, in progress, or blocked. */
  readonly #progress = new Map<ObjectKey, Progress>();
  /** Keys whose reconcile was postponed, and until when. */
  readonly #postponed = new Map<ObjectKey, Promise<unknown>>();
  readonly #blockedCounts = new Map<string, number>();
  readonly #initialOutcomes = new Map<string, number>();
  #lastRefusal = '';
  #active = 0;
  #turnStartedMs = 0;
  #turn: Promise<void> | undefined;

  constructor(options: ControllerOptions) {
    const { name, clock, config, metrics, identify } = options;
    this.#options = options;
    // A user of one virtual namespace may change any number of its objects.
    const groupOf = (key: ObjectKey): string => parseKey(identify(key).key).namespace;
    this.queue = new WorkQueue({ clock, metrics: metrics.queue(name), groupOf });
    this.#series = metrics.controller(name, config.workers);
  }

  enqueue(key: ObjectKey, priority: KeyPriority = 'live'): void {
    const progress = this.#progressOf(key);
    progress.isInitial = priority !== 'live' && (progress.isInitial || progress.sinceMs === undefined);
    progress.sinceMs ??= this.#options.clock.monotonicMs();
    this.queue.add(key, priority);
  }

  /** Nothing is queued, in progress or postponed. */
  get isIdle(): boolean {
    return this.queue.isIdle && this.#postponed.size === 0;
  }

  get initialOutcomes(): ReadonlyMap<string, number> {
    return this.#initialOutcomes;
  }

  /** How many objects an API server does not let this program write (403), and what it said last; '' for none. */
  get refusedWrites(): string {
    const count = this.#blockedCounts.get(FORBIDDEN) ?? 0;
    if (count === 0) return '';
    return `${count} ${this.#options.name} ${count === 1 ? 'is' : 'are'} not written: ${this.#lastRefusal}`;
  }

  async run(): Promise<void> {
    // A standby collects keys while another replica leads; their latency is measured from now.
    const now = this.#options.clock.monotonicMs();
    for (const progress of this.#progress.values())
      if (progress.sinceMs !== undefined) progress.sinceMs = now;
    const { decisionsMax = DECISIONS_MAX } = this.#options;
    this.#series.running(true);
    await this.queue.process(decisionsMax, (key) => this.#work(key));
    this.#series.running(false);
    // After a reload another controller counts what is blocked, or none does.
    for (const reason of this.#blockedCounts.keys()) this.#series.blocked(reason, 0);
  }

  async #work(key: ObjectKey): Promise<void> {
    this.#series.active((this.#active += 1));
    await this.#handle(key);
    this.#series.active((this.#active -= 1));
    this.queue.done(key);
    await this.#yieldToIo();
  }

  /** After ten thousand reconciles without requests in sequence, as at a restart, the response to the first write would be read seconds late. */
  #yieldToIo(): Promise<void> | undefined {
    const { clock } = this.#options;
    if (this.#turn === undefined && clock.monotonicMs() - this.#turnStartedMs < TURN_MS) return undefined;
    this.#turn ??= new Promise((resolve) => {
      setImmediate(() => {
        this.#turn = undefined;
        this.#turnStartedMs = clock.monotonicMs();
        resolve();
      });
    });
    return this.#turn;
  }

  /** Never rejects: errors are handled as outcomes. */
  async #handle(key: ObjectKey): Promise<void> {
    const { clock, reconcile } = this.#options;
    const startedMs = clock.monotonicMs();
    const progress = this.#progressOf(key);
    const { sinceMs = startedMs, isInitial } = progress;
    progress.sinceMs = undefined;
    progress.isInitial = false;
    this.#postponed.delete(key);
    let label: ReconcileLabel;
    try {
      const result = await reconcile(key);
      this.queue.forget(key);
      label = this.#settle(key, result, { sinceMs, isInitial });
    } catch (error) {
      label =
        error instanceof Postponed
          ? this.#postpone(key, error, { sinceMs, isInitial })
          : await this.#fail(key, error);
    }
    if (progress.isOver) this.#progress.delete(key);
    const { logger, name, stateOf } = this.#options;
    logger.trace({ controller: name, key, state: stateOf(key) }, 'state');
    this.#series.reconciled(label, (clock.monotonicMs() - startedMs) / 1000);
  }

  /** The worker is free. An event that queues the key earlier takes the place of this. */
  #postpone(key: ObjectKey, { message, until }: Postponed, { sinceMs, isInitial }: Arrival): ReconcileLabel {
    const progress = this.#progressOf(key);
    progress.isInitial = isInitial && (progress.isInitial || progress.sinceMs === undefined);
    progress.sinceMs = sinceMs;
    this.#options.logger.debug({ controller: this.#options.name, key, reason: message }, 'postponed');
    this.#postponed.set(key, until);
    void until.then(() => {
      if (this.#postponed.get(key) !== until) return;
      this.#postponed.delete(key);
      this.queue.add(key, progress.isInitial ? 'initial' : 'live');
    });
    return 'requeue';
  }

  #settle(key: ObjectKey, result: ReconcileResult, arrival: Arrival): ReconcileLabel {
    const { identify, dryRun } = this.#options;
    const progress = this.#progressOf(key);
    const blockedBy = isWait(result) ? result.reason : undefined;
    if (blockedBy === undefined) progress.problem = undefined;
    if (result.outcome !== 'refused') progress.refusals = 0;
    this.#block(key, blockedBy);
    dryRun?.settled(identify(key), blockedBy);
    this.#log(key, result, arrival);
    const waitMs = result.outcome === 'refused' ? refusalDelayMs(progress.refusals++) : waitMsOf(result.left);
    if (waitMs === undefined) return 'success';
    this.queue.addAfter(key, waitMs);
    return 'requeue_after';
  }

  #log(key: ObjectKey, result: ReconcileResult, { sinceMs, isInitial }: Arrival): void {
    const { logger, clock, name, dryRun } = this.#options;
    const { outcome } = result;
    const reason = outcome === 'again' ? result.left.reason : result.reason;
    const note = 'note' in result ? result.note : undefined;
    const fields = { controller: name, key, outcome, reason, ...(note === undefined ? {} : { note }) };
    if (isWait(result)) {
      this.#logProblem(key, fields, 'not synced');
      return;
    }
    const isWritten = outcome !== 'unchanged' && outcome !== 'ignored' && outcome !== 'again';
    const isLoggedWithDiff = dryRun !== undefined;
    if (!isWritten || isLoggedWithDiff) {
      logger.debug(fields, 'reconciled');
      return;
    }
    const latencyMs = clock.monotonicMs() - sinceMs;
    this.#series.latency(latencyMs / 1000);
    if (isInitial) this.#initialOutcomes.set(outcome, (this.#initialOutcomes.get(outcome) ?? 0) + 1);
    logger[isInitial ? 'debug' : 'info']({ ...fields, latencyMs: Math.round(latencyMs * 10) / 10 }, 'synced');
  }

  async #fail(key: ObjectKey, error: unknown): Promise<ReconcileLabel> {
    const { config, name, identify, warn, logger, dryRun } = this.#options;
    const { retry, warning } = outcomeOf(error, this.queue.failures(key), namespaceAdvice(config));
    const isToCreate = config.createNamespaces && dryRun === undefined && isNamespaceMissing(error);
    if (warning === undefined || isToCreate)
      logger.debug({ controller: name, key, error: messageOf(error) }, 'retrying');
    else this.#logFailure(key, error, warning);
    const isRefused = warning?.reason === 'SyncError' && isForbidden(error);
    if (isRefused) this.#lastRefusal = messageOf(error);
    this.#block(key, isRefused ? FORBIDDEN : warning?.reason);
    const why = warning === undefined ? String(error) : `${warning.reason}: ${warning.note}`;
    dryRun?.settled(identify(key), why);
    if (isToCreate) await this.#createNamespace(key);
    else if (warning !== undefined) warn(key, warning);
    if (retry === 'never') return 'error';
    if (error instanceof PatchError && retry !== 'backoff') {
      // No failure of a server, whose next one would wait for as long as after all of these.
      this.queue.forget(key);
      this.queue.addAfter(key, retry.afterMs);
      return 'requeue_after';
    }
    this.queue.addRateLimited(key, retry === 'backoff' ? undefined : retry.afterMs);
    return retry === 'backoff' ? 'error' : 'requeue_after';
  }

  /** Errors of API servers and patches are expected. A stack trace only helps with a bug of this program. */
  #logFailure(key: ObjectKey, error: unknown, { reason, note }: NonNullable<Outcome['warning']>): void {
    const { name, logger } = this.#options;
    const outcome = reason === 'Terminating' ? 'terminating' : 'failed';
    const fields = { controller: name, key, outcome, reason };
    if (isExpected(error)) this.#logProblem(key, { ...fields, error: note }, 'not synced');
    else logger.error({ ...fields, err: error }, 'not synced');
  }

  /** A repeated problem is logged at its 1st, 2nd, 4th, 8th, … occurrence. Notes differ in details such as delays. */
  #logProblem(key: ObjectKey, fields: LogFields, message: string): void {
    const text = JSON.stringify({ ...fields, note: undefined });
    const progress = this.#progressOf(key);
    const known = progress.problem;
    const count = known?.text === text ? known.count + 1 : 1;
    progress.problem = { text, count };
    if (isReported(count)) this.#options.logger.warn(count === 1 ? fields : { ...fields, count }, message);
  }

  async #createNamespace(key: ObjectKey): Promise<void> {
    const { name, identify, logger } = this.#options;
    try {
      await createHostNamespace(this.#options, parseKey(identify(key).key).namespace);
    } catch (error) {
      logger.warn({ controller: name, key, error: messageOf(error) }, 'host namespace could not be created');
    }
  }

  #block(key: ObjectKey, reason: string | undefined): void {
    const progress = this.#progressOf(key);
    const before = progress.blockedBy;
    if (before === reason) return;
    if (before !== undefined) this.#countBlocked(before, -1);
    if (reason !== undefined) this.#countBlocked(reason, 1);
    progress.blockedBy = reason;
  }

  #progressOf(key: ObjectKey): Progress {
    const known = this.#progress.get(key);
    if (known !== undefined) return known;
    const progress = new Progress();
    this.#progress.set(key, progress);
    return progress;
  }

  #countBlocked(reason: string, change: number): void {
    const count = (this.#blockedCounts.get(reason) ?? 0) + change;
    this.#blockedCounts.set(reason, count);
    this.#series.blocked(reason, count);
  }
}

/** Among the reasons of {@link SyncSeries.blocked}: a `SyncError` that lasts until an administrator grants something. */
const FORBIDDEN = 'Forbidden';

function refusalDelayMs(refusals: number): number {
  return backoffDelayMs(refusals, REFUSAL_BASE_MS, REFUSAL_MAX_MS);
}

function isExpected(error: unknown): boolean {
  return [PatchError, StatusError, TransportError, TerminalError].some((type) => error instanceof type);
}

export type WarningReason = 'SyncError' | 'PatchFailed' | 'NamespaceNotFound' | 'Terminating';

export interface Outcome {
  /** With the key's back-off; as the API server asked, bounded by the work queue; or only after a change. */
  readonly retry: 'backoff' | { readonly afterMs: number } | 'never';
  readonly warning: { readonly reason: WarningReason; readonly note: string } | undefined;
}

/** Consecutive failures without a response after which an Event is sent. Shorter outages are not reported. */
const SILENT_FAILURES_MAX = 5;

export function outcomeOf(error: unknown, failures: number, advice: string): Outcome {
  if (error instanceof PatchError) return patchOutcome(error);
  if (error instanceof StatusError) {
    const { code, retryAfterMs, status } = error;
    if (code === 429 || (code === 503 && retryAfterMs !== undefined))
      return { retry: { afterMs: retryAfterMs ?? 1000 }, warning: undefined };
    if (isConflict(error) || isAlreadyExists(error)) return { retry: 'backoff', warning: undefined };
    if (isNamespaceMissing(error)) {
      const namespace = status.details?.name ?? '';
      const note = `The host namespace "${namespace}" does not exist: ${advice}. Syncing resumes automatically.`;
      return { retry: 'backoff', warning: { reason: 'NamespaceNotFound', note } };
    }
    if (isNamespaceTerminating(error)) {
      const [, name = ''] = TERMINATED.exec(error.message) ?? [];
      const note =
        `The host namespace "${name}" is being deleted, so nothing can be created there. Its status.conditions say what it waits ` +
        'for. Syncing resumes automatically when it exists again.';
      return { retry: 'backoff', warning: { reason: 'Terminating', note } };
    }
  }
  const isSilent = error instanceof TransportError && failures < SILENT_FAILURES_MAX;
  return {
    retry: error instanceof TerminalError ? 'never' : 'backoff',
    warning: isSilent ? undefined : syncError(error),
  };
}

const TERMINATED = /namespace (\S+) because it is being terminated/;

function patchOutcome(error: PatchError): Outcome {
  const all = [error, ...error.others];
  const delaysMs = all.flatMap(({ retryAfterMs }) => retryAfterMs ?? []);
  const retry = all.every(({ isDeterministic }) => isDeterministic) ? 'never' : 'backoff';
  return {
    retry: delaysMs.length === 0 ? retry : { afterMs: Math.min(...delaysMs) },
    warning: { reason: 'PatchFailed', note: all.map(patchNote).join('; ') },
  };
}

/** On one line, as in an Event. */
function patchNote({ index, path, message, kind, excerpt }: PatchError): string {
  const place = path === '' ? 'the whole object' : `path ${path}`;
  const [line = '', caret = ''] = excerpt.split('\n');
  const position = caret === '' ? '' : ` at column ${caret.length} of: ${line}`;
  return `patches[${index}], ${place}: ${message} (${kind})${position}`;
}

function syncError(error: unknown): Outcome['warning'] {
  const what = `${failedStep(error)} failed${error instanceof TerminalError ? '' : ' and is retried'}`;
  return { reason: 'SyncError', note: `${what}: ${messageOf(error)}${missingRight(error)}` };
}

/** The refusal of OpenShift's admission, which tells neither the right nor that there is one. */
const RESTRICTED = /endpoint (?:address|port) \S+ is not allowed/;

/** A sentence with a leading space, or ''. */
function missingRight(error: unknown): string {
  if (!(error instanceof StatusError) || error.code !== 403 || !RESTRICTED.test(error.message)) return '';
  const { kind = '', group = '' } = error.status.details ?? {};
  const of = group === '' ? '' : ` of ${group}`;
  return `. OpenShift demands the right to create ${kind}/restricted${of} for it: add it to rbac.extraRules of the chart`;
}

function failedStep(error: unknown): string {
  const isOfServer = error instanceof StatusError || error instanceof TransportError;
  if (!isOfServer || error.cluster === undefined) return 'Syncing';
  return error.cluster === 'host' ? 'Writing to the host' : 'Writing to the virtual cluster';
}
