/** The daemon serves the key and token API besides the sync: it is part of its readiness and stops with it. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createHttpServer, request as httpRequest } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { accessKeysCompanion } from '../../src/cli/run.ts';
import { loadClusterAccess } from '../../src/kube/credentials/kubeconfig.ts';
import type { StartCompanion } from '../../src/syncer/companion.ts';
import { startDaemon } from '../../src/syncer/run.ts';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { silentLogger, type LogFields, type Logger } from '../../src/base/logger.ts';
import { eventually } from '../support/eventually.ts';
import { parseText } from '../cli/config/setup.ts';
import { startClusterPair } from '../embedded-cluster/cluster-pair.ts';
import { RawClient } from '../contract/raw-client.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-beside-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Keeps the fields of what is logged, by message. */
function recorder(lines: Map<string, LogFields>): Logger {
  const logger: Logger = {
    ...silentLogger,
    info: (fields, message) => void lines.set(message, fields),
    warn: (fields, message) => void lines.set(message, fields),
    error: (fields, message) => void lines.set(message, fields),
    child: () => logger,
  };
  return logger;
}

/** Both clusters, and the options of a daemon that serves the API at `bindAddress`. */
async function surroundings(bindAddress: string) {
  const clusters = await startClusterPair(folder);
  const { config, management } = parseText(`${clusters.section}
managementApi: {enabled: true, bindAddress: "${bindAddress}", dataDir: ${join(folder, 'data')}}
`);
  if (config === undefined || management === undefined) throw new Error('invalid');
  const lines = new Map<string, LogFields>();
  const options = {
    config,
    isDryRun: false,
    logger: recorder(lines),
    clock: systemClock,
    random: systemRandom,
    version: '0.0.0',
    signal: new AbortController().signal,
  };
  return { options, management, lines, [Symbol.asyncDispose]: () => clusters[Symbol.asyncDispose]() };
}

test('if the port is in use the API reports an error, and the sync works', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // a TCP server that listens has one
  await using world = await surroundings(`127.0.0.1:${port}`);
  const daemon = await startDaemon({
    ...world.options,
    ...accessKeysCompanion(world.options, world.management),
  });
  const failed = /\[-\]management-api failed: .*EADDRINUSE.*is it running already\? Choose a free address/u;
  await eventually(
    async () => (await fetch(`${daemon.healthUrl}/readyz`)).text(),
    (all) => failed.test(all),
  );
  expect((await fetch(`${daemon.healthUrl}/readyz`)).status).toBe(503);
  await eventually(
    async () => (await fetch(`${daemon.healthUrl}/readyz`)).text(),
    (all) => /\[\+\]workers ok/u.test(all),
  );
  expect(world.lines.get('the key and token API cannot start')?.['reason']).toContain('EADDRINUSE');
  await daemon.stop();
  await new Promise((resolve) => server.close(resolve));
});

/** The address of the API, as soon as it is served. */
async function apiUrl(lines: ReadonlyMap<string, LogFields>): Promise<string> {
  const url = await eventually(
    () => lines.get('serving the key and token API')?.['url'],
    (found) => typeof found === 'string',
    { what: 'the API' },
  );
  return String(url);
}

async function versionStatus(url: string): Promise<number> {
  const ca = readFileSync(join(folder, 'data', 'ca.crt'), 'utf8');
  await using client = new RawClient({ url, ca });
  return (await client.send({ method: 'GET', path: '/version' })).status;
}

test.each<[string, StartCompanion]>([
  ['never ends', (_metrics, signal) => new Promise((_, reject) => signal.addEventListener('abort', reject))],
  ['fails unexpectedly', () => Promise.reject(new Error('a defect'))],
])('a start of the API that %s does not delay the sync', async (_how, start) => {
  await using world = await surroundings('127.0.0.1:0');
  const daemon = await startDaemon({ ...world.options, startCompanion: start });
  const text = await eventually(
    async () => (await fetch(`${daemon.healthUrl}/readyz?verbose`)).text(),
    (all) => /\[\+\]workers ok/u.test(all),
  );
  expect(text).toMatch(/\[-\]management-api failed/u);
  await daemon.stop();
});

test('the API is served while the virtual cluster does not respond', async () => {
  await using world = await surroundings('127.0.0.1:0');
  const stop = new AbortController();
  const { config } = world.options;
  const nowhere = { ...config, virtual: { ...config.virtual, server: 'https://127.0.0.1:1' } };
  const options = { ...world.options, config: nowhere, signal: stop.signal };
  const starting = startDaemon({ ...options, ...accessKeysCompanion(options, world.management) });
  expect(await versionStatus(await apiUrl(world.lines))).toBe(200);
  await eventually(
    () => world.lines.get('cluster cannot be reached, waiting for it'),
    (fields) => fields?.['cluster'] === 'virtual',
  );
  stop.abort();
  await expect(starting).rejects.toThrow('cannot connect to the virtual cluster');
});

test('the API is served while the virtual cluster refuses the daemon, and the sync starts when it does not', async () => {
  await using world = await surroundings('127.0.0.1:0');
  const { config } = world.options;
  const { server: target } = loadClusterAccess(config.virtual, { clock: systemClock, setting: '' });
  let isRefusing = true;
  const gate = createHttpServer((request, response) => {
    if (isRefusing)
      return void response.writeHead(401, { 'content-type': 'application/json' }).end(UNAUTHORIZED);
    const forwarded = httpRequest(
      target + (request.url ?? ''),
      { method: request.method ?? 'GET', headers: request.headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 0, answer.headers);
        answer.pipe(response);
      },
    );
    request.pipe(forwarded);
    forwarded.on('error', () => response.destroy());
    response.on('close', () => forwarded.destroy());
  });
  await new Promise<void>((resolve) => gate.listen(0, '127.0.0.1', resolve));
  const { port } = gate.address() as AddressInfo; // a TCP server that listens has one
  const behind = { ...config, virtual: { ...config.virtual, server: `http://127.0.0.1:${port}` } };
  const options = { ...world.options, config: behind };
  const starting = startDaemon({ ...options, ...accessKeysCompanion(options, world.management) });
  expect(await versionStatus(await apiUrl(world.lines))).toBe(200);
  await eventually(
    () => world.lines.get('cluster cannot be reached, waiting for it'),
    (fields) => fields?.['cluster'] === 'virtual',
  );
  isRefusing = false;
  const daemon = await starting;
  await eventually(
    async () => (await fetch(`${daemon.healthUrl}/readyz`)).status,
    (status) => status === 200,
  );
  await daemon.stop();
  gate.closeAllConnections();
  gate.close();
});

const UNAUTHORIZED = JSON.stringify({
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  message: 'Unauthorized',
  reason: 'Unauthorized',
  code: 401,
});

test('the API is served, part of readiness, and stops with the daemon', async () => {
  await using world = await surroundings('127.0.0.1:0');
  const { options, lines } = world;
  const daemon = await startDaemon({ ...options, ...accessKeysCompanion(options, world.management) });
  const url = await apiUrl(lines);
  await using client = new RawClient({ url, ca: readFileSync(join(folder, 'data', 'ca.crt'), 'utf8') });
  expect((await client.send({ method: 'GET', path: '/version' })).status).toBe(200);
  const ready = await eventually(
    async () => (await fetch(`${daemon.healthUrl}/readyz?verbose`)).text(),
    (text) => text.includes('[+]management-api'),
  );
  expect(ready).toMatch(/\[\+\]management-api/u);
  await daemon.stop();
  await expect(client.send({ method: 'GET', path: '/version' })).rejects.toThrow('fetch failed');
});
