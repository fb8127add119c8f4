/** The connection of a watch: the order of its bytes, and its end. */

import { type Socket, connect } from 'node:net';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  type EmbeddedCluster,
  startEmbeddedCluster,
} from '../../../src/embedded-cluster/embedded-cluster.ts';
import { ObjectViews } from '../../../src/apiserver/objects/object-view.ts';
import { WatchConnection, WatchLines } from '../../../src/apiserver/watch/watch-objects.ts';
import { builtInKinds } from '../../../src/embedded-cluster/kinds/built-in-kinds.ts';
import { allowEverything } from '../../../src/apiserver/request/request-info.ts';
import type { StoredEntry } from '../../../src/apiserver/storage/store.ts';
import { type HttpServer, openHttpServer } from '../../../src/apiserver/http/http-server.ts';

const undo: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

async function open(
  onRequest: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Client> {
  const server = await openHttpServer(onRequest);
  undo.push(() => server.close());
  return connected(server);
}

function connected(server: Pick<HttpServer, 'address'>): Client {
  const client = new Client(server);
  undo.push(() => void client.socket.destroy());
  return client;
}

class Client {
  readonly socket: Socket;
  text = '';
  isClosed = false;

  constructor({ address }: Pick<HttpServer, 'address'>) {
    const [host = '', port] = address.split(':');
    this.socket = connect({ host, port: Number(port) });
    this.socket.on('error', () => undefined);
    this.socket.on('data', (bytes: Buffer) => (this.text += bytes.toString('latin1')));
    this.socket.once('close', () => (this.isClosed = true));
  }

  get(path: string, version = '1.1'): void {
    this.socket.write(`GET ${path} HTTP/${version}\r\nhost: localhost\r\n\r\n`);
  }

  body(): string {
    return this.text.slice(this.text.indexOf('\r\n\r\n') + 4);
  }
}

const COLLECTION = '/api/v1/namespaces/default/configmaps';

function typeOf(line: string): string {
  return (JSON.parse(line) as { type: string }).type; // a line of a watch
}

async function create(cluster: EmbeddedCluster, text: string): Promise<void> {
  const response = await fetch(`${cluster.url}${COLLECTION}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ metadata: { generateName: 'a-' }, data: { text } }),
  });
  expect(response.status).toBe(201);
}

describe('a watch', () => {
  test('follows the responses to earlier requests of its connection', async () => {
    const earlier: ServerResponse[] = [];
    const client = await open((request, response) => {
      if (request.url === '/earlier') {
        earlier.push(response);
        return;
      }
      const watch = new WatchConnection(response, () => undefined);
      watch.start({});
      watch.send('one\n');
      earlier[0]?.end('first of all');
      watch.send('two\n');
      watch.end();
    });
    client.socket.write('GET /earlier HTTP/1.1\r\nhost: x\r\n\r\nGET /watch HTTP/1.1\r\nhost: x\r\n\r\n');
    await expect.poll(() => client.isClosed).toBe(true);
    expect(client.text).toMatch(/first of all[^]*4\r\none\n\r\n4\r\ntwo\n\r\n0\r\n\r\n$/);
  });

  test('announces in its head that the connection closes, and closes it', async () => {
    const closed = vi.fn<() => void>();
    const client = await open((_request, response) => {
      const watch = new WatchConnection(response, closed);
      watch.start({ 'x-a': 'b' });
      watch.end();
      watch.end();
    });
    client.get('/');
    await expect.poll(() => client.isClosed).toBe(true);
    expect(client.text).toMatch(/^HTTP\/1.1 200 OK\r\nx-a: b\r\nconnection: close\r\n/);
    expect(client.body()).toBe('0\r\n\r\n');
    await expect.poll(() => closed.mock.calls.length).toBe(1);
  });

  test.each([
    ['goes', (socket: Socket) => void socket.destroy()],
    ['goes with a reset', (socket: Socket) => void socket.resetAndDestroy()],
    ['says that it has nothing more to say', (socket: Socket) => void socket.end()],
  ])('ends when the client %s, whatever it sent before', async (_how, leave) => {
    const closed = vi.fn<() => void>();
    const client = await open((_request, response) => new WatchConnection(response, closed).start({}));
    client.get('/');
    await expect.poll(() => client.text).toContain('\r\n\r\n');
    client.socket.write('GET /more HTTP/1.1\r\n and no HTTP at all', () => leave(client.socket));
    await expect.poll(() => closed.mock.calls.length).toBe(1);
    expect(client.body()).toBe('');
  });

  test('sends nothing of an event that follows the end of the client', async () => {
    const failed = vi.fn<(error: Error) => void>();
    const client = await open((request, response) => {
      const watch = new WatchConnection(response, () => undefined);
      response.on('error', failed);
      request.socket.once('end', () => watch.send('late\n'));
      watch.start({});
    });
    client.get('/');
    await expect.poll(() => client.text).toContain('\r\n\r\n');
    client.socket.end();
    await expect.poll(() => client.isClosed).toBe(true);
    expect(client.body()).toBe('0\r\n\r\n');
    expect(failed).not.toHaveBeenCalled();
  });

  test('ends immediately when the client has nothing more to say before it starts', async () => {
    const client = await open((request, response) => {
      request.socket.once('end', () =>
        setImmediate(() => new WatchConnection(response, () => undefined).start({})),
      );
    });
    client.get('/');
    client.socket.end();
    await expect.poll(() => client.isClosed).toBe(true);
    expect(client.body()).toBe('0\r\n\r\n');
  });

  test('ends immediately when the client has closed the connection', async () => {
    const closed = vi.fn<() => void>();
    const client = await open((_request, response) => {
      response.once('close', () => new WatchConnection(response, closed).start({}));
      response.destroy();
    });
    client.get('/');
    await expect.poll(() => closed.mock.calls.length).toBe(1);
  });

  test('is closed when the client has too many unread bytes', async () => {
    const closed = vi.fn<() => void>();
    const line = 'x'.repeat(1024 * 1024);
    const client = await open((_request, response) => {
      const watch = new WatchConnection(response, closed);
      watch.start({});
      for (let sent = 0; sent < 40; sent++) watch.send(line);
    });
    client.socket.pause();
    client.get('/');
    await expect.poll(() => closed.mock.calls.length).toBe(1);
  });
});

describe('lines', () => {
  test('all watchers share the bytes of one event', () => {
    const definition = builtInKinds(allowEverything, undefined).find('', 'v1', 'configmaps');
    if (!definition) throw new Error('there is no such kind');
    const entryOf = (revision: number): StoredEntry => ({
      key: { resource: 'configmaps', namespace: 'default', name: 'a' },
      value: { metadata: { name: 'a' }, data: { revision: String(revision) } },
      revision,
    });
    const lines = new WatchLines(new ObjectViews());
    const [first, second] = [entryOf(2), entryOf(3)];
    const added = lines.event('ADDED', definition, first);
    expect(lines.event('ADDED', definition, first)).toBe(added);
    expect(String(lines.event('MODIFIED', definition, first))).toMatch(/^\{"type":"MODIFIED".*"2".*\}\n$/);
    expect(String(lines.event('ADDED', definition, second))).toMatch(/^\{"type":"ADDED".*"3".*\}\n$/);
  });
});

describe('on a connection', () => {
  test('an HTTP/1.0 client gets lines without chunk sizes', async () => {
    await using cluster = await startEmbeddedCluster({ name: 'wire' });
    const client = connected({ address: new URL(cluster.url).host });
    client.get(`${COLLECTION}?watch=true`, '1.0');
    await expect.poll(() => client.text).toContain('\r\n\r\n');
    await create(cluster, 'first');
    await create(cluster, 'second');
    await expect.poll(() => client.body()).toContain('"data":{"text":"second"}}}\n');
    expect(client.text).not.toMatch(/transfer-encoding/i);
    expect(client.body().split('\n').slice(0, 2).map(typeOf)).toEqual(['ADDED', 'ADDED']);
  });
});
