/** The members of one replica, as what the host has changes: who is synced, how soon, and what is removed. */

import { afterEach, describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/base/logger.ts';
import type { Config, FleetConfig } from '../../src/syncer/config/config.ts';
import { decideByWorkload, type FleetRules } from '../../src/fleet/decide-member.ts';
import { MemberLock } from '../../src/fleet/member-lock.ts';
import { Members } from '../../src/fleet/members.ts';
import { Removals } from '../../src/fleet/removals.ts';
import { SharedCaches } from '../../src/fleet/shared-caches.ts';
import { TransportError } from '../../src/kube/types.ts';
import { settle } from '../support/fake-clock.ts';
import { FleetHost, fleetIn } from './fleet-host.ts';
import { plainReader } from './plain-reader.ts';
import { PlainSync } from './plain-sync.ts';

const [A, B] = ['team-a/a', 'team-b/b'];
const FLEET = fleetIn('team-*');
const PATCHES = `patches: [{path: metadata.annotations.a, expression: '"b"'}]`;

const open: World[] = [];
afterEach(() => Promise.all(open.splice(0).map((world) => world[Symbol.asyncDispose]())));

const REPLICA = {
  identity: 'endpoint-syncer-replica-1',
  isLive: true,
  term: 1,
  isExpired: () => false,
  signal: new AbortController().signal,
};

class World implements AsyncDisposable {
  readonly host = new FleetHost(FLEET);
  readonly members: Members;
  readonly #removals: Removals;
  /** Of the syncs that run, by the name of the vCluster. */
  readonly running = new Map<string, PlainSync>();
  readonly removed: string[] = [];
  readonly events: string[] = [];
  /** The vClusters whose values were read. */
  readonly read: string[] = [];
  isRenewalDue = false;
  placed = (_key: string): boolean => true;
  remove = async (names: readonly string[]): Promise<void> => void this.removed.push(...names);

  constructor(fleet: FleetConfig = FLEET) {
    const { client, clock, discovery } = this.host;
    const parts = { clock, random: () => 0.5, logger: silentLogger, queueMetrics: QUEUE_METRICS };
    const isPlacedHere = (key: string): boolean => this.placed(key);
    const rules = rulesOf(fleet);
    this.#removals = new Removals({
      ...parts,
      isDeleted: (key) => decideByWorkload(discovery.known(key), rules)?.kind === 'deleted',
      isPlacedHere,
      createLock: ({ host, name }) =>
        new MemberLock({
          ...parts,
          client,
          replicas: REPLICA,
          lease: { namespace: host.namespace, name: `endpoint-syncer-${name}` },
          annotations: () => ({}),
          retryPeriodMs: 2000,
        }),
      remove: async (_, formers) => {
        const names = formers.map(({ config }) => config.name);
        await this.remove(names);
        return new Set(names);
      },
    });
    this.members = new Members({
      ...parts,
      discovery,
      reader: {
        memberConfig: async (sources) => {
          this.read.push(sources.vcluster.name);
          return plainReader.memberConfig(sources);
        },
      },
      rules,
      isPlacedHere,
      isRenewalDue: () => this.isRenewalDue,
      startSync: async ({ config }) => this.#start(config),
      removals: this.#removals,
      caches: new SharedCaches(2 ** 30),
      report: (_, note) => void this.events.push(note),
      createNote: () => undefined,
    });
    open.push(this);
  }

  /** Until there is nothing left to do now. */
  async start(): Promise<this> {
    await this.host.whenSynced();
    this.#removals.start();
    this.members.start();
    await this.pass(0);
    return this;
  }

  async pass(ms: number): Promise<void> {
    await this.host.clock.advanceAsync(ms);
    for (let turn = 0; turn < 20; turn++) await settle();
  }

  get synced(): readonly string[] {
    return [...this.running.keys()].toSorted();
  }

  patchesOf(name: string): number | undefined {
    return this.running.get(name)?.config.sync.endpoints.patches.length;
  }

  #start(config: Config): PlainSync {
    const sync = new PlainSync(config, Promise.resolve());
    const stop = sync.stop.bind(sync);
    sync.stop = () => {
      if (this.running.get(config.name) === sync) this.running.delete(config.name);
      return stop();
    };
    this.running.set(config.name, sync);
    return sync;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.members.stop(), this.#removals.stop()]);
    await this.host[Symbol.asyncDispose]();
  }
}

