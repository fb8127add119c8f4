/** One watch: the events after a revision, first from history, then as they happen, their form, and the response that they are sent on. */

import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { Clock, Timer } from '../../base/clock.ts';
import type { JsonObject } from '../../base/json.ts';
import { apiVersionOf } from '../../kube/object.ts';
import { isTransient, StatusError, type Status } from '../../kube/status-error.ts';
import { CLIENT_TIMEOUTS, WATCH_UNREAD_BYTES_MAX } from '../limits.ts';
import { type IncludeObject, type ObjectViews, partialMetadata, tableOf } from '../objects/object-view.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';
import { metaVersion } from '../request/api-response.ts';
import type { WatchResponse } from '../request/resource-handler.ts';
import {
  StoreError,
  type Store,
  type StoredEntry,
  type StoreEvent,
  type StoreWatch,
} from '../storage/store.ts';
import { ITEMS_PER_TURN } from '../objects/list-objects.ts';
import type { ListQuery } from '../objects/query-options.ts';
import { expired, tooLargeResourceVersion } from '../status.ts';

export interface WatchOptions {
  readonly query: ListQuery;
  readonly timeoutMs: number;
  readonly hasBookmarks: boolean;
  readonly bookmarkIntervalMs: number;
  /** True: send the current objects first, then a bookmark. False: do not send them. Undefined: the resourceVersion decides. */
  readonly sendsInitialEvents: boolean | undefined;
}

/** Current objects that are sent before the client must have read them: few, because one may have 3 MiB. */
const ENTRIES_PER_WRITE = 4;

/** How long current objects wait for a revision in the future, as in a kube-apiserver; how often it is looked for. */
const FUTURE_WAIT_MS = 3000;
const FUTURE_POLL_MS = 250;

/** Ends by timeout, by `close()`, or when the store ends it; nothing is sent afterwards. */
export class ObjectWatch {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #connection: WatchConnection;
  readonly #form: WatchForm;
  readonly #options: WatchOptions;
  readonly #timers = new Set<Timer>();
  #watch: StoreWatch | undefined;
  #isEnded = false;

  constructor(
    store: Store,
    clock: Clock,
    connection: WatchConnection,
    form: WatchForm,
    options: WatchOptions,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#connection = connection;
    this.#form = form;
    this.#options = options;
  }

  async start(): Promise<void> {
    if (this.#isEnded) return;
    const { query, timeoutMs } = this.#options;
    const requested = this.#requested;
    this.#schedule(timeoutMs, () => {
      this.#bookmark();
      this.#end();
    });
    try {
      const after = await this.#initial();
      // It may have ended while the client read the current objects.
      if (this.#isEnded) return;
      const watch = await this.#store.watch(query.range, after, {
        // The requested revision may be in the future: events up to it are not sent.
        event: (event) => (event.revision > requested ? this.#event(event) : undefined),
        end: () => this.#end(),
      });
      if (this.#isEnded) watch.close();
      else this.#watch = watch;
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#bookmarkLater();
  }

  /** Ends the watch once `check` rejects. A check that fails for the moment (5xx, 429) is repeated at its next turn. */
  every(intervalMs: number, check: () => Promise<void>): void {
    this.#schedule(intervalMs, () => {
      check().then(
        () => this.every(intervalMs, check),
        (error: unknown) => (isTransient(error) ? this.every(intervalMs, check) : this.#end()),
      );
    });
  }

