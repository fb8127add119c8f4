/** Knows which connections have not completed their TLS handshake. */

import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

/** Connections whose TLS handshake is not complete: they have no request in flight. */
export class Handshakes {
  readonly #pending = new Map<string, Pending>();

  begin(socket: Socket): void {
    const name = connectionName(socket);
    const forget = (): void => {
      if (this.#pending.get(name)?.socket === socket) this.#pending.delete(name);
    };
    this.#pending.set(name, { socket, forget });
    socket.on('close', forget);
  }

  /** `socket` encrypts one of these; Node does not say which. */
  end(socket: TLSSocket): void {
    const name = connectionName(socket);
    const pending = this.#pending.get(name);
    if (!pending) return;
    this.#pending.delete(name);
    // An open connection would keep the listener and the name.
    pending.socket.off('close', pending.forget);
  }

  destroyAll(): void {
    for (const { socket } of this.#pending.values()) socket.destroy();
  }
}

interface Pending {
  readonly socket: Socket;
  /** The listener of its end. */
  readonly forget: () => void;
}

function connectionName({ localAddress, localPort, remoteAddress, remotePort }: Socket): string {
  return `${localAddress} ${localPort} ${remoteAddress} ${remotePort}`;
}