const HOST = { kubeconfig: '', context: '', namespace: 'own' };

function rulesOf(fleet: FleetConfig): FleetRules {
  return { fleet, defaults: {}, host: HOST };
}

function limitedTo(membersPerNamespace: number): FleetConfig {
  return { ...FLEET, limits: { ...FLEET.limits, membersPerNamespace } };
}

const QUEUE_METRICS = {
  depth: () => undefined,
  added: () => undefined,
  retried: () => undefined,
  queued: () => undefined,
  worked: () => undefined,
};

function values(rest = ''): string {
  return `sync: {toHost: {endpoints: {enabled: false${rest}}, endpointSlices: {enabled: false}}}`;
}

describe('values', () => {
  test('are read once for each version, whatever term the replica is in, and again when all members get something else', async () => {
    const world = new World();
    world.host.install(A);
    world.host.install(B);
    await world.start();
    expect(world.read.toSorted()).toEqual(['a', 'b']);
    for (const isLive of [false, true, false, true]) {
      world.placed = () => isLive;
      world.members.decideAll();
      await world.pass(0);
      expect(world.synced).toEqual(isLive ? ['a', 'b'] : []);
    }
    world.members.use(rulesOf({ ...FLEET, limits: { ...FLEET.limits, objects: 2000 } }));
    world.host.putSecret(A, 'vc-', { config: 'another kubeconfig' });
    await world.pass(0);
    expect(world.read).toHaveLength(2);
    expect(world.host.reads.filter((read) => read === 'secrets/team-a/vc-a')).toHaveLength(2);
    world.host.setValues(B, values(`, ${PATCHES}`));
    await world.pass(0);
    expect([world.read.length, world.patchesOf('b')]).toEqual([3, 1]);
    world.members.use({ ...rulesOf(FLEET), defaults: { requireService: false } });
    await world.pass(60_000);
    expect(world.read.slice(3).toSorted()).toEqual(['a', 'b']);
    expect(world.running.get('a')?.config.requireService).toBe(false);
  });

  test.for<[string, (host: FleetHost) => void, string[]]>([
    ['leaves', (host) => host.setWorkload(A, { isSelected: false }), []],
    ['falls asleep', (host) => host.setWorkload(A, { replicas: 0 }), []],
    ['loses its workload', (host) => host.remove('statefulsets.apps', A), []],
    [
      'is deleted',
      (host) => {
        host.remove('statefulsets.apps', A);
        host.remove('secrets', 'team-a/vc-config-a');
      },
      ['a'],
    ],
  ])('that change delay nothing when their vCluster %s with them', async ([, change, removed]) => {
    const world = new World();
    world.host.install(A);
    await world.start();
    expect(world.synced).toEqual(['a']);
    world.host.setValues(A, `${values()} # changed`);
    change(world.host);
    await world.pass(0);
    expect([world.synced, world.removed]).toEqual([[], removed]);
  });

  test('that change all the time are read as often as one namespace may, and the last ones are applied', async () => {
    const world = new World();
    world.host.install(A);
    world.host.install(B);
    await world.start();
    for (let at = 0; at < 400; at++) {
      world.host.setValues(A, `${values()} # ${at}`);
      await world.pass(1);
    }
    world.host.setValues(A, values(`, ${PATCHES}`));
    world.host.setValues(B, values(`, ${PATCHES}`));
    await world.pass(0);
    expect(world.read.filter((name) => name === 'a').length).toBeLessThanOrEqual(101);
    expect([world.patchesOf('a'), world.patchesOf('b')]).toEqual([0, 1]);
    await world.pass(60_000);
    expect(world.patchesOf('a')).toBe(1);
  });
});

