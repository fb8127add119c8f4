/** Callers with tokens of a real host cluster: its kube-apiserver authenticates them, its RBAC authorizes them. */

import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { systemRandom } from '../../src/base/random.ts';
import { startManagementApi } from '../../src/access-keys/management-api.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { RawClient } from '../contract/raw-client.ts';
import { KEYS_PATH, managementConfig } from '../access-keys/composed-api.ts';
import { TestCluster } from '../scenarios/cluster-client.ts';
import { whenAuthorized } from './authorization.ts';
import { suiteClusters } from './suite-clusters.ts';

const name = `delegated-${randomBytes(4).toString('hex')}`;
const stack = new AsyncDisposableStack();
let host: RawClient;
let admin: TestCluster;
let url = '';
let ca = '';

beforeAll(async () => {
  const cluster = suiteClusters().host;
  const hostCa = await readFile(cluster.caFile, 'utf8');
  admin = stack.use(new TestCluster(cluster.kubeconfigPath));
  host = stack.use(new RawClient({ url: cluster.url, token: cluster.token, ca: hostCa }));
  const dataDir = await mkdtemp(join(tmpdir(), 'endpoint-syncer-delegated-'));
  stack.defer(() => rm(dataDir, { recursive: true }));
  const api = stack.use(
    await startManagementApi({
      config: managementConfig(dataDir, {
        delegatedAuth: true,
        host: { kubeconfig: cluster.kubeconfigPath, context: '', namespace: 'default' },
      }),
      clock: systemClock,
      random: systemRandom,
      logger: silentLogger,
      version: '0.0.0-test',
      signal: new AbortController().signal,
    }),
  );
  url = api.url;
  ca = await readFile(api.caFile, 'utf8');
  await createObject('/api/v1/namespaces', { metadata: { name } });
});
afterAll(async () => {
  for (const kind of ['clusterroles', 'clusterrolebindings']) {
    const path = `/apis/rbac.authorization.k8s.io/v1/${kind}?labelSelector=test%3D${name}`;
    await host.send({ method: 'DELETE', path });
  }
  await host.send({ method: 'DELETE', path: `/api/v1/namespaces/${name}` });
  await stack.disposeAsync();
});

async function createObject(path: string, body: JsonObject): Promise<JsonObject> {
  const { status, json, text } = await host.send({ method: 'POST', path, body });
  if (status !== 201) throw new Error(`${path}: ${text}`);
  return json ?? {};
}

/** A service account of the host with these rights in all of it, with a token of its own. */
async function serviceAccount(account: string, rules: JsonObject[]): Promise<RawClient> {
  await createObject(`/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: account } });
  const metadata = { name: `${name}-${account}`, labels: { test: name } };
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  await createObject(`${rbac}/clusterroles`, { metadata, rules });
  await createObject(`${rbac}/clusterrolebindings`, {
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: metadata.name },
    subjects: [{ kind: 'ServiceAccount', namespace: name, name: account }],
  });
  const user = `system:serviceaccount:${name}:${account}`;
  await whenAuthorized(admin, { user, namespace: '', rules });
  const path = `/api/v1/namespaces/${name}/serviceaccounts/${account}/token`;
  const { status } = await createObject(path, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: {},
  });
  const { token } = status as { token: string };
  return stack.use(new RawClient({ url, ca, token }));
}

const KEYS = { apiGroups: ['management.platform.sh'], resources: ['ownedaccesskeys'] };
const key = (key: string, spec: JsonObject): JsonObject => ({
  metadata: { name: key },
  spec: { displayName: 'D', ttl: 600, type: 'User', ...spec },
});

test('a service account may do what RBAC of the host allows', async () => {
  const maker = await serviceAccount('maker', [
    { ...KEYS, verbs: ['create', 'get', 'list'] },
    { apiGroups: [''], resources: ['users'], resourceNames: ['ci'], verbs: ['impersonate'] },
  ]);
  const make = async (body: JsonObject): Promise<number> =>
    (await maker.send({ method: 'POST', path: KEYS_PATH, body })).status;
  expect(await make(key('ci', { user: 'ci' }))).toBe(201);
  expect(await make(key('root', { user: 'root' }))).toBe(403);
  expect(await make(key('ci-admin', { user: 'ci', groups: ['platform:admins'] }))).toBe(403);
  expect((await maker.send({ method: 'GET', path: `${KEYS_PATH}/ci` })).status).toBe(200);
  const refused = await maker.send({ method: 'DELETE', path: `${KEYS_PATH}/ci` });
  const who = `system:serviceaccount:${name}:maker`;
  expect(refused.status).toBe(403);
  expect(refused.json?.['message']).toContain(`User "${who}" cannot delete resource "ownedaccesskeys"`);
  const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
  const { json } = await maker.send({ method: 'POST', path, body: {} });
  expect(json?.['status']).toMatchObject({ userInfo: { username: who } });
});

test('a right for one name does not apply to other names', async () => {
  const reader = await serviceAccount('reader', [{ ...KEYS, verbs: ['get'], resourceNames: ['ci'] }]);
  const status = async (path: string): Promise<number> => (await reader.send({ method: 'GET', path })).status;
  expect(await status(`${KEYS_PATH}/ci`)).toBe(200);
  expect(await status(`${KEYS_PATH}/other`)).toBe(403);
  expect(await status(KEYS_PATH)).toBe(403);
});

test('a user without rights on the host has none in this API, and an unknown token is not authenticated', async () => {
  const unprivileged = await serviceAccount('unprivileged', []);
  expect((await unprivileged.send({ method: 'GET', path: KEYS_PATH })).status).toBe(403);
  expect((await unprivileged.send({ method: 'GET', path: '/apis' })).status).toBe(200);
  const unknown = stack.use(new RawClient({ url, ca, token: 'an-unknown-token' }));
  expect((await unknown.send({ method: 'GET', path: KEYS_PATH })).status).toBe(401);
});
