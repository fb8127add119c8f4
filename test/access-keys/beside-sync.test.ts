/** The daemon serves the key and token API besides the sync: it is part of its readiness and stops with it. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { accessKeysCompanion } from '../../src/cli/run/companion.ts';
import { startDaemon } from '../../src/syncer/daemon.ts';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { silentLogger, type LogFields, type Logger } from '../../src/base/logger.ts';
import { eventually } from '../scenarios/eventually.ts';
import { validConfig } from '../config/setup.ts';
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
    error: (fields, message) => void lines.set(message, fields),
    child: () => logger,
  };
  return logger;
}

/** Both clusters, and the options of a daemon that serves the API at `bindAddress`. */
async function surroundings(bindAddress: string) {
  const clusters = await startClusterPair(folder);
  const config = validConfig(`${clusters.section}
managementApi: {enabled: true, bindAddress: "${bindAddress}", dataDir: ${join(folder, 'data')}}
`);
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
  return { options, lines, [Symbol.asyncDispose]: () => clusters[Symbol.asyncDispose]() };
}

test('if the port is in use the API reports an error, and the sync works', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // a TCP server that listens has one
  await using world = await surroundings(`127.0.0.1:${port}`);
  const daemon = await startDaemon({ ...world.options, ...accessKeysCompanion(world.options) });
  const answer = await fetch(`${daemon.healthUrl}/readyz`);
  const text = await answer.text();
  expect(answer.status).toBe(503);
  expect(text).toMatch(
    /\[-\]management-api failed: .*EADDRINUSE.*is it running already\? Choose a free address/u,
  );
  await eventually(
    async () => (await fetch(`${daemon.healthUrl}/readyz`)).text(),
    (all) => /\[\+\]workers ok/u.test(all),
  );
  expect(world.lines.get('the key and token API cannot start')?.['reason']).toContain('EADDRINUSE');
  await daemon.stop();
  await new Promise((resolve) => server.close(resolve));
});

test('the API is served, part of readiness, and stops with the daemon', async () => {
  await using world = await surroundings('127.0.0.1:0');
  const { options, lines } = world;
  const daemon = await startDaemon({ ...options, ...accessKeysCompanion(options) });
  const url = lines.get('serving the key and token API')?.['url'];
  if (typeof url !== 'string') throw new Error('it does not say where it is served');
  await using client = new RawClient({ url, ca: readFileSync(join(folder, 'data', 'ca.crt'), 'utf8') });
  expect((await client.send({ method: 'GET', path: '/version' })).status).toBe(200);
  const ready = await (await fetch(`${daemon.healthUrl}/readyz?verbose`)).text();
  expect(ready).toMatch(/\[\+\]management-api/u);
  await daemon.stop();
  await expect(client.send({ method: 'GET', path: '/version' })).rejects.toThrow('fetch failed');
});
