/** A fleet whose host is slow. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { systemRandom } from '../../src/base/random.ts';
import { loadConfig } from '../../src/cli/config/load.ts';
import { startFleet } from '../../src/fleet/fleet.ts';
import { TestCluster } from '../scenarios/cluster-client.ts';
import { startFaultyCluster } from '../embedded-cluster/faulty-cluster.ts';
import { eventually } from '../support/eventually.ts';

/** Of the pool of a client. */
const CONNECTIONS = 16;

test('renews its Lease while more requests hang than there are connections for requests', async () => {
  await using stack = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-fleet-'));
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  const kubeconfig = join(directory, 'kubeconfig');
  const hanging = new Set<string>();
  const discovered = ['statefulsets', 'deployments', 'secrets', 'configmaps'];
  const cluster = stack.use(await startFaultyCluster({ name: 'host' }));
  cluster.intercept(({ resource, namespace }) => {
    if (!discovered.includes(resource)) return undefined;
    hanging.add(`${namespace}/${resource}`);
    return { delayMs: 3_600_000 };
  });
  writeFileSync(kubeconfig, cluster.kubeconfig);
  const host = stack.use(new TestCluster(kubeconfig));
  await host.ensureNamespace('fleet');
  const stopping = new AbortController();
  const include = Array.from({ length: 20 }, (_, at) => `team-${at}`);
  const file = join(directory, 'config.yaml');
  writeFileSync(
    file,
    `endpointSyncer:
  fleet: {enabled: true, namespaces: {include: [${include.join(', ')}]}}
  host: {kubeconfig: ${kubeconfig}, namespace: fleet}
  http: {bindAddress: "127.0.0.1:0"}
  defaults: {leaderElection: {retryPeriod: 100ms}}`,
  );
  const { config } = await loadConfig({
    file,
    env: {},
    flags: {},
    isStart: true,
    acceptsFleet: true,
  });
  const starting = startFleet({
    config,
    isDryRun: false,
    logger: silentLogger,
    clock: systemClock,
    random: systemRandom,
    version: 'test',
    signal: stopping.signal,
  });
  const ended = starting.catch((error: unknown) => error);
  const lease = async () => JSON.stringify((await host.list('Lease', 'fleet'))[0]?.['spec'] ?? null);
  await eventually(
    () => hanging.size,
    (count) => count >= CONNECTIONS,
  );
  const before = await eventually(lease, (spec) => spec !== 'null');
  await eventually(lease, (spec) => spec !== before);
  stopping.abort(new Error('the test is over'));
  expect(await ended).toBeInstanceOf(Error);
});
