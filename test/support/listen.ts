/** Servers of tests on this machine. */

import type { AddressInfo, Server } from 'node:net';

/** Starts the server on a free port, which it returns. */
export async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port; // a TCP server that listens has one
}
