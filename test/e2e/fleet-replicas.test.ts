/**
 * Replicas of a fleet as processes on real clusters: one is added, one is killed, and one is suspended past its Lease. Who wrote what, and in which order,
 * is what the audit log of the host's API server says.
 */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { textAt } from '../../src/base/json.ts';
import { replicaOf } from '../../src/fleet/replicas.ts';
import { asJson, type KubeObject } from '../../src/kube/object.ts';
import { Daemon } from '../scenarios/daemon.ts';
import { FLEET_NAMESPACE, type FleetWorld, type Installed } from '../scenarios/fleet-world.ts';
import { subset } from '../scenarios/objects.ts';
import { eventually } from '../support/eventually.ts';
import { freePorts } from '../support/free-ports.ts';
import { Guardian } from '../support/guardian.ts';
import { kubeconfigFor, type RealClusters } from './clusters.ts';
import { startRealFleet } from './real-fleet.ts';

const NAMES = ['a', 'b', 'c', 'd'];
const OBJECTS = ['web', 'db'];
/** One per replica, so that the audit log tells them apart. */
const USERS = ['syncer-a', 'syncer-b', 'syncer-c'];
const LEADER_ELECTION = { leaseDuration: '6s', renewDeadline: '4s', retryPeriod: '1s' };
const MEMBER_LEASE = 'endpoint-syncer-';
const AUDIT_POLICY = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  omitManagedFields: true,
  rules: [
    {
      level: 'RequestResponse',
      users: USERS,
      verbs: ['create', 'update', 'patch'],
      resources: [
        { group: '', resources: ['endpoints'] },
        { group: 'coordination.k8s.io', resources: ['leases'] },
      ],
    },
    { level: 'None' },
  ],
};

interface Replica {
  readonly daemon: Daemon;
  /** The name of its Lease, and what it writes as the holder of others. */
  readonly identity: string;
}

/** A write that the API server of the host has committed. */
interface Committed {
  readonly revision: number;
  readonly user: string;
  readonly resource: string;
  readonly namespace: string;
  readonly object: KubeObject;
}

/** As far as it is used here. */
interface AuditEvent {
  readonly user: { readonly username: string };
  readonly objectRef: { readonly resource: string; readonly namespace: string };
  readonly responseStatus: { readonly code: number };
  readonly responseObject: KubeObject;
}

const stack = new AsyncDisposableStack();
const guardian = stack.use(new Guardian());
const directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-audit-'));
stack.defer(() => rmSync(directory, { recursive: true }));
const auditLog = join(directory, 'audit.log');
let world: FleetWorld;
let host: RealClusters;
const members: Installed[] = [];
const replicas: Replica[] = [];
let isUpdating = true;
let updates = 0;
let updating: Promise<void> = Promise.resolve();

beforeAll(async () => {
  const policy = join(directory, 'policy.yaml');
  writeFileSync(policy, stringify(AUDIT_POLICY));
  const hostFlags = [`--audit-policy-file=${policy}`, `--audit-log-path=${auditLog}`];
  ({ world, host } = await startRealFleet(stack, NAMES.length, { hostFlags }));
  await world.host.ensureNamespace(FLEET_NAMESPACE);
  await world.host.create('ClusterRoleBinding', {
    metadata: { name: 'replicas' },
    subjects: USERS.map((name) => ({ kind: 'User', name, apiGroup: 'rbac.authorization.k8s.io' })),
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
  });
  for (const [index, name] of NAMES.entries()) {
    const member = await world.install(name, { index });
    for (const object of OBJECTS) await world.createEndpoints(member, object, '10.1.0.1');
    members.push(member);
  }
  world.writeConfig({ defaults: { leaderElection: LEADER_ELECTION } });
  await addReplica();
  await addReplica();
  updating = update();
}, 300_000);

afterAll(async () => {
  isUpdating = false;
  await updating;
  await stack.disposeAsync();
});

async function addReplica(): Promise<Replica> {
  const user = USERS[replicas.length] ?? '';
  const [port] = await freePorts(1);
  const kubeconfig = world.file(`${user}.kubeconfig`, kubeconfigFor(host.host, host.host.users[user] ?? ''));
  const before = new Set(await leases());
  const args = ['--config', join(world.directory, 'fleet.yaml'), '--host-kubeconfig', kubeconfig];
  const bound = ['--http-bind-address', `127.0.0.1:${port}`];
  const options = { args: [...args, ...bound], httpUrl: `http://127.0.0.1:${port}`, guardian };
  const daemon = await stack.use(new Daemon(options)).ready();
  const [identity = ''] = await eventually(
    async () => (await leases()).filter((name) => !before.has(name)),
    ({ length }) => length === 1,
    { what: 'the Lease of the replica' },
  );
  const replica = { daemon, identity };
  replicas.push(replica);
  return replica;
}

/** Of the replicas. */
async function leases(): Promise<string[]> {
  return (await world.host.list('Lease', FLEET_NAMESPACE)).map(({ metadata }) => metadata.name);
}

/** Changes one object after another without a pause. */
async function update(): Promise<void> {
  const objects = OBJECTS.flatMap((object) => members.map((member) => ({ member, object })));
  while (isUpdating)
    for (const { member, object } of objects) {
      const subsets = [subset(addressOf(updates))];
      await member.virtual.merge('Endpoints', ['default', object], { subsets });
      updates += 1;
    }
}

function addressOf(index: number): string {
  return `10.7.${Math.floor(index / 250) % 250}.${(index % 250) + 1}`;
}

