/** Bytes to a socket, and the HTTP answers that come back on it until it closes. */

import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export interface RawResponse {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
  /** A watch: nobody waited for its end. */
  readonly isStream: boolean;
}

export interface Peer {
  /** `127.0.0.1:40123` */
  readonly address: string;
  /** PEM; absent: plain HTTP. */
  readonly ca?: string;
}

/** Everything that came until the server closed, or a stream began. Rejects after `timeoutMs` without either. */
export function exchange(peer: Peer, bytes: Buffer, timeoutMs = 10_000): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = open(peer);
    const chunks: Buffer[] = [];
    const done = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(Buffer.concat(chunks));
    };
    const timer = setTimeout(() => {
      socket.destroy();
      reject(
        new Error(
          `no end of the answer after ${timeoutMs} ms: ${Buffer.concat(chunks).toString('latin1').slice(0, 300)}`,
        ),
      );
    }, timeoutMs);
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      if (chunk.includes('ransfer-')) done();
    });
    socket.once('close', done);
    // The server may close while we still send; what it said before counts.
    socket.on('error', () => undefined);
    socket.end(bytes);
  });
}

function open({ address, ca }: Peer): Socket {
  const [host, port] = address.split(':');
  const where = { host: host ?? '', port: Number(port), allowHalfOpen: true };
  return ca === undefined ? connect(where) : connectTls({ ...where, ca });
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
    const headers = new Map(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    );
    const isStream = headers.has('transfer-encoding');
    const length = isHead || status < 200 ? 0 : Number(headers.get('content-length') ?? 0);
    const body = bytes.toString('utf8', end + 4, end + 4 + length);
    if (Buffer.byteLength(bytes.subarray(end + 4)) < length)
      throw new Error('the answer is shorter than it says');
    if (status >= 200) responses.push({ status, headers, body, isStream });
    if (isStream) return responses;
    at = end + 4 + length;
  }
  return responses;
}
