/** Watches as HTTP streams: bounded in number and in what a slow client may leave unread. */

import type { ServerResponse } from 'node:http';
import type { Clock } from '../lib/clock.ts';
import type { JsonObject } from '../lib/json.ts';
import type { Random } from '../lib/random.ts';
import { apiVersionOf } from '../kube/object.ts';
import type { Store, StoredEntry } from '../store/types.ts';
import { WATCHES_MAX, WATCHES_PER_USER_MAX, WATCH_UNREAD_BYTES_MAX } from './limits.ts';
import { parseListQuery } from './list-query.ts';
import { plainHeaders } from './http-server.ts';
import { metaVersion } from './negotiate.ts';
import type { ObjectViews } from './object-view.ts';
import { integerIn } from './query-integer.ts';
import { isTrue } from './request-info.ts';
import type { WatchAnswer } from './resource-handler.ts';
import { statusAnswer, withWarnings } from './answer.ts';
import { tooManyRequests } from './status.ts';
import type { UserInfo } from './user.ts';
import { StatusError, type Status } from '../kube/status-error.ts';
import { includeObject, partialMetadata, tableOf, type IncludeObject } from './table.ts';
import { eventLine, frameOf, WatchFrames, type WatchEventType, type WatchFrame } from './watch-frames.ts';
import { ObjectWatch, type WatchSink } from './watch-objects.ts';

export interface WatchStreamsOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly views: ObjectViews;
  /** Default 1 minute. */
  readonly bookmarkIntervalMs?: number;
  /** Default {@link WATCHES_MAX}. */
  readonly watchesMax?: number;
  /** Default {@link WATCHES_PER_USER_MAX}. */
  readonly watchesPerUserMax?: number;
}

const BOOKMARK_INTERVAL_MS = 60_000;
/** Without `timeoutSeconds` a watch lives between this and twice this. */
const TIMEOUT_MIN_MS = 30 * 60_000;
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

export class WatchStreams {
  readonly #options: WatchStreamsOptions;
  readonly #watches = new Map<ObjectWatch, UserInfo>();
  /** How many watches a user has open, by name. */
  readonly #byUser = new Map<string, number>();
  readonly #frames: WatchFrames;

  constructor(options: WatchStreamsOptions) {
    this.#options = options;
    this.#frames = new WatchFrames(options.views);
  }

  /** Answers on `response` until the watch ends; a refusal is an ordinary answer. */
  async stream(response: ServerResponse, query: URLSearchParams, answer: WatchAnswer): Promise<void> {
    try {
      const watch = this.#open(response, query, answer);
      const { name } = answer.user;
      this.#watches.set(watch, answer.user);
      this.#byUser.set(name, (this.#byUser.get(name) ?? 0) + 1);
      const forget = (): void => {
        this.#forget(watch, name);
        watch.close();
      };
      response.once('close', forget);
      // The client may have gone before anybody listened for that.
      if (response.destroyed) forget();
      else await watch.start();
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      const { code, headers, body } = statusAnswer(error);
      const length = { 'content-length': Buffer.byteLength(body) };
      response.writeHead(code, { ...plainHeaders(headers), ...length }).end(body);
    }
  }

