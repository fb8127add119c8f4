/** The daemon serves the key and token API beside the sync: part of its readiness, ended with it. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startEmbeddedCluster } from '../../src/api/embedded-cluster.ts';
import { startDaemon } from '../../src/app.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { silentLogger, type LogFields, type Logger } from '../../src/observe/logger.ts';
import { validConfig } from '../config/setup.ts';
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
    child: () => logger,
  };
  return logger;
}

test('served, ready, and ended with the daemon', async () => {
  await using virtual = await startEmbeddedCluster({ name: 'virtual' });
  await using host = await startEmbeddedCluster({ name: 'host' });
  for (const { name, kubeconfig } of [virtual, host]) writeFileSync(join(folder, name), kubeconfig);
  const config = validConfig(`
endpointSyncer:
  name: vc
  virtual: {kubeconfig: ${join(folder, 'virtual')}}
  host: {kubeconfig: ${join(folder, 'host')}, namespace: default}
  http: {bindAddress: "127.0.0.1:0"}
managementApi: {enabled: true, bindAddress: "127.0.0.1:0", dataDir: ${join(folder, 'data')}}
`);
  const lines = new Map<string, LogFields>();
  const daemon = await startDaemon({
    config,
    isDryRun: false,
    logger: recorder(lines),
    clock: systemClock,
    random: systemRandom,
    version: '0.0.0',
    signal: new AbortController().signal,
  });
  const url = lines.get('the key and token API is served')?.['url'];
  if (typeof url !== 'string') throw new Error('it does not say where it is served');
  await using client = new RawClient({ url, ca: readFileSync(join(folder, 'data', 'ca.crt'), 'utf8') });
  expect((await client.send({ method: 'GET', path: '/version' })).status).toBe(200);
  const ready = await (await fetch(`${daemon.healthUrl}/readyz?verbose`)).text();
  expect(ready).toMatch(/\[\+\]management-api/u);
  await daemon.stop();
  await expect(client.send({ method: 'GET', path: '/version' })).rejects.toThrow('fetch failed');
});
