/** Keeps a sink in sync with one resource of an API server, with recovery from all failures. The state machine is in transitions.ts. */

import { type KubeObject, type Resource, isOlder } from '../object.ts';
import { sleep, withinTime, type Clock, type Timer } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { Logger } from '../../base/logger.ts';
import { createSemaphore } from '../../base/semaphore.ts';
import { RetryDelay } from '../../base/retry.ts';
import {
  allTransitions,
  attemptEndOf,
  RewoundError,
  SilenceError,
  SinkError,
  TRANSITIONS,
  type AttemptEnd,
  type Outcome,
  type Phase,
  type Transition,
} from './transitions.ts';
import {
  MalformedResponseError,
  type ListOptions,
  type MalformedItem,
  type ObjectList,
  type ObjectVersion,
  type WatchClient,
  type WatchEventType,
} from '../types.ts';

/** Receives lists and events. All methods are synchronous; an error that one throws makes the list-watch start over. */
export interface ListWatchSink {
  /** The first page of a list is there. With `isRewound` the server's versions went back: the list replaces everything that is held. */
  listStarted(list: StartedList): void;
  listPage(objects: readonly KubeObject[], malformed: readonly MalformedItem[]): void;
  /** The list is complete: objects that were not in it are gone. Returns true if it contradicts what was held, so that the server must have
   * been restored from a backup although its versions have passed the last known one since. */
  listComplete(resourceVersion: string): boolean;
  event(type: Exclude<WatchEventType, 'BOOKMARK'>, object: KubeObject): void;
  /** True if an event with this version of an object changes nothing. Absent: false. */
  ignores?(version: ObjectVersion): boolean;
}

export interface StartedList {
  readonly resourceVersion: string;
  readonly isRewound: boolean;
  readonly isInterrupted: boolean;
  /** `clock.monotonicMs()` when the list was requested: what this process has learned since may be newer than the list. */
  readonly requestedAtMs: number;
}

export interface ListWatchMetrics {
  expect(phase: Phase, outcome: Outcome): void;
  ended(phase: Phase, outcome: Outcome): void;
  received(type: WatchEventType): void;
}

export interface ListWatchOptions {
  client: Pick<WatchClient, 'cluster' | 'list' | 'watch'>;
  resource: Resource;
  /** Absent: every namespace. */
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  isMetadataOnly?: boolean;
  leavesOutMalformed?: boolean;
  sink: ListWatchSink;
  clock: Clock;
  random: Random;
  logger: Logger;
  metrics: ListWatchMetrics;
  /** Objects per page of a list. Default 500. */
  pageSize?: number;
  /** Shared by the list-watches of an API server. Default: one of its own. */
  server?: ServerHistory;
  /** The longest delay before another attempt, unless the server asks for more. Default 30 s. */
  reconnectMaxMs?: number;
}

/** For logs and readiness. */
export interface ListWatchCondition {
  readonly phase: Phase | 'waiting' | 'stopped';
  /** Failures in a row. */
  readonly failures: number;
  /** Undefined while the list-watch works. */
  readonly lastError: string | undefined;
  /** `clock.monotonicMs()` when data was last received from the server; undefined: never. */
  readonly receivedAtMs: number | undefined;
  readonly isRewound: boolean;
}

const PAGE_SIZE = 500;
const PAGE_SIZE_MAX = 8000;
const LIST_TIMEOUT_MS = 60_000;
/** A watch without even a bookmark for this long is aborted; bookmarks come about every minute. */
const SILENCE_LIMIT_MS = 150_000;
/** After this long without data the server is asked for its version: a restored one may never reach the version that a watch waits for. */
const IDLE_MS = 60_000;
/** A server that was away for longer may have been restored and have passed the last known version since. */
const GAP_MAX_MS = 5000;
const WATCH_SECONDS_MIN = 300;
const WATCH_SECONDS_MAX = 600;
/** A watch that the server ends sooner is retried after a delay. */
const BRIEF_MS = 1000;
/** The longest that one list keeps the others of its server waiting. */
const RELIST_TURN_MS = 5000;
const RECONNECT_BASE_MS = 800;
const RECONNECT_MAX_MS = 30_000;
/** A watch that lasted this long resets the back-off. */
const HEALTHY_MS = 120_000;

