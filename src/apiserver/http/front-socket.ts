/** What Node's HTTP server takes for a connection, so that the connection can leave it. */

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { respondToBrokenRequest, EndOfRequest } from './broken-request.ts';

type Done = (error?: Error | null) => void;

/**
 * As long as a connection is open, Node's HTTP server keeps its parser, the request and the answer: 15 KiB, a quarter of what an open watch
 * takes, and nothing that a stream of events needs. It takes any stream for a connection, and forgets it when it closes. So it gets this
 * one, and a watch takes the socket from behind it.
 *
 * It also ends a connection as soon as the client has nothing more to ask, though it waits for answers: here that end waits for them, too.
 * The socket must allow half of it to be open.
 */
export class FrontSocket extends Duplex {
  readonly #socket: Socket;
  /** Of the write that is with the socket; one at a time, the later ones wait here. */
  #handedLength = 0;
  #isReleased = false;
  /** The client has ended, and Node does not know yet. */
  #isEndHeld = false;
  readonly #answers = new Set<ServerResponse>();
  readonly #onData = (bytes: Buffer): void => {
    if (!this.push(bytes)) this.#socket.pause();
  };
  readonly #onEnd = (): void => {
    this.#isEndHeld = true;
    // What has not been looked at yet may hold requests: this listener comes after Node's.
    if (this.readableLength > 0) this.on('data', () => this.#passEnd());
    this.#passEnd();
  };
  readonly #onTimeout = (): void => void this.emit('timeout');
  readonly #onError = (error: Error): void => void this.destroy(error);
  readonly #onClose = (): void => void this.destroy();

  constructor(socket: Socket) {
    super({ decodeStrings: false, highWaterMark: socket.writableHighWaterMark });
    this.#socket = socket;
    socket.on('data', this.#onData);
    socket.on('end', this.#onEnd);
    socket.on('timeout', this.#onTimeout);
    socket.on('error', this.#onError);
    socket.on('close', this.#onClose);
  }

  /** To be told of each request's answer when it is due. */
  static expect(answer: ServerResponse): void {
    const front: unknown = answer.req.socket;
    if (front instanceof FrontSocket) front.#expect(answer);
  }

  #expect(answer: ServerResponse): void {
    this.#answers.add(answer);
    answer.once('close', () => {
      this.#answers.delete(answer);
      this.#passEnd();
    });
  }

  #passEnd(): void {
    if (!this.#isEndHeld || this.destroyed) return;
    // To what is not whole by now there may be an answer already; else there will be none.
    const isAwaited = [...this.#answers].some(({ req, headersSent }) => req.complete || headersSent);
    if (isAwaited || this.readableLength > 0) return;
    this.#isEndHeld = false;
    // Node says so itself, but not where the client asked for another protocol.
    if (this.#answers.size > 0) respondToBrokenRequest(new EndOfRequest(), this);
    else this.push(null);
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  /** As of a socket: milliseconds without a byte, then `timeout`. */
  setTimeout(delayMs: number): this {
    this.#socket.setTimeout(delayMs);
    return this;
  }

  /** As of a socket: closes when everything is written, without waiting for the client to close. */
  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  /** As of a socket: no client takes it for an orderly end. */
  resetAndDestroy(): void {
    this.#socket.resetAndDestroy();
  }

  /** The socket, which is the caller's from now on; this end closes. Undefined as long as something is written that the socket has not got. */
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
    // It may have ended by itself, after the client; that is no error.
    this.#socket.end(() => done());
  }

  override _destroy(error: Error | null, done: Done): void {
    if (!this.#isReleased) this.#socket.destroy();
    done(error);
  }
}
