/** Watches as HTTP streams: bounded in number and in what a slow client may leave unread. */

import type { ServerResponse } from 'node:http';
import type { Clock } from '../lib/clock.ts';
import type { JsonObject } from '../lib/json.ts';
import type { Random } from '../lib/random.ts';
import { apiVersionOf } from '../kube/object.ts';
import type { Store, StoredEntry } from '../store/types.ts';
import { parseListQuery } from './list-query.ts';
import type { ObjectViews } from './object-view.ts';
import { isTrue } from './request-info.ts';
import type { WatchAnswer } from './resource-handler.ts';
import { statusAnswer, withWarnings } from './answer.ts';
import { badRequest, failure } from './status.ts';
import { StatusError, type Status } from '../kube/status-error.ts';
import { partialMetadata, tableOf } from './table.ts';
import { ObjectWatch, type WatchSink } from './watch-objects.ts';

export interface WatchStreamsOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly views: ObjectViews;
  /** Default 1 minute. */
  readonly bookmarkIntervalMs?: number;
}

const WATCHES_MAX = 2000;
/** Unread bytes after which a client is too slow to be kept. */
const UNREAD_BYTES_MAX = 16 * 1024 * 1024;
const BOOKMARK_INTERVAL_MS = 60_000;
/** Without `timeoutSeconds` a watch lives between this and twice this. */
const TIMEOUT_MIN_MS = 30 * 60_000;
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

export class WatchStreams {
  readonly #options: WatchStreamsOptions;
  readonly #watches = new Set<ObjectWatch>();

  constructor(options: WatchStreamsOptions) {
    this.#options = options;
  }

  /** Answers on `response` until the watch ends; a refusal is an ordinary answer. */
  async stream(response: ServerResponse, query: URLSearchParams, answer: WatchAnswer): Promise<void> {
    try {
      const watch = this.#open(response, query, answer);
      this.#watches.add(watch);
      const forget = (): void => {
        this.#watches.delete(watch);
        watch.close();
      };
      response.once('close', forget);
      // The client may have gone before anybody listened for that.
      if (response.destroyed) forget();
      else await watch.start();
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      const { code, headers, body } = statusAnswer(error);
      response.writeHead(code, headers as Record<string, string>).end(body);
    }
  }

  closeAll(): void {
    for (const watch of this.#watches) watch.close();
    this.#watches.clear();
  }

  #open(response: ServerResponse, query: URLSearchParams, answer: WatchAnswer): ObjectWatch {
    if (this.#watches.size >= WATCHES_MAX) {
      throw failure(429, 'TooManyRequests', 'too many watches are open, try again later', {
        retryAfterSeconds: 1,
      });
    }
    const { store, clock, bookmarkIntervalMs } = this.#options;
    const listQuery = parseListQuery(answer, query);
    const sendsInitialEvents = isTrue(query.get('sendInitialEvents'));
    if (sendsInitialEvents && listQuery.versionMatch !== 'NotOlderThan') {
      throw badRequest('sendInitialEvents needs resourceVersionMatch=NotOlderThan');
    }
    const timeoutMs = this.#timeoutMs(query.get('timeoutSeconds'));
    const { headers } = withWarnings({ code: 200, headers: {}, body: '' }, answer.warnings);
    response.writeHead(200, {
      'content-type': 'application/json',
      'cache-control': 'no-cache, private',
      ...(headers as Record<string, string>),
    });
    // The client knows that the watch stands before anything happens.
    response.flushHeaders();
    const sink = new StreamSink(response, answer, this.#options);
    return new ObjectWatch(store, clock, sink, {
      query: listQuery,
      timeoutMs,
      hasBookmarks: isTrue(query.get('allowWatchBookmarks')),
      bookmarkIntervalMs: bookmarkIntervalMs ?? BOOKMARK_INTERVAL_MS,
      sendsInitialEvents,
    });
  }

  #timeoutMs(seconds: string | null): number {
    if (seconds === null || seconds === '') return TIMEOUT_MIN_MS * (1 + this.#options.random());
    if (!/^\d{1,7}$/.test(seconds)) {
      throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(seconds)}: invalid syntax`);
    }
    return Number(seconds) * 1000;
  }
}

class StreamSink implements WatchSink {
  readonly #response: ServerResponse;
  readonly #answer: WatchAnswer;
  readonly #options: WatchStreamsOptions;
  #hasColumns = true;

  constructor(response: ServerResponse, answer: WatchAnswer, options: WatchStreamsOptions) {
    this.#response = response;
    this.#answer = answer;
    this.#options = options;
  }

  send(type: string, entry: StoredEntry): void {
    this.#write(`{"type":"${type}","object":${this.#objectText(entry)}}\n`);
  }

  bookmark(revision: number, isInitialEnd: boolean): void {
    const { definition, form } = this.#answer;
    const metadata: JsonObject = { resourceVersion: String(revision) };
    if (isInitialEnd) metadata['annotations'] = { [INITIAL_EVENTS_END]: 'true' };
    const type = { kind: definition.kind, apiVersion: apiVersionOf(definition) };
    const object =
      form.as === 'Table'
        ? { kind: 'Table', apiVersion: 'meta.k8s.io/v1', metadata, columnDefinitions: null, rows: [] }
        : { ...type, metadata };
    this.#write(`${JSON.stringify({ type: 'BOOKMARK', object })}\n`);
  }

  error(status: Status): void {
    this.#write(`${JSON.stringify({ type: 'ERROR', object: status })}\n`);
  }

  end(): void {
    this.#response.end();
  }

  #objectText(entry: StoredEntry): string {
    const { views, clock } = this.#options;
    const { definition, form } = this.#answer;
    if (form.as === '') return views.text(definition, entry);
    const object = views.object(definition, entry);
    if (form.as !== 'Table') return JSON.stringify(partialMetadata(object));
    const metadata = { resourceVersion: String(entry.revision) };
    const hasColumns = this.#hasColumns;
    this.#hasColumns = false;
    const options = { includeObject: 'Metadata', nowMs: clock.now(), metadata, hasColumns } as const;
    return JSON.stringify(tableOf(definition, [object], options));
  }

  #write(line: string): void {
    if (this.#response.writableLength > UNREAD_BYTES_MAX) this.#response.destroy();
    else this.#response.write(line);
  }
}
