/** Which kubeconfig the virtual cluster is reached with if the configuration names none: the usual one, or that in the Secret that vCluster writes. */

import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { type EmbeddedCluster, startEmbeddedCluster } from '../../src/embedded-cluster/embedded-cluster.ts';
import { testFolder } from '../support/test-folder.ts';
import { capturedRun, spawnedRun } from './captured-run.ts';

const { folder, write } = testFolder();
const clusters = new AsyncDisposableStack();
let [virtual, host, other] = [] as EmbeddedCluster[];
/** What kubectl would use. */
const USUAL = ['virtual', 'host', 'none'] as const;

beforeAll(async () => {
  [virtual, host, other] = await Promise.all(
    ['virtual', 'host', 'other'].map(async (name) => clusters.use(await startEmbeddedCluster({ name }))),
  );
  for (const [name, cluster] of Object.entries({ virtual, host, other }))
    write(name, cluster?.kubeconfig ?? '');
  const config = Buffer.from(virtual?.kubeconfig ?? '').toString('base64');
  await create(host, 'secrets', { metadata: { name: 'vc-known' }, data: { config } });
  for (const [cluster, name] of [
    [virtual, 'web'],
    [other, 'other'],
  ] as const)
    await create(cluster, 'endpoints', { metadata: { name } });
});

afterAll(() => clusters.disposeAsync());
afterEach(() => vi.unstubAllEnvs());

async function create(cluster: EmbeddedCluster | undefined, plural: string, object: object): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  const url = `${cluster?.url}/api/v1/namespaces/default/${plural}`;
  const { status } = await fetch(url, { method: 'POST', headers, body: JSON.stringify(object) });
  expect(status).toBe(201);
}

const FOUND = '-x-default-x-known\n';
const SAME = 'the virtual and the host cluster are the same API server';
const MISSING =
  'endpointSyncer.virtual.kubeconfig (or virtual.secret: there is no vc-gone in namespace "default")';
const SERVER = (): object => ({ server: virtual?.url });

test.each<
  [what: string, usual: (typeof USUAL)[number], virtual: () => object, name: string, expected: string]
>([
  ['the usual kubeconfig is that of the host', 'host', () => ({}), 'known', `endpoints/web${FOUND}`],
  ['there is no usual kubeconfig', 'none', () => ({}), 'known', `endpoints/web${FOUND}`],
  ['the configuration has another URL for it', 'host', SERVER, 'known', `endpoints/web${FOUND}`],
  [
    'the usual kubeconfig is that of another cluster',
    'virtual',
    () => ({}),
    'gone',
    'endpoints/web-x-default-x-gone\n',
  ],
  [
    'another one is named',
    'host',
    () => ({ kubeconfig: `${folder}/other` }),
    'known',
    `endpoints/other${FOUND}`,
  ],
  ['that of the host is named', 'host', () => ({ kubeconfig: `${folder}/host` }), 'known', SAME],
  ['there is no Secret', 'host', () => ({}), 'gone', MISSING],
  ['there is neither', 'none', () => ({}), 'gone', 'no kubeconfig found'],
])('%s', async (_, usual, virtualSection, name, expected) => {
  vi.stubEnv('HOME', folder);
  vi.stubEnv('KUBECONFIG', usual === 'none' ? '' : `${folder}/${usual}`);
  const endpointSyncer = {
    name,
    virtual: virtualSection(),
    host: { kubeconfig: `${folder}/host`, namespace: 'default' },
    http: { bindAddress: '127.0.0.1:0' },
  };
  const file = write('config.yaml', JSON.stringify({ endpointSyncer }));
  const { out, err } = await spawnedRun(['run', '--config', file, '--dry-run', '--once', '-o', 'name']);
  expect(`${out}${err}`.replaceAll('\\"', '"')).toContain(expected);
});

test('a command says what the daemon would do', async () => {
  vi.stubEnv('HOME', folder);
  vi.stubEnv('KUBECONFIG', `${folder}/host`);
  const file = write(
    'status.yaml',
    JSON.stringify({ endpointSyncer: { name: 'known', host: { namespace: 'default' } } }),
  );
  const { code, out } = await capturedRun(['status', '--config', file, '-o', 'name']);
  expect([code, out]).toEqual([0, 'endpoints/web\n']);
});
