/** The response of one watch, and the bytes of its events. */

import type { ServerResponse } from 'node:http';
import type { Clock } from '../../base/clock.ts';
import type { JsonObject } from '../../base/json.ts';
import { apiVersionOf } from '../../kube/object.ts';
import type { Status } from '../../kube/status-error.ts';
import { CLIENT_TIMEOUTS, WATCH_UNREAD_BYTES_MAX } from '../limits.ts';
import { type IncludeObject, type ObjectViews, partialMetadata, tableOf } from '../objects/object-view.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';
import { metaVersion } from '../request/api-response.ts';
import type { WatchResponse } from '../request/resource-handler.ts';
import type { StoredEntry } from '../storage/store.ts';

/** The response of one watch. */
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

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED';

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

  /** An event with the complete object. */
  event(type: WatchEventType, definition: ResourceDefinition, entry: StoredEntry): Buffer {
    const last = this.#last;
    if (last?.entry === entry && last.type === type && last.definition === definition) return last.line;
    const line = Buffer.from(eventLine(type, this.views.text(definition, entry)));
    this.#last = { type, definition, entry, line };
    return line;
  }
}

function eventLine(type: string, objectText: string): string {
  return `{"type":"${type}","object":${objectText}}\n`;
}

export function errorLine(status: Status): string {
  return eventLine('ERROR', JSON.stringify(status));
}

const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** The lines of one watch in the form that its client requested. */
export class WatchForm {
  readonly #lines: WatchLines;
  readonly #answer: Pick<WatchResponse, 'definition' | 'form'>;
  readonly #include: IncludeObject;
  readonly #clock: Clock;
  #hasColumns = true;

  constructor(
    lines: WatchLines,
    answer: Pick<WatchResponse, 'definition' | 'form'>,
    include: IncludeObject,
    clock: Clock,
  ) {
    this.#lines = lines;
    this.#answer = answer;
    this.#include = include;
    this.#clock = clock;
  }

  event(type: WatchEventType, entry: StoredEntry): Buffer | string {
    const { definition, form } = this.#answer;
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
    const { definition, form } = this.#answer;
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