  /** Sends the current objects if requested. Returns the revision after which the events begin. */
  async #initial(): Promise<number> {
    const { query, sendsInitialEvents, hasBookmarks } = this.#options;
    const requested = this.#requested;
    if (sendsInitialEvents === false && requested === 0) return this.#store.revision();
    if (requested > 0 && !sendsInitialEvents) return Math.min(requested, await this.#store.revision());
    await this.#reaches(requested);
    if (this.#isEnded) return requested;
    const { entries, revision } = await this.#store.list(query.range);
    for (const [index, entry] of entries.entries()) {
      // At the client's pace: all objects at once may be more bytes than a client may leave unread.
      if (index % ENTRIES_PER_WRITE === 0) await this.#connection.drained();
      if (index % ITEMS_PER_TURN === ITEMS_PER_TURN - 1) await setImmediate();
      if (this.#isEnded) return revision;
      if (query.matches(entry)) this.#connection.send(this.#form.event('ADDED', entry));
    }
    if (sendsInitialEvents && hasBookmarks) this.#connection.send(this.#form.bookmark(revision, true));
    return revision;
  }

  /** Throws 504 if the store does not have the revision in time: it was restored from a backup, and the client knows newer objects. */
  async #reaches(requested: number): Promise<void> {
    const untilMs = this.#clock.monotonicMs() + FUTURE_WAIT_MS;
    for (;;) {
      const current = await this.#store.revision();
      if (current >= requested || this.#isEnded) return;
      if (this.#clock.monotonicMs() >= untilMs) throw tooLargeResourceVersion(requested, current);
      await new Promise<void>((resolve) => void this.#clock.schedule(FUTURE_POLL_MS, resolve));
    }
  }

  #event(event: StoreEvent): void {
    if (this.#isEnded) return;
    const { query } = this.#options;
    const { entry, previous, revision } = event;
    const matched = previous !== undefined && query.matches(previous);
    const matches = event.type !== 'deleted' && query.matches(entry);
    if (!matches && !matched) return;
    const type = matches ? (matched ? 'MODIFIED' : 'ADDED') : 'DELETED';
    // The object no longer matches: the client gets the state that it knows, at the revision of the change.
    const shown = matches || event.type === 'deleted' ? entry : { ...(previous ?? entry), revision };
    this.#connection.send(this.#form.event(type, shown));
  }

  #bookmarkLater(): void {
    if (!this.#options.hasBookmarks || this.#isEnded) return;
    this.#schedule(this.#options.bookmarkIntervalMs, () => {
      this.#bookmark();
      this.#bookmarkLater();
    });
  }

  /** None that is older than the revision that the client has: a store that was restored from a backup may be. */
  #bookmark(): void {
    const revision = this.#watch?.revision;
    if (!this.#options.hasBookmarks || this.#isEnded || revision === undefined) return;
    if (revision >= this.#requested) this.#connection.send(this.#form.bookmark(revision, false));
  }

  get #requested(): number {
    return Number(this.#options.query.resourceVersion || 0);
  }

  #schedule(delayMs: number, callback: () => void): void {
    if (this.#isEnded) return;
    const timer = this.#clock.schedule(delayMs, () => {
      this.#timers.delete(timer);
      callback();
    });
    this.#timers.add(timer);
  }

  #fail(error: unknown): void {
    const { resourceVersion } = this.#options.query;
    const isCompacted = error instanceof StoreError && error.code === 'compacted';
    const said = isCompacted ? expired(`too old resource version: ${resourceVersion}`) : error;
    if (!this.#isEnded && said instanceof StatusError) this.#connection.send(errorLine(said.status));
    this.#end();
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#watch?.close();
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    this.#connection.end();
  }

  close(): void {
    this.#end();
  }
}

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
  readonly views: ObjectViews;
  /** An event goes to one watcher after another, so only the last line is needed again. */
  #last:
    | { type: WatchEventType; definition: ResourceDefinition; entry: StoredEntry; line: Buffer }
    | undefined;

  constructor(views: ObjectViews) {
    this.views = views;
  }

  event(type: WatchEventType, definition: ResourceDefinition, entry: StoredEntry): Buffer {
    const last = this.#last;
    if (last?.entry === entry && last.type === type && last.definition === definition) return last.line;
    const line = Buffer.from(eventLine(type, this.views.text(definition, entry)));
    this.#last = { type, definition, entry, line };
    return line;
  }
}

/** As those of a kube-apiserver: JSON may contain two more characters that end a line for clients in JavaScript. */
function eventLine(type: string, objectText: string): string {
  const text = objectText.replaceAll('\u2028', String.raw`\u2028`).replaceAll('\u2029', String.raw`\u2029`);
  return `{"type":"${type}","object":${text}}\n`;
}

function errorLine(status: Status): string {
  return eventLine('ERROR', JSON.stringify(status));
}

const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** The lines of one watch in the form that its client requested. */
export class WatchForm {
  readonly #lines: WatchLines;
  readonly #answer: Pick<WatchResponse, 'target' | 'form'>;
  readonly #include: IncludeObject;
  readonly #clock: Clock;
  #hasColumns = true;

  constructor(
    lines: WatchLines,
    answer: Pick<WatchResponse, 'target' | 'form'>,
    include: IncludeObject,
    clock: Clock,
  ) {
    this.#lines = lines;
    this.#answer = answer;
    this.#include = include;
    this.#clock = clock;
  }

  event(type: WatchEventType, entry: StoredEntry): Buffer | string {
    const { form, target } = this.#answer;
    const { definition } = target;
    if (form.as === '') return this.#lines.event(type, definition, entry);
    const object = this.#lines.views.object(definition, entry);
    const apiVersion = metaVersion(form);
    if (form.as !== 'Table') return eventLine(type, JSON.stringify(partialMetadata(object, apiVersion)));
    const table = tableOf(definition, [object], {
      includeObject: this.#include,
      nowMs: this.#clock.now(),
      metadata: { resourceVersion: String(entry.revision) },
      hasColumns: this.#hasColumns,
      apiVersion,
    });
    this.#hasColumns = false;
    return eventLine(type, JSON.stringify(table));
  }

  bookmark(revision: number, isInitialEnd: boolean): string {
    const { form, target } = this.#answer;
    const { definition } = target;
    const metadata: JsonObject = { resourceVersion: String(revision) };
    if (isInitialEnd) metadata['annotations'] = { [INITIAL_EVENTS_END]: 'true' };
    const isPlain = form.as === '';
    const object = {
      kind: isPlain ? definition.kind : form.as,
      apiVersion: isPlain ? apiVersionOf(definition) : metaVersion(form),
      metadata,
      ...(form.as === 'Table' ? { columnDefinitions: null, rows: [] } : {}),
    };
    return eventLine('BOOKMARK', JSON.stringify(object));
  }
}
