/** Two whole vClusters of one name as members of one fleet: the program as a process with the host's kubeconfig, and the documented values. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { textAt, type JsonObject } from '../../src/base/json.ts';
import { asJson, type KubeObject } from '../../src/kube/object.ts';
import { documentedBlocks } from '../e2e/documented-blocks.ts';
import type { TestCluster } from '../scenarios/cluster-client.ts';
import { Daemon } from '../scenarios/daemon.ts';
import { endpoints, ipsOf, service, subset } from '../scenarios/objects.ts';
import { eventually } from '../support/eventually.ts';
import { Guardian } from '../support/guardian.ts';
import { VclusterHost } from './host.ts';
import { TEAM_A, TEAM_B, VCLUSTER } from './pod.ts';
import { copiesOf, WholeVcluster } from './vcluster.ts';

const OWNER = 'example.com/owner';
/** The copy of `default/db`, whose Service vCluster itself syncs. */
const COPY = `db-x-default-x-${VCLUSTER}`;
/** Label, vCluster's own sync off, and a patch that prepends `team-` to the owner. */
const MEMBER = parse(documentedBlocks('fleet.md').get('vcluster.yaml') ?? '') as JsonObject; // our own page
const NO_MEMBER = { controlPlane: { statefulSet: { labels: { 'endpoint-syncer/enabled': 'false' } } } };
const FLEET_NAMESPACE = 'endpoint-syncer';
const HTTP = '127.0.0.1:8080'; // the network namespace is the test's own

const stack = new AsyncDisposableStack();
let host: TestCluster;
let a: WholeVcluster;
let b: WholeVcluster;
let fleet: Daemon;

beforeAll(async () => {
  const cluster = stack.use(await VclusterHost.start());
  host = cluster.client;
  const started = async (...of: Parameters<typeof WholeVcluster.start>): Promise<WholeVcluster> =>
    stack.use(await WholeVcluster.start(...of));
  [a, b] = await Promise.all([
    started(cluster, TEAM_A, MEMBER),
    started(cluster, TEAM_B, MEMBER, patches([])),
  ]);
  for (const vcluster of [a, b]) {
    await using virtual = await vcluster.virtual();
    await virtual.create('Service', service('default/db'));
    await virtual.create('Endpoints', endpoints('default/db', { annotations: { [OWNER]: 'shop' } }));
  }
  await host.ensureNamespace(FLEET_NAMESPACE);
  fleet = await startFleet();
});

afterAll(() => stack.disposeAsync());

async function startFleet(): Promise<Daemon> {
  const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-fleet-'));
  stack.defer(() => rmSync(folder, { recursive: true }));
  const endpointSyncer = {
    host: { kubeconfig: host.kubeconfigPath, namespace: FLEET_NAMESPACE },
    http: { bindAddress: HTTP },
    log: { format: 'json' },
    fleet: { enabled: true, namespaces: { include: [TEAM_A.namespace, TEAM_B.namespace] } },
    defaults: { requireService: true },
  };
  const config = join(folder, 'fleet.yaml');
  writeFileSync(config, stringify({ endpointSyncer }));
  const guardian = stack.use(new Guardian());
  return new Daemon({ args: [`--config=${config}`], httpUrl: `http://${HTTP}`, guardian }).ready();
}

/** Instead of the documented ones. */
function patches(list: readonly JsonObject[]): JsonObject {
  return { sync: { toHost: { endpoints: { patches: [...list] } } } };
}

async function setIp(vcluster: WholeVcluster, ip: string): Promise<void> {
  await using virtual = await vcluster.virtual();
  await virtual.merge('Endpoints', ['default', 'db'], { subsets: [subset(ip)] });
}

function copyOf({ namespace }: WholeVcluster): Promise<KubeObject> {
  return host.get('Endpoints', namespace, COPY);
}

/** Waits for the copy with this address and owner. */
function whenCopied({ namespace }: WholeVcluster, ip: string, owner: string): Promise<KubeObject> {
  return host.when(
    'Endpoints',
    [namespace, COPY],
    (copy) => ipsOf(copy).join() === ip && copy.metadata.annotations?.[OWNER] === owner,
  );
}

