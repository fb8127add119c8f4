/** A fleet of eight members, each a kube-apiserver behind hand-made Secrets, on one real host with its controllers: the program as a process. */

import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { textAt } from '../../src/base/json.ts';
import { asJson, type KubeObject } from '../../src/kube/object.ts';
import { Daemon } from '../scenarios/daemon.ts';
import { TestCluster } from '../scenarios/cluster-client.ts';
import { capturedRun } from '../cli/captured-run.ts';
import { annotating, FLEET_NAMESPACE, type FleetWorld, type Installed } from '../scenarios/fleet-world.ts';
import { eventually } from '../support/eventually.ts';
import { freePorts } from '../support/free-ports.ts';
import { Guardian } from '../support/guardian.ts';
import { selfContainedKubeconfig, type RealClusters } from './clusters.ts';
import { startRealFleet } from './real-fleet.ts';

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];

const stack = new AsyncDisposableStack();
let serverOf: (index: number) => RealClusters;
let world: FleetWorld;
let fleet: Daemon;
let members: Installed[] = [];

beforeAll(async () => {
  ({ world, server: serverOf } = await startRealFleet(stack, NAMES.length));
  await world.host.ensureNamespace(FLEET_NAMESPACE);
  for (const [index, name] of NAMES.entries())
    members.push(
      await world.install(name, {
        index,
        values: annotating('first'),
        ...(index === 2 && { access: { config: await accessOf(2, 'before') } }),
      }),
    );
  const [port] = await freePorts(1);
  const httpUrl = `http://127.0.0.1:${port}`;
  world.writeConfig({ http: { bindAddress: `127.0.0.1:${port}` } });
  const guardian = stack.use(new Guardian());
  fleet = stack.use(
    new Daemon({ args: ['--config', join(world.directory, 'fleet.yaml')], httpUrl, guardian }),
  );
  await fleet.ready();
}, 300_000);

afterAll(() => stack.disposeAsync());

function member(name: string): Installed {
  const found = members.find((one) => one.name === name);
  if (found === undefined) throw new Error(`there is no member ${name}`);
  return found;
}

/** A kubeconfig with the token of a ServiceAccount that may do everything. Without the account, the token is worth nothing. */
async function accessOf(index: number, account: string): Promise<string> {
  const { virtual } = serverOf(index);
  await using cluster = new TestCluster(virtual.kubeconfigPath);
  const metadata = { name: account, namespace: 'default' };
  await cluster.ensureNamespace('default');
  await cluster.create('ServiceAccount', { metadata });
  await cluster.create('ClusterRoleBinding', {
    metadata: { name: account },
    subjects: [{ kind: 'ServiceAccount', name: account, namespace: 'default' }],
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
  });
  const path = `/api/v1/namespaces/default/serviceaccounts/${account}/token`;
  const { body } = await cluster.request('POST', path, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: 3600 },
  });
  return selfContainedKubeconfig(virtual, textAt(body, 'status', 'token'));
}

/** The kubeconfig in the Secret of a member. */
async function currentAccess({ namespace, name }: Installed): Promise<string> {
  const secret = await world.host.get('Secret', namespace, `vc-${name}`);
  return Buffer.from(textAt(asJson(secret), 'data', 'config'), 'base64').toString();
}

test('eight members join, each with its own copies, Lease and series', async () => {
  for (const one of members) await world.createEndpoints(one, 'web', '10.1.0.1');
  for (const one of members) {
    const copy = await world.whenCopied(one, 'web', '10.1.0.1');
    expect(copy.metadata.annotations?.['example.com/by']).toBe('first');
    await world.whenState(fleet, one, 'joined');
    await fleet.whenMetric('leader_election_master_status', (leads) => leads === 1, { vcluster: one.key });
  }
  await fleet.whenMetric('endpoint_syncer_fleet_members', (joined) => joined === NAMES.length, {
    state: 'joined',
  });
});

test('a change of values is applied to its member', async () => {
  await world.setValues(member('b'), annotating('second'));
  await world.host.when(
    'Endpoints',
    world.hostKey(member('b'), 'web'),
    (copy) => copy.metadata.annotations?.['example.com/by'] === 'second',
  );
  const other = await world.whenCopied(member('a'), 'web', '10.1.0.1');
  expect(other.metadata.annotations?.['example.com/by']).toBe('first');
});

test('rotated access is used when the server rejects the one before', async () => {
  const one = member('c');
  const before = stack.use(new TestCluster(world.file('before.kubeconfig', await currentAccess(one))));
  const namespaces = async (): Promise<number> => (await before.request('GET', '/api/v1/namespaces')).status;
  expect(await namespaces()).toBe(200);
  await world.setSecret(one.namespace, 'vc-c', { config: await accessOf(2, 'after') });
  await one.virtual.delete('ServiceAccount', 'default', 'before');
  await eventually(namespaces, (status) => status === 401, { what: 'the end of the token' });
  // Without its watches, the member needs a credential.
  await serverOf(2).stop('virtual');
  await serverOf(2).start('virtual');
  await world.createEndpoints(one, 'rotated', '10.1.0.2');
  await world.whenCopied(one, 'rotated', '10.1.0.2');
});

