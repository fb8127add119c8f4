/** Mistakes of a first installation, on real clusters: what the log says, and that it names the next step. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { selfContainedKubeconfig } from '../clusters.ts';
import { ClusterHarness } from './cluster-harness.ts';

let harness: ClusterHarness;

beforeAll(async () => {
  harness = await ClusterHarness.start(['team-a']);
  const { virtual } = harness.clusters;
  const kubeconfig = selfContainedKubeconfig(virtual);
  await secret('vc-a', 'config', kubeconfig);
  await secret('vc-key', 'other', kubeconfig);
  await secret('vc-token', 'config', kubeconfig.replace(virtual.token, 'wrong'));
  await secret('vc-localhost', 'config', kubeconfig.replace(/127\.0\.0\.1:\d+/u, 'localhost:1'));
});

afterAll(async () => {
  await harness[Symbol.asyncDispose]();
});

function secret(name: string, key: string, value: string): Promise<void> {
  return harness.createSecret('team-a', name, key, value);
}

function config(virtual: object, host: object = {}, name = 'a'): string {
  const kubeconfig = harness.clusters.host.kubeconfigPath;
  return JSON.stringify({
    endpointSyncer: { name, virtual, host: { kubeconfig, namespace: 'team-a', ...host } },
  });
}

describe('a start', () => {
  test.each([
    [
      'with a Secret without the key',
      { secret: 'vc-key' },
      'has none of the keys config, value, kubeconfig, kubeconfig.yaml, admin.conf with a kubeconfig; it has: other',
    ],
    [
      'with rejected credentials',
      { secret: 'vc-token' },
      'of Secret team-a/vc-token of the host cluster are not accepted. Renew the token or certificate there.',
    ],
  ])('%s ends with one line that says so', async (_, virtual, line) => {
    // Of another name than that of the Secret's vCluster, a warning says so.
    const name = virtual.secret.replace(/^vc-/u, '');
    const { exitCode, stderr } = await harness.startOutcome(config(virtual, {}, name));
    expect([exitCode, stderr.match(/"level":"(warn|error)"/gu)?.length]).toEqual([1, 1]);
    expect(stderr).toContain(line);
  });

  test('with the host cluster as the virtual one is refused', async () => {
    const { kubeconfigPath } = harness.clusters.host;
    const { exitCode, stderr } = await harness.startOutcome(config({ kubeconfig: kubeconfigPath }));
    expect([exitCode, stderr.includes('are the same API server')]).toEqual([1, true]);
  });

  test('with a Role in another namespace names the namespace and the command that prints the rights', async () => {
    const metadata = { name: 'none', namespace: 'team-a' };
    await harness.apply('host', JSON.stringify({ apiVersion: 'v1', kind: 'ServiceAccount', metadata }));
    const kubeconfig = join(harness.folder, 'account.kubeconfig');
    writeFileSync(kubeconfig, await harness.kubeconfigOf('host', 'team-a', 'none'));
    const virtual = { kubeconfig: harness.clusters.virtual.kubeconfigPath };
    const start = config(virtual, { kubeconfig, namespace: 'team-x' });
    const { exitCode, stderr } = await harness.startOutcome(start);
    expect(exitCode).toBe(1);
    expect(stderr).toContain('create endpoints in namespace \\"team-x\\" of the host cluster');
    expect(stderr).toContain('endpoint-syncer rbac');
  });

  test('before vCluster has written its Secret waits for it, and becomes ready', async () => {
    await using daemon = await harness.startDaemon(config({ secret: 'vc-late' }));
    await eventually(
      () => daemon.stderr,
      (log) => log.includes('set endpointSyncer.virtual.secret'),
    );
    await secret('vc-late', 'config', selfContainedKubeconfig(harness.clusters.virtual));
    await daemon.ready();
    expect((await daemon.get('/readyz')).status).toBe(200);
  });

  test('with a Secret that names localhost logs the setting to change', async () => {
    await using daemon = await harness.startDaemon(config({ secret: 'vc-localhost' }));
    await eventually(
      () => daemon.stderr,
      (log) => log.includes('set endpointSyncer.virtual.server'),
    );
    expect((await daemon.get('/readyz')).status).toBe(503);
  });

  test('in the sidecar, whose server is localhost, does not log it', async () => {
    const server = 'https://127.0.0.1:1';
    await using daemon = await harness.startDaemon(config({ secret: 'vc-localhost', server }));
    await eventually(
      () => daemon.stderr,
      (log) => log.includes('waiting for it'),
    );
    expect(daemon.stderr).not.toContain('virtual.server');
  });
});
