/** The connection of one watch: first an answer of Node's HTTP server, and as soon as its head is out only a socket. */

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { FrontSocket } from '../http/front-socket.ts';
import { CLIENT_TIMEOUTS, WATCH_UNREAD_BYTES_MAX } from '../limits.ts';
import type { WatchFrame } from './watch-frames.ts';

/** The last chunk of a chunked body. */
const END = '0\r\n\r\n';

export class WatchConnection {
  /** One of the two. Nothing here may hold on to the answer when it has the socket: that is what makes a watch small. */
  #response: ServerResponse | undefined;
  #socket: Socket | undefined;
  readonly #closed: () => void;
  #isClosed = false;

  /** `closed` is called once, when nothing more can be sent. */
  constructor(response: ServerResponse, closed: () => void) {
    this.#response = response;
    this.#closed = closed;
    response.once('close', () => {
      if (!this.#socket) this.#close();
    });
  }

  /** Sends the head, so that the client knows that the watch stands before anything happens. */
  start(headers: Record<string, string>): void {
    const response = this.#response;
    if (!response) return;
    // Nothing can follow on the bare socket.
    response.writeHead(200, { ...headers, connection: 'close' });
    response.flushHeaders();
    this.#take();
    // The client may have gone before anybody listened for that.
    if (response.destroyed && !this.#socket) this.#close();
  }

  /** A client that leaves too much unread is cut off. */
  send({ chunk, line }: WatchFrame): void {
    const socket = this.#socket ?? this.#take();
    const stream = socket ?? this.#response;
    if ((stream?.writableLength ?? 0) > WATCH_UNREAD_BYTES_MAX) stream?.destroy();
    // Bytes that all watchers share, in one write.
    else if (socket) socket.write(chunk);
    else this.#response?.write(line);
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
    // Whoever does not take what is left keeps it in memory.
    socket.setTimeout(CLIENT_TIMEOUTS.responseMs, () => socket.destroy());
  }

  /** Takes the socket where the head and whatever was written before are with it: nothing can be overtaken. */
  #take(): Socket | undefined {
    const response = this.#response;
    if (!response || !isFlushed(response)) return undefined;
    const front: unknown = response.socket;
    const socket = front instanceof FrontSocket ? front.release() : undefined;
    if (!socket) return undefined;
    this.#socket = socket;
    this.#response = undefined;
    socket.once('close', () => this.#close());
    socket.on('error', () => undefined); // it closes
    socket.resume(); // what a client says during a watch is not heard; that it goes, is
    if (socket.readableEnded) socket.destroySoon();
    else socket.once('end', () => socket.destroySoon());
    return socket;
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#closed();
  }
}

/** An answer without chunks, to an old client, stays where it is. */
function isFlushed(response: ServerResponse): boolean {
  const { headersSent, chunkedEncoding, socket, writableLength, writableEnded, destroyed } = response;
  const isOpen = headersSent && !writableEnded && !destroyed;
  return isOpen && chunkedEncoding && writableLength === (socket?.writableLength ?? -1);
}
