/** Records Events on objects. Failures are counted and logged once, and never affect syncing. */

import { messageOf } from '../base/errors.ts';
import { type KubeObject, type Resource, EVENTS } from './object.ts';
import { StatusError, isNotFound } from './status-error.ts';
import type { Timer, Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { RetryDelay } from '../base/retry.ts';
import { TokenBucket, type Rate } from '../base/token-bucket.ts';
import {
  boundedNote,
  needsNewEvent,
  newSeries,
  SERIES_LIFE_MS,
  seriesKey,
  type EventSeries,
  eventName,
  newEvent,
  seriesField,
} from './event-series.ts';
import type { EventRecorder, RecordedEvent, ClusterClient } from './types.ts';
import type { Random } from '../base/random.ts';

/** Counts Events by result. */
export interface EventMetrics {
  event(result: 'sent' | 'dropped' | 'error'): void;
}

export interface EventRecorderOptions extends EventSenderOptions {
  readonly logger: Logger;
  readonly metrics: EventMetrics;
}

/** Burst and rate of Normal Events. */
const NORMAL: Rate = { burst: 25, perSecond: 5 };
/** How long repetitions are counted before they are sent. */
const REPEAT_DELAY_MS = 10_000;
const SERIES_MAX = 20_000;
const SENDERS = 4;
/** The pause after the API server has denied Events or does not serve them. */
const REFUSED_PAUSE_MS = 5 * 60_000;
const RETRY_BASE_MS = 1000;
const RETRY_MAX_MS = 60_000;

export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  return new AggregatingRecorder(options);
}

class AggregatingRecorder implements EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #sender: EventSender;
  readonly #normal: TokenBucket;
  /** Least recently observed first. */
  readonly #series = new Map<string, EventSeries>();
  /** To be sent now, oldest first. */
  readonly #due = new Set<EventSeries>();
  /** To be sent when the timer fires. */
  readonly #later = new Set<EventSeries>();
  #laterTimer: Timer | undefined;
  /** Being sent; occurrences in the meantime are sent afterwards. */
  readonly #sending = new Map<EventSeries, Promise<void>>();
  #pausedUntilMs = 0;
  #pauseTimer: Timer | undefined;
  readonly #retryDelay: RetryDelay;
  #isRefused = false;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#sender = new EventSender(options);
    this.#normal = new TokenBucket(NORMAL, options.clock);
    this.#retryDelay = new RetryDelay(options.random, { baseMs: RETRY_BASE_MS, maxMs: RETRY_MAX_MS });
  }

  event(regarding: KubeObject, resource: Resource, event: RecordedEvent): void {
    if (event.type === 'Normal' && this.#normal.take() > 0) {
      this.#options.metrics.event('dropped');
      return;
    }
    const { clock } = this.#options;
    const series = this.#find(regarding, resource, event);
    series.note = boundedNote(event.note);
    series.count += 1;
    series.lastObservedMs = clock.now();
    if (this.#due.has(series)) return;
    if (needsNewEvent(series, clock.now()) && !this.#sending.has(series)) this.#due.add(series);
    else this.#delay(series);
    this.#pump();
  }

  async flush(): Promise<void> {
    this.#cancelPause();
    this.#pausedUntilMs = 0;
    this.#promote();
    this.#pump();
    // The first failure pauses again, so that an unreachable server does not delay the exit.
    while (this.#sending.size > 0) await Promise.all(this.#sending.values());
    this.#cancelPause();
  }

  #find(regarding: KubeObject, resource: Resource, event: RecordedEvent): EventSeries {
    const key = seriesKey(regarding, resource, event);
    const known = this.#series.get(key);
    const isAlive = known !== undefined && this.#options.clock.now() - known.lastObservedMs < SERIES_LIFE_MS;
    const series = isAlive ? known : newSeries(regarding, resource, event);
    this.#series.delete(key);
    this.#series.set(key, series);
    if (this.#series.size > SERIES_MAX) this.#evict();
    return series;
  }

  /** Prefers a series that has been sent, because then only the link to its Event is lost. */
  #evict(): void {
    let victim: EventSeries | undefined;
    for (const series of this.#series.values()) {
      victim ??= series;
      if (!this.#due.has(series) && !this.#later.has(series)) {
        victim = series;
        break;
      }
    }
    if (victim === undefined) return;
    this.#series.delete(victim.key);
    if (this.#due.delete(victim) || this.#later.delete(victim)) this.#options.metrics.event('dropped');
  }

  #delay(series: EventSeries): void {
    this.#later.add(series);
    this.#laterTimer ??= this.#options.clock.schedule(REPEAT_DELAY_MS, () => {
      this.#promote();
      this.#pump();
    });
  }

  #promote(): void {
    this.#laterTimer?.cancel();
    this.#laterTimer = undefined;
    for (const series of this.#later) this.#due.add(series);
    this.#later.clear();
  }

  /** Starts as many senders as may run. */
  #pump(): void {
    const waitMs = this.#pausedUntilMs - this.#options.clock.monotonicMs();
    if (waitMs > 0) {
      this.#pauseTimer ??= this.#options.clock.schedule(waitMs, () => {
        this.#pauseTimer = undefined;
        this.#pump();
      });
      return;
    }
    for (const series of this.#due) {
      if (this.#sending.size >= SENDERS) return;
      if (!this.#sending.has(series)) this.#start(series);
    }
  }

  #start(series: EventSeries): void {
    this.#due.delete(series);
    this.#later.delete(series);
    const sending = this.#send(series).then(() => {
      this.#sending.delete(series);
      this.#pump();
    });
    this.#sending.set(series, sending);
  }

  /** Never rejects. */
  async #send(series: EventSeries): Promise<void> {
    try {
      await this.#sender.send(series);
      this.#options.metrics.event('sent');
      this.#retryDelay.reset();
      this.#isRefused = false;
    } catch (error) {
      this.#options.metrics.event('error');
      this.#failed(series, error);
    }
  }

  #failed(series: EventSeries, error: unknown): void {
    const { logger } = this.#options;
    const fields = { reason: series.reason, error: messageOf(error) };
    const reaction = reactionTo(error);
    if (reaction === 'drop') {
      logger.debug(fields, 'event dropped');
      return;
    }
    this.#due.add(series);
    if (reaction === 'pause') {
      if (!this.#isRefused) logger.warn(fields, 'events are rejected by the API server and are held back');
      this.#isRefused = true;
      this.#pause(REFUSED_PAUSE_MS);
      return;
    }
    if (this.#retryDelay.failures === 0) logger.warn(fields, 'events cannot be sent and are retried');
    this.#pause(this.#retryDelay.next({ error }));
  }

  #cancelPause(): void {
    this.#pauseTimer?.cancel();
    this.#pauseTimer = undefined;
  }

  #pause(ms: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, this.#options.clock.monotonicMs() + ms);
  }
}

