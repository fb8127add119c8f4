/** Records Events on objects. Failures are counted and logged once, and never affect syncing. */

import { plainText } from '../base/excerpt.ts';
import { messageOf } from '../base/errors.ts';
import { type KubeObject, type Resource, EVENTS, apiVersionOf, microTime } from './object.ts';
import { StatusError, isNamespaceTerminating, isNotFound } from './status-error.ts';
import type { Timer, Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { RetryDelay } from '../base/retry.ts';
import { TokenBucket, type Rate } from '../base/token-bucket.ts';
import type { EventRecorder, RecordedEvent, ClusterClient } from './types.ts';
import type { Random } from '../base/random.ts';
import type { JsonObject } from '../base/json.ts';

/** Counts Events by result. */
interface EventMetrics {
  event(result: 'sent' | 'dropped' | 'error'): void;
}

interface EventRecorderOptions {
  readonly client: Pick<ClusterClient, 'create' | 'patch'>;
  /** A qualified name: `endpoint-syncer/controller`. */
  readonly reportingController: string;
  /** This process, e.g. the host name; at most 128 characters are kept. */
  readonly reportingInstance: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: EventMetrics;
  readonly limit: EventSeriesLimit;
}

/** Burst and rate of Normal Events. */
const NORMAL: Rate = { burst: 25, perSecond: 5 };
/** How long repetitions are counted before they are sent. */
const REPEAT_DELAY_MS = 10_000;
const SERIES_MAX = 20_000;
const SWEEP_INTERVAL_MS = 60_000;
const SENDERS = 4;
/** The pause after the API server has denied Events or does not serve them. */
const REFUSED_PAUSE_MS = 5 * 60_000;
const RETRY_BASE_MS = 1000;
const RETRY_MAX_MS = 60_000;
const SEND_TIMEOUT_MS = 10_000;

/** Bounds the series of all recorders of a process together, each of which takes 1.5 KiB: the one that has most of them forgets its oldest. */
export class EventSeriesLimit {
  readonly #recorders = new Set<AggregatingRecorder>();

  add(recorder: AggregatingRecorder): void {
    this.#recorders.add(recorder);
  }

  remove(recorder: AggregatingRecorder): void {
    this.#recorders.delete(recorder);
  }

  enforce(): void {
    let [total, largest]: [number, AggregatingRecorder | undefined] = [0, undefined];
    for (const one of this.#recorders) {
      total += one.seriesCount;
      if (one.seriesCount > (largest?.seriesCount ?? 0)) largest = one;
    }
    if (total > SERIES_MAX) largest?.forgetOldest();
  }
}

export class AggregatingRecorder implements EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #normal: TokenBucket;
  /** Least recently observed first. */
  readonly #series = new Map<string, EventSeries>();
  /** To be sent now, oldest first. */
  readonly #due = new Set<EventSeries>();
  /** To be sent when the timer fires. */
  readonly #later = new Set<EventSeries>();
  #laterTimer: Timer | undefined;
  /** While there are series, and the recorder is in use. */
  #sweepTimer: Timer | undefined;
  /** Being sent; occurrences in the meantime are sent afterwards. */
  readonly #sending = new Map<EventSeries, Promise<void>>();
  #pausedUntilMs = 0;
  #pauseTimer: Timer | undefined;
  readonly #retryDelay: RetryDelay;
  #isRefused = false;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
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
    series.note = boundedNote(plainText(event.note));
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
    this.#sweepTimer?.cancel();
    this.#sweepTimer = undefined;
    this.#options.limit.remove(this);
  }

  get seriesCount(): number {
    return this.#series.size;
  }

  #find(regarding: KubeObject, resource: Resource, event: RecordedEvent): EventSeries {
    const key = seriesKey(regarding, resource, event);
    const known = this.#series.get(key);
    const series =
      known !== undefined && this.#isAlive(known) ? known : newSeries(regarding, resource, event);
    this.#series.delete(key);
    this.#series.set(key, series);
    if (this.#sweepTimer === undefined) {
      this.#options.limit.add(this);
      this.#sweepTimer = this.#scheduleSweep();
    }
    if (known === undefined) this.#options.limit.enforce();
    return series;
  }

  #isAlive({ lastObservedMs }: EventSeries): boolean {
    return this.#options.clock.now() - lastObservedMs < SERIES_LIFE_MS;
  }

  forgetOldest(): void {
    const [oldest] = this.#series.values();
    if (oldest === undefined) return;
    this.#series.delete(oldest.key);
    if (this.#due.delete(oldest) || this.#later.delete(oldest)) this.#options.metrics.event('dropped');
  }

  #scheduleSweep(): Timer {
    return this.#options.clock.schedule(SWEEP_INTERVAL_MS, () => {
      for (const series of this.#series.values()) {
        if (this.#isAlive(series)) break;
        if (!this.#isPending(series)) this.#series.delete(series.key);
      }
      this.#sweepTimer = this.#series.size > 0 ? this.#scheduleSweep() : undefined;
      if (this.#series.size === 0) this.#options.limit.remove(this);
    });
  }

  #isPending(series: EventSeries): boolean {
    return this.#due.has(series) || this.#later.has(series) || this.#sending.has(series);
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
      await this.#write(series);
      this.#options.metrics.event('sent');
      this.#retryDelay.reset();
      this.#isRefused = false;
    } catch (error) {
      this.#options.metrics.event('error');
      this.#failed(series, error);
    }
  }

  async #write(series: EventSeries): Promise<void> {
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
  const isNamespaceGone = status.details?.kind === 'namespaces' || isNamespaceTerminating(error);
  if (code === 400 || code === 409 || code === 413 || code === 422 || isNamespaceGone) return 'drop';
  // A 401 ends with the renewal of the credential.
  if (code === 403 || code === 404 || code === 405) return 'pause';
  return 'retry';
}

