/** One request and its response: deadline, signal, limits and pace of the body, and the error for no response. */

import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { ResponseTooLargeError } from '../../../src/kube/client/exchange.ts';
import { TransportError } from '../../../src/kube/types.ts';
import { InputBudget } from '../../../src/kube/client/input-budget.ts';
import { ENDPOINTS } from '../../../src/kube/object.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FloodingServer } from '../../support/flooding-server.ts';
import { readPaces } from '../../support/read-paces.ts';
import { quiet, until } from '../informer-harness.ts';
import { testClient } from '../test-client.ts';
import { Wire, objectAt, refusal, KEY, OBJECT } from './wire.ts';

describe('no response', () => {
  test('the error for a refused connection gives the cause', async () => {
    const wire = await Wire.open();
    const client = wire.client();
    const gone = testClient(wire.url);
    await wire[Symbol.asyncDispose]();
    await expect(gone.get(ENDPOINTS, KEY)).rejects.toThrow(
      /no response to GET 127.0.0.1:\d+\/api.*connection refused.*ECONNREFUSED/,
    );
    await expect(client.get(ENDPOINTS, KEY), 'closed').rejects.toBeInstanceOf(TransportError);
    await gone[Symbol.asyncDispose]();
  });

  test('a deadline', async () => {
    await using wire = await Wire.open({ isSilent: true });
    const clock = new FakeClock();
    const writing = wire.client({ clock }).update(ENDPOINTS, OBJECT);
    writing.catch(() => undefined);
    await until(() => wire.seen.length === 1);
    clock.advance(30_000);
    await expect(writing).rejects.toBeInstanceOf(TransportError);
    await expect(writing).rejects.toThrow(/^PUT .* took more than 30000 ms$/);
    expect(wire.requested).toEqual(['PUT <error>']);
  });

  test('a signal, before and while', async () => {
    await using wire = await Wire.open({ isSilent: true });
    const client = wire.client();
    const reason = new Error('stop');
    await expect(client.get(ENDPOINTS, KEY, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const stop = new AbortController();
    const reading = client.get(ENDPOINTS, KEY, { signal: stop.signal });
    await until(() => wire.seen.length === 1);
    stop.abort(reason);
    await expect(reading).rejects.toBe(reason);
  });

  test('a redirect, which is not followed', async () => {
    await using wire = await Wire.open({ code: 302, headers: { location: '/elsewhere' } });
    expect((await refusal(wire.client().get(ENDPOINTS, KEY))).code).toBe(302);
    expect(wire.seen).toHaveLength(1);
  });

  test('a response above the limit', async () => {
    await using wire = await Wire.open({
      body: JSON.stringify({ metadata: { name: 'a', annotations: { a: 'x'.repeat(5000) } } }),
    });
    await expect(wire.client({ responseBytesMax: 4000 }).get(ENDPOINTS, KEY)).rejects.toThrow(
      /larger than 4000 bytes/,
    );
  });

  test('a response that takes far longer to parse than its bytes, of a server that is not trusted', async () => {
    const nested = '['.repeat(450_000) + ']'.repeat(450_000);
    await using wire = await Wire.open({ body: `{"metadata":{},"items":[],"x":${nested}}` });
    const pace = readPaces({ burst: 1e9, perSecond: 1 }, new FakeClock());
    const listing = wire.client({ pace }).list(ENDPOINTS);
    await expect(listing).rejects.toThrow(ResponseTooLargeError);
    await expect(listing).rejects.toThrow(
      /^the response to GET .* has more than 400000 objects and arrays$/u,
    );
    expect((await wire.client().list(ENDPOINTS)).items).toEqual([]);
  });
});

describe('a body in many chunks', () => {
  const annotations = { text: '€'.repeat(400_000) };
  const body = JSON.stringify({ items: [{ metadata: { name: 'a', annotations } }], metadata: {} });

  test.each([
    ['plain', { body }],
    ['compressed', { body: gzipSync(body), headers: { 'content-encoding': 'gzip' } }],
  ])('%s, is decoded across the characters that chunks cut', async (_, reply) => {
    await using wire = await Wire.open(reply);
    const { items } = await wire.client().list(ENDPOINTS);
    expect(items.map(({ metadata }) => metadata.annotations)).toEqual([annotations]);
  });
});

describe('compression', () => {
  test('is supported, with the limit applied to the decompressed body', async () => {
    const body = gzipSync(JSON.stringify({ metadata: { resourceVersion: '1' }, items: [] }));
    const bomb = gzipSync(`{"metadata":{"resourceVersion":"${'1'.repeat(100_000)}"},"items":[]}`);
    const headers = { 'content-encoding': 'gzip' };
    await using wire = await Wire.open({ headers, body }, { headers, body: bomb });
    const client = wire.client({ responseBytesMax: 10_000 });
    expect(await client.list(ENDPOINTS)).toEqual({ resourceVersion: '1', continueToken: '', items: [] });
    await expect(client.list(ENDPOINTS)).rejects.toBeInstanceOf(TransportError);
  });
});

test('of connections that share a limit, the one with most unfinished input is ended, and the others go on', async () => {
  const lines = [3000, 9000, 4000].map((length) => 'x'.repeat(length));
  const input = new InputBudget(12_000);
  const held: Promise<unknown>[] = [];
  await using stack = new AsyncDisposableStack();
  for (const line of lines) {
    const size = line.length.toString(16);
    const first = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${size}\r\n${line}\r\n`;
    const server = stack.use(await FloodingServer.open({ first, more: '' }));
    const client = stack.use(testClient(`http://127.0.0.1:${server.port}`, { input }));
    const arrived = Promise.withResolvers<void>();
    const handler = { started: () => undefined, dataReceived: arrived.resolve, event: () => undefined };
    const watching = client.watch(ENDPOINTS, { resourceVersion: '1', timeoutSeconds: 600 }, handler);
    watching.catch(() => undefined);
    held.push(watching);
    await arrived.promise;
  }
  await expect(held[1]).rejects.toThrow(
    /^the response to GET .* was cut off: unfinished responses have more than 12000 bytes, and it had most of them$/,
  );
  expect(input.bytes).toBe(7000);
  await stack.disposeAsync();
  await Promise.allSettled(held);
  expect(input.bytes).toBe(0);
});

test('a client with a rate reads no faster, whatever the server sends', async () => {
  const object = objectAt('/api/v1/namespaces/ns/endpoints/a');
  const body = JSON.stringify({ ...object, padding: 'x'.repeat(1_000_000) });
  await using wire = await Wire.open({ body });
  const clock = new FakeClock();
  const client = wire.client({ clock, pace: readPaces({ burst: 100_000, perSecond: 100_000 }, clock) });
  let isRead = false;
  const reading = client.get(ENDPOINTS, KEY).finally(() => (isRead = true));
  while (!isRead) {
    await quiet();
    clock.advance(100);
  }
  await reading;
  expect(clock.monotonicMs()).toBeGreaterThan(8000);
});
