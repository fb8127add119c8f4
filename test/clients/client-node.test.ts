/** What we serve is usable with the official JavaScript client: its kubeconfigs, typed APIs, watches and informers. */

import {
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  type V1Endpoints,
} from '@kubernetes/client-node';
import { expect, test } from 'vitest';
import { startComposed } from '../access-keys/composed-api.ts';
import { keys, keysFolder } from '../cli/keys/keys-setup.ts';
import { TestCluster } from '../embedded-cluster/test-cluster.ts';
import { eventually } from '../support/eventually.ts';

const { configFile } = keysFolder();

function configOf(text: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromString(text);
  return config;
}

const KIND = { group: 'management.platform.sh', version: 'v1', plural: 'ownedaccesskeys' };

test('the kubeconfig of a key, for the key API', async () => {
  const place = configFile('client', 'memory');
  await using api = await startComposed({ dataDir: place.dataDir });
  const where = ['--config', place.file, '--server', api.api.url];
  const admin = ['--name', 'first', '--user', 'ada', '--group', 'platform:admins'];
  const created = await keys('create', ...where, ...admin, '-o', 'kubeconfig');
  expect(created.code).toBe(0);
  const client = configOf(created.out).makeApiClient(CustomObjectsApi);
  const body = {
    apiVersion: 'management.platform.sh/v1',
    kind: 'OwnedAccessKey',
    metadata: { name: 'second' },
    spec: { type: 'User', user: 'bob', displayName: 'B', ttl: 3600 },
  };
  await client.createClusterCustomObject({ ...KIND, body });
  const patch = [{ op: 'replace', path: '/spec/displayName', value: 'C' }];
  await client.patchClusterCustomObject(
    { ...KIND, name: 'second', body: patch },
    setHeaderOptions('Content-Type', PatchStrategy.JsonPatch),
  );
  expect(await client.getClusterCustomObject({ ...KIND, name: 'second' })).toMatchObject({
    spec: { user: 'bob', displayName: 'C' },
  });
  await client.deleteClusterCustomObject({ ...KIND, name: 'second' });
  expect(await client.listClusterCustomObject(KIND)).toMatchObject({
    items: [{ metadata: { name: 'first' } }],
  });
  await expect(client.getClusterCustomObject({ ...KIND, name: 'second' })).rejects.toMatchObject({
    code: 404,
  });
});

test('the kubeconfig of an embedded cluster, with an informer', async () => {
  await using cluster = await TestCluster.open();
  const config = configOf(cluster.embedded.kubeconfig);
  // It takes an http URL with this setting only.
  const clusters = config.clusters.map(({ name, server }) => ({ name, server, skipTLSVerify: true }));
  const { users, contexts, currentContext } = config;
  config.loadFromOptions({ clusters, users, contexts, currentContext });
  const client = config.makeApiClient(CoreV1Api);
  const seen: string[] = [];
  const informer = makeInformer<V1Endpoints>(config, '/api/v1/namespaces/default/endpoints', () =>
    client.listNamespacedEndpoints({ namespace: 'default' }),
  );
  for (const verb of ['add', 'update', 'delete'] as const)
    informer.on(verb, ({ metadata }) => void seen.push(`${verb} ${metadata?.name}`));
  await informer.start();
  try {
    const body = { metadata: { name: 'web' }, subsets: [{ addresses: [{ ip: '192.0.2.7' }] }] };
    const created = await client.createNamespacedEndpoints({ namespace: 'default', body });
    const { metadata = {} } = created;
    const ready = { metadata, subsets: [{ addresses: [{ ip: '192.0.2.8' }] }] };
    await client.replaceNamespacedEndpoints({ namespace: 'default', name: 'web', body: ready });
    await client.deleteNamespacedEndpoints({ namespace: 'default', name: 'web' });
    const whole = ['add web', 'update web', 'delete web'];
    await eventually(
      () => seen,
      (found) => found.length === whole.length,
    );
    expect(seen).toEqual(whole);
  } finally {
    await informer.stop();
  }
});
