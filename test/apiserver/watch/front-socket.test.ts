/** A connection as Node's HTTP server sees it. */

import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { FrontSocket } from '../../../src/apiserver/watch/front-socket.ts';

test('the end of the stream follows the unread bytes', async () => {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens on TCP
  const client = connect({ host: '127.0.0.1', port });
  const [socket] = (await once(server, 'connection')) as [Socket];
  const heard: string[] = [];
  // As Node does while the client does not read responses.
  const front = new FrontSocket(socket, () => undefined).setEncoding('utf8');
  front.on('data', (text: string) => heard.push(text));
  front.pause();
  client.end('asked');
  await expect.poll(() => socket.readableEnded).toBe(true);
  expect(heard).toEqual([]);
  front.resume();
  await once(front, 'end');
  expect(heard).toEqual(['asked']);
  front.end();
  await once(client.resume(), 'close');
  server.close();
});