describe('deciding', () => {
  test('takes a fifth of the time at most, and the namespaces take turns', async () => {
    const world = new World();
    for (let at = 0; at < 300; at++) world.host.setWorkload(`team-evil/e${at}`, {});
    world.host.install(A);
    const { clock } = world.host;
    const decided: string[] = [];
    world.placed = (key) => {
      decided.push(key);
      clock.advance(1);
      return true;
    };
    await world.start();
    const startedMs = clock.monotonicMs();
    const before = decided.length;
    expect(before).toBeLessThanOrEqual(10);
    expect(decided).toContain(A);
    await world.pass(500);
    const count = decided.length - before;
    expect(count).toBeGreaterThan(50);
    expect(count).toBeLessThanOrEqual((clock.monotonicMs() - startedMs) / 5 + 10);
  });

  test('waits for the renewal of the Lease', async () => {
    const world = new World();
    world.isRenewalDue = true;
    world.host.install(A);
    await world.start();
    await world.pass(100);
    expect([world.synced, world.read]).toEqual([[], []]);
    world.isRenewalDue = false;
    await world.pass(10);
    expect(world.synced).toEqual(['a']);
  });
});

describe('of more vClusters in one namespace than the limit', () => {
  const keys = ['team-a/v0', 'team-a/v1', 'team-a/v2', 'team-a/v3'];

  async function installed(limit: number): Promise<World> {
    const world = new World(limitedTo(limit));
    for (const key of keys.toReversed()) {
      world.host.install(key);
      world.host.clock.advance(1000);
    }
    world.host.install(B);
    return world.start();
  }

  test('the youngest are limited, and read nothing', async () => {
    const world = await installed(2);
    expect(world.synced).toEqual(['b', 'v2', 'v3']);
    expect(world.read.toSorted()).toEqual(['b', 'v2', 'v3']);
    expect(world.members.states().toSorted()).toEqual(['joined', 'joined', 'joined', 'limited', 'limited']);
    expect(world.members.checks()['vcluster team-a/v0']?.().detail).toMatch(
      /^limited: .*endpointSyncer\.fleet\.limits\.membersPerNamespace is 2/u,
    );
    expect(world.events).toHaveLength(2);
  });

  test('one joins when an older one is deleted, when one falls out of the selection, and when the limit is raised', async () => {
    const world = await installed(2);
    world.host.remove('statefulsets.apps', 'team-a/v3');
    await world.pass(0);
    expect(world.synced).toEqual(['b', 'v1', 'v2']);
    world.host.setWorkload('team-a/v2', { isSelected: false });
    await world.pass(0);
    expect(world.synced).toEqual(['b', 'v0', 'v1']);
    // The oldest comes back.
    world.host.setWorkload('team-a/v2', {});
    await world.pass(0);
    expect(world.synced).toEqual(['b', 'v1', 'v2']);
    world.members.use(rulesOf(limitedTo(3)));
    await world.pass(0);
    expect(world.synced).toEqual(['b', 'v0', 'v1', 'v2']);
    expect(world.members.states()).not.toContain('limited');
  });

  test('all are counted, and as many are reported as there are members', async () => {
    const world = await installed(2);
    for (let at = 0; at < 50; at++) world.host.setWorkload(`team-a/w${at}`, {});
    await world.pass(0);
    expect(world.members.states().filter((state) => state === 'limited')).toHaveLength(52);
    expect(world.events).toHaveLength(2);
    expect(world.synced).toEqual(['b', 'v2', 'v3']);
  });

  test('the copies of one that was a member before are removed when it is deleted', async () => {
    const world = await installed(4);
    world.members.use(rulesOf(limitedTo(1)));
    await world.pass(0);
    expect(world.synced).toEqual(['b', 'v3']);
    world.host.remove('statefulsets.apps', 'team-a/v0');
    world.host.remove('secrets', 'team-a/vc-config-v0');
    await world.pass(0);
    expect(world.removed).toEqual(['v0']);
  });
});

