/** Workers that take keys from the queue and reconcile them, and what follows from each result. */

import { PatchError } from '../kube/errors.ts';
import type { ObjectKey } from '../kube/object.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../observe/logger.ts';
import { createBackoff } from '../queue/backoff.ts';
import type { WorkQueue } from '../queue/work-queue.ts';
import { isNamespaceMissing, outcomeOf, type Outcome } from './outcome.ts';
import type { Reconcile, ReconcileResult } from './reconciler.ts';

/** How many keys may be decided at the same time; requests in flight have a bound of their own. Many, so that patches form batches. */
const DECISIONS_MAX = 256;

const REFUSAL_BASE_MS = 1000;
const REFUSAL_MAX_MS = 5 * 60_000;

export type ReconcileLabel = 'success' | 'error' | 'requeue_after' | 'requeue';

export interface ControllerMetrics {
  reconciled(result: ReconcileLabel, seconds: number): void;
  active(workers: number): void;
  /** Objects that are refused or failing, by reason. */
  blocked(reason: string, count: number): void;
  /** From the first event of a change to the end of the write that carries it over, seconds. */
  latency(seconds: number): void;
}

export interface ControllerOptions {
  readonly queue: WorkQueue;
  readonly reconcile: Reconcile;
  /** In logs: `endpoints`, `references`. */
  readonly name: string;
  /** Tells the user what went wrong with a key. */
  readonly warn: (key: ObjectKey, warning: NonNullable<Outcome['warning']>) => void;
  /** Makes the missing host namespace of a key; undefined: that is not our task. */
  readonly createNamespace: ((key: ObjectKey) => Promise<void>) | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: ControllerMetrics;
}

export interface Controller {
  /** A key has to be looked at. */
  enqueue(key: ObjectKey): void;
  /** Works until the queue is shut down and empty. */
  run(): Promise<void>;
}

export function createController(options: ControllerOptions): Controller {
  return new QueueController(options);
}

class QueueController implements Controller {
  readonly #options: ControllerOptions;
  /** When the oldest event that is not carried over yet came, by key. */
  readonly #pendingSinceMs = new Map<ObjectKey, number>();
  readonly #blockedReasons = new Map<ObjectKey, string>();
  readonly #blockedCounts = new Map<string, number>();
  /** Whatever frees a refused key is an event of its own; looking again is only a safety net. */
  readonly #refusals = createBackoff(REFUSAL_BASE_MS, REFUSAL_MAX_MS);
  #active = 0;

  constructor(options: ControllerOptions) {
    this.#options = options;
  }

  enqueue(key: ObjectKey): void {
    if (!this.#pendingSinceMs.has(key)) this.#pendingSinceMs.set(key, this.#options.clock.monotonicMs());
    this.#options.queue.add(key);
  }

  async run(): Promise<void> {
    await Promise.all(Array.from({ length: DECISIONS_MAX }, () => this.#work()));
  }

  async #work(): Promise<void> {
    const { queue, metrics } = this.#options;
    for (;;) {
      const key = await queue.take();
      if (key === undefined) return;
      metrics.active((this.#active += 1));
      await this.#handle(key);
      metrics.active((this.#active -= 1));
      queue.done(key);
    }
  }

  /** Never rejects: an error is an outcome like any other. */
  async #handle(key: ObjectKey): Promise<void> {
    const { clock, reconcile, queue, metrics } = this.#options;
    const startedMs = clock.monotonicMs();
    const sinceMs = this.#pendingSinceMs.get(key) ?? startedMs;
    this.#pendingSinceMs.delete(key);
    let label: ReconcileLabel;
    try {
      const result = await reconcile(key);
      queue.forget(key);
      if (result.outcome !== 'refused') this.#refusals.forget(key);
      label = this.#settle(key, result, sinceMs);
    } catch (error) {
      label = await this.#fail(key, error);
    }
    metrics.reconciled(label, (clock.monotonicMs() - startedMs) / 1000);
  }

  #settle(key: ObjectKey, result: ReconcileResult, sinceMs: number): ReconcileLabel {
    const { logger, queue, metrics, clock, name } = this.#options;
    const isBlocked = result.outcome === 'refused' || result.outcome === 'waiting';
    this.#block(key, isBlocked ? (result.reason ?? result.outcome) : undefined);
    const fields = { controller: name, key, outcome: result.outcome, reason: result.reason };
    if (isQuiet(result)) logger.debug(fields, 'reconciled');
    else if (isBlocked) logger.warn(fields, 'not synced');
    else {
      const latencyMs = clock.monotonicMs() - sinceMs;
      metrics.latency(latencyMs / 1000);
      logger.info({ ...fields, latencyMs: Math.round(latencyMs * 10) / 10 }, 'synced');
    }
    const waitMs = result.outcome === 'refused' ? this.#refusals.next(key) : result.waitMs;
    if (waitMs === undefined) return 'success';
    queue.addAfter(key, waitMs);
    return 'requeue_after';
  }

  async #fail(key: ObjectKey, error: unknown): Promise<ReconcileLabel> {
    const { queue, name, warn, createNamespace, logger } = this.#options;
    const { retry, warning } = outcomeOf(error, queue.failures(key));
    const fields = { controller: name, key, err: error, retry: retry.kind };
    if (warning === undefined) logger.debug(fields, 'reconcile is retried');
    else logger.warn(fields, error instanceof PatchError ? 'patch failed' : 'reconcile failed');
    this.#block(key, warning?.reason);
    if (createNamespace !== undefined && isNamespaceMissing(error)) {
      await this.#makeNamespace(key, createNamespace);
    } else if (warning !== undefined) warn(key, warning);
    switch (retry.kind) {
      case 'backoff':
        queue.addRateLimited(key);
        return 'error';
      case 'after':
        queue.addAfter(key, retry.delayMs);
        return 'requeue_after';
      case 'never':
        return 'error';
    }
  }

  async #makeNamespace(key: ObjectKey, create: (key: ObjectKey) => Promise<void>): Promise<void> {
    try {
      await create(key);
    } catch (error) {
      this.#options.logger.warn(
        { controller: this.#options.name, key, err: error },
        'host namespace could not be created',
      );
    }
  }

  #block(key: ObjectKey, reason: string | undefined): void {
    const before = this.#blockedReasons.get(key);
    if (before === reason) return;
    if (before !== undefined) this.#countBlocked(before, -1);
    if (reason === undefined) this.#blockedReasons.delete(key);
    else {
      this.#blockedReasons.set(key, reason);
      this.#countBlocked(reason, 1);
    }
  }

  #countBlocked(reason: string, change: number): void {
    const count = (this.#blockedCounts.get(reason) ?? 0) + change;
    this.#blockedCounts.set(reason, count);
    this.#options.metrics.blocked(reason, count);
  }
}

function isQuiet({ outcome }: ReconcileResult): boolean {
  return outcome === 'unchanged' || outcome === 'ignored';
}