/** The number of the update that the object shows. */
function updateOf(object: KubeObject | undefined): number {
  const [, hundreds, rest] = /"10\.7\.(\d+)\.(\d+)"/u.exec(JSON.stringify(object ?? null)) ?? [];
  return rest === undefined ? -1 : Number(hundreds) * 250 + Number(rest) - 1;
}

/** The replica that holds each member, by the Leases. */
async function holders(): Promise<string[]> {
  return Promise.all(
    members.map(async ({ namespace, name }) => {
      const lease = await world.host.find('Lease', namespace, `${MEMBER_LEASE}${name}`);
      return textAt(lease && asJson(lease), 'spec', 'holderIdentity');
    }),
  );
}

/** The replica on which rendezvous hashing places each member. */
function placed(live: readonly Replica[]): string[] {
  const identities = live.map(({ identity }) => identity);
  return members.map(({ key }) => replicaOf(key, identities) ?? '');
}

/** Waits until each member is held by its replica, and its copies follow. Returns the holders. */
async function whenShared(live: readonly Replica[]): Promise<string[]> {
  const wanted = placed(live);
  const isShared = (held: readonly string[]): boolean => held.join() === wanted.join();
  const held = await eventually(holders, isShared, { what: `holders ${wanted.join()}` });
  const since = updates;
  for (const member of members)
    await world.host.when('Endpoints', world.hostKey(member, 'web'), (copy) => updateOf(copy) >= since);
  return held;
}

/** The one with the most members. */
async function busiest(of: readonly Replica[]): Promise<Replica> {
  const held = await holders();
  const share = ({ identity }: Replica): number => held.filter((holder) => holder === identity).length;
  const [first] = of.toSorted((a, b) => share(b) - share(a));
  if (first === undefined) throw new Error('there is no replica');
  return first;
}

/** In the order of the host's revisions. */
function committed(): Committed[] {
  const events = readFileSync(auditLog, 'utf8').split('\n').slice(0, -1);
  return events
    .map((line) => JSON.parse(line) as AuditEvent)
    .filter(({ responseStatus }) => responseStatus.code < 300)
    .map(({ user, objectRef: { resource, namespace }, responseObject: object }) => ({
      revision: Number(object.metadata.resourceVersion),
      user: user.username,
      resource,
      namespace,
      object,
    }))
    .toSorted((a, b) => a.revision - b.revision);
}

/** Writes of copies by a replica that did not hold the Lease of the member when the host committed them. */
function foreignWrites(writes: readonly Committed[]): string[] {
  const identities = new Map(USERS.map((user, index) => [user, replicas[index]?.identity ?? '']));
  const holderOf = new Map<string, string>();
  const foreign: string[] = [];
  for (const { resource, namespace, object, user, revision } of writes) {
    if (namespace === FLEET_NAMESPACE) continue;
    const holder = holderOf.get(namespace);
    if (resource === 'leases') holderOf.set(namespace, textAt(asJson(object), 'spec', 'holderIdentity'));
    else if (holder !== identities.get(user))
      foreign.push(`${revision}: ${user} wrote ${object.metadata.name} while ${holder} held its member`);
  }
  return foreign;
}

test('two replicas share the members by rendezvous hashing', async () => {
  expect(await whenShared(replicas)).toEqual(placed(replicas));
});

test('a third replica takes its own share and no other', async () => {
  const before = placed(replicas);
  const added = await addReplica();
  const moved = (await whenShared(replicas)).filter((holder, at) => holder !== before[at]);
  expect(moved).toEqual(moved.map(() => added.identity));
});

test('what a killed replica held is taken over when its Lease expires', async () => {
  const killed = await busiest(replicas);
  await killed.daemon.kill();
  const others = replicas.filter((one) => one !== killed);
  expect(await whenShared(others)).toEqual(placed(others));
});

test('one that was suspended past its Lease writes nothing of what others took, and gets its share back', async () => {
  const running = replicas.filter(({ daemon }) => daemon.isRunning);
  const suspended = await busiest(running);
  suspended.daemon.signal('SIGSTOP');
  const others = running.filter((one) => one !== suspended);
  expect(await whenShared(others)).toEqual(placed(others));
  suspended.daemon.signal('SIGCONT');
  expect(await whenShared(running)).toEqual(placed(running));
});

test('each write of a copy was by the holder of its member, and all copies are right in the end', async () => {
  isUpdating = false;
  await updating;
  const copies = await Promise.all(
    members.flatMap((member) =>
      OBJECTS.map(async (object) => {
        const last = updateOf(await member.virtual.get('Endpoints', 'default', object));
        const key = world.hostKey(member, object);
        return world.host.when('Endpoints', key, (copy) => updateOf(copy) === last);
      }),
    ),
  );
  const newest = Math.max(...copies.map(({ metadata }) => Number(metadata.resourceVersion)));
  const writes = await eventually(committed, (all) => (all.at(-1)?.revision ?? 0) >= newest);
  expect(foreignWrites(writes)).toEqual([]);
  // Each replica wrote, so that the check above is about all three.
  const writers = new Set(writes.filter(({ resource }) => resource === 'endpoints').map(({ user }) => user));
  expect([...writers].toSorted()).toEqual(USERS);
  for (const { daemon } of replicas.filter((one) => one.daemon.isRunning)) await daemon.stop();
  expect(await holders()).toEqual(NAMES.map(() => ''));
  for (const { daemon } of replicas) expect(daemon.unexpectedLines([])).toEqual([]);
});
