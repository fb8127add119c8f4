/** Every reader of what others send gets it in pieces of one byte: it keeps little more than the bytes, and works no longer for it. */

import { randomBytes } from 'node:crypto';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { Dispatcher } from 'undici';
import { BodyReader } from '../../src/apiserver/http/client-limits.ts';
import { systemClock } from '../../src/base/clock.ts';
import { collectInput } from '../../src/base/input-buffer.ts';
import { Exchange, type HttpResponse } from '../../src/kube/client/exchange.ts';
import { InputBudget } from '../../src/kube/client/input-budget.ts';
import { WatchStream } from '../../src/kube/client/watch-stream.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { garbageCollector } from '../support/garbage.ts';

const BYTES = 1_000_000;
/** As read from a socket, of which each piece is a part. */
const READ_BYTES = 65_536;

interface Reader {
  feed(piece: Buffer): unknown;
  /** Resolves with what it made of all pieces. */
  end(): Promise<string>;
  /** What it says that it has. */
  counted?(): number;
}

const CONTROLLER = {
  abort: () => undefined,
  pause: () => undefined,
  resume: () => undefined,
} as unknown as Dispatcher.DispatchController; // what an exchange calls

function exchange(status: number, headers: Record<string, string>): Reader {
  const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>();
  const input = new InputBudget(64 * 2 ** 20);
  const limits = { clock: new FakeClock(), host: 'h', responseBytesMax: 4 * 2 ** 20, pace: undefined, input };
  const one = new Exchange({ method: 'GET', path: '/', timeoutMs: 1000 }, limits, { resolve, reject });
  one.onRequestStart(CONTROLLER);
  one.onResponseStart(CONTROLLER, status, headers);
  return {
    feed: (piece) => one.onResponseData(CONTROLLER, piece),
    async end() {
      one.onResponseEnd();
      const { text } = await promise;
      return text;
    },
    counted: () => input.bytes,
  };
}

function watch(): Reader {
  const events: string[] = [];
  const stream = new WatchStream({
    started: () => undefined,
    dataReceived: () => undefined,
    event: (_, { metadata }) => events.push(metadata.annotations?.['text'] ?? ''),
  });
  return {
    feed: (piece) => stream.chunk(piece),
    async end() {
      stream.chunk(Buffer.from('\n'));
      return events.join('');
    },
    counted: () => stream.pendingBytes,
  };
}

function keyApi(): Reader {
  const request = new IncomingMessage(new Socket());
  request.headers['transfer-encoding'] = 'chunked';
  const body = new BodyReader(systemClock, 60_000).read(request, { name: 'u', isPrivileged: true });
  return {
    feed: (piece) => request.push(piece),
    async end() {
      request.push(null);
      return (await body).toString();
    },
  };
}

/** Files, standard input, the page of the playground, and responses of the key API. */
function stream(): Reader {
  const request = new IncomingMessage(new Socket());
  const collected = collectInput(request as AsyncIterable<Buffer>, 2 * BYTES);
  return {
    feed: (piece) => request.push(piece),
    async end() {
      request.push(null);
      return String(await collected);
    },
  };
}

const TEXT = 'x'.repeat(BYTES);
/** Compressing it saves nothing. */
const RANDOM = randomBytes(BYTES / 2).toString('hex');
const EVENT = JSON.stringify({
  type: 'ADDED',
  object: { metadata: { name: 'a', resourceVersion: '1', annotations: { text: TEXT } } },
});

const READERS: Readonly<Record<string, [open: () => Reader, input: Buffer, result: string]>> = {
  'a watch': [watch, Buffer.from(EVENT), TEXT],
  'a response': [() => exchange(200, {}), Buffer.from(TEXT), TEXT],
  'an error response': [() => exchange(500, {}), Buffer.from(TEXT), TEXT],
  'a compressed response': [
    () => exchange(200, { 'content-encoding': 'gzip' }),
    gzipSync(RANDOM, { level: 0 }),
    RANDOM,
  ],
  'a body of the key API': [keyApi, Buffer.from(TEXT), TEXT],
  'a stream': [stream, Buffer.from(TEXT), TEXT],
};

describe('pieces of one byte', () => {
  test.each(Object.entries(READERS))('%s', async (_, [open, input, result]) => {
    const collect = garbageCollector();
    const used = (): number => {
      collect();
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    };
    const reader = open();
    const before = used();
    for (let at = 0; at < input.length; at += READ_BYTES) {
      const read = Buffer.from(input.subarray(at, at + READ_BYTES));
      for (let from = 0; from < read.length; from++) reader.feed(read.subarray(from, from + 1));
      await new Promise(setImmediate);
    }
    const kept = used() - before;
    expect(kept).toBeLessThan(5 * input.length);
    expect(reader.counted?.() ?? input.length).toBeGreaterThan(input.length * 0.9);
    const read = await reader.end();
    expect(read.length).toBe(result.length);
    expect(read === result).toBe(true);
  });
});