async function whenMembers(count: number): Promise<void> {
  await eventually(
    async () => [
      await fleet.metric('endpoint_syncer_fleet_members'),
      await fleet.metric('endpoint_syncer_fleet_members', { state: 'joined' }),
    ],
    ([all, joined]) => all === count && joined === count,
    { what: `${count} members, all of them joined` },
  );
}

async function leaseHolder({ namespace }: WholeVcluster): Promise<string> {
  return textAt(
    asJson(await host.get('Lease', namespace, `endpoint-syncer-${VCLUSTER}`)),
    'spec',
    'holderIdentity',
  );
}

test('both join by their values, each with its own copies, patches and Lease', async () => {
  await whenMembers(2);
  await whenCopied(a, '10.1.0.1', 'team-shop');
  await whenCopied(b, '10.1.0.1', 'shop');
  for (const vcluster of [a, b]) {
    expect(await copiesOf(vcluster, 'Endpoints')).toContain(COPY);
    expect(await copiesOf(vcluster, 'Service')).toContain(COPY);
    expect(await leaseHolder(vcluster)).not.toBe('');
  }
});

test('an update in one is written to its own namespace alone', async () => {
  const { resourceVersion } = (await copyOf(a)).metadata;
  await setIp(b, '10.1.0.2');
  await whenCopied(b, '10.1.0.2', 'shop');
  expect((await copyOf(a)).metadata.resourceVersion).toBe(resourceVersion);
});

test('changed values of one, with which it restarts, are applied to that one alone', async () => {
  const [ofA, ofB] = [(await copyOf(a)).metadata, (await copyOf(b)).metadata];
  await b.install(
    MEMBER,
    patches([{ path: `metadata.annotations["${OWNER}"]`, expression: '"changed-" + value' }]),
  );
  expect((await whenCopied(b, '10.1.0.2', 'changed-shop')).metadata.uid).toBe(ofB.uid);
  await setIp(b, '10.1.0.3');
  await whenCopied(b, '10.1.0.3', 'changed-shop');
  expect((await copyOf(a)).metadata.resourceVersion).toBe(ofA.resourceVersion);
  await whenMembers(2);
});

test('one leaves, its copies stay as they are, and it joins again', async () => {
  const { uid, resourceVersion } = (await copyOf(a)).metadata;
  await a.upgrade(MEMBER, NO_MEMBER);
  await whenMembers(1);
  expect(await leaseHolder(a)).toBe('');
  await setIp(a, '10.1.0.4');
  await setIp(b, '10.1.0.5');
  await whenCopied(b, '10.1.0.5', 'changed-shop');
  expect((await copyOf(a)).metadata).toMatchObject({ uid, resourceVersion });
  await a.upgrade(MEMBER);
  expect((await whenCopied(a, '10.1.0.4', 'team-shop')).metadata.uid).toBe(uid);
  await whenMembers(2);
});

test('one is deleted with its copies, and those of the other stay and follow', async () => {
  const { uid } = (await copyOf(a)).metadata;
  await b.helm('uninstall', VCLUSTER);
  await b.stop();
  await whenMembers(1);
  for (const [kind, name] of [
    ['Endpoints', COPY],
    ['Secret', `vc-${VCLUSTER}`],
    ['Lease', `endpoint-syncer-${VCLUSTER}`],
  ] as const)
    await host.whenGone(kind, [b.namespace, name]);
  expect(await copiesOf(b, 'Endpoints')).toEqual([]);
  await setIp(a, '10.1.0.6');
  expect((await whenCopied(a, '10.1.0.6', 'team-shop')).metadata.uid).toBe(uid);
});

test('the fleet ends without a line of the level error', async () => {
  await fleet.stop();
  expect(fleet.unexpectedLines([])).toEqual([]);
  await whenCopied(a, '10.1.0.6', 'team-shop');
});
