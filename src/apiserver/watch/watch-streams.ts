/** Watches as HTTP streams, limited in number and in unread bytes. */

import type { ServerResponse } from 'node:http';
import type { Clock } from '../../base/clock.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Random } from '../../base/random.ts';
import { apiVersionOf } from '../../kube/object.ts';
import type { Store, StoredEntry } from '../storage/store.ts';
import { WATCHES_MAX, WATCHES_PER_USER_MAX, CLIENT_TIMEOUTS, WATCH_UNREAD_BYTES_MAX } from '../limits.ts';
import { parseListQuery, integerIn, isTrue } from '../objects/query-options.ts';
import { metaVersion, withWarnings, plainHeaders } from '../request/api-response.ts';
import {
  type ObjectViews,
  includeObject,
  partialMetadata,
  tableOf,
  type IncludeObject,
} from '../objects/object-view.ts';
import type { WatchResponse } from '../request/resource-handler.ts';
import { tooManyRequests } from '../status.ts';
import type { UserInfo } from '../user.ts';
import type { Status } from '../../kube/status-error.ts';
import { ObjectWatch, type WatchOptions, type WatchSink } from './watch-objects.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';

export interface WatchStreamsOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly views: ObjectViews;
  /** Default 1 minute. */
  readonly bookmarkIntervalMs?: number;
  /** No event tells that these users have lost their rights: their watches are authorized again and again. Default: none. */
  readonly rechecksWatchesOf?: (user: UserInfo) => boolean;
  /** Default {@link WATCHES_MAX}. */
  readonly watchesMax?: number;
  /** Default {@link WATCHES_PER_USER_MAX}. */
  readonly watchesPerUserMax?: number;
}

const BOOKMARK_INTERVAL_MS = 60_000;
/** Without `timeoutSeconds` a watch lasts between this long and twice as long. */
const TIMEOUT_MIN_MS = 30 * 60_000;
const TIMEOUT_MAX_MS = 60 * 60_000;
const RECHECK_INTERVAL_MS = 10_000;
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

export class WatchStreams {
  readonly #options: WatchStreamsOptions;
  readonly #watches = new Map<ObjectWatch, UserInfo>();
  /** Number of open watches by user name. */
  readonly #byUser = new Map<string, number>();
  readonly #lines: WatchLines;

  constructor(options: WatchStreamsOptions) {
    this.#options = options;
    this.#lines = new WatchLines(options.views);
  }