/** `drop`: this Event can never be sent; `pause`: no Event can be sent at the moment; `retry`: the error may be temporary. */
function reactionTo(error: unknown): 'drop' | 'pause' | 'retry' {
  if (!(error instanceof StatusError)) return 'retry';
  const { code, status } = error;
  const isNamespaceGone =
    status.details?.kind === 'namespaces' ||
    status.details?.causes?.some(({ reason }) => reason === 'NamespaceTerminating') === true;
  if (code === 400 || code === 409 || code === 413 || code === 422 || isNamespaceGone) return 'drop';
  if (code === 401 || code === 403 || code === 404 || code === 405) return 'pause';
  return 'retry';
}

const SEND_TIMEOUT_MS = 10_000;

interface EventSenderOptions {
  readonly client: Pick<ClusterClient, 'create' | 'patch'>;
  /** A qualified name: `endpoint-syncer/controller`. */
  readonly reportingController: string;
  /** This process, e.g. the host name; at most 128 characters are kept. */
  readonly reportingInstance: string;
  readonly clock: Clock;
  readonly random: Random;
}

class EventSender {
  readonly #options: EventSenderOptions;

  constructor(options: EventSenderOptions) {
    this.#options = options;
  }

  async send(series: EventSeries): Promise<void> {
    const { stored } = series;
    if (stored !== undefined && !needsNewEvent(series, this.#options.clock.now())) {
      if (stored.count === series.count) return;
      try {
        await this.#patch(series, stored.name);
        return;
      } catch (error) {
        // Events are deleted after an hour: the series continues in a new one.
        if (!isNotFound(error)) throw error;
      }
    }
    await this.#create(series);
  }

  async #patch(series: EventSeries, name: string): Promise<void> {
    const { count } = series;
    const key = { namespace: series.namespace, name };
    const body = { series: seriesField(series) };
    await this.#options.client.patch(EVENTS, key, { type: 'merge', body }, { timeoutMs: SEND_TIMEOUT_MS });
    series.stored = { name, note: series.stored?.note ?? series.note, count };
  }

  async #create(series: EventSeries): Promise<void> {
    const { client, clock, random, reportingController, reportingInstance } = this.#options;
    // A new note starts a new Event with its own count.
    if (series.stored !== undefined && series.stored.note !== series.note) {
      series.count = Math.max(1, series.count - series.stored.count);
    }
    const { note, count } = series;
    const name = eventName(series, clock.now(), random());
    const reporting = { controller: reportingController, instance: reportingInstance.slice(0, 128) };
    await client.create(EVENTS, newEvent(series, name, reporting), { timeoutMs: SEND_TIMEOUT_MS });
    series.stored = { name, note, count };
    series.createdMs.push(clock.now());
  }
}
