/** The values of docs/fleet.md, installed: a vCluster with the documented values joins, with the rights that the chart grants, and replicas share. */

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { JsonObject } from '../../../src/base/json.ts';
import { TestCluster } from '../../scenarios/cluster-client.ts';
import { FleetWorld } from '../../scenarios/fleet-world.ts';
import { endpoints, subset } from '../../scenarios/objects.ts';
import { eventually } from '../../support/eventually.ts';
import { selfContainedKubeconfig, type RealCluster } from '../clusters.ts';
import { documentedBlocks } from '../documented-blocks.ts';
import { ClusterHarness } from './cluster-harness.ts';
import { CHART, configOf, helm, objectsIn } from './helm.ts';

const MAIN = join(CHART, '..', '..', 'src', 'main.ts');
const NAMESPACE = 'endpoint-syncer';
const BLOCKS = documentedBlocks('fleet.md');

const stack = new AsyncDisposableStack();
let home = '';
let harness: ClusterHarness;
let world: FleetWorld;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'endpoint-syncer-fleet-chart-'));
  stack.defer(() => rmSync(home, { recursive: true }));
  harness = stack.use(await ClusterHarness.start(['team-a', 'team-b', 'team-c']));
  const opened = (cluster: RealCluster) => ({
    kubeconfig: selfContainedKubeconfig(cluster),
    client: stack.use(new TestCluster(cluster.kubeconfigPath)),
  });
  const { host, virtual } = harness.clusters;
  const member = opened(virtual);
  world = stack.use(
    new FleetWorld({
      host: opened(host),
      virtual: () => Promise.resolve(member),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }),
  );
});

afterAll(() => stack.disposeAsync());

/** A documented block. */
function block(name: string): string {
  const text = BLOCKS.get(name);
  if (text === undefined) throw new Error(`docs/fleet.md has no block ${name}`);
  return text;
}

/** Installs the chart, and returns the configuration in its ConfigMap. */
async function install(): Promise<string> {
  const values = join(home, 'values.yaml');
  writeFileSync(values, block('values.yaml'));
  const args = ['endpoint-syncer', CHART, `--namespace=${NAMESPACE}`, `--values=${values}`];
  const kubeconfig = `--kubeconfig=${harness.clusters.host.kubeconfigPath}`;
  await helm(home, 'install', ...args, '--create-namespace', kubeconfig);
  return configOf(
    objectsIn(await helm(home, 'get', 'manifest', 'endpoint-syncer', `-n=${NAMESPACE}`, kubeconfig)),
  );
}

test('a vCluster joins with the documented values, and a second replica shares the members', async () => {
  const config = await install();
  const kubeconfig = join(home, 'host.kubeconfig');
  writeFileSync(kubeconfig, await harness.kubeconfigOf('host', NAMESPACE, 'endpoint-syncer'));
  const start = () => harness.startDaemon(config, ['--host-kubeconfig', kubeconfig]);
  await using first = await start();
  await first.ready();

  const values = parse(block('vcluster.yaml')) as JsonObject & VclusterValues; // our own block
  const { labels } = values.controlPlane.statefulSet;
  const vcluster = await world.install('my-vcluster', { namespace: 'team-a', values, labels });
  await world.whenState(first, vcluster, 'joined');
  // It has no Service, so it is not synced before the ConfigMap says so.
  const annotations = { 'example.com/owner': 'checkout' };
  const web = endpoints('default/web', { annotations, subsets: [subset('192.0.2.7')] });
  await vcluster.virtual.create('Endpoints', web);
  await harness.apply('host', block('overlay.yaml'));
  const copy = await world.whenCopied(vcluster, 'web', '192.0.2.7');
  expect(copy.metadata.annotations).toMatchObject({ 'example.com/owner': 'team-checkout' });

  // What `helm test` runs.
  const file = join(home, 'config.yaml');
  writeFileSync(file, config);
  const healthcheck = [MAIN, 'healthcheck', '--config', file, '--url', first.httpUrl, '--timeout', '1m'];
  expect((await promisify(execFile)(process.execPath, healthcheck)).stderr).toBe('');

  await using second = await start();
  await second.ready();
  for (const replica of [first, second])
    await eventually(
      () => replica.get('/readyz?verbose'),
      ({ text }) => text.includes('[+]replicas ok: 2 live'),
      { what: 'two live replicas' },
    );
  for (const replica of [first, second]) expect(replica.stderr).not.toMatch(/"level":"error"/u);
});

interface VclusterValues {
  readonly controlPlane: { readonly statefulSet: { readonly labels: Record<string, string> } };
}
