/** The Helm chart: renders the golden files, grants the rights that `rbac` prints, and is installed on a real kube-apiserver. */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { PolicyRule } from '../../../src/fleet/granted-rights.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { kustomizeFiles, KUSTOMIZE_NAMESPACE } from '../../../scripts/kustomize.ts';
import { selfContainedKubeconfig } from '../clusters.ts';
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
import { documentedBlocks } from '../documented-blocks.ts';
import { ClusterHarness } from './cluster-harness.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const GOLDEN = join(ROOT, 'test', 'charts', 'golden');

let home = '';
/** Go builds helm once. */
const BUILD_MAX_MS = 15 * 60_000;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'endpoint-syncer-helm-'));
  await helm(home, 'version');
}, BUILD_MAX_MS);
afterAll(() => rmSync(home, { recursive: true }));

function render(...args: readonly string[]): Promise<string> {
  return helm(home, 'template', 'syncer', CHART, '--namespace', 'team-a', ...args);
}

async function renderSet(name: string, ...args: readonly string[]): Promise<readonly RenderedObject[]> {
  return objectsIn(await render('--values', valuesFile(name), ...args));
}

/** What `rbac` prints for the configuration in the ConfigMap. */
async function neededBy(config: string): Promise<readonly RenderedObject[]> {
  const file = join(home, 'config.yaml');
  writeFileSync(file, config.replace(/^.*vclusterConfig:.*\n/gmu, '')); // the file is in the Pod only
  return rbac(file);
}

