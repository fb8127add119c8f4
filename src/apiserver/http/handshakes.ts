/** Knows which connections have not completed their TLS handshake. */

import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

/** Connections whose TLS handshake is not complete: they have no request in flight. */
export class Handshakes {
  readonly #sockets = new Map<string, Socket>();

  begin(socket: Socket): void {
    const name = connectionName(socket);
    this.#sockets.set(name, socket);
    socket.once('close', () => {
      if (this.#sockets.get(name) === socket) this.#sockets.delete(name);
    });
  }

  /** `socket` encrypts one of these; Node does not say which. */
  end(socket: TLSSocket): void {
    this.#sockets.delete(connectionName(socket));
  }

  destroyAll(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
  }
}

function connectionName({ localAddress, localPort, remoteAddress, remotePort }: Socket): string {
  return `${localAddress} ${localPort} ${remoteAddress} ${remotePort}`;
}
