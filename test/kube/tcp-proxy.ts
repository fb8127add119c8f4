/** A TCP proxy in front of a server that can reset connections. */

import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export class TcpProxy implements AsyncDisposable {
  readonly #target: URL;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;

  private constructor(target: URL) {
    this.#target = target;
  }

  static async open(target: string): Promise<TcpProxy> {
    const proxy = new TcpProxy(new URL(target));
    await proxy.resume();
    return proxy;
  }

  get url(): string {
    return `${this.#target.protocol}//127.0.0.1:${this.#port}`;
  }

  /** Resets every connection; new ones are welcome. */
  reset(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Stops listening and resets every connection. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.reset();
    await new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())));
  }

  /** Listens again, on the same port. */
  async resume(): Promise<void> {
    const server = createServer((client) => {
      const upstream = connect(Number(this.#target.port), this.#target.hostname);
      for (const [socket, other] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        this.#sockets.add(socket);
        socket.on('error', () => other.destroy());
        socket.on('close', () => {
          this.#sockets.delete(socket);
          other.destroy();
        });
      }
      client.pipe(upstream).pipe(client);
    });
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
