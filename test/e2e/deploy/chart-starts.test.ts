/** What the chart renders for each documented set of values is started: with its ConfigMap, and with its ServiceAccount on a real kube-apiserver. */

import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { freePorts } from '../../support/free-ports.ts';
import { selfContainedKubeconfig } from '../clusters.ts';
import { documentedBlocks } from '../documented-blocks.ts';
import { ClusterHarness } from './cluster-harness.ts';
import {
  CHART,
  configOf,
  granted,
  helm,
  objectsIn,
  rbac,
  type RenderedObject,
  SETS,
  valuesFile,
} from './helm.ts';

const MAIN = join(CHART, '..', '..', 'src', 'main.ts');
/** What the process in place of the Pod needs. Other kinds have no controller or no definition here. */
const NEEDED = new Set([
  'ConfigMap',
  'ServiceAccount',
  'Role',
  'RoleBinding',
  'ClusterRole',
  'ClusterRoleBinding',
]);
const NAMESPACES = ['team-a', 'keys', 'team-shop', 'host-a'];
const run = promisify(execFile);

let home = '';
let harness: ClusterHarness;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'endpoint-syncer-chart-'));
  harness = await ClusterHarness.start(NAMESPACES);
  const { virtual } = harness.clusters;
  const exported = selfContainedKubeconfig(virtual);
  // As vCluster writes it: for its own Pod.
  const written = exported.replace(virtual.url, 'https://localhost:8443');
  for (const [name, config] of Object.entries({ 'vc-my-vcluster': written, exported }))
    await harness.createSecret('team-a', name, 'config', config);
  // Of vCluster's chart.
  await inTeam('create', 'serviceaccount', 'vc-my-vcluster');
  const template = { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'a', image: 'a' }] } };
  const spec = { serviceName: 'a', selector: { matchLabels: { app: 'a' } }, template };
  const metadata = { name: 'my-vcluster', namespace: 'team-a' };
  const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata, spec };
  await harness.apply('host', JSON.stringify(owner));
  mkdirSync(join(home, 'vcluster'));
  const values = 'sync: {toHost: {endpoints: {enabled: false}, endpointSlices: {enabled: false}}}\n';
  writeFileSync(join(home, 'vcluster', 'config.yaml'), values);
});

afterAll(async () => {
  await harness[Symbol.asyncDispose]();
  rmSync(home, { recursive: true });
});

function inTeam(...args: readonly string[]): Promise<string> {
  return harness.kubectl('host', '-n', 'team-a', ...args);
}

interface Release extends AsyncDisposable {
  readonly config: string;
  /** With the addresses and folders of this machine in place of those of the Pod. */
  readonly configHere: string;
  readonly notes: string;
  readonly apiPort: number;
}

/** Renders the chart and applies its ServiceAccount, rights and ConfigMap. */
async function released(values: string): Promise<Release> {
  const args = ['syncer', CHART, '--namespace=team-a', `--values=${values}`];
  const objects = objectsIn(await helm(home, 'template', ...args));
  const applied = objects.filter(({ kind }) => NEEDED.has(kind));
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: applied });
  await harness.apply('host', list);
  const file = join(harness.folder, 'kubeconfig');
  writeFileSync(file, await harness.kubeconfigOf('host', 'team-a', accountOf(applied)));
  const config = configOf(objects);
  const [apiPort = 0] = await freePorts(1);
  rmSync(join(home, 'data'), { recursive: true, force: true });
  return {
    config,
    apiPort,
    configHere: config
      .replace(/(?<=server: )\S+/u, harness.clusters.virtual.url)
      .replace('/etc/vcluster', join(home, 'vcluster'))
      .replace('dataDir: /data', `dataDir: ${join(home, 'data')}`)
      .replace('bindAddress: :9443', `bindAddress: 127.0.0.1:${apiPort}`),
    notes: await helm(home, 'install', ...args, '--dry-run=client', '--hide-notes=false'),
    [Symbol.asyncDispose]: async () => {
      writeFileSync(join(home, 'applied.json'), list);
      await harness.kubectl('host', 'delete', '-f', join(home, 'applied.json'));
    },
  };
}

function accountOf(objects: readonly RenderedObject[]): string {
  const account = objects.find(({ kind }) => kind === 'ServiceAccount');
  return account?.metadata.name ?? 'vc-my-vcluster'; // in the sidecar, that of vCluster
}

