/** What an API server sends beside headers and bodies: it ends the connection, and it counts for the rate. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Rate } from '../../../src/base/token-bucket.ts';
import { plainAccess } from '../../../src/kube/access.ts';
import type { ClientOptions } from '../../../src/kube/client/client.ts';
import { ENDPOINTS } from '../../../src/kube/object.ts';
import type { WatchClient, WatchHandler } from '../../../src/kube/types.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import {
  CHUNKED,
  FloodingServer,
  INFORMATIONAL,
  LONG_EXTENSIONS,
  ONE_BYTE_CHUNKS,
  SILENT_FLOODS,
  type Flood,
} from '../../support/flooding-server.ts';
import { readPaces } from '../../support/read-paces.ts';
import { quiet, until } from '../informer-harness.ts';
import { testClient } from '../test-client.ts';
import { KEY, Wire, objectAt } from './wire.ts';

const IGNORED: WatchHandler = {
  started: () => undefined,
  dataReceived: () => undefined,
  event: () => undefined,
};
const REQUESTS: Readonly<Record<string, (client: WatchClient) => Promise<unknown>>> = {
  'a request': (client) => client.get(ENDPOINTS, KEY),
  'a watch': (client) => client.watch(ENDPOINTS, { resourceVersion: '1', timeoutSeconds: 600 }, IGNORED),
};
const CERTIFICATES = join(import.meta.dirname, '../certificates');
const TLS = {
  cert: readFileSync(join(CERTIFICATES, 'server.crt')),
  key: readFileSync(join(CERTIFICATES, 'server.key')),
};

/** As fast as the bytes arrive. */
function unpaced(): Partial<ClientOptions> {
  const clock = new FakeClock();
  return { pace: readPaces({ burst: 1e12, perSecond: 1 }, clock) };
}

function clientOf(server: FloodingServer, options: Partial<ClientOptions>, isSecure = false): WatchClient {
  const access = plainAccess(`${isSecure ? 'https' : 'http'}://127.0.0.1:${server.port}`);
  return testClient({ ...access, trust: () => ({ isUnverified: true }) }, options);
}

describe.each(Object.entries(REQUESTS))('%s', (_, send) => {
  test.each(Object.entries(SILENT_FLOODS))(
    'that gets endless %s ends its connection',
    async (_name, flood) => {
      await using server = await FloodingServer.open(flood);
      await using client = clientOf(server, unpaced());
      await expect(send(client)).rejects.toThrow(
        /^(no response to .*: )?the server sent \d+ bytes that are neither a header nor a body: the connection was closed$/,
      );
      await until(() => server.open === 0);
      expect(server.connections).toBe(1);
    },
  );

  test.each([
    ['', unpaced],
    [' on a client without a rate', () => ({})],
  ])('that gets endless informational responses%s ends its connection', async (_name, options) => {
    await using server = await FloodingServer.open(INFORMATIONAL);
    await using client = clientOf(server, options());
    await expect(send(client)).rejects.toThrow(/the server sent more than 10 informational responses to GET/);
    await until(() => server.open === 0);
  });

  test('over TLS counts as without', async () => {
    await using server = await FloodingServer.open({ first: '', more: '\r\n' }, TLS);
    await using client = clientOf(server, unpaced(), true);
    await expect(send(client)).rejects.toThrow(/bytes that are neither a header nor a body/);
  });
});

test('ten informational responses are ignored', async () => {
  const body = JSON.stringify(objectAt('/api/v1/namespaces/ns/endpoints/a'));
  const early = 'HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n'.repeat(10);
  const first = `${early}HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  await using server = await FloodingServer.open({ first, more: '' });
  await using client = clientOf(server, unpaced());
  expect((await client.get(ENDPOINTS, KEY)).metadata.name).toBe('a');
});

/** Reads for so long by the clock of the client. */
async function readFor(
  ms: number,
  flood: Flood,
  { loop, pieceMs = 0 }: { readonly loop?: Rate; readonly pieceMs?: number } = {},
): Promise<{ pieces: number; sent: number }> {
  const clock = new FakeClock();
  await using server = await FloodingServer.open(flood);
  const pace = readPaces({ burst: 1e6, perSecond: 1e6 }, clock, loop);
  await using client = clientOf(server, { clock, pace });
  let pieces = 0;
  const dataReceived = (): void => {
    pieces += 1;
    clock.advance(pieceMs);
  };
  const handler = { ...IGNORED, dataReceived };
  const watching = client.watch(ENDPOINTS, { resourceVersion: '1', timeoutSeconds: 600 }, handler);
  watching.catch(() => undefined);
  const startMs = clock.monotonicMs();
  while (clock.monotonicMs() - startMs < ms) {
    await quiet();
    clock.advance(100);
  }
  const { sent } = server;
  return { pieces, sent };
}

test('a rate counts each byte that arrives, and a piece of a byte as more than its byte', async () => {
  // The burst and 20 seconds are 21 MB. One read of the socket may be more than there is left.
  const chunks = await readFor(20_000, ONE_BYTE_CHUNKS);
  expect(chunks.pieces).toBeGreaterThan(50_000);
  expect(chunks.pieces).toBeLessThan(22e6 / (128 + 6) + 65_536 / 6);
  const extensions = await readFor(20_000, LONG_EXTENSIONS);
  expect(extensions.pieces).toBeGreaterThan(100);
  expect(extensions.pieces).toBeLessThan(22e6 / 32_000);
});

test('a rate counts the time that reading takes, too', async () => {
  const bookmark = '{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}\n';
  const piece = `${bookmark.length.toString(16)}\r\n${bookmark}\r\n`;
  const loop = { burst: 100, perSecond: 100 };
  const { pieces } = await readFor(20_000, { first: CHUNKED, more: piece }, { loop, pieceMs: 10 });
  // The burst and 20 seconds are 2100 ms. What has been read of the socket is passed on.
  expect(pieces).toBeGreaterThan(200);
  expect(pieces).toBeLessThan(210 + 65_536 / piece.length);
});

test.each(['content-length', 'chunked'])(
  'a body of any size arrives complete at a rate: %s',
  async (form) => {
    const object = objectAt('/api/v1/namespaces/ns/endpoints/a');
    const body = JSON.stringify({ ...object, padding: 'ä'.repeat(1_000_000) });
    const headers = form === 'chunked' ? { 'transfer-encoding': 'chunked' } : {};
    await using wire = await Wire.open({ body, headers });
    const clock = new FakeClock();
    const client = wire.client({ clock, pace: readPaces({ burst: 3e6, perSecond: 1 }, clock) });
    expect(await client.get(ENDPOINTS, KEY)).toEqual(JSON.parse(body));
  },
);
