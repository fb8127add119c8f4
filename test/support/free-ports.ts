/** Free ports on 127.0.0.1, for programs that need to know their port before they start. */

import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/** Below the ephemeral port range, so that no outgoing connection uses one of these in the meantime. */
const FIRST = 20_000;
const LAST = 32_000;
/** Of each worker of a test run, and of its main process, so that none takes a port that another has and does not listen on yet, or again. */
const SHARE = 2000;
const SHARES = (LAST - FIRST) / SHARE;

/** The main process has none. */
const worker = Number(process.env['VITEST_POOL_ID'] ?? 0);
const begin = FIRST + (worker % SHARES) * SHARE;
/** Every port is given out once, until all have been. Another run on this machine probably begins elsewhere. */
let next = process.pid;

/** They are released when this resolves. */
export async function freePorts(count: number): Promise<number[]> {
  const held = await Promise.all(Array.from({ length: count }, holdPort));
  await Promise.all(held.map(({ server }) => new Promise((resolve) => server.close(resolve))));
  return held.map(({ port }) => port);
}

async function holdPort(): Promise<{ readonly port: number; readonly server: Server }> {
  for (;;) {
    const port = begin + (next++ % SHARE);
    const server = createServer().listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
      return { port, server };
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error;
    }
  }
}