  /**
   * Sends the head of the stream on `response`; `start()` of the result starts the events. `ended` is called when the connection has
   * closed. Throws `StatusError` before anything is sent.
   */
  open(
    response: ServerResponse,
    query: URLSearchParams,
    answer: WatchResponse,
    ended: () => void,
  ): ObjectWatch {
    const { user } = answer;
    this.#rejectTooMany(user.name);
    const options = this.#optionsOf(query, answer);
    const { store, clock, views } = this.#options;
    const parts = { views, clock, include: includeObject(query), lines: this.#lines };
    const connection = new WatchConnection(response, () => {
      this.#forget(watch, user.name);
      watch.close();
      ended();
    });
    const sink = new StreamSink(connection, answer, parts);
    const watch = new ObjectWatch(store, clock, sink, options);
    if (this.#options.rechecksWatchesOf?.(user) === true) watch.every(RECHECK_INTERVAL_MS, answer.recheck);
    this.#watches.set(watch, user);
    this.#byUser.set(user.name, (this.#byUser.get(user.name) ?? 0) + 1);
    const { headers } = withWarnings({ code: 200, headers: {}, body: '' }, answer.warnings);
    connection.start({
      'content-type': 'application/json',
      'cache-control': 'no-cache, private',
      ...plainHeaders(headers),
    });
    return watch;
  }

  closeAll(): void {
    for (const watch of this.#watches.keys()) watch.close();
  }

  /** Ends the watches of users whose rights have changed. */
  closeOf(isAffected: (user: UserInfo) => boolean): void {
    for (const [watch, user] of this.#watches) if (isAffected(user)) watch.close();
  }

  #rejectTooMany(user: string): void {
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

  #optionsOf(query: URLSearchParams, answer: WatchResponse): WatchOptions {
    const { bookmarkIntervalMs } = this.#options;
    const listQuery = parseListQuery(answer, query, true);
    const initialEvents = query.get('sendInitialEvents');
    const timeoutMs = this.#timeoutMs(integerIn(query, 'timeoutSeconds') ?? 0);
    return {
      query: listQuery,
      timeoutMs,
      hasBookmarks: isTrue(query.get('allowWatchBookmarks')),
      bookmarkIntervalMs: bookmarkIntervalMs ?? BOOKMARK_INTERVAL_MS,
      sendsInitialEvents: initialEvents === null ? undefined : isTrue(initialEvents),
    };
  }

  /** 0: the client requests no timeout. */
  #timeoutMs(seconds: number): number {
    if (seconds === 0) return TIMEOUT_MIN_MS * (1 + this.#options.random());
    return Math.min(Math.max(0, seconds * 1000), TIMEOUT_MAX_MS);
  }
}

/** What a sink needs besides its connection and its watch. */
interface SinkParts {
  readonly views: ObjectViews;
  readonly clock: Clock;
  readonly lines: WatchLines;
  readonly include: IncludeObject;
}

class StreamSink implements WatchSink {
  readonly #connection: WatchConnection;
  readonly #answer: WatchResponse;
  readonly #parts: SinkParts;
  #hasColumns = true;

  constructor(connection: WatchConnection, answer: WatchResponse, parts: SinkParts) {
    this.#connection = connection;
    this.#answer = answer;
    this.#parts = parts;
  }

  send(type: WatchEventType, entry: StoredEntry): void {
    const { definition, form } = this.#answer;
    if (form.as === '') this.#connection.send(this.#parts.lines.event(type, definition, entry));
    else this.#connection.send(eventLine(type, this.#otherForm(entry)));
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
    this.#connection.send(eventLine('BOOKMARK', JSON.stringify(object)));
  }

  error(status: Status): void {
    this.#connection.send(eventLine('ERROR', JSON.stringify(status)));
  }

  drained(): Promise<void> {
    return this.#connection.drained();
  }

  end(): void {
    this.#connection.end();
  }

  /** The text of an object that is requested as a Table or as PartialObjectMetadata. */
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
}

// The response of one watch, and the bytes of an event.

export class WatchConnection {
  readonly #response: ServerResponse;
  readonly #closed: () => void;
  #isClosed = false;

  /** `closed` is called once, when the connection is closed. */
  constructor(response: ServerResponse, closed: () => void) {
    this.#response = response;
    this.#closed = closed;
    response.once('close', () => this.#close());
    // A client that ends its side does not want more events.
    response.socket?.once('end', () => this.end());
  }

  /** Sends the head before the first event, so that the client knows that the watch has started. */
  start(headers: Record<string, string>): void {
    this.#response.writeHead(200, { ...headers, connection: 'close' });
    this.#response.flushHeaders();
    // The client may have left before the listeners were added.
    if (this.#response.destroyed) this.#close();
    else if (this.#response.socket?.readableEnded) this.end();
  }

  /** Closes the connection of a client that has too many unread bytes. Sends nothing after the end. */
  send(line: Buffer | string): void {
    // Events go on until the connection has closed.
    if (this.#response.writableEnded) return;
    if (this.#response.writableLength > WATCH_UNREAD_BYTES_MAX) this.#response.destroy();
    else this.#response.write(line);
  }

  /** Resolves when the client has read what was sent, or the connection has closed. */
  async drained(): Promise<void> {
    const response = this.#response;
    if (!response.writableNeedDrain || response.destroyed) return;
    await new Promise<void>((resolve) => {
      const settle = (): void => {
        response.removeListener('drain', settle);
        response.removeListener('close', settle);
        resolve();
      };
      response.once('drain', settle);
      response.once('close', settle);
    });
  }

  /** Closes the connection when everything is sent. */
  end(): void {
    this.#response.end();
    // A client that does not read the rest would keep it in memory.
    this.#response.socket?.setTimeout(CLIENT_TIMEOUTS.responseMs, () => this.#response.destroy());
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#closed();
  }
}

type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** Lines of events, encoded once for all watchers: with a thousand watchers, encoding is most of the work. */
export class WatchLines {
  readonly #views: ObjectViews;
  /** An event goes to one watcher after another, so only the last line is needed again. */
  #last:
    | { type: WatchEventType; definition: ResourceDefinition; entry: StoredEntry; line: Buffer }
    | undefined;

  constructor(views: ObjectViews) {
    this.#views = views;
  }

  /** An event with the complete object. */
  event(type: WatchEventType, definition: ResourceDefinition, entry: StoredEntry): Buffer {
    const last = this.#last;
    if (last?.entry === entry && last.type === type && last.definition === definition) return last.line;
    const line = Buffer.from(eventLine(type, this.#views.text(definition, entry)));
    this.#last = { type, definition, entry, line };
    return line;
  }
}

function eventLine(type: string, objectText: string): string {
  return `{"type":"${type}","object":${objectText}}\n`;
}