test('an API server that is killed concerns its member alone, which goes on when it is back', async () => {
  const [one, other] = [member('d'), member('e')];
  await serverOf(3).stop('virtual');
  await world.createEndpoints(other, 'later', '10.1.0.3');
  await world.whenCopied(other, 'later', '10.1.0.3');
  expect((await fleet.get('/readyz')).status).toBe(200);
  await serverOf(3).start('virtual');
  await world.createEndpoints(one, 'later', '10.1.0.4');
  await world.whenCopied(one, 'later', '10.1.0.4');
});

test('a vCluster sleeps with its API server, and wakes', async () => {
  const one = member('f');
  await world.scale(one, 0);
  await world.whenState(fleet, one, 'asleep');
  await serverOf(5).stop('virtual');
  await world.whenCopied(one, 'web', '10.1.0.1');
  // Its series are gone once its sync has stopped.
  const ended = (requests: number): boolean => requests === 0;
  expect(await fleet.whenMetric('rest_client_requests_total', ended, { vcluster: one.key })).toBe(0);
  await world.scale(one, 1);
  await world.whenState(fleet, one, 'starting');
  await serverOf(5).start('virtual');
  await world.createEndpoints(one, 'awake', '10.1.0.5');
  await world.whenCopied(one, 'awake', '10.1.0.5');
});

test('a vCluster that leaves keeps its copies, and those of a deleted one are deleted', async () => {
  const [left, deleted] = [member('g'), member('h')];
  await world.setWorkload(left, { labels: { 'endpoint-syncer/enabled': 'false' } });
  await world.whenGone(fleet, left);
  await world.uninstall(deleted);
  await world.whenNoCopy(deleted, 'web');
  await world.whenGone(fleet, deleted);
  expect(await world.whenCopied(left, 'web', '10.1.0.1')).toBeDefined();
});

test('invalid values of one vCluster are said of that one', async () => {
  await world.setValues(member('a'), 'sync: {');
  expect(await world.whenState(fleet, member('a'), 'invalid')).toContain('Secret team-a/vc-config-a:1:');
  await world.createEndpoints(member('b'), 'last', '10.1.0.6');
  await world.whenCopied(member('b'), 'last', '10.1.0.6');
  const { namespace } = member('a');
  const isAbout = (event: KubeObject): boolean =>
    event['reason'] === 'NotJoined' &&
    textAt(asJson(event), 'note').startsWith('Not synced, invalid: Secret team-a/vc-config-a');
  const events = await eventually(
    () => world.host.list('Event', namespace),
    (all) => all.some(isAbout),
    { what: 'an Event on the workload' },
  );
  expect(events.filter(isAbout).length).toBeGreaterThan(0);
});

test('status --vcluster says from the host that a member is limited, until the limit is raised', async () => {
  const one = member('e');
  const http = { bindAddress: new URL(fleet.httpUrl).host };
  world.writeConfig({ http, fleet: { limits: { objects: 100 } } });
  await world.publishConfig();
  for (let at = 0; at < 110; at++) await world.createEndpoints(one, `many-${at}`, '10.1.0.7');
  await world.whenState(fleet, one, 'limited');
  const host = ['--host-kubeconfig', world.host.kubeconfigPath, '-n', one.namespace];
  const status = async (): Promise<string> => {
    const { code, err } = await capturedRun(['status', '--vcluster', one.name, ...host]);
    if (code !== 0) throw new Error(err);
    return err;
  };
  const warning =
    /^warning: vCluster team-e\/e is in the state limited: at least \d+ objects .* or raise the limit$/mu;
  expect(await eventually(status, (err) => warning.test(err), { what: 'the note on the Lease' })).toMatch(
    warning,
  );
  world.writeConfig({ http });
  await world.publishConfig();
  await world.whenState(fleet, one, 'joined');
  await world.whenCopied(one, 'many-109', '10.1.0.7');
  await eventually(status, (err) => !err.includes('is in the state'), { what: 'the end of the note' });
});

test('the fleet ends with SIGTERM, its copies stay, and the Leases are released', async () => {
  await fleet.stop();
  expect(fleet.unexpectedLines([])).toEqual([]);
  members = [];
  const lease = await world.host.get('Lease', 'team-b', 'endpoint-syncer-b');
  expect(textAt(asJson(lease), 'spec', 'holderIdentity')).toBe('');
});