// Series of Events: counts the occurrences of one reason on one object. Does no I/O.

/** After this long without an occurrence the next one is a new Event. */
const SERIES_LIFE_MS = 10 * 60_000;
/** Different notes of one series that become separate Events within its life. */
const NOTES_MAX = 10;
const NOTE_BYTES_MAX = 1024;
const NAME_CHARS_MAX = 220;

/** All occurrences of one reason on one object, as one Event in the API as long as it lives. */
interface EventSeries {
  readonly key: string;
  readonly type: RecordedEvent['type'];
  readonly reason: string;
  readonly action: string;
  readonly namespace: string;
  /** The object's. */
  readonly name: string;
  readonly regarding: JsonObject;
  /** The newest note. */
  note: string;
  /** Occurrences so far under the Event that is stored or will be created. */
  count: number;
  lastObservedMs: number;
  /** The stored Event; undefined: none yet, or not for this note. */
  stored: { readonly name: string; readonly note: string; readonly count: number } | undefined;
  /** Creation times of the Events of this series, to limit Events with changing notes. */
  createdMs: number[];
}

function seriesKey({ metadata }: KubeObject, resource: Resource, event: RecordedEvent): string {
  const { namespace = '', name, uid = '' } = metadata;
  return [event.type, event.reason, resource.group, resource.kind, namespace, name, uid].join('\n');
}

function newSeries(regarding: KubeObject, resource: Resource, event: RecordedEvent): EventSeries {
  const { namespace = '', name, uid } = regarding.metadata;
  return {
    key: seriesKey(regarding, resource, event),
    type: event.type,
    reason: event.reason,
    action: event.action ?? 'Sync',
    // The API server requires Events about cluster-scoped objects to be in `default`.
    namespace: namespace === '' ? 'default' : namespace,
    name,
    regarding: {
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      ...(namespace === '' ? {} : { namespace }),
      name,
      ...(uid === undefined ? {} : { uid }),
    },
    note: '',
    count: 0,
    lastObservedMs: 0,
    stored: undefined,
    createdMs: [],
  };
}

/** The last occurrence gets an Event of its own; otherwise it is counted. Forgets creation times that are too old to matter. */
function needsNewEvent(series: EventSeries, nowMs: number): boolean {
  const { stored, note, createdMs } = series;
  if (stored === undefined) return createdMs.length === 0;
  if (stored.note === note) return false;
  series.createdMs = createdMs.filter((ms) => ms > nowMs - SERIES_LIFE_MS);
  return series.createdMs.length < NOTES_MAX;
}

/** The Event of events.k8s.io/v1 for a series that has none in the API yet. */
function newEvent(
  series: EventSeries,
  name: string,
  reporting: { controller: string; instance: string },
): KubeObject {
  const observed = microTime(series.lastObservedMs);
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name, namespace: series.namespace },
    eventTime: observed,
    reportingController: reporting.controller,
    reportingInstance: reporting.instance,
    action: series.action,
    reason: series.reason,
    type: series.type,
    regarding: series.regarding,
    note: series.note,
    ...(series.count < 2 ? {} : { series: seriesField(series) }),
  };
}

/** The mutable part of a stored Event. */
function seriesField(series: EventSeries): JsonObject {
  return { count: Math.max(2, series.count), lastObservedTime: microTime(series.lastObservedMs) };
}

/** A name that no other Event has: the object's, the time and some randomness. */
function eventName(series: EventSeries, nowMs: number, random: number): string {
  const base = series.name
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, '-')
    .slice(0, NAME_CHARS_MAX)
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, '');
  const suffix = Math.floor(random * 2 ** 32)
    .toString(16)
    .padStart(8, '0');
  return `${base === '' ? 'object' : base}.${nowMs.toString(16)}${suffix}`;
}

/** At most 1024 bytes of UTF-8, never half a character. */
export function boundedNote(note: string): string {
  if (note.length * 3 <= NOTE_BYTES_MAX) return note;
  const bytes = Buffer.from(note, 'utf8');
  if (bytes.length <= NOTE_BYTES_MAX) return note;
  const ellipsis = '…';
  let end = NOTE_BYTES_MAX - Buffer.byteLength(ellipsis);
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--; // not inside a character
  return bytes.toString('utf8', 0, end) + ellipsis;
}
