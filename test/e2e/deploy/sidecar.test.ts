/**
 * The sidecar in vCluster's own Pod: the documented values in vCluster's chart, whose folder `VCLUSTER_CHART` names (`chart/` of its repository), as
 * it is not part of this project. vCluster itself does not run here; the sidecar does, with the volumes, the ServiceAccount and the rights of that Pod.
 */

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { selfContainedKubeconfig } from '../clusters.ts';
import { documentedBlocks } from '../documented-blocks.ts';
import { ClusterHarness } from './cluster-harness.ts';
import { CHART, helm } from './helm.ts';
import { PodRunner } from './pod-runner.ts';

const VCLUSTER_CHART = process.env['VCLUSTER_CHART'] ?? '';
const ACCOUNT = 'system:serviceaccount:team-a:vc-second';
const MAIN = join(dirname(dirname(CHART)), 'src', 'main.ts');

describe.runIf(VCLUSTER_CHART !== '')("the sidecar in vCluster's chart", () => {
  let harness: ClusterHarness;
  let home = '';

  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'endpoint-syncer-helm-'));
    harness = await ClusterHarness.start(['team-a'], { hasWorkloads: true });
  });

  afterAll(async () => {
    await harness[Symbol.asyncDispose]();
    rmSync(home, { recursive: true });
  });

  const install = (name: string, chart: string, ...args: readonly string[]) =>
    release('install', name, chart, ...args);

  const release = (verb: 'install' | 'upgrade', name: string, chart: string, ...args: readonly string[]) =>
    helm(
      home,
      verb,
      name,
      chart,
      '--namespace=team-a',
      `--kubeconfig=${harness.clusters.host.kubeconfigPath}`,
      ...args,
    );

  test('is accepted by its schema, and syncs with its volumes and rights', async () => {
    const { virtual, host } = harness.clusters;
    await install('syncer', CHART, '--set=sidecar=true,config.endpointSyncer.name=my-vcluster');
    const values = join(home, 'vcluster-values.yaml');
    writeFileSync(values, documentedBlocks('deploy.md').get('vcluster-values.yaml') ?? '');
    await install('my-vcluster', VCLUSTER_CHART, `--values=${values}`);
    await using pods = new PodRunner({
      cluster: host,
      namespace: 'team-a',
      entrypoint: [process.execPath, MAIN],
      env: process.env,
      // vCluster's proxy does not run here.
      addresses: { 'https://localhost:8443': virtual.url },
    });
    // vCluster writes its Secret after the Pod has started.
    await eventually(
      () => pods.logs,
      (logs) => logs.includes('kubeconfig Secret does not exist'),
    );
    await harness.createSecret('team-a', 'vc-my-vcluster', 'config', selfContainedKubeconfig(virtual));
    await harness.apply(
      'virtual',
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Endpoints',
        metadata: { name: 'web', namespace: 'default' },
        subsets: [{ addresses: [{ ip: '192.0.2.7' }] }],
      }),
    );
    const copy = ['endpoints', 'web-x-default-x-my-vcluster', '-o', 'jsonpath={.subsets[0].addresses[0].ip}'];
    const ip = await eventually(
      () => harness.kubectl('host', '-n', 'team-a', 'get', ...copy),
      (found) => found !== '',
      { timeoutMs: 60_000, what: 'the copy' },
    );
    expect([ip, pods.logs.match(/"level":"error"/gu)]).toEqual(['192.0.2.7', null]);
  });

  test('accepts the documented volume of the key and token API', async () => {
    const values = join(home, 'vcluster-keys.yaml');
    writeFileSync(values, documentedBlocks('keys/in-a-cluster.md').get('vcluster-keys.yaml') ?? '');
    const text = await helm(home, 'template', 'my-vcluster', VCLUSTER_CHART, `--values=${values}`);
    expect(text).toContain('claimName: endpoint-syncer-keys');
    expect(text).toContain('fsGroup: 65532');
  });

  test('needs the rights that rbac prints as values of that chart', async () => {
    const off = '--set=sync.toHost.endpoints.enabled=false,sync.toHost.endpointSlices.enabled=false';
    const config = join(home, 'config.yaml');
    const syncer = { name: 'second', virtual: { secret: 'vc-second' }, host: { namespace: 'team-a' } };
    writeFileSync(config, JSON.stringify({ endpointSyncer: syncer }));
    const args = ['rbac', '--config', config, '--as', 'vcluster-values'];
    const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args]);
    const values = join(home, 'rights.yaml');
    writeFileSync(values, stdout);
    const canCreate = () =>
      harness
        .kubectl('host', 'auth', 'can-i', 'create', 'endpoints', '-n', 'team-a', `--as=${ACCOUNT}`)
        .catch(() => 'no');
    await install('second', VCLUSTER_CHART, off);
    expect(await canCreate()).toBe('no');
    await release('upgrade', 'second', VCLUSTER_CHART, off, `--values=${values}`);
    // The API server learns of the Role by a watch.
    expect(await eventually(canCreate, (answer) => answer !== 'no')).toContain('yes');
  });
});