/** What the list-watches of one API server share. */
export class ServerHistory {
  readonly #relists = createSemaphore(1);
  readonly #followers = new Set<() => void>();
  /** `clock.monotonicMs()` when a list-watch last began to fail. */
  #failingSinceMs = -Infinity;
  #listedAtMs = -Infinity;

  /** `clock.monotonicMs()` when objects were last listed again: from then on, another server may be the one that answers. */
  get listedAtMs(): number {
    return this.#listedAtMs;
  }

  /** One list after the other, so that a server that is back does not have to serve all list-watches at once. A list that takes long, such as that
   * of a kind whose conversion webhook hangs, does not hold up the next one. */
  async relist<T>(list: () => Promise<T>, clock: Clock, signal: AbortSignal): Promise<T> {
    const listing = Promise.withResolvers<T>();
    await this.#relists.run(async () => {
      this.#listedAtMs = clock.monotonicMs();
      const started = list();
      listing.resolve(started);
      await withinTime(started, { clock, ms: RELIST_TURN_MS, signal });
    });
    return listing.promise;
  }

  /** `listAgain` is called when another list-watch has found that the server was restored from a backup. */
  follow(listAgain: () => void): Disposable {
    this.#followers.add(listAgain);
    return { [Symbol.dispose]: () => void this.#followers.delete(listAgain) };
  }

  restored(foundBy: () => void): void {
    for (const listAgain of this.#followers) if (listAgain !== foundBy) listAgain();
  }

  /** A list-watch begins to fail. True for the first one of an outage, which the others notice within the silence limit. */
  beginsOutage(nowMs: number): boolean {
    const isFirst = nowMs - this.#failingSinceMs > SILENCE_LIMIT_MS;
    this.#failingSinceMs = nowMs;
    return isFirst;
  }
}

export class ListWatch {
  readonly #options: ListWatchOptions;
  readonly #server: ServerHistory;
  readonly #delay: RetryDelay;
  #phase: ListWatchCondition['phase'] = 'stopped';
  #lastError: string | undefined;
  /** Outcome of the last attempt that was followed by a wait. */
  #lastOutcome: Outcome | undefined;
  /** Failures of the resource that were reported since the last watch that was healthy. */
  readonly #reported = new Set<Outcome>();
  /** The server has failed since the last watch that was healthy. */
  #isOut = false;
  #receivedAtMs: number | undefined;
  #pageSize: number;
  #version = '';
  #newestVersion = '';
  /** True from the detection of a restored server until its objects have been listed. */
  #isRewound = false;
  /** True from the time when the server could not be reached until its objects have been listed. */
  #isInterrupted = false;
  /** The list is complete and no watch has begun since. */
  #isListed = false;
  /** When a watch broke, or could not begin; undefined while one works and after an orderly end. */
  #brokenAtMs: number | undefined;
  /** Ends the attempt in progress. */
  #attempt = new AbortController();

  constructor(options: ListWatchOptions) {
    this.#options = options;
    this.#server = options.server ?? new ServerHistory();
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
      isRewound: this.#isRewound,
    };
  }

  /** The server was restored from a backup, or may have been since the last watch broke. */
  get mayBeRestored(): boolean {
    return this.#isRewound || this.#isInterrupted || this.#brokenAtMs !== undefined;
  }

  /** Of lists, events, bookmarks and {@link observe}. A server that sends an older one later has been restored from a backup. */
  get newestVersion(): string {
    return this.#newestVersion;
  }

  /** `version` is that of an object that was read or written. `knownWhenSent`: the {@link newestVersion} when a write was sent that must have
   * a newer version; if it has an older one, all objects are listed again. */
  observe(version: string | undefined, knownWhenSent?: string): void {
    if (isOlder(version, knownWhenSent)) this.#rewound(version, knownWhenSent);
    else this.#advance(version);
  }

  /** Runs until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    let phase: Phase = 'listing';
    using _following = this.#server.follow(this.listAgain);
    while (!signal.aborted) {
      this.#phase = phase;
      const end = await (phase === 'listing' ? this.#list(signal) : this.#watch(signal));
      if (signal.aborted) break;
      this.#options.metrics.ended(phase, end.outcome);
      this.#isInterrupted ||= ['interrupted', 'silent', 'unreachable'].includes(end.outcome);
      if (phase === 'watching' && end.outcome !== 'ended')
        this.#brokenAtMs ??= this.#options.clock.monotonicMs();
      const transition: Transition = TRANSITIONS[phase][end.outcome] ?? START_OVER;
      if (transition.wait === 'back-off') await this.#wait(phase, end, signal);
      phase = this.#isRewound ? 'listing' : transition.next;
    }
    this.#phase = 'stopped';
  }

  async #wait(phase: Phase, end: AttemptEnd, signal: AbortSignal): Promise<void> {
    const { logger, clock, resource } = this.#options;
    // Only the first time: a server that repeats it gets longer and longer delays.
    const isShort = end.outcome === 'expired' && this.#lastOutcome !== 'expired';
    this.#lastOutcome = end.outcome;
    const isNews = this.#isNews(end.outcome);
    const delayMs = Math.round(this.#delay.next({ error: end.error, isShort }));
    this.#lastError = end.error?.message ?? end.outcome;
    const { outcome } = end;
    const stack = outcome === 'defect' ? { stack: end.error?.stack } : {};
    const fields = { resource: resource.plural, phase, outcome, delayMs, error: this.#lastError, ...stack };
    logger[isNews ? (LOG_LEVELS[outcome] ?? 'warn') : 'debug'](fields, 'list-watch interrupted');
    this.#phase = 'waiting';
    await sleep(clock, delayMs, signal);
  }

  /** An outage of the server is one line of the log, however many list-watches and attempts fail. A watch that breaks and is resumed at once is none. */
  #isNews(outcome: Outcome): boolean {
    if (OF_THE_RESOURCE.has(outcome)) {
      const isRepeated = this.#reported.has(outcome);
      this.#reported.add(outcome);
      return !isRepeated;
    }
    const isBreak = LOG_LEVELS[outcome] === 'info' && this.#delay.failures === 0;
    if (this.#isOut || isBreak) return false;
    this.#isOut = true;
    return this.#server.beginsOutage(this.#options.clock.monotonicMs());
  }

  /** A watch broke so long before that another server may answer. Whatever it said meanwhile, such as a proxy's page, it was not reached. */
  #isGapAt(nowMs: number): boolean {
    return nowMs - (this.#brokenAtMs ?? Infinity) > GAP_MAX_MS;
  }

  async #list(signal: AbortSignal): Promise<AttemptEnd> {
    if (this.#version === '') return this.#listAll(signal);
    return this.#server.relist(() => this.#listAll(signal), this.#options.clock, signal);
  }

  async #listAll(signal: AbortSignal): Promise<AttemptEnd> {
    const { sink } = this.#options;
    const known = this.#newestVersion;
    const requestedAtMs = this.#options.clock.monotonicMs();
    let isContinued = false;
    try {
      let page = await this.#page('', signal);
      // INVARIANT: the watch starts at the oldest version that any page shows, so that nothing between pages is missed.
      const version = page.resourceVersion;
      if (isOlder(version, known)) this.#rewound(version, known);
      const isRewound = this.#isRewound;
      const isInterrupted = this.#isInterrupted || this.#isGapAt(requestedAtMs);
      // Now, because the cache keeps the objects of these pages even if the list is never completed.
      if (isRewound) this.#newestVersion = version;
      else this.#advance(version);
      this.#take(() =>
        sink.listStarted({ resourceVersion: version, isRewound, isInterrupted, requestedAtMs }),
      );
      this.#take(() => sink.listPage(page.items, page.malformed ?? []));
      while (page.continueToken !== '') {
        isContinued = true;
        page = await this.#page(page.continueToken, signal);
        this.#take(() => sink.listPage(page.items, page.malformed ?? []));
      }
      const isRestored = this.#take(() => sink.listComplete(version)) || isRewound;
      if (isRestored && !isRewound) this.#reportRestore({ version });
      this.#version = version;
      // Another list-watch may have found a restore after this list was requested.
      if (isRewound) this.#isRewound = false;
      this.#isInterrupted = false;
      this.#isListed = true;
      this.#brokenAtMs = undefined;
      this.#lastError = undefined;
      this.#pageSize = this.#options.pageSize ?? PAGE_SIZE;
      return { outcome: isRestored ? 'restored' : 'complete' };
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
      leavesOutMalformed: this.#options.leavesOutMalformed ?? false,
    });
    this.#dataReceived();
    if (page.resourceVersion === '') throw new MalformedResponseError('a list without a resourceVersion');
    return page;
  }

  async #watch(signal: AbortSignal): Promise<AttemptEnd> {
    const { client, resource, random, clock } = this.#options;
    const seconds = WATCH_SECONDS_MIN + Math.floor(random() * (WATCH_SECONDS_MAX - WATCH_SECONDS_MIN + 1));
    const attempt = new AbortController();
    this.#attempt = attempt;
    const ending = AbortSignal.any([signal, attempt.signal]);
    const received = (): number | undefined => this.#receivedAtMs;
    let startedAtMs: number | undefined;
    using timers = new DisposableStack();
    timers.use(
      onSilence(clock, SILENCE_LIMIT_MS, received, () =>
        attempt.abort(new SilenceError(`nothing was received for ${SILENCE_LIMIT_MS} ms`)),
      ),
    );
    timers.use(onSilence(clock, IDLE_MS, received, () => void this.#checkVersionWhileIdle(ending)));
    try {
      const isResumed = !this.#isListed;
      this.#isListed = false;
      if (isResumed) {
        await this.#checkVersion(ending);
        if (this.#isGapAt(clock.monotonicMs())) return { outcome: 'interrupted' };
      }
      await client.watch(
        resource,
        { ...this.#scope(), signal: ending, resourceVersion: this.#version, timeoutSeconds: seconds },
        {
          started: () => {
            startedAtMs = clock.monotonicMs();
            this.#lastError = undefined;
            this.#brokenAtMs = undefined;
            this.#dataReceived();
          },
          dataReceived: () => this.#dataReceived(),
          event: (type, object) => this.#event(type, object),
          ignores: (type, version) => this.#ignores(type, version),
        },
      );
      return { outcome: lifeMs(startedAtMs, clock) < BRIEF_MS ? 'brief' : 'ended' };
    } catch (error) {
      return attemptEndOf(error, startedAtMs !== undefined);
    } finally {
      if (lifeMs(startedAtMs, clock) >= HEALTHY_MS) {
        this.#delay.reset();
        this.#reported.clear();
        this.#isOut = false;
      }
    }
  }

  /** Throws `RewoundError` if the server's version is older than one that was known before. */
  async #checkVersion(signal: AbortSignal): Promise<void> {
    const known = this.#newestVersion;
    // No resourceVersion: the response is as recent as the server's store.
    const { resourceVersion: version } = await this.#options.client.list(this.#options.resource, {
      ...this.#scope(),
      signal,
      limit: 1,
      isRetried: false,
    });
    if (isOlder(version, known)) throw this.#rewound(version, known);
    this.#advance(version);
  }

  /** Any failure but an older version is left to the silence limit. */
  async #checkVersionWhileIdle(signal: AbortSignal): Promise<void> {
    try {
      await this.#checkVersion(signal);
    } catch (error) {
      const { logger, resource } = this.#options;
      logger.debug({ resource: resource.plural, error: String(error) }, 'no version of an idle server');
    }
  }

  /** Ends a watch in progress; all objects are listed next. */
  #rewound(version: string | undefined, known: string | undefined): RewoundError {
    const error = new RewoundError(`the server is at version ${version}, and was at ${known} before`);
    if (!this.#isRewound) this.#reportRestore({ version, known });
    this.#isRewound = true;
    this.#attempt.abort(error);
    return error;
  }

  /** The server has given the version of an object again, to other content. */
  contradicted({ metadata: { resourceVersion } }: KubeObject): void {
    this.#rewound(resourceVersion, resourceVersion);
  }

  /** What the sink holds contradicts the server, as after a restore: all objects are listed again and replace it. */
  readonly listAgain = (): void => {
    this.#isRewound = true;
    this.#attempt.abort(new RewoundError('the server was restored from a backup'));
  };

  #reportRestore(versions: {
    readonly version: string | undefined;
    readonly known?: string | undefined;
  }): void {
    const { logger, client, resource } = this.#options;
    const fields = { cluster: client.cluster, resource: resource.plural, ...versions };
    logger.warn(fields, 'the server was restored from a backup; its objects replace the cached ones');
    this.#server.restored(this.listAgain);
  }

  #advance(version: string | undefined): void {
    if (version && !isOlder(version, this.#newestVersion)) this.#newestVersion = version;
  }

  #event(type: WatchEventType, object: KubeObject): void {
    const { metrics, sink } = this.#options;
    const version = object.metadata.resourceVersion ?? '';
    metrics.received(type);
    if (type === 'BOOKMARK') {
      if (isOlder(version, this.#version)) throw this.#rewound(version, this.#version);
    } else this.#take(() => sink.event(type, object));
    this.#passed(version);
  }

  #ignores(type: WatchEventType, version: ObjectVersion): boolean {
    const { metrics, sink } = this.#options;
    if (sink.ignores?.(version) !== true) return false;
    metrics.received(type);
    this.#passed(version.resourceVersion);
    return true;
  }

  /** INVARIANT: called when the cache has stored the event, or had it; the version never goes backwards. */
  #passed(version: string): void {
    if (!isOlder(version, this.#version)) this.#version = version;
    this.#advance(version);
  }

  #take<T>(action: () => T): T {
    try {
      return action();
    } catch (cause) {
      throw new SinkError('storing objects in the cache failed', { cause });
    }
  }

  #dataReceived(): void {
    this.#receivedAtMs = this.#options.clock.monotonicMs();
  }

  #scope(): Pick<ListOptions, 'namespace' | 'labelSelector' | 'isMetadataOnly'> {
    const { namespace, labelSelector, isMetadataOnly } = this.#options;
    return { namespace, labelSelector, isMetadataOnly };
  }
}

