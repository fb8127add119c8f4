/** Sends raw bytes to a socket and reads the HTTP responses. */

import type { Socket } from 'node:net';
import { connect, createSecureContext } from 'node:tls';

export interface RawResponse {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
  /** A watch, whose end was not awaited. */
  readonly isStream: boolean;
}

/** Opens a connection to a server. */
export type Connect = () => Socket;

/** `address`: host and port; `ca`: PEM. */
export function tlsConnector(address: string, ca: string): Connect {
  const [host = '', port] = address.split(':');
  const secureContext = createSecureContext({ ca });
  return () => connect({ host, port: Number(port), secureContext });
}

const TIMEOUT_MS = 60_000;

/** Requests one after another, on one connection as long as the server keeps it. */
export class Line {
  readonly #connect: Connect;
  #socket: Socket | undefined;

  constructor(connect: Connect) {
    this.#connect = connect;
  }

  /** Everything received until the response is complete or the connection is closed. `isLast`: nothing follows, so this side is closed. */
  send(bytes: Buffer, isHead: boolean, isLast: boolean): Promise<Buffer> {
    const socket = this.#socket ?? this.#connect();
    this.#socket = socket;
    return new Promise((resolve, reject) => {
      let heard = Buffer.alloc(0);
      const finish = (): void => {
        clearTimeout(timer);
        socket.off('data', onData).off('close', onClose);
        resolve(heard);
      };
      const timer = setTimeout(() => {
        this.close();
        reject(new Error(`no end of the answer: ${JSON.stringify(heard.toString('latin1', 0, 300))}`));
      }, TIMEOUT_MS);
      // The server may close while we still send; what it sent before counts.
      if (socket.listenerCount('error') === 0) socket.on('error', () => undefined);
      const onClose = (): void => {
        if (this.#socket === socket) this.#socket = undefined;
        finish();
      };
      const onData = (chunk: Buffer): void => {
        heard = Buffer.concat([heard, chunk]);
        const isStream = heard.includes('ransfer-');
        if (isStream || (!isLast && isWhole(heard, isHead))) finish();
        if (isStream) this.close();
      };
      socket.on('data', onData).once('close', onClose);
      if (isLast) socket.end(bytes);
      else socket.write(bytes);
    });
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }
}

/** A final answer that the server will not close behind. */
function isWhole(bytes: Buffer, isHead: boolean): boolean {
  try {
    const last = parseResponses(bytes, isHead).at(-1);
    return last !== undefined && last.headers.get('connection') !== 'close';
  } catch {
    return false;
  }
}

/** The answers one after another; throws on bytes that are none. Interim ones (1xx) are left out. */
export function parseResponses(bytes: Buffer, isHead: boolean): RawResponse[] {
  const responses: RawResponse[] = [];
  let at = 0;
  while (at < bytes.length) {
    const end = bytes.indexOf('\r\n\r\n', at);
    const head = bytes.toString('latin1', at, end < 0 ? bytes.length : end);
    const [statusLine = '', ...lines] = head.split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1]);
    if (end < 0 || Number.isNaN(status))
      throw new Error(`no HTTP answer: ${JSON.stringify(head.slice(0, 200))}`);
    const headers = new Map(lines.map(headerOf));
    const isStream = headers.has('transfer-encoding');
    const hasBody = !isHead && status >= 200 && status !== 304;
    const length = hasBody ? Number(headers.get('content-length') ?? 0) : 0;
    const body = bytes.subarray(end + 4, end + 4 + length);
    if (body.length < length) throw new Error('the answer is shorter than it says');
    if (status >= 200) responses.push({ status, headers, body: body.toString('utf8'), isStream });
    if (isStream) return responses;
    at = end + 4 + length;
    // A parser that gave up does not know that the method was HEAD.
    if (isHead && headers.get('connection') === 'close') return responses;
  }
  return responses;
}

function headerOf(line: string): [string, string] {
  const colon = line.indexOf(':');
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}
