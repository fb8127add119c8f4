/** A stream that Node's HTTP server uses as its connection, so that the socket can be taken away from it. */

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

type Done = (error?: Error | null) => void;

/**
 * While a connection is open, Node's HTTP server keeps its parser, the request and the response: 15 KiB, a quarter of the memory of an open
 * watch, which needs none of them. The server accepts any stream as a connection and releases it when it closes. It gets this stream, and
 * a watch takes the socket behind it.
 *
 * Node also closes a connection as soon as the client ends its side, although responses are pending. This stream passes the end on only
 * after these responses. The socket must allow half-open connections.
 */
export class FrontSocket extends Duplex {
  readonly #socket: Socket;
  readonly #endedInRequest: (front: FrontSocket) => void;
  /** Length of the write that the socket has; there is one at a time, later ones wait here. */
  #handedLength = 0;
  #isReleased = false;
  /** The client has ended its side, and Node has not been told yet. */
  #isEndHeld = false;
  readonly #responses = new Set<ServerResponse>();
  readonly #onData = (bytes: Buffer): void => {
    if (!this.push(bytes)) this.#socket.pause();
  };
  readonly #onEnd = (): void => {
    this.#isEndHeld = true;
    // Unparsed bytes may hold requests: this listener runs after Node's.
    if (this.readableLength > 0) this.on('data', () => this.#passEnd());
    this.#passEnd();
  };
  readonly #onTimeout = (): void => void this.emit('timeout');
  readonly #onError = (error: Error): void => void this.destroy(error);
  readonly #onClose = (): void => void this.destroy();

  /** `endedInRequest` is called when the client ends its side inside a request; it responds. */
  constructor(socket: Socket, endedInRequest: (front: FrontSocket) => void) {
    super({ decodeStrings: false, highWaterMark: socket.writableHighWaterMark });
    this.#socket = socket;
    this.#endedInRequest = endedInRequest;
    socket.on('data', this.#onData);
    socket.on('end', this.#onEnd);
    socket.on('timeout', this.#onTimeout);
    socket.on('error', this.#onError);
    socket.on('close', this.#onClose);
  }

  /** Must be called with the response of each request. */
  static track(response: ServerResponse): void {
    const front: unknown = response.req.socket;
    if (front instanceof FrontSocket) front.#track(response);
  }

  #track(response: ServerResponse): void {
    this.#responses.add(response);
    // Not `once`, which wraps the listener and removes it again: the event comes once anyway.
    response.on('close', () => {
      this.#responses.delete(response);
      this.#passEnd();
    });
  }

  #passEnd(): void {
    if (!this.#isEndHeld || this.destroyed) return;
    // A request that is incomplete now gets no response, unless one has begun already.
    const isAwaited = [...this.#responses].some(({ req, headersSent }) => req.complete || headersSent);
    if (isAwaited || this.readableLength > 0) return;
    this.#isEndHeld = false;
    // Node reports this itself, except where the client asked for another protocol.
    if (this.#responses.size > 0) this.#endedInRequest(this);
    else this.push(null);
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  /** As on a socket: `timeout` after this long without a byte. */
  setTimeout(delayMs: number): this {
    this.#socket.setTimeout(delayMs);
    return this;
  }

  /** As on a socket: closes when everything is written, without waiting for the client to close. */
  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  /** As on a socket: no client mistakes it for an orderly end. */
  resetAndDestroy(): void {
    this.#socket.resetAndDestroy();
  }

  /** Hands the socket over to the caller and closes this stream. Undefined while this stream holds bytes that the socket does not have. */
  release(): Socket | undefined {
    const length = this.writableLength;
    if (this.destroyed || (length > 0 && length !== this.#handedLength)) return undefined;
    const socket = this.#socket;
    socket.off('data', this.#onData);
    socket.off('end', this.#onEnd);
    socket.off('timeout', this.#onTimeout);
    socket.off('error', this.#onError);
    socket.off('close', this.#onClose);
    this.#isReleased = true;
    this.destroy();
    return socket;
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: Done): void {
    this.#handedLength = chunk.length;
    this.#socket.write(chunk, encoding, done);
  }

  override _writev(pieces: { chunk: Buffer | string; encoding: BufferEncoding }[], done: Done): void {
    const last = pieces.pop();
    this.#handedLength = last?.chunk.length ?? 0;
    this.#socket.cork();
    for (const { chunk, encoding } of pieces) {
      this.#handedLength += chunk.length;
      this.#socket.write(chunk, encoding);
    }
    if (last) this.#socket.write(last.chunk, last.encoding, done);
    this.#socket.uncork();
  }

  override _final(done: Done): void {
    // The socket may have ended already, after the client; that is not an error.
    this.#socket.end(() => done());
  }

  override _destroy(error: Error | null, done: Done): void {
    if (!this.#isReleased) this.#socket.destroy();
    done(error);
  }
}
