/** Limits on requests and clients, and the responses beyond them. */

import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { openHttpServer } from '../../../src/apiserver/http/http-server.ts';
import { isJsonObject, type JsonObject } from '../../../src/base/json.ts';
import type { RawWatch } from '../../contract/raw-client.ts';
import { KEYS } from '../key-requests.ts';
import { accessKeyTable } from '../test-kinds.ts';
import { serversOfEachTest, type TestServer } from '../test-server.ts';

const start = serversOfEachTest(accessKeyTable);

/** A raw connection to the server. */
class Wire {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  #text = '';
  #received: () => void = () => undefined;

  constructor({ server }: { readonly server: Pick<TestServer['server'], 'address'> }) {
    const [host, port] = server.address.split(':');
    this.socket = connect({ host: host ?? '', port: Number(port) });
    this.socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => this.socket.once('close', () => resolve()));
    this.socket.on('data', (chunk: Buffer) => {
      this.#text += chunk.toString('latin1');
      this.#received();
    });
  }

  send(...lines: string[]): this {
    this.socket.write(lines.join('\r\n'));
    return this;
  }

  /** Everything that was received, as soon as `pattern` matches it. */
  async received(pattern: RegExp): Promise<string> {
    while (!pattern.test(this.#text)) await new Promise<void>((resolve) => (this.#received = resolve));
    return this.#text;
  }

  /** Everything that was received until the server closed the connection. */
  async end(): Promise<string> {
    await this.closed;
    return this.#text;
  }
}

function get(path: string, ...headers: string[]): string {
  return [`GET ${path} HTTP/1.1`, 'host: x', ...headers, '', ''].join('\r\n');
}

/** The Status in a response. */
function statusOf(answer: string): JsonObject {
  const document: unknown = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4));
  if (!isJsonObject(document)) throw new Error(answer);
  return document;
}

describe('a request head', () => {
  test.each([
    ['a URL that is too long', get(`/${'u'.repeat(9000)}`), 414],
    ['a URL that no buffer holds', get(`/${'u'.repeat(200_000)}`), 414],
    ['a header that is too long', get('/version', `x: ${'h'.repeat(17_000)}`), 431],
    ['a header that no buffer holds', get('/version', `x: ${'h'.repeat(200_000)}`), 431],
    ['too many headers', get('/version', ...Array.from({ length: 120 }, (_, n) => `x-${n}: y`)), 431],
    ['two hosts', get('/version', 'Host: y'), 400],
    ['two credentials', get('/version', 'authorization: Bearer a', 'Authorization: Bearer b'), 400],
    ['no host', 'GET /version HTTP/1.1\r\n\r\n', 400],
    ['an unknown expectation', get('/version', 'expect: miracles'), 417],
    ['an unknown method', 'FOO /version HTTP/1.1\r\nhost: x\r\n\r\n', 405],
    ['a tunnel', 'CONNECT evil.example:443 HTTP/1.1\r\nhost: evil.example:443\r\n\r\n', 405],
    ['another protocol', 'SSH-2.0-OpenSSH_9.9\r\n', 400],
    [
      'two lengths',
      `POST ${KEYS} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
    ],
    ['a length that is none', `POST ${KEYS} HTTP/1.1\r\nhost: x\r\ncontent-length: 1x\r\n\r\n{}`, 400],
    ['a folded header', 'GET /version HTTP/1.1\r\nhost: x\r\nx: a\r\n b\r\n\r\n', 400],
  ])('with %s gets a Status, and the connection ends', async (_what, bytes, code) => {
    const answer = await new Wire(await start()).send(bytes).end();
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${code} `));
    expect(answer.toLowerCase()).toContain('connection: close');
    expect(statusOf(answer)).toMatchObject({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code });
  });

  test('with an Upgrade header gets a response, and closes the connection', async () => {
    const answer = await new Wire(await start())
      .send(get('/version', 'connection: upgrade', 'upgrade: websocket'))
      .end();
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
  });

  test('of HTTP/1.0 needs no Host header', async () => {
    expect(await new Wire(await start()).send('GET /version HTTP/1.0\r\n\r\n').end()).toMatch(/ 200 /);
  });

  test('with Expect: 100-continue gets it', async () => {
    const wire = new Wire(await start());
    wire.send(
      `POST ${KEYS} HTTP/1.1`,
      'host: x',
      'content-length: 2',
      'expect: 100-continue',
      'connection: close',
      '',
      '',
    );
    await wire.received(/^HTTP\/1.1 100 Continue\r\n\r\n/);
    expect(await wire.send('{}').end()).toMatch(/HTTP\/1.1 422 /);
  });

  test('pipelined requests get their responses in order', async () => {
    const paths = ['/version', '/nowhere', '/api', '/healthz'];
    const wire = new Wire(await start());
    const answer = await wire
      .send(paths.map((path) => get(path)).join(''), get('/version', 'connection: close'))
      .end();
    expect([...answer.matchAll(/HTTP\/1.1 (\d+) /g)].map(([, code]) => code)).toEqual([
      '200',
      '404',
      '404',
      '200',
      '200',
    ]);
  });
});

