/** An HTTP proxy that connects every tunnel to one port of this machine, whatever server it was asked for. */

import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';

export interface ConnectProxy extends AsyncDisposable {
  readonly port: number;
  /** The `host:port` of each request, and its `proxy-authorization`. */
  readonly requests: readonly string[];
}

export async function startConnectProxy(target: number): Promise<ConnectProxy> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const proxy = createServer();
  proxy.on('connect', ({ url = '', headers }, client: Socket) => {
    requests.push([url, headers['proxy-authorization']].filter(Boolean).join(' '));
    const upstream = connect(target, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      client.pipe(upstream).pipe(client);
    });
    for (const socket of [client, upstream]) sockets.add(socket.on('error', () => undefined));
  });
  await new Promise<void>((resolve) => void proxy.listen(0, '127.0.0.1', resolve));
  return {
    port: (proxy.address() as AddressInfo).port,
    requests,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}
