/** A server that answers each request with bytes of its own, then with more of them without end. */

import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { listen } from './listen.ts';

export interface Flood {
  readonly first: string | Buffer;
  readonly more: string | Buffer;
}

export class FloodingServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  port = 0;
  connections = 0;
  /** Given to the system: more than the client has read. */
  sent = 0;

  private constructor(flood: Flood, tls: TlsOptions | undefined) {
    const serve = (socket: Socket): void => {
      this.connections += 1;
      this.#sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
      socket.once('data', () => sendFlood(socket, flood, (bytes) => (this.sent += bytes)));
    };
    this.#server = tls === undefined ? createServer(serve) : createTlsServer(tls, serve);
  }

  static async open(flood: Flood, tls?: TlsOptions): Promise<FloodingServer> {
    const server = new FloodingServer(flood, tls);
    server.port = await listen(server.#server);
    return server;
  }

  get open(): number {
    return this.#sockets.size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** As fast as the other side reads. `sent` gets the bytes of each write. */
export function sendFlood(
  socket: Socket,
  { first, more }: Flood,
  sent: (bytes: number) => void = () => undefined,
): void {
  socket.on('error', () => undefined);
  socket.write(first);
  if (more.length === 0) return;
  const block = Buffer.alloc(Math.max(more.length, 16_384 - (16_384 % more.length)), more);
  const push = (): void => {
    while (!socket.destroyed) {
      sent(block.length);
      if (!socket.write(block)) return void socket.once('drain', push);
    }
  };
  push();
}

export const CHUNKED =
  'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';

/** What a server may send for ever that is neither a header nor a body. */
export const SILENT_FLOODS: Readonly<Record<string, Flood>> = {
  'line feeds before a response': { first: '', more: '\r\n' },
  'the phrase of a status': { first: 'HTTP/1.1 200 ', more: 'x' },
  'an extension of a chunk': { first: `${CHUNKED}1;`, more: 'x' },
  'a value of an extension': { first: `${CHUNKED}1;a=`, more: 'x' },
  'zeros of a size': { first: CHUNKED, more: '0' },
  'spaces before a value': { first: 'HTTP/1.1 200 OK\r\na:', more: ' ' },
  'spaces in a trailer': { first: `${CHUNKED}0\r\na:`, more: ' ' },
};

export const INFORMATIONAL: Flood = { first: '', more: 'HTTP/1.1 103 Early Hints\r\n\r\n' };
export const ONE_BYTE_CHUNKS: Flood = { first: `${CHUNKED}1\r\n{\r\n`, more: '1\r\n \r\n' };
export const LONG_EXTENSIONS: Flood = { first: CHUNKED, more: `1;${'x'.repeat(32_000)}\r\n \r\n` };
