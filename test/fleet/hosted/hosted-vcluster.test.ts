/** `--vcluster`: which object of the host is the configuration in use, of a member of a fleet and of a sidecar; or what is missing and what to do. */

import { beforeEach, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { configurationInUse, type LiveConfig } from '../../../src/cli/live/hosted.ts';
import { configurationTextHash } from '../../../src/config-file/source-file.ts';
import { MemoryCluster } from '../../../src/kube/memory-cluster.ts';
import { parseKey, type ObjectMeta } from '../../../src/kube/object.ts';
import { HostedVcluster } from '../../../src/fleet/hosted/hosted-vcluster.ts';
import { LimitedClient } from '../../cli/live/limited-client.ts';

const OFF = 'sync: {toHost: {endpoints: {enabled: false}, endpointSlices: {enabled: false}}}';
const FLEET =
  'endpointSyncer: {fleet: {enabled: true, namespaces: {include: ["team-*"]}}, defaults: {workers: 3, requireService: true}}';

const TEXT = 'endpoint-syncer/configuration-text';

let host: MemoryCluster;

beforeEach(() => {
  host = new MemoryCluster({ name: 'host', now: () => 0 });
  lease({ 'endpoint-syncer/fleet': 'fleet', [TEXT]: configurationTextHash(FLEET) });
  configMap('fleet', 'endpoint-syncer', FLEET);
  configMap('fleet', 'other', 'endpointSyncer: {name: other}');
  workload();
  workload({ name: 'two', replicas: 0 });
  secret('vc-one', { config: 'a kubeconfig' });
  secret('vc-config-one', { 'config.yaml': OFF });
});

test('the layers of the configuration are those of the fleet, and the command line wins', async () => {
  configMap('team-a', 'endpoint-syncer-one', 'endpointSyncer: {requireService: false}');
  const member = await read();
  expect(member).toMatchObject({
    config: {
      name: 'one',
      host: { kubeconfig: 'k', namespace: 'team-a' },
      virtual: { secret: 'vc-one' },
      leaderElection: { enabled: true },
      workers: 3,
      requireService: false,
    },
    warnings: [],
  });
  expect(member.serverOf?.('https://localhost:8443')).toBe('https://one.team-a');
  const set = await read({
    flags: { 'virtual.server': 'https://localhost:1' },
    sets: ['endpointSyncer.workers=7'],
  });
  expect(set.config).toMatchObject({
    workers: 7,
    virtual: { secret: 'vc-one', server: 'https://localhost:1' },
  });
});

test.each<[string, () => void]>([
  ['has no label', () => workload({ labels: { app: 'vcluster' } })],
  ['is in a namespace that the fleet has left', () => fleet(FLEET.replace('team-*', 'b'))],
])('a vCluster that %s has left the fleet, which is a warning', async (_, change) => {
  change();
  const member = await read();
  expect(member.config.name).toBe('one');
  const [warning] = member.warnings ?? [];
  expect(warning?.severity).toBe('warning');
  expect(warning?.message).toContain(
    'no fleet syncs vCluster team-a/one any more: its namespace or its labels are not those of the fleet in the host namespace "fleet" (endpoint-syncer/enabled=true)',
  );
});

const NOT_HERE =
  'no ConfigMap and no Secret of the host namespace "fleet" and "team-a" is the configuration in use, of which Lease "team-a/endpoint-syncer-one" has the hash';

test.each<[string, () => void, string]>([
  [
    'its workload is gone',
    () => remove('statefulsets.apps', 'team-a/one'),
    'the host has no StatefulSet and no Deployment "team-a/one" with the label app=vcluster, and only what a fleet has left of it: name the namespace of the vCluster with -n',
  ],
  [
    'it is asleep',
    () => workload({ replicas: 0 }),
    'vCluster team-a/one is asleep, scaled to 0 replicas: wake it, because its API server has to respond',
  ],
  [
    'it has no access yet',
    () => remove('secrets', 'team-a/vc-one'),
    'vCluster team-a/one is not started yet: Secret team-a/vc-one does not exist yet: vCluster writes it after its start',
  ],
  [
    'its values are invalid',
    () => secret('vc-config-one', { 'config.yaml': OFF.replace('false', 'false, patches: none') }),
    'the fleet cannot use what the host has of vCluster team-a/one, and keeps the configuration before if it has one: Secret team-a/vc-config-one:1:',
  ],
  [
    'a Deployment has its name',
    () => workload({ plural: 'deployments.apps' }),
    'the fleet cannot sync vCluster team-a/one: a StatefulSet and a Deployment of the name "one"',
  ],
  ['the fleet has no ConfigMap', () => remove('configmaps', 'fleet/endpoint-syncer'), NOT_HERE],
  [
    'the ConfigMap of the fleet was changed, and is not in use',
    () => configMap('fleet', 'endpoint-syncer', `${FLEET}\n`),
    NOT_HERE,
  ],
  [
    'a syncer has copied the ConfigMap there',
    () => configMap('fleet', 'endpoint-syncer', FLEET, { labels: { 'vcluster.loft.sh/managed-by': 'one' } }),
    NOT_HERE,
  ],
  [
    'the ConfigMap is a copy without its label',
    () =>
      configMap('fleet', 'endpoint-syncer', FLEET, { annotations: { 'vcluster.loft.sh/object-name': 'a' } }),
    NOT_HERE,
  ],
  [
    'what the Lease means is not the configuration of a fleet',
    () => {
      fleet('endpointSyncer: {name: other}');
    },
    'ConfigMap fleet/endpoint-syncer is not the configuration of a fleet: pass the configuration',
  ],
  [
    'there is no Lease',
    () => remove('leases.coordination.k8s.io', 'team-a/endpoint-syncer-one'),
    'the host has no Lease "team-a/endpoint-syncer-one": vCluster "one" is there, and no daemon',
  ],
  [
    'the Lease has no hash',
    () => lease({ 'endpoint-syncer/fleet': 'fleet' }),
    'Lease "team-a/endpoint-syncer-one" does not say which configuration is in use',
  ],
])('%s: the error says so, and what to do', async (_, change, message) => {
  change();
  await expect(read()).rejects.toThrow(message);
});

const SIDECAR = 'endpointSyncer: {workers: 7, host: {kubeconfig: /pod, context: elsewhere}}';

test.each<[string, () => void]>([
  ['ConfigMap team-a/mine', () => configMap('team-a', 'mine', SIDECAR)],
  ['Secret team-a/mine', () => secret('mine', { 'any.yaml': SIDECAR })],
])('%s is the configuration in use of a sidecar, of a fleet that it has left too', async (source, store) => {
  // What others write there makes no difference.
  configMap('team-a', 'first', 'endpointSyncer: {name: one, workers: 1}');
  configMap('team-a', 'invalid', 'endpointSyncer: [');
  store();
  for (const fleetNamespace of ['', 'fleet']) {
    lease({ 'endpoint-syncer/fleet': fleetNamespace, [TEXT]: configurationTextHash(SIDECAR) });
    expect(await read()).toMatchObject({
      source,
      isHosted: true,
      config: { name: 'one', workers: 7, host: { kubeconfig: 'k', context: '', namespace: 'team-a' } },
    });
  }
});

test('the configuration of the fleet is invalid: the error names the ConfigMap and the field', async () => {
  fleet(FLEET.replace('workers: 3', 'workers: none'));
  const problem = { file: 'ConfigMap fleet/endpoint-syncer', path: 'endpointSyncer.defaults.workers' };
  await expect(read()).rejects.toMatchObject({ problems: [problem] });
});

test.each([
  ['leases', 'get leases in the host namespace "team-a"'],
  ['statefulsets', 'list statefulsets in the host namespace "team-a"'],
  ['secrets', 'get secrets in the host namespace "team-a"'],
  ['configmaps', 'list configmaps in the host namespace "fleet"'],
])('without rights to read %s, the error names them', async (plural, rights) => {
  await expect(read({}, plural)).rejects.toThrow(`this needs the rights to ${rights}; without them, pass `);
});

function read(
  { flags = {}, sets = [] }: { flags?: Record<string, string>; sets?: string[] } = {},
  forbidden = '',
): Promise<LiveConfig> {
  const client = new LimitedClient(host, forbidden);
  const input = {
    env: { VCLUSTER_NAME: 'x' },
    flags: { 'host.kubeconfig': 'k', ...flags },
    sets,
  };
  return configurationInUse(
    new HostedVcluster({ host: client, description: 'context x' }, { namespace: 'team-a', name: 'one' }),
    input,
  );
}

function lease(annotations: Record<string, string>): void {
  host.load('leases.coordination.k8s.io', {
    metadata: { name: 'endpoint-syncer-one', namespace: 'team-a', annotations },
  });
}

function workload({
  name = 'one',
  labels = { app: 'vcluster', 'endpoint-syncer/enabled': 'true' },
  replicas = 1,
  plural = 'statefulsets.apps',
}: {
  name?: string;
  labels?: Record<string, string>;
  replicas?: number;
  plural?: string;
} = {}): void {
  host.load(plural, { metadata: { name, namespace: 'team-a', labels }, spec: { replicas } });
}

function configMap(namespace: string, name: string, text: string, metadata: Partial<ObjectMeta> = {}): void {
  host.load('configmaps', { metadata: { name, namespace, ...metadata }, data: { 'config.yaml': text } });
}

/** Its configuration in use. */
function fleet(text: string): void {
  lease({ 'endpoint-syncer/fleet': 'fleet', [TEXT]: configurationTextHash(text) });
  configMap('fleet', 'endpoint-syncer', text);
}

function secret(name: string, texts: Record<string, string>): void {
  const entries = Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
  host.load('secrets', {
    metadata: { name, namespace: 'team-a' },
    data: Object.fromEntries(entries) as JsonObject, // texts
  });
}

function remove(plural: string, key: string): void {
  host.delete(plural, parseKey(key), { manager: 'test' });
}