describe.each(SETS)('with the values %s', (set) => {
  test('the daemon starts and becomes ready', async () => {
    expect(await startWith(valuesFile(set))).toEqual(READY);
  });
});

const READY = { exitCode: 'ready', errors: null };

/** Of the daemon with the ConfigMap and the ServiceAccount that the chart renders. */
async function startWith(values: string): Promise<{ exitCode: number | 'ready'; errors: unknown }> {
  await using release = await released(values);
  const flags = ['--host-kubeconfig', join(harness.folder, 'kubeconfig')];
  const hasApi = /^managementApi:/mu.test(release.config);
  const whenReady = hasApi ? () => expectFirstKey(release) : undefined;
  const { exitCode, stderr } = await harness.startOutcome(release.configHere, flags, whenReady);
  return { exitCode, errors: stderr.match(/^.*"level":"error".*$/gmu) };
}

/** The commands of the notes print the first key as a kubeconfig, which kubectl can use, and the authority. */
async function expectFirstKey({ notes, apiPort, config }: Release): Promise<void> {
  const { managementApi } = parse(config) as { managementApi: { issuer: string } }; // rendered by our chart
  expect(notes).toContain(`is ${managementApi.issuer}.`);
  const [, command = ''] = /main\.js (keys bootstrap .*) > admin\.kubeconfig$/mu.exec(notes) ?? [];
  const here = command.replace('/etc/endpoint-syncer/config.yaml', join(harness.folder, 'config.yaml'));
  const { stdout } = await run(process.execPath, [MAIN, ...here.split(' ')]);
  const kubeconfig = join(harness.folder, 'admin.kubeconfig');
  writeFileSync(kubeconfig, stdout);
  expect(stdout).toContain(`server: https://127.0.0.1:${apiPort}\n`);
  const kubectl = (...args: readonly string[]) =>
    run(harness.clusters.kubectl, [`--kubeconfig=${kubeconfig}`, ...args]);
  expect((await kubectl('auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}')).stdout).toBe(
    'admin',
  );
  const issuer = await kubectl('get', '--raw', '/.well-known/openid-configuration');
  expect(JSON.parse(issuer.stdout)).toMatchObject({ issuer: managementApi.issuer });
}

const VCLUSTER_VALUES = `sync:
  toHost:
    ingresses: {enabled: true}
    namespaces: {enabled: true, mappings: {byName: {shop: team-shop}}}
    customResources: {gadgets.example.com: {enabled: true}}
    endpoints:
      patches:
        - {path: 'metadata.annotations["a"]', reference: {apiVersion: networking.k8s.io/v1, kind: Ingress}}
        - {path: 'metadata.annotations["b"]', reference: {apiVersion: example.com/v1, kind: Gadget}}
        - {path: 'metadata.annotations["c"]', expression: value + context.vcluster.name}
`;

describe("with the values that migrate prints for vCluster's", () => {
  const migrate = async (output: string): Promise<string> => {
    const file = join(home, 'vcluster.yaml');
    writeFileSync(file, VCLUSTER_VALUES);
    const flags = ['--vcluster-config', file, '--name', 'my-vcluster', '--host-namespace', 'team-a'];
    return (await run(process.execPath, [MAIN, 'migrate', ...flags, '-o', output])).stdout;
  };

  test('the chart grants what the configuration file that it prints needs, and the daemon starts', async () => {
    const printed = join(home, 'values.yaml');
    writeFileSync(printed, await migrate('helm'));
    const { config, values } = JSON.parse(await migrate('json')) as { config: object; values: string };
    const file = join(home, 'config.yaml');
    writeFileSync(file, JSON.stringify(config));
    writeFileSync(join(home, 'vcluster.yaml'), values);
    writeFileSync(join(home, 'vcluster', 'config.yaml'), values);
    const objects = objectsIn(await helm(home, 'template', 'syncer', CHART, '-n=team-a', `-f=${printed}`));
    const needed = await rbac(file);
    expect(granted(objects)).toEqual(granted(needed));
    expect(granted(needed).join()).toContain('team-shop create gadgets.example.com');
    expect(await startWith(printed)).toEqual(READY);
  });
});

test('with the documented values for OpenShift, too', async () => {
  const values = join(home, 'openshift.yaml');
  const documented = documentedBlocks('deploy.md').get('openshift.yaml') ?? '';
  writeFileSync(values, `${documented}config: {endpointSyncer: {name: my-vcluster}}\n`);
  expect(await startWith(values)).toEqual(READY);
});
