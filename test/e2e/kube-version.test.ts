/** The clusters of the suite run the requested version: `KUBE_VERSION`, or the one that go.mod pins. */

import { expect, test } from 'vitest';
import { TestCluster } from '../scenarios/cluster-client.ts';
import { pinnedVersion } from './assets.ts';
import { suiteClusters } from './suite-clusters.ts';

const isForeign =
  (process.env['KUBEBUILDER_ASSETS'] ?? '') !== '' && process.env['KUBE_VERSION'] === undefined;

test.runIf(!isForeign).each(['virtual', 'host'] as const)('the %s cluster has the version', async (name) => {
  await using cluster = new TestCluster(suiteClusters()[name].kubeconfigPath);
  const { body } = await cluster.request('GET', '/version');
  expect(body).toMatchObject({ gitVersion: process.env['KUBE_VERSION'] ?? pinnedVersion() });
});
