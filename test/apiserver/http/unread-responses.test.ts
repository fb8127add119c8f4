/** Lists that a client requests and does not read. */

import { connect } from 'node:net';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { KEYS } from '../key-requests.ts';
import { accessKeyTable } from '../test-kinds.ts';
import { startTestServer } from '../test-server.ts';

const MIB = 1024 * 1024;

test('are rejected beyond a limit per user, and served again after the connections are closed', async () => {
  await using api = await startTestServer({
    table: accessKeyTable(),
    unreadResponsesBytesMax: 40 * MIB,
    authenticate: ({ authorization }) => ({ name: authorization ?? '', uid: '', groups: [], extra: {} }),
  });
  const { client, server } = api;
  for (let n = 0; n < 6; n++) {
    const body = { metadata: { name: `k${n}` }, spec: { displayName: 'x'.repeat(2 * MIB) } };
    expect((await client.send({ method: 'POST', path: KEYS, body })).status).toBe(201);
  }
  const list = async (user: string): Promise<number> =>
    (await client.send({ method: 'GET', path: KEYS, headers: { authorization: user } })).status;
  const [host, port] = server.address.split(':');
  const lazy = Array.from({ length: 3 }, () => connect({ host: host ?? '', port: Number(port) }));
  for (const socket of lazy) {
    socket.write(`GET ${KEYS} HTTP/1.1\r\nhost: x\r\nauthorization: lazy\r\n\r\n`);
    await once(socket, 'readable');
  }
  expect([await list('lazy'), await list('other')]).toEqual([429, 200]);
  const small = { method: 'GET', path: '/version', headers: { authorization: 'lazy' } };
  expect((await client.send(small)).status).toBe(200);
  for (const socket of lazy) socket.destroy();
  await expect.poll(() => list('lazy')).toBe(200);
});
