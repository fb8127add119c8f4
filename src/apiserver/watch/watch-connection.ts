/** The connection of one watch, a response of Node's HTTP server until its head is sent, then only the socket; and the bytes of an event. */

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { FrontSocket } from './front-socket.ts';
import { CLIENT_TIMEOUTS, WATCH_UNREAD_BYTES_MAX } from '../limits.ts';
import type { StoredEntry } from '../storage/store.ts';
import type { ObjectViews } from '../objects/object-view.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';

/** The last chunk of a chunked body. */
const END = '0\r\n\r\n';

export class WatchConnection {
  /** One of the two is set. With the socket, nothing may reference the response: that saves most of the memory of a watch. */
  #response: ServerResponse | undefined;
  #socket: Socket | undefined;
  readonly #closed: () => void;
  #isClosed = false;

  /** `closed` is called once, when the connection is closed. */
  constructor(response: ServerResponse, closed: () => void) {
    this.#response = response;
    this.#closed = closed;
    response.once('close', () => {
      if (!this.#socket) this.#close();
    });
  }

  /** Sends the head before the first event, so that the client knows that the watch has started. */
  start(headers: Record<string, string>): void {
    const response = this.#response;
    if (!response) return;
    // Nothing can follow on the bare socket.
    response.writeHead(200, { ...headers, connection: 'close' });
    response.flushHeaders();
    this.#take();
    // The client may have closed the connection before the listener was added.
    if (response.destroyed && !this.#socket) this.#close();
  }

  /** Closes the connection of a client that has too many unread bytes. */
  send({ chunk, line }: WatchFrame): void {
    const socket = this.#socket ?? this.#take();
    const stream = socket ?? this.#response;
    if ((stream?.writableLength ?? 0) > WATCH_UNREAD_BYTES_MAX) stream?.destroy();
    // One write of bytes that all watchers share.
    else if (socket) socket.write(chunk);
    else this.#response?.write(line);
  }

  /** Resolves when the client has read what was sent, or the connection has closed. */
  async drained(): Promise<void> {
    const stream = this.#socket ?? this.#response;
    if (!stream?.writableNeedDrain || stream.destroyed) return;
    await new Promise<void>((resolve) => {
      const settle = (): void => {
        stream.removeListener('drain', settle);
        stream.removeListener('close', settle);
        resolve();
      };
      stream.once('drain', settle);
      stream.once('close', settle);
    });
  }

  /** Closes the connection when everything is sent. */
  end(): void {
    const socket = this.#socket ?? this.#take();
    if (!socket) {
      this.#response?.end();
      return;
    }
    if (socket.writable) socket.write(END);
    socket.destroySoon();
    // A client that does not read the rest would keep it in memory.
    socket.setTimeout(CLIENT_TIMEOUTS.responseMs, () => socket.destroy());
  }

  /** Takes the socket once it has the head and everything written before, so that the order of bytes is kept. */
  #take(): Socket | undefined {
    const response = this.#response;
    if (!response || !isFlushed(response)) return undefined;
    const front: unknown = response.socket;
    const socket = front instanceof FrontSocket ? front.release() : undefined;
    if (!socket) return undefined;
    this.#socket = socket;
    this.#response = undefined;
    // Not `once`, which keeps a wrapper of the listener: both events come once anyway.
    socket.on('close', () => this.#close());
    socket.on('error', () => undefined); // followed by 'close'
    socket.resume(); // discards what the client sends, but notices its end
    if (socket.readableEnded) socket.destroySoon();
    else socket.on('end', () => socket.destroySoon());
    return socket;
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#closed();
  }
}

/** False also for a response without chunks, to an HTTP/1.0 client: it keeps its response. */
function isFlushed(response: ServerResponse): boolean {
  const { headersSent, chunkedEncoding, socket, writableLength, writableEnded, destroyed } = response;
  const isOpen = headersSent && !writableEnded && !destroyed;
  return isOpen && chunkedEncoding && writableLength === (socket?.writableLength ?? -1);
}

/** One line of a watch. */
export interface WatchFrame {
  /** The line as a chunk of HTTP/1.1, ready for the socket. */
  readonly chunk: Buffer;
  /** The line alone; shares its bytes with the chunk. */
  readonly line: Buffer;
}

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** Events, encoded once for all watchers: with a thousand watchers, encoding is most of the work. */
export class WatchFrames {
  readonly #views: ObjectViews;
  /** An event goes to one watcher after another, so only the last frame is needed again. */
  #last:
    | { type: WatchEventType; definition: ResourceDefinition; entry: StoredEntry; frame: WatchFrame }
    | undefined;

  constructor(views: ObjectViews) {
    this.#views = views;
  }

  /** An event with the complete object. */
  event(type: WatchEventType, definition: ResourceDefinition, entry: StoredEntry): WatchFrame {
    const last = this.#last;
    if (last?.entry === entry && last.type === type && last.definition === definition) return last.frame;
    const frame = frameOf(eventLine(type, this.#views.text(definition, entry)));
    this.#last = { type, definition, entry, frame };
    return frame;
  }
}

export function eventLine(type: string, objectText: string): string {
  return `{"type":"${type}","object":${objectText}}\n`;
}

export function frameOf(line: string): WatchFrame {
  const bytes = Buffer.byteLength(line);
  const size = `${bytes.toString(16)}\r\n`;
  const chunk = Buffer.from(`${size}${line}\r\n`);
  return { chunk, line: chunk.subarray(size.length, size.length + bytes) };
}
