/** `run --dry-run --once`: a cluster that does not respond ends it, and `-o name` prints what kubectl takes. */

import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { systemRandom } from '../../src/base/random.ts';
import { startEmbeddedCluster } from '../../src/embedded-cluster/embedded-cluster.ts';
import { startDaemon } from '../../src/syncer/run.ts';
import { validConfig } from './config/setup.ts';
import { spawnedRun } from './captured-run.ts';
import { testFolder } from '../support/test-folder.ts';

const { write } = testFolder();

function kubeconfig(name: string, server: string): string {
  const cluster = { name, cluster: { server } };
  const context = { name, context: { cluster: name, user: name } };
  const users = [{ name, user: {} }];
  return write(
    name,
    JSON.stringify({ 'current-context': name, clusters: [cluster], contexts: [context], users }),
  );
}

function configText(virtual: string, host: string, more = ''): string {
  return `
sync: {toHost: {endpointSlices: {enabled: true}}}
endpointSyncer:
  name: vc
  virtual: {kubeconfig: ${virtual}}
  host: {kubeconfig: ${host}, namespace: default}
  http: {bindAddress: "127.0.0.1:0"}
${more}`;
}

/** Closes each connection. `onConnection` runs at each of them. */
async function closedServer(onConnection: () => void) {
  const server = createServer((socket) => {
    socket.destroy();
    onConnection();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, [Symbol.dispose]: () => void server.close() };
}

describe('a cluster that does not respond', () => {
  test('is named by the error of --once, with the reason', async () => {
    using server = await closedServer(() => undefined);
    const config = validConfig(
      configText(kubeconfig('v', 'http://127.0.0.1:1'), kubeconfig('h', server.url)),
    );
    const { signal } = new AbortController();
    const parts = { clock: systemClock, random: systemRandom, version: '0.0.0', signal, giveUpMs: 100 };
    const daemon = startDaemon({ config, isDryRun: true, logger: silentLogger, ...parts });
    await expect(daemon).rejects.toThrow(/^cannot connect to the host cluster: no response to POST /u);
  });

  test('is named by the error, with the reason', async () => {
    const limit = new AbortController();
    using server = await closedServer(() => undefined);
    const config = validConfig(
      configText(kubeconfig('v', 'http://127.0.0.1:1'), kubeconfig('h', server.url)),
    );
    const logger = { ...silentLogger, warn: () => limit.abort() };
    const parts = { clock: systemClock, random: systemRandom, version: '0.0.0', signal: limit.signal };
    const daemon = startDaemon({ config, isDryRun: true, logger, ...parts });
    await expect(daemon).rejects.toThrow(/^cannot connect to the host cluster: no response to POST /u);
  });
});

test('-o name prints resource and name of the objects', async () => {
  await using virtual = await startEmbeddedCluster({ name: 'virtual' });
  await using host = await startEmbeddedCluster({ name: 'host' });
  const create = async (path: string, object: object): Promise<void> => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${virtual.url}${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(object),
    });
    expect(response.status).toBe(201);
  };
  await create('/api/v1/namespaces/default/endpoints', {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'web' },
  });
  await create('/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'db-1', labels: { 'kubernetes.io/service-name': 'db' } },
    addressType: 'IPv4',
    endpoints: [],
  });
  const config = configText(kubeconfig('virtual', virtual.url), kubeconfig('host', host.url));
  const file = write('names.yaml', config);
  const { code, out } = await spawnedRun(['run', '--config', file, '--dry-run', '--once', '-o', 'name']);
  expect(out).toBe('endpointslice.discovery.k8s.io/db-1-x-default-x-vc\nendpoints/web-x-default-x-vc\n');
  expect(code).toBe(1);
});
