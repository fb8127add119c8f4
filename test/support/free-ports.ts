/** Free ports on 127.0.0.1, for programs that need to know their port before they start. */

import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/** Below the ephemeral port range, so that no outgoing connection uses one of these in the meantime. */
const FIRST = 20_000;
const LAST = 32_000;

/** All are bound at the same time, so they differ; they are released when this resolves. */
export async function freePorts(count: number): Promise<number[]> {
  const held = await Promise.all(Array.from({ length: count }, holdPort));
  await Promise.all(held.map(({ server }) => new Promise((resolve) => server.close(resolve))));
  return held.map(({ port }) => port);
}

async function holdPort(): Promise<{ readonly port: number; readonly server: Server }> {
  for (;;) {
    const port = randomInt(FIRST, LAST);
    const server = createServer().listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
      return { port, server };
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error;
    }
  }
}