describe('a client that half-closes its connection', () => {
  const create = `POST ${KEYS} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: `;

  test('immediately gets the responses to all its requests', async () => {
    const urls: string[] = [];
    const answer = async (url: string, response: ServerResponse): Promise<void> => {
      urls.push(url);
      // Long enough for the end of the client to be known.
      await setTimeout(20);
      response.end(url);
    };
    const server = await openHttpServer((request, response) => void answer(request.url ?? '', response));
    const wire = new Wire({ server });
    wire.socket.end(get('/1') + get('/2'));
    const answers = await wire.end();
    await server.close();
    expect(urls).toEqual(['/1', '/2']);
    expect(answers).toMatch(/^HTTP\/1.1 200 [^]*\/1HTTP\/1.1 200 [^]*\/2$/);
  });

  test('inside a request that is rejected, gets the error', async () => {
    const wire = new Wire(await start());
    wire.socket.end(`POST /${'u'.repeat(9000)} HTTP/1.1\r\nhost: x\r\ncontent-length: 20\r\n\r\n{"spec":{}}`);
    expect(await wire.end()).toMatch(/^HTTP\/1.1 414 /);
  });

  test('inside a body that the response did not wait for, gets the whole response', async () => {
    const body = 'b'.repeat(8 * 1024 * 1024);
    const server = await openHttpServer((_request, response) => void response.end(body));
    const wire = new Wire({ server });
    wire.socket.end(`${create}20\r\n\r\n{"spec":{}}`);
    const answer = await wire.end();
    await server.close();
    expect(answer.slice(answer.indexOf('\r\n\r\n') + 4).length).toBe(body.length);
  });

  test.each([
    ['', ''],
    [' and for another protocol', 'connection: upgrade\r\nupgrade: websocket\r\n'],
  ])('inside a body%s, gets a 400', async (_what, more) => {
    const wire = new Wire(await start());
    wire.socket.end(`${get('/version')}${create}20\r\n${more}\r\n{"spec":{}}`);
    const answers = await wire.end();
    expect(answers.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400']);
    expect(answers).toContain('"message":"the request ended before it was complete"');
  });
});

describe('a slow client', () => {
  const timeouts = { headersMs: 60, requestMs: 120, responseMs: 100, checkMs: 20 };

  test.each([
    ['sends nothing', ''],
    ['stops in a head', 'GET /version HTTP/1.1\r\nhost: x\r\nx-slow: '],
    ['stops in a body', `POST ${KEYS} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{`],
    ['stops in a chunk', `POST ${KEYS} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{`],
  ])('that %s is closed with 408', async (_how, bytes) => {
    const answer = await new Wire(await start({ listen: { timeouts } })).send(bytes).end();
    expect(statusOf(answer)).toMatchObject({ code: 408, reason: 'Timeout' });
  });

  test('that sends single bytes at intervals is closed with 408', async () => {
    const wire = new Wire(await start({ listen: { timeouts } }));
    wire.send('GET /version HTTP/1.1\r\nhost: x\r\nx-slow: ');
    const drip = setInterval(() => wire.socket.write('s'), 10);
    const answer = await wire.end();
    clearInterval(drip);
    expect(statusOf(answer)).toMatchObject({ code: 408 });
  });

  test('that sends a body more slowly than 64 KiB a second gets 408, and the connection ends', async () => {
    const api = await start({ listen: { timeouts: { bodyMs: 60 } } });
    const wire = new Wire(api).send(`POST ${KEYS} HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n`);
    const drip = setInterval(() => wire.socket.write(' '), 10);
    const answer = await wire.end();
    clearInterval(drip);
    expect(answer.toLowerCase()).toContain('connection: close');
    expect(statusOf(answer)).toMatchObject({ code: 408, message: 'the request was not sent in time' });
  });

  test('that sends a large body steadily has time by its size', async () => {
    const api = await start({ listen: { timeouts: { bodyMs: 60 } } });
    // Three seconds by its size.
    const body = `{"metadata":{"name":"steady"}}${' '.repeat(200_000)}`;
    const wire = new Wire(api).send(
      `POST ${KEYS} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, -1)}`,
    );
    // Later than a body that is too slow.
    const slow = `POST ${KEYS} HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n`;
    expect(await new Wire(api).send(slow).end()).toMatch(/ 408 /);
    expect(await wire.send(' ').end()).toMatch(/ 201 /);
  });

  test('that watches is not closed', async () => {
    const api = await start({ listen: { timeouts } });
    await using watch = await openWatch(api, `${KEYS}?watch=1&resourceVersion=0`);
    // Other connections that are closed for their silence show that the deadlines have passed.
    await new Wire(api).send('GET').end();
    await new Wire(api).send(`POST ${KEYS} HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n`).end();
    await createKey(api, 'late');
    expect((await watch.next())?.object).toMatchObject({ metadata: { name: 'late' } });
  });

  test('that does not read its response is closed', async () => {
    const api = await start({ listen: { timeouts } });
    const description = 'd'.repeat(2_000_000);
    for (let n = 0; n < 6; n++) await createKey(api, `k-${n}`, { description });
    const before = api.server.connections;
    const wire = new Wire(api);
    wire.socket.pause();
    wire.send(get(KEYS));
    await expect.poll(() => api.server.connections).toBe(before + 1);
    await expect.poll(() => api.server.connections).toBe(before);
    wire.socket.destroy();
  });

  /** On a busy machine, a request may miss these deadlines and get 408: that is not what the test is about. */
  async function openWatch(api: TestServer, path: string): Promise<RawWatch> {
    for (;;) {
      const watch = await api.client.watch(path);
      if (watch.status !== 408) return watch;
      await watch[Symbol.asyncDispose]();
    }
  }

  /** Without a request, which could miss the deadlines. */
  async function createKey({ store }: TestServer, name: string, spec: JsonObject = {}): Promise<void> {
    const key = { resource: 'ownedaccesskeys.management.platform.sh', namespace: '', name };
    await store.create(key, { metadata: { name }, spec });
  }
});

describe('a body', () => {
  test.each([
    ['by its length', `content-length: ${4 * 1024 * 1024}\r\n\r\n`],
    [
      'by its chunks',
      `transfer-encoding: chunked\r\n\r\n400000\r\n${'x'.repeat(4 * 1024 * 1024)}\r\n0\r\n\r\n`,
    ],
  ])('that is too large %s is rejected', async (_how, rest) => {
    const wire = new Wire(await start()).send(`POST ${KEYS} HTTP/1.1\r\nhost: x\r\n${rest}`);
    const answer = await wire.received(/"code":413/);
    expect(statusOf(answer)).toMatchObject({
      reason: 'RequestEntityTooLarge',
      message: 'Request entity too large: limit is 3145728',
    });
    wire.socket.destroy();
  });

  test('that was too large does not close the connection', async () => {
    const wire = new Wire(await start()).send(
      `POST ${KEYS} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n`,
    );
    wire.send(`600000\r\n${'x'.repeat(6 * 1024 * 1024)}\r\n0\r\n\r\n`, get('/version', 'connection: close'));
    const answer = await wire.end();
    expect([...answer.matchAll(/HTTP\/1.1 (\d+) /g)].map(([, code]) => code)).toEqual(['413', '200']);
  });

  test('of an unauthenticated client is not read', async () => {
    const api = await start({ authenticate: () => undefined });
    const wire = new Wire(api).send(`POST ${KEYS} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n`);
    expect(await wire.received(/"code":401/)).toMatch(/^HTTP\/1.1 401 /);
    wire.socket.destroy();
  });

  test.each([
    ['YAML above 32 KiB', 'application/yaml', `a: ${'x'.repeat(32 * 1024)}`, 413],
    ['YAML of very many tokens', 'application/yaml', `a: [${'b,'.repeat(8000)}]`, 400],
    ['YAML that nests too deep', 'application/yaml', '['.repeat(5000), 400],
    [
      'aliases of aliases',
      'application/yaml',
      `a: &a [${'x,'.repeat(60)}]\nb: &b [${'*a,'.repeat(60)}]\nc: [${'*b,'.repeat(60)}]`,
      400,
    ],
    ['JSON that nests too deep', 'application/json', `{"a":${'['.repeat(300)}${']'.repeat(300)}}`, 400],
  ])('of %s is refused', async (_what, type, body, code) => {
    const { client } = await start();
    const answer = await client.send({ method: 'POST', path: KEYS, headers: { 'content-type': type }, body });
    expect(answer.json).toMatchObject({ kind: 'Status', code });
  });

  test('with a thousand unknown fields names a hundred of them, in headers of 4 KiB at most', async () => {
    const { client } = await start();
    const fields = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`unknown${n}`, n]));
    const body = { metadata: { name: 'k' }, ...fields };
    const answer = await client.send({ method: 'POST', path: `${KEYS}?dryRun=All`, body });
    expect(answer.status).toBe(201);
    expect(answer.headers.get('warning')?.length).toBeLessThan(4500);
    const strict = await client.send({ method: 'POST', path: `${KEYS}?fieldValidation=Strict`, body });
    expect(strict.json?.['message']).toMatch(/"unknown99"$/);
  });
});

test('a selector has a bounded number of requirements', async () => {
  const { client } = await start();
  const selector = (count: number): string => Array.from({ length: count }, (_, n) => `a${n}`).join(',');
  const statuses = [];
  for (const text of [selector(200), selector(201), `a%3E${'9'.repeat(40)}`])
    statuses.push((await client.send({ method: 'GET', path: `${KEYS}?labelSelector=${text}` })).status);
  expect(statuses).toEqual([200, 400, 400]);
});

test('a connection above the limit is closed unread', async () => {
  const api = await start({ listen: { connectionsMax: 2 } });
  const wires = [new Wire(api), new Wire(api)];
  for (const wire of wires) await wire.send(get('/version')).received(/ 200 /);
  expect(await new Wire(api).send(get('/version')).end()).toBe('');
  for (const wire of wires) wire.socket.destroy();
});
