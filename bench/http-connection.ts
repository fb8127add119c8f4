/**
 * A minimal HTTP/1.1 client: one connection, one request at a time; of a response it parses only the status code and the length of the body.
 * Client and server share the machine, so a client with a low and constant CPU cost per request distorts the comparison of servers least.
 */

import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export interface Peer {
  /** `https://127.0.0.1:6443`, or http. */
  readonly url: string;
  /** PEM; for https. */
  readonly ca: string;
  readonly token: string;
}

export interface ResponseSize {
  readonly code: number;
  readonly bytes: number;
}

/** Receives the bytes of a body; default: they are discarded. */
type BodySink = (piece: Buffer) => void;

type Expecting = 'nothing' | 'head' | 'length' | 'chunk-size' | 'chunk' | 'trailer';

const LINE_END = Buffer.from('\r\n');
const HEAD_END = Buffer.from('\r\n\r\n');

export class HttpConnection {
  readonly #socket: Socket;
  #expecting: Expecting = 'nothing';
  /** Bytes that are not yet a whole head or a whole line. */
  #rest: Buffer | undefined;
  /** Bytes to come of the body, or of the chunk and its line end. */
  #left = 0;
  #code = 0;
  #bytes = 0;
  #sink: BodySink | undefined;
  #done: ((response: ResponseSize) => void) | undefined;
  #failed: ((error: Error) => void) | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (piece: Buffer) => this.#take(piece));
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('the server closed the connection')));
  }

  static open({ url, ca }: Peer): Promise<HttpConnection> {
    const { protocol, hostname, port } = new URL(url);
    const where = { host: hostname, port: Number(port) };
    return new Promise((resolve, reject) => {
      const isTls = protocol === 'https:';
      const socket = isTls ? connectTls({ ...where, ca, ALPNProtocols: ['http/1.1'] }) : connectPlain(where);
      socket.once('error', reject);
      socket.once(isTls ? 'secureConnect' : 'connect', () => {
        socket.off('error', reject);
        resolve(new HttpConnection(socket));
      });
    });
  }

  /** Sends one request, whose text {@link requestText} returns; resolves at the end of the response. */
  exchange(request: Buffer, sink?: BodySink): Promise<ResponseSize> {
    return new Promise((resolve, reject) => {
      this.#done = resolve;
      this.#failed = reject;
      this.#sink = sink;
      this.#bytes = 0;
      this.#expecting = 'head';
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#failed = undefined;
    this.#socket.destroy();
  }

  #fail(error: Error): void {
    this.#failed?.(error);
    this.#failed = undefined;
  }

  #take(piece: Buffer): void {
    let data = this.#rest ? Buffer.concat([this.#rest, piece]) : piece;
    this.#rest = undefined;
    while (data.length > 0) {
      const used = this.#step(data);
      if (used === 0) {
        this.#rest = data;
        return;
      }
      data = data.subarray(used);
    }
  }

  /** Returns the number of consumed bytes; 0: more bytes are needed. */
  #step(data: Buffer): number {
    switch (this.#expecting) {
      case 'head':
        return this.#head(data);
      case 'length':
      case 'chunk':
        return this.#body(data);
      case 'chunk-size':
      case 'trailer':
        return this.#line(data);
      case 'nothing':
        throw new Error(`unexpected bytes: ${data.toString('latin1', 0, 100)}`);
      default:
        return this.#expecting satisfies never;
    }
  }

  #head(data: Buffer): number {
    const end = data.indexOf(HEAD_END);
    if (end < 0) return 0;
    const head = data.toString('latin1', 0, end);
    this.#code = Number(head.slice(9, 12));
    const length = /\ncontent-length: *(\d+)/i.exec(head)?.[1];
    this.#left = Number(length ?? 0);
    this.#expecting = length === undefined ? 'chunk-size' : 'length';
    if (length !== undefined && this.#left === 0) this.#finish();
    return end + HEAD_END.length;
  }

  #body(data: Buffer): number {
    const isChunk = this.#expecting === 'chunk';
    const used = Math.min(this.#left, data.length);
    // The last two bytes of a chunk are its line end.
    const content = isChunk ? Math.min(used, Math.max(0, this.#left - LINE_END.length)) : used;
    this.#bytes += content;
    if (this.#sink && content > 0) this.#sink(data.subarray(0, content));
    this.#left -= used;
    if (this.#left === 0) {
      if (isChunk) this.#expecting = 'chunk-size';
      else this.#finish();
    }
    return used;
  }

  #line(data: Buffer): number {
    const end = data.indexOf(LINE_END);
    if (end < 0) return 0;
    if (this.#expecting === 'trailer') {
      if (end === 0) this.#finish();
    } else {
      const size = Number.parseInt(data.toString('latin1', 0, end), 16);
      this.#expecting = size === 0 ? 'trailer' : 'chunk';
      this.#left = size + LINE_END.length;
    }
    return end + LINE_END.length;
  }

  #finish(): void {
    this.#expecting = 'nothing';
    const done = this.#done;
    this.#done = undefined;
    this.#failed = undefined;
    done?.({ code: this.#code, bytes: this.#bytes });
  }
}

export interface RequestParts {
  readonly method: string;
  readonly path: string;
  readonly contentType?: string;
  readonly body?: string;
}

export function requestText(
  { url, token }: Peer,
  { method, path, contentType = 'application/json', body = '' }: RequestParts,
): Buffer {
  const lines = [
    `${method} ${path} HTTP/1.1`,
    `host: ${new URL(url).host}`,
    'accept: application/json',
    'user-agent: endpoint-syncer-bench/1',
    `authorization: Bearer ${token}`,
    ...(body === '' ? [] : [`content-type: ${contentType}`, `content-length: ${Buffer.byteLength(body)}`]),
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`);
}