  closeAll(): void {
    for (const watch of this.#watches.keys()) watch.close();
  }

  /** Ends the watches of users who may not see anything any more, or not the same. */
  closeOf(isConcerned: (user: UserInfo) => boolean): void {
    for (const [watch, user] of this.#watches) if (isConcerned(user)) watch.close();
  }

  #refuseTooMany(user: string): void {
    const { watchesMax = WATCHES_MAX, watchesPerUserMax = WATCHES_PER_USER_MAX } = this.#options;
    if (this.#watches.size >= watchesMax) throw tooManyRequests('too many watches are open, try again later');
    if ((this.#byUser.get(user) ?? 0) >= watchesPerUserMax) {
      throw tooManyRequests('this user has too many watches open, close some or try again later');
    }
  }

  #forget(watch: ObjectWatch, user: string): void {
    if (!this.#watches.delete(watch)) return;
    const left = (this.#byUser.get(user) ?? 1) - 1;
    if (left > 0) this.#byUser.set(user, left);
    else this.#byUser.delete(user);
  }

  #open(response: ServerResponse, query: URLSearchParams, answer: WatchAnswer): ObjectWatch {
    this.#refuseTooMany(answer.user.name);
    const { store, clock, bookmarkIntervalMs } = this.#options;
    const listQuery = parseListQuery(answer, query, true);
    const initialEvents = query.get('sendInitialEvents');
    const timeoutMs = this.#timeoutMs(integerIn(query, 'timeoutSeconds') ?? 0);
    const include = includeObject(query);
    const { headers } = withWarnings({ code: 200, headers: {}, body: '' }, answer.warnings);
    response.writeHead(200, {
      'content-type': 'application/json',
      'cache-control': 'no-cache, private',
      ...(headers as Record<string, string>),
    });
    // The client knows that the watch stands before anything happens.
    response.flushHeaders();
    const sink = new StreamSink(response, answer, { ...this.#options, include, frames: this.#frames });
    return new ObjectWatch(store, clock, sink, {
      query: listQuery,
      timeoutMs,
      hasBookmarks: isTrue(query.get('allowWatchBookmarks')),
      bookmarkIntervalMs: bookmarkIntervalMs ?? BOOKMARK_INTERVAL_MS,
      sendsInitialEvents: initialEvents === null ? undefined : isTrue(initialEvents),
    });
  }

  /** 0 is none of the client's own. */
  #timeoutMs(seconds: number): number {
    if (seconds === 0) return TIMEOUT_MIN_MS * (1 + this.#options.random());
    return Math.max(0, seconds * 1000);
  }
}

/** What the sinks of a server share. */
interface SinkParts {
  readonly views: ObjectViews;
  readonly clock: Clock;
  readonly frames: WatchFrames;
  readonly include: IncludeObject;
}

class StreamSink implements WatchSink {
  readonly #response: ServerResponse;
  readonly #answer: WatchAnswer;
  readonly #parts: SinkParts;
  #hasColumns = true;

  constructor(response: ServerResponse, answer: WatchAnswer, parts: SinkParts) {
    this.#response = response;
    this.#answer = answer;
    this.#parts = parts;
  }

  send(type: WatchEventType, entry: StoredEntry): void {
    const { definition, form } = this.#answer;
    if (form.as === '') this.#write(this.#parts.frames.event(type, definition, entry));
    else this.#write(frameOf(eventLine(type, this.#otherForm(entry))));
  }

  bookmark(revision: number, isInitialEnd: boolean): void {
    const { definition, form } = this.#answer;
    const metadata: JsonObject = { resourceVersion: String(revision) };
    if (isInitialEnd) metadata['annotations'] = { [INITIAL_EVENTS_END]: 'true' };
    const isPlain = form.as === '';
    const kind = isPlain ? definition.kind : form.as;
    const apiVersion = isPlain ? apiVersionOf(definition) : metaVersion(form);
    const object = {
      kind,
      apiVersion,
      metadata,
      ...(form.as === 'Table' ? { columnDefinitions: null, rows: [] } : {}),
    };
    this.#write(frameOf(eventLine('BOOKMARK', JSON.stringify(object))));
  }

  error(status: Status): void {
    this.#write(frameOf(eventLine('ERROR', JSON.stringify(status))));
  }

  end(): void {
    this.#response.end();
  }

  /** The text of an object that is asked for as a Table or without its fields. */
  #otherForm(entry: StoredEntry): string {
    const { views, clock, include } = this.#parts;
    const { definition, form } = this.#answer;
    const object = views.object(definition, entry);
    const apiVersion = metaVersion(form);
    if (form.as !== 'Table') return JSON.stringify(partialMetadata(object, apiVersion));
    const metadata = { resourceVersion: String(entry.revision) };
    const hasColumns = this.#hasColumns;
    this.#hasColumns = false;
    const options = { includeObject: include, nowMs: clock.now(), metadata, hasColumns, apiVersion };
    return JSON.stringify(tableOf(definition, [object], options));
  }

  #write({ chunk, line }: WatchFrame): void {
    const response = this.#response;
    const { socket } = response;
    if (response.writableLength > WATCH_UNREAD_BYTES_MAX) response.destroy();
    // One write of bytes that all watchers share. Node's own makes three of it, each encrypted by itself.
    else if (socket && response.chunkedEncoding && isFlushed(response)) socket.write(chunk);
    else response.write(line);
  }
}

/** The head and whatever was written before are with the socket: nothing can be overtaken. */
function isFlushed({
  headersSent,
  socket,
  writableLength,
  writableEnded,
  destroyed,
}: ServerResponse): boolean {
  return headersSent && !writableEnded && !destroyed && writableLength === (socket?.writableLength ?? 0);
}