describe.each(SETS)('with the values %s, the chart', (name) => {
  test('passes helm lint', async () => {
    const args = ['lint', CHART, '--strict', '--values', valuesFile(name)];
    expect(await helm(home, ...args)).toContain('0 chart(s) failed');
  });

  test('renders the golden file', async () => {
    const text = await render('--values', valuesFile(name));
    const version = /^version: (.*)$/mu.exec(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'))?.[1] ?? '';
    await expect(text.replaceAll(version, 'VERSION')).toMatchFileSnapshot(join(GOLDEN, `${name}.yaml`));
  });

  test('renders a configuration that is valid and grants what it needs', async () => {
    const objects = await renderSet(name);
    expect(granted(objects)).toEqual(granted(await neededBy(configOf(objects))));
    expect(granted(objects).length).toBeGreaterThan(5);
  });
});

test.each([
  ['mappings', 'keys'],
  ['fleet', 'host-a'],
])(
  'with the values %s, the rights to a key store in the namespace %s are added to those on copies',
  async (set, namespace) => {
    const api = 'config.managementApi';
    const store = `${api}.enabled=true,${api}.store.driver=kubernetes,${api}.store.namespace=${namespace}`;
    const objects = await renderSet(set, '--set', store);
    // Two rules may grant the same right.
    const rights = [...new Set(granted(objects))];
    expect(rights).toEqual(granted(await neededBy(configOf(objects))));
    expect(rights).toContain(`Role ${namespace} create secrets./*`);
  },
);

test('values that the schema does not know are refused', async () => {
  await expect(renderSet('minimal', '--set', 'config.endpointSyncer.workerz=3')).rejects.toThrow('workerz');
  await expect(renderSet('minimal', '--set', 'replicaCounts=3')).rejects.toThrow('replicaCounts');
});

test('values that cannot work are refused', async () => {
  const other = renderSet('minimal', '--set', 'config.endpointSyncer.host.namespace=team-b');
  await expect(other).rejects.toThrow('install the release into "team-b"');
  const keys = renderSet('keys', '--set', 'replicaCount=2');
  await expect(keys).rejects.toThrow('store.driver must be kubernetes');
  await expect(render()).rejects.toThrow('config.endpointSyncer.name is required');
  await expect(render('--set', 'config.endpointSynzer.name=a')).rejects.toThrow(
    'the keys of config are endpointSyncer, endpointSynzer',
  );
});

test('helm lint passes without values', async () => {
  expect(await helm(home, 'lint', CHART, '--strict')).toContain('0 chart(s) failed');
});

describe('values that cannot work in the Pod are refused, with the value to use instead', () => {
  const syncer = 'config.endpointSyncer';
  const api = 'config.managementApi';
  test.each([
    [`${syncer}.http.bindAddress=127.0.0.1:8080`, 'set it to ":8080"'],
    [`${syncer}.http.bindAddress=[::1]:8080`, 'set it to ":8080"'],
    [`${syncer}.http.bindAddress=:8081`, 'set it to ":8080"'],
    [`${syncer}.vclusterConfig=vcluster.yaml`, 'set vclusterConfigSecret to the Secret with'],
    [`${syncer}.virtual.kubeconfig=virtual.kubeconfig`, `set ${syncer}.virtual.secret`],
    [`sidecar=true,${syncer}.virtual.kubeconfig=virtual.kubeconfig`, `set ${syncer}.virtual.secret`],
    [`${syncer}.host.kubeconfig=/root/.kube/config`, 'the Pod uses its ServiceAccount'],
    [`${api}.enabled=true,${api}.bindAddress=127.0.0.1:8443`, 'set it to ":9443"'],
    [`${api}.enabled=true,${api}.dataDir=./data`, 'name one below /data'],
    [`${api}.enabled=true,${api}.bootstrapKeyFile=first.key`, 'name one below /data'],
    [`${api}.enabled=true,${api}.tls.certFile=/tls/tls.crt,${api}.tls.keyFile=/tls/tls.key`, 'below /data'],
  ])('%s', async (values, message) => {
    await expect(renderSet('minimal', '--set', values)).rejects.toThrow(message);
  });

  test.each([
    `${syncer}.http.bindAddress=0.0.0.0:8080`,
    `sidecar=true,${syncer}.virtual.kubeconfig=/data/pki/admin.conf`,
    `${api}.bindAddress=127.0.0.1:8443`,
    `${api}.enabled=true,${api}.bindAddress=:9443,${api}.bootstrapKeyFile=/data/first.key`,
  ])('%s is not', async (values) => {
    expect((await renderSet('minimal', '--set', values)).length).toBeGreaterThan(3);
  });
});

test.each([
  ['replicaCount=2', "those of vCluster's StatefulSet"],
  ['extraArgs={--log-level=debug}', 'extraArgs is a value of a Deployment'],
  ['env[0].name=A', 'env is a value of a Deployment'],
  ['nodeSelector.disk=ssd', 'nodeSelector is a value'],
  ['persistence.enabled=true', 'persistence.enabled is a value'],
  ['networkPolicy.enabled=true', 'networkPolicy.enabled is a value'],
])('%s is refused for a sidecar, which would be without it', async (values, message) => {
  await expect(renderSet('minimal', '--set', `sidecar=true,${values}`)).rejects.toThrow(message);
});

describe('values that make no sense with a fleet are refused, with what to do', () => {
  const syncer = 'config.endpointSyncer';
  test.each([
    ['sidecar=true', 'runs in a Pod of its own'],
    ['vclusterConfigSecret=vc-config-a', 'the Secret vc-config-NAME of its vCluster: remove it'],
    [`${syncer}.name=my-vcluster`, `${syncer}.name is a setting of one virtual cluster`],
    [`${syncer}.virtual.secret=vc-a`, `${syncer}.virtual is a setting of one virtual cluster`],
    [`${syncer}.requireService=true`, `move it to ${syncer}.defaults`],
    ['config.sync.toHost.services.enabled=true', 'in the values of each vCluster'],
    [`${syncer}.fleet.namespaces.include={host-a,team-a}`, 'install the release into another namespace'],
    [`${syncer}.fleet.namespaces.include={team-*}`, 'add "team-a" to exclude'],
  ])('%s', async (values, message) => {
    await expect(renderSet('fleet', '--set', values)).rejects.toThrow(message);
  });

  test.each(['rbac.create=true', `${syncer}.fleet.namespaces.exclude={team-a}`])(
    '%s is not',
    async (values) => {
      expect((await renderSet('fleet', '--set', values)).length).toBeGreaterThan(3);
    },
  );
});

test.each([
  ['fleet', ['Role host-a create endpoints/restricted./*', 'Role team-shop create endpoints/restricted./*']],
  ['fleet-patterns', ['ClusterRole  create endpoints/restricted./*']],
  ['minimal', ['Role team-a create endpoints/restricted./*']],
])('with the values %s, additional rules are those where copies are written', async (set, expected) => {
  const rule = { apiGroups: [''], resources: ['endpoints/restricted'], verbs: ['create'] };
  const objects = await renderSet(set, `--set-json=rbac.extraRules=${JSON.stringify([rule])}`);
  expect(granted(objects).filter((line) => line.includes('restricted'))).toEqual(expected);
});

test.each(['vc-my-vcluster', ''])('with virtual.secret %j, the URL is the default', async (secret) => {
  const set = `config.endpointSyncer.virtual.secret=${secret}`;
  const virtual = parse(configOf(await renderSet('minimal', '--set', set))) as object;
  expect(virtual).toMatchObject({
    endpointSyncer: { virtual: { secret: 'vc-my-vcluster', server: 'https://my-vcluster.team-a' } },
  });
});

test('the Pods restart for settings that are not reloaded, and for no others', async () => {
  const checksum = async (...args: string[]) =>
    /checksum\/config: (\w+)/u.exec(await render('--values', valuesFile('minimal'), ...args))?.[1];
  const before = await checksum();
  expect(before).toMatch(/^[0-9a-f]{64}$/u);
  const patches = [{ path: 'metadata.annotations.note', expression: 'value' }];
  const live = [
    `--set-json=config.sync.toHost.endpoints.patches=${JSON.stringify(patches)}`,
    '--set=config.endpointSyncer.selector.matchLabels.app=web',
  ];
  expect(await checksum(...live)).toBe(before);
  expect(await checksum('--set=config.endpointSyncer.workers=3')).not.toBe(before);
});

test('the Pods of a fleet restart for other settings than what its members get, and which ones are selected', async () => {
  const checksum = async (...args: string[]) =>
    /checksum\/config: (\w+)/u.exec(await render('--values', valuesFile('fleet'), ...args))?.[1];
  const before = await checksum();
  const syncer = 'config.endpointSyncer';
  const live = [
    `${syncer}.defaults.workers=3`,
    `${syncer}.fleet.selector.matchLabels.app=web`,
    `${syncer}.fleet.limits.cacheBytes=64Mi`,
    ...['objects', 'hostRequests', 'hostWrites', 'membersPerNamespace'].map(
      (limit) => `${syncer}.fleet.limits.${limit}=200`,
    ),
  ];
  expect(await checksum('--set', live.join(','))).toBe(before);
  const others = ['fleet.namespaces.exclude={host-a}', 'fleet.limits.sandboxes=2'];
  for (const other of others) expect(await checksum('--set', `${syncer}.${other}`)).not.toBe(before);
});

test('names of objects have at most 63 characters, however long the name of the release is', async () => {
  const long = 'a'.repeat(53); // what Helm allows
  const args = ['--namespace', 'team-a', '--values', valuesFile('replicas')];
  const objects = objectsIn(await helm(home, 'template', long, CHART, ...args));
  expect(objects.length).toBeGreaterThan(8);
  expect(Math.max(...objects.map(({ metadata }) => metadata.name.length))).toBeLessThanOrEqual(63);
});

test('with the documented values for OpenShift, the project chooses the user, and the Role has the rights', async () => {
  const values = join(home, 'openshift.yaml');
  writeFileSync(values, documentedBlocks('deploy.md').get('openshift.yaml') ?? '');
  const text = await render('--values', values, '--set', 'config.endpointSyncer.name=my-vcluster');
  expect(text).not.toMatch(/runAsUser|runAsGroup|fsGroup/u);
  expect(text).toContain('runAsNonRoot: true');
  for (const right of ['endpoints/restricted.', 'endpointslices/restricted.discovery.k8s.io'])
    expect(granted(objectsIn(text))).toContain(`Role team-a create ${right}/*`);
});

test('deploy/kustomize is what the chart renders (node scripts/write-kustomize.ts)', async () => {
  const folder = join(ROOT, 'deploy', 'kustomize');
  const files = await kustomizeFiles((values) =>
    helm(home, 'template', 'endpoint-syncer', CHART, '-n', KUSTOMIZE_NAMESPACE, '--set', values.join(',')),
  );
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const present = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  expect(new Set(present)).toEqual(new Set([...files.keys()].map((path) => join(folder, path))));
  for (const [path, text] of files)
    expect([path, readFileSync(join(folder, path), 'utf8')]).toEqual([path, text]);
});

describe('on a real kube-apiserver', () => {
  let harness: ClusterHarness;
  let release: readonly string[] = [];

  beforeAll(async () => {
    // Roles are granted in namespaces that exist: those of the mappings, too.
    harness = await ClusterHarness.start(['team-a', 'keys', 'team-shop', 'host-a']);
    for (const kind of ['ServiceMonitor', 'PrometheusRule']) {
      await harness.apply('host', JSON.stringify(monitoringDefinition(kind)));
    }
    const { host, virtual } = harness.clusters;
    await harness.createSecret('team-a', 'vc-my-vcluster', 'config', selfContainedKubeconfig(virtual));
    release = [
      'syncer',
      CHART,
      '--namespace=team-a',
      `--kubeconfig=${host.kubeconfigPath}`,
      `--values=${valuesFile('minimal')}`,
      `--set=config.endpointSyncer.virtual.server=${virtual.url}`,
      '--set=config.endpointSyncer.leaderElection.enabled=true',
    ];
  });

  afterAll(async () => {
    await harness[Symbol.asyncDispose]();
  });

  const inTeam = (...args: readonly string[]): Promise<string> =>
    harness.kubectl('host', '-n', 'team-a', ...args);

  /** Starts the daemon with the ConfigMap and the ServiceAccount of the release. */
  async function start(whenReady?: () => Promise<unknown>) {
    const path = 'jsonpath={.data.config\\.yaml}';
    const config = await inTeam('get', 'configmap', 'syncer-endpoint-syncer', '-o', path);
    const kubeconfig = join(harness.folder, 'host.kubeconfig');
    writeFileSync(kubeconfig, await harness.kubeconfigOf('host', 'team-a', 'syncer-endpoint-syncer'));
    const [port] = await freePorts(1);
    const here = config
      .replace('bindAddress: :9443', `bindAddress: 127.0.0.1:${port}`)
      .replace('dataDir: /data', `dataDir: ${join(harness.folder, 'data')}`);
    return harness.startOutcome(here, ['--host-kubeconfig', kubeconfig], whenReady);
  }

  const copyUid = () =>
    inTeam('get', 'endpoints', 'web-x-default-x-my-vcluster', '-o', 'jsonpath={.metadata.uid}');

  test.each(SETS)('%s is accepted', async (name) => {
    const printed = await harness.apply(
      'host',
      await render('--values', valuesFile(name)),
      '--dry-run=server',
    );
    expect(printed).toContain('configmap/syncer-endpoint-syncer serverside-applied (server dry run)');
  });

  test.each(['deployment', 'sidecar'])('the overlay %s of deploy/kustomize is accepted', async (overlay) => {
    const folder = join(ROOT, 'deploy', 'kustomize', 'overlays', overlay);
    const text = await harness.kubectl('host', 'kustomize', folder);
    expect(await harness.apply('host', text, '--dry-run=server')).toContain(
      'configmap/endpoint-syncer serverside',
    );
    const config = configOf(objectsIn(text));
    expect(granted(objectsIn(text))).toEqual(granted(await neededBy(config)));
  });

  test('install, upgrade and uninstall: the daemon is ready, and leaves what docs/upgrade.md says', async () => {
    await helm(home, 'install', ...release);
    await harness.apply(
      'virtual',
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Endpoints',
        metadata: { name: 'web', namespace: 'default' },
        subsets: [{ addresses: [{ ip: '192.0.2.7' }] }],
      }),
    );
    const isCopied = () => eventually(copyUid, (found) => found !== '');
    expect(await start(isCopied)).toMatchObject({ exitCode: 'ready' });
    const uid = await copyUid();

    const changed = ['resources.limits.memory=1Gi', 'config.endpointSyncer.workers=5'];
    await helm(home, 'upgrade', ...release, '--set', changed.join(','));
    expect(await start()).toMatchObject({ exitCode: 'ready' });
    expect(await copyUid()).toBe(uid);

    const { kubeconfigPath } = harness.clusters.host;
    await helm(home, 'uninstall', 'syncer', '--namespace=team-a', `--kubeconfig=${kubeconfigPath}`);
    expect(await copyUid()).toBe(uid);
    const kinds =
      'deployments,services,configmaps,secrets,serviceaccounts,roles,rolebindings,persistentvolumeclaims,leases,endpoints';
    const left = await inTeam('get', kinds, '-o', 'name');
    expect(left.trim().split('\n').toSorted()).toEqual([
      'endpoints/web-x-default-x-my-vcluster',
      'lease.coordination.k8s.io/endpoint-syncer-my-vcluster',
      'secret/vc-my-vcluster',
    ]);
  });

  test(
    'without one of the rules, the start fails and names the missing right',
    { timeout: 600_000 },
    async () => {
      const managementApi = {
        enabled: true,
        store: { driver: 'kubernetes', namespace: 'keys' },
        delegatedAuth: true,
      };
      const kinds = ['config.sync.toHost.endpointSlices.enabled=true', 'config.endpointSyncer.services=sync'];
      const api = `--set-json=config.managementApi=${JSON.stringify(managementApi)}`;
      await helm(home, 'install', ...release, `--set=${kinds.join(',')}`, api);
      expect(await start()).toMatchObject({ exitCode: 'ready' });

      const outcomes: Outcome[] = [];
      for (const [kind, name, namespace] of [
        ['role', 'syncer-endpoint-syncer', 'team-a'],
        ['role', 'syncer-endpoint-syncer:team-a', 'keys'],
        ['clusterrole', 'syncer-endpoint-syncer:team-a', ''],
      ] as const) {
        outcomes.push(...(await startsWithoutEachRule(kind, name, namespace)));
      }
      expect(outcomes.map(({ resource }) => resource)).toEqual([
        'endpoints',
        'endpointslices',
        'services',
        'secrets',
        'leases',
        'leases',
        'events',
        'secrets',
        'tokenreviews',
        'subjectaccessreviews',
      ]);
      const failed = { exitCode: 1, isNamed: true };
      // Events report a configuration that is not applied; the sync does not depend on them.
      const ready = { exitCode: 'ready', isNamed: false };
      expect(outcomes).toEqual(
        outcomes.map(({ resource }) => ({ resource, ...(resource === 'events' ? ready : failed) })),
      );
    },
  );

  /** Starts the daemon once without each rule of the role, which is complete again at the end. */
  async function startsWithoutEachRule(kind: string, name: string, namespace: string): Promise<Outcome[]> {
    const where = namespace === '' ? [] : ['-n', namespace];
    const setRules = (rules: readonly PolicyRule[]) =>
      harness.kubectl('host', ...where, 'patch', kind, name, '--type=merge', '-p', JSON.stringify({ rules }));
    const text = await harness.kubectl('host', ...where, 'get', kind, name, '-o', 'json');
    const { rules = [] } = JSON.parse(text) as RenderedObject; // requested as JSON
    const outcomes: Outcome[] = [];
    for (const rule of rules) {
      await setRules(rules.filter((other) => other !== rule));
      const { exitCode, stderr } = await start();
      const resource = rule.resources[0] ?? '';
      // The kubeconfig Secret is read before the rights are checked: the API server's message names it.
      const isNamed = [`${rule.verbs[0]} ${resource}`, `${rule.verbs[0]} resource \\"${resource}\\"`].some(
        (text) => stderr.includes(text),
      );
      outcomes.push({ resource, exitCode, isNamed });
    }
    await setRules(rules);
    return outcomes;
  }
});

/** A minimal definition of a kind of the Prometheus operator, so that the API server accepts its objects. */
function monitoringDefinition(kind: string) {
  const group = 'monitoring.coreos.com';
  const [singular, plural] = [kind.toLowerCase(), `${kind.toLowerCase()}s`];
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { kind, singular, plural },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  };
}

interface Outcome {
  readonly resource: string;
  readonly exitCode: unknown;
  /** A line of the log names the right. */
  readonly isNamed: boolean;
}