test('what is planted under names of vClusters that do not exist is not decided about', async () => {
  const world = new World();
  world.host.install(A);
  await world.start();
  let asked = 0;
  world.placed = () => {
    asked += 1;
    return true;
  };
  for (let at = 0; at < 100; at++) {
    world.host.putSecret(`team-a/x${at}`, 'vc-config-', { a: 'b' });
    world.host.put('configmaps', { metadata: { namespace: 'team-a', name: `endpoint-syncer-x${at}` } });
  }
  await world.pass(0);
  for (let at = 0; at < 100; at++) world.host.remove('secrets', `team-a/vc-config-x${at}`);
  await world.pass(0);
  expect([asked, world.removed]).toEqual([0, []]);
});

test('only what is placed on this replica is synced, and what moves away is stopped', async () => {
  const world = new World();
  world.placed = (key) => key === A;
  world.host.install(A);
  world.host.install(B);
  await world.start();
  expect(world.synced).toEqual(['a']);
  world.placed = (key) => key === B;
  world.members.decideAll();
  await world.pass(0);
  expect([world.synced, world.removed]).toEqual([['b'], []]);
  // Deleted here, it is removed where it is placed.
  world.host.remove('statefulsets.apps', A);
  world.host.remove('secrets', 'team-a/vc-config-a');
  await world.pass(0);
  expect(world.removed).toEqual([]);
});

test('the copies of a deleted vCluster are removed, and again after a failure, also if it slept or was invalid before', async () => {
  const world = new World();
  world.host.install(A, 'sync: {');
  world.host.install(B);
  world.host.setWorkload(B, { replicas: 0 });
  await world.start();
  expect(world.members.states().toSorted()).toEqual(['asleep', 'invalid']);
  const { remove } = world;
  let isAway = true;
  world.remove = async (names) => {
    if (isAway) throw new TransportError('no response');
    await remove(names);
  };
  for (const [key, secret] of [
    [A, 'team-a/vc-config-a'],
    [B, 'team-b/vc-config-b'],
  ] as const) {
    world.host.remove('statefulsets.apps', key);
    world.host.remove('secrets', secret);
  }
  await world.pass(0);
  expect([world.removed, world.members.states()]).toEqual([[], []]);
  isAway = false;
  await world.pass(10_000);
  expect(world.removed.toSorted()).toEqual(['a', 'b']);
});

test('each state that a user has to end is one Event; readiness names all members, and metrics those that are synced', async () => {
  const world = new World();
  world.host.install(B);
  world.host.install(A, 'sync: {');
  await world.start();
  world.host.put('configmaps', {
    metadata: { namespace: 'team-a', name: 'endpoint-syncer-a' },
    data: { 'config.yaml': 'endpointSyncer: {}' },
  });
  await world.pass(10_000);
  expect(world.events).toEqual([
    expect.stringMatching(/^Not synced, invalid: Secret team-a\/vc-config-a:1:/u),
  ]);
  const checks = world.members.checks();
  expect(Object.keys(checks)).toEqual([`vcluster ${A}`, `vcluster ${B}`]);
  expect(Object.values(checks).map((check) => check().isOk)).toEqual([true, true]);
  expect(checks[`vcluster ${B}`]?.().detail).toBe('joined');
  expect(world.members.registries()).toHaveLength(1);
  expect(world.members.areStarting).toBe(false);
});

test('changed rules are applied to every vCluster', async () => {
  const world = new World();
  world.host.install(A);
  world.host.install(B);
  await world.start();
  world.members.use({ ...rulesOf(fleetIn('team-b')), defaults: { requireService: true } });
  await world.pass(1000);
  expect(world.synced).toEqual(['b']);
  expect(world.running.get('b')?.config.requireService).toBe(true);
});