/** Of interruptions; the others are warnings. */
const LOG_LEVELS: Partial<Record<Outcome, 'debug' | 'info' | 'error'>> = {
  rewound: 'debug',
  brief: 'info',
  dropped: 'info',
  expired: 'info',
  defect: 'error',
};

/** Failures that say something of this resource, whatever happens to the server. */
const OF_THE_RESOURCE: ReadonlySet<Outcome> = new Set([
  'forbidden',
  'rejected',
  'malformed',
  'oversized',
  'rewound',
  'defect',
]);

/** Not reached with the outcomes in transitions.ts. */
const START_OVER: Transition = { next: 'listing', wait: 'back-off' };

/** How long the watch lasted, milliseconds; 0 when it never started. */
function lifeMs(startedAtMs: number | undefined, clock: Clock): number {
  return startedAtMs === undefined ? 0 : clock.monotonicMs() - startedAtMs;
}

/** Calls `action` after each `limitMs` without data, until disposed: the connection may be half open, or the server may wait for a version that
 * it has never had. There is one timer, set again when it fires, so that an event only costs a clock reading. */
function onSilence(
  clock: Clock,
  limitMs: number,
  receivedAtMs: () => number | undefined,
  action: () => void,
): Disposable {
  let sinceMs = clock.monotonicMs();
  let timer: Timer;
  const arm = (delayMs: number): void => {
    timer = clock.schedule(delayMs, () => {
      const nowMs = clock.monotonicMs();
      const silentMs = nowMs - Math.max(sinceMs, receivedAtMs() ?? 0);
      if (silentMs < limitMs) return arm(limitMs - silentMs);
      sinceMs = nowMs;
      arm(limitMs);
      action();
    });
  };
  arm(limitMs);
  return { [Symbol.dispose]: () => timer.cancel() };
}
