/** Keeps a sink in sync with one resource of an API server, with recovery from all failures. The state machine is in transitions.ts. */

import type { KubeObject, Resource } from '../object.ts';
import { sleep, type Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { Logger } from '../../base/logger.ts';
import { RetryDelay } from '../../base/retry.ts';
import { attemptEndOf, RewoundError, SinkError, type AttemptEnd } from './attempt-end.ts';
import { isOlder } from './resource-version.ts';
import { guardSilence } from './silence.ts';
import { allTransitions, TRANSITIONS, type Outcome, type Phase, type Transition } from './transitions.ts';
import { MalformedResponseError, type ObjectList, type WatchClient, type WatchEventType } from '../types.ts';

/** Receives lists and events. All methods are synchronous; an error that one throws makes the list-watch start over. */
export interface ListWatchSink {
  /** A list begins. With `isRewound` the server's versions went back: the list replaces everything that is held. */
  listStarted(isRewound: boolean): void;
  listPage(objects: readonly KubeObject[]): void;
  /** The list is complete: objects that were not in it are gone. */
  listComplete(resourceVersion: string): void;
  event(type: Exclude<WatchEventType, 'BOOKMARK'>, object: KubeObject): void;
}

/** Metrics of a list-watch. */
export interface ListWatchMetrics {
  /** Initialises the counter of one outcome to zero. */
  expect(phase: Phase, outcome: Outcome): void;
  /** A list or a watch ended. */
  ended(phase: Phase, outcome: Outcome): void;
  /** One event of a watch. */
  received(type: WatchEventType): void;
}

export interface ListWatchOptions {
  client: Pick<WatchClient, 'list' | 'watch'>;
  resource: Resource;
  /** Absent: every namespace. */
  namespace?: string;
  labelSelector?: string;
  isMetadataOnly?: boolean;
  sink: ListWatchSink;
  clock: Clock;
  random: Random;
  logger: Logger;
  metrics: ListWatchMetrics;
  /** Objects per page of a list. Default 500. */
  pageSize?: number;
  /** A watch without even a bookmark for this long is aborted. Default 150 s; bookmarks come about every minute. */
  silenceLimitMs?: number;
  /** The longest delay before another attempt, unless the server asks for more. Default 30 s. */
  reconnectMaxMs?: number;
}

/** State of a list-watch, for logs and readiness. */
export interface ListWatchCondition {
  readonly phase: Phase | 'waiting' | 'stopped';
  /** Failures in a row. */
  readonly failures: number;
  /** Undefined while the list-watch works. */
  readonly lastError: string | undefined;
  /** `clock.monotonicMs()` when data was last received from the server; undefined: never. */
  readonly receivedAtMs: number | undefined;
}

const PAGE_SIZE = 500;
const PAGE_SIZE_MAX = 8000;
const LIST_TIMEOUT_MS = 60_000;
const SILENCE_LIMIT_MS = 150_000;
const WATCH_SECONDS_MIN = 300;
const WATCH_SECONDS_MAX = 600;
/** A watch that the server ends sooner is retried after a delay. */
const BRIEF_MS = 1000;
const RECONNECT_BASE_MS = 800;
const RECONNECT_MAX_MS = 30_000;
/** A watch that lasted this long resets the back-off. */
const HEALTHY_MS = 120_000;

export class ListWatch {
  readonly #options: ListWatchOptions;
  readonly #delay: RetryDelay;
  #phase: ListWatchCondition['phase'] = 'stopped';
  #lastError: string | undefined;
  /** Outcome of the last attempt that was followed by a wait. */
  #lastOutcome: Outcome | undefined;
  #receivedAtMs: number | undefined;
  #pageSize: number;
  #version = '';

  constructor(options: ListWatchOptions) {
    this.#options = options;
    this.#delay = new RetryDelay(options.random, {
      baseMs: RECONNECT_BASE_MS,
      maxMs: options.reconnectMaxMs ?? RECONNECT_MAX_MS,
    });
    this.#pageSize = options.pageSize ?? PAGE_SIZE;
    for (const [phase, outcome] of allTransitions()) options.metrics.expect(phase, outcome);
  }

  /** The version up to which the sink has stored everything; '' before the first list. */
  get resourceVersion(): string {
    return this.#version;
  }

  get condition(): ListWatchCondition {
    return {
      phase: this.#phase,
      failures: this.#delay.failures,
      lastError: this.#lastError,
      receivedAtMs: this.#receivedAtMs,
    };
  }

  /** Runs until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    let phase: Phase = 'listing';
    while (!signal.aborted) {
      this.#phase = phase;
      const end = await (phase === 'listing' ? this.#list(signal) : this.#watch(signal));
      if (signal.aborted) break;
      this.#options.metrics.ended(phase, end.outcome);
      const transition: Transition = TRANSITIONS[phase][end.outcome] ?? START_OVER;
      if (transition.wait === 'back-off') await this.#wait(phase, end, signal);
      phase = transition.next;
    }
    this.#phase = 'stopped';
  }

  async #wait(phase: Phase, end: AttemptEnd, signal: AbortSignal): Promise<void> {
    const { logger, clock, resource } = this.#options;
    // Only the first time: a server that repeats it gets longer and longer delays.
    const isShort = end.outcome === 'expired' && this.#lastOutcome !== 'expired';
    this.#lastOutcome = end.outcome;
    const delayMs = Math.round(this.#delay.next({ error: end.error, isShort }));
    this.#lastError = end.error?.message ?? end.outcome;
    const fields = {
      resource: resource.plural,
      phase,
      outcome: end.outcome,
      delayMs,
      error: this.#lastError,
    };
    if (end.outcome === 'defect')
      logger.error({ ...fields, stack: end.error?.stack }, 'list-watch interrupted');
    else if (end.outcome === 'brief' || end.outcome === 'dropped' || end.outcome === 'expired') {
      logger.info(fields, 'list-watch interrupted');
    } else logger.warn(fields, 'list-watch interrupted');
    this.#phase = 'waiting';
    await sleep(clock, delayMs, signal);
  }

  async #list(signal: AbortSignal): Promise<AttemptEnd> {
    let isContinued = false;
    try {
      let page = await this.#page('', signal);
      // INVARIANT: the watch starts at the oldest version that any page shows, so that nothing between pages is missed.
      const version = page.resourceVersion;
      this.#take(() => this.#options.sink.listStarted(isOlder(version, this.#version)));
      this.#take(() => this.#options.sink.listPage(page.items));
      while (page.continueToken !== '') {
        isContinued = true;
        page = await this.#page(page.continueToken, signal);
        this.#take(() => this.#options.sink.listPage(page.items));
      }
      this.#take(() => this.#options.sink.listComplete(version));
      this.#version = version;
      this.#lastError = undefined;
      this.#pageSize = this.#options.pageSize ?? PAGE_SIZE;
      return { outcome: 'complete' };
    } catch (error) {
      const end = attemptEndOf(error, false);
      this.#adaptPage(end.outcome, isContinued);
      return end;
    }
  }

  /** If a continue token expires between pages, uses larger pages; if a page is too large, smaller ones. */
  #adaptPage(outcome: Outcome, isContinued: boolean): void {
    if (outcome === 'oversized') this.#pageSize = Math.max(1, Math.floor(this.#pageSize / 2));
    if (outcome === 'expired' && isContinued) this.#pageSize = Math.min(this.#pageSize * 2, PAGE_SIZE_MAX);
  }

  async #page(continueToken: string, signal: AbortSignal): Promise<ObjectList> {
    const page = await this.#options.client.list(this.#options.resource, {
      ...this.#scope(),
      signal,
      limit: this.#pageSize,
      continueToken,
      timeoutMs: LIST_TIMEOUT_MS,
      isRetried: false,
    });
    this.#dataReceived();
    if (page.resourceVersion === '') throw new MalformedResponseError('a list without a resourceVersion');
    return page;
  }

  async #watch(signal: AbortSignal): Promise<AttemptEnd> {
    const { client, resource, random, clock, silenceLimitMs = SILENCE_LIMIT_MS } = this.#options;
    const seconds = WATCH_SECONDS_MIN + Math.floor(random() * (WATCH_SECONDS_MAX - WATCH_SECONDS_MIN + 1));
    let startedAtMs: number | undefined;
    using silence = guardSilence(clock, silenceLimitMs, () => this.#receivedAtMs);
    try {
      await client.watch(
        resource,
        {
          ...this.#scope(),
          signal: AbortSignal.any([signal, silence.signal]),
          resourceVersion: this.#version,
          timeoutSeconds: seconds,
        },
        {
          started: () => {
            startedAtMs = clock.monotonicMs();
            this.#lastError = undefined;
            this.#dataReceived();
          },
          dataReceived: () => this.#dataReceived(),
          event: (type, object) => this.#event(type, object),
        },
      );
      return { outcome: lifeMs(startedAtMs, clock) < BRIEF_MS ? 'brief' : 'ended' };
    } catch (error) {
      return attemptEndOf(error, startedAtMs !== undefined);
    } finally {
      if (lifeMs(startedAtMs, clock) >= HEALTHY_MS) this.#delay.reset();
    }
  }

  #event(type: WatchEventType, object: KubeObject): void {
    const { metrics, sink } = this.#options;
    const version = object.metadata.resourceVersion ?? '';
    metrics.received(type);
    if (type === 'BOOKMARK') {
      if (isOlder(version, this.#version)) {
        throw new RewoundError(`the server is at version ${version}, and was at ${this.#version} before`);
      }
    } else this.#take(() => sink.event(type, object));
    // INVARIANT: only now, after the cache has stored the event, and never backwards.
    if (!isOlder(version, this.#version)) this.#version = version;
  }

  #take(action: () => void): void {
    try {
      action();
    } catch (cause) {
      throw new SinkError('storing objects in the cache failed', { cause });
    }
  }

  #dataReceived(): void {
    this.#receivedAtMs = this.#options.clock.monotonicMs();
  }

  #scope(): { namespace?: string; labelSelector?: string; isMetadataOnly?: boolean } {
    const { namespace, labelSelector, isMetadataOnly } = this.#options;
    return {
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(isMetadataOnly === undefined ? {} : { isMetadataOnly }),
    };
  }
}

/** Not reached with the outcomes in transitions.ts. */
const START_OVER: Transition = { next: 'listing', wait: 'back-off' };

/** How long the watch lasted, milliseconds; 0 when it never started. */
function lifeMs(startedAtMs: number | undefined, clock: Clock): number {
  return startedAtMs === undefined ? 0 : clock.monotonicMs() - startedAtMs;
}
