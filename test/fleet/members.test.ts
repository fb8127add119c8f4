/** The members of one replica, as what the host has changes: who is synced, how soon, and what is removed. */

import { afterEach, describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/base/logger.ts';
import type { Config, FleetConfig } from '../../src/config/config.ts';
import { Members } from '../../src/fleet/members.ts';
import { TransportError } from '../../src/kube/types.ts';
import { ANY_KIND } from '../config/setup.ts';
import { settle } from '../support/fake-clock.ts';
import { FleetHost, fleetIn } from './fleet-host.ts';
import { PlainSync } from './plain-sync.ts';

const [A, B] = ['team-a/a', 'team-b/b'];
const FLEET = fleetIn('team-*');
/** What is parsed of the values of this world takes 200 ms. */
const PATCHES = `patches: [{path: metadata.annotations.a, expression: '"b"'}]`;
const PARSING_MS = 200;

const open: World[] = [];
afterEach(() => Promise.all(open.splice(0).map((world) => world[Symbol.asyncDispose]())));

class World implements AsyncDisposable {
  readonly host = new FleetHost(FLEET);
  readonly members: Members;
  /** Of the syncs that run, by the name of the vCluster. */
  readonly running = new Map<string, PlainSync>();
  readonly removed: string[] = [];
  readonly events: string[] = [];
  parsed = 0;
  placed = (_key: string): boolean => true;
  remove = async (config: Config): Promise<void> => void this.removed.push(config.name);

  constructor(fleet: FleetConfig = FLEET) {
    const checkPatch: typeof ANY_KIND.checkPatch = (patch) => {
      this.parsed += 1;
      this.host.clock.advance(PARSING_MS);
      return ANY_KIND.checkPatch(patch);
    };
    this.members = new Members({
      discovery: this.host.discovery,
      rules: { fleet, defaults: {}, host: HOST, checks: { ...ANY_KIND, checkPatch } },
      isPlacedHere: (key) => this.placed(key),
      startSync: async ({ config }) => this.#start(config),
      remove: (config) => this.remove(config),
      report: (_, note) => void this.events.push(note),
      createNote: () => undefined,
      queueMetrics: QUEUE_METRICS,
      clock: this.host.clock,
      random: () => 0.5,
      logger: silentLogger,
    });
    open.push(this);
  }

  /** Until there is nothing left to do now. */
  async start(): Promise<this> {
    await this.host.whenSynced();
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
    await this.members.stop();
    await this.host[Symbol.asyncDispose]();
  }
}

const HOST = { kubeconfig: '', context: '', namespace: 'own' };
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

describe('values that take long to parse', () => {
  const slow = values(`, ${PATCHES}`);

  test('and change are parsed a twentieth of the time, and the last ones are applied', async () => {
    const world = new World();
    world.host.install(A, slow);
    await world.start();
    expect([world.synced, world.parsed]).toEqual([['a'], 1]);
    for (let at = 0; at < 10; at++) {
      world.host.setValues(A, `${slow} # ${at}`);
      await world.pass(100);
    }
    world.host.setValues(A, values());
    await world.pass(100);
    expect([world.parsed, world.patchesOf('a')]).toEqual([1, 1]);
    await world.pass(4000);
    expect([world.parsed, world.patchesOf('a')]).toEqual([1, 0]);
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
  ])('delay nothing when their vCluster %s with them', async ([, change, removed]) => {
    const world = new World();
    world.host.install(A, slow);
    await world.start();
    expect(world.synced).toEqual(['a']);
    world.host.setValues(A, `${slow} # changed`);
    change(world.host);
    await world.pass(0);
    expect([world.synced, world.removed, world.parsed]).toEqual([[], removed, 1]);
  });

  test('are not parsed more often because the label is switched on and off', async () => {
    const world = new World();
    world.host.install(A, slow);
    await world.start();
    for (let at = 0; at < 10; at++) {
      world.host.setWorkload(A, { isSelected: false });
      await world.pass(50);
      world.host.setWorkload(A, {});
      await world.pass(50);
    }
    expect(world.parsed).toBe(1);
    await world.pass(4000);
    expect([world.synced, world.parsed]).toEqual([['a'], 2]);
  });
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
  world.remove = async (config) => {
    if (isAway) throw new TransportError('no response');
    await remove(config);
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

test('what an earlier process has left of a vCluster is removed, unless it is there again', async () => {
  const world = new World();
  world.host.install(A);
  await world.start();
  world.members.addFormer(A);
  world.members.addFormer('team-c/gone');
  await world.pass(0);
  expect([world.synced, world.removed]).toEqual([['a'], ['gone']]);
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
  const rules = { defaults: { requireService: true }, host: HOST, checks: ANY_KIND };
  world.members.use({ ...rules, fleet: fleetIn('team-b') });
  await world.pass(1000);
  expect(world.synced).toEqual(['b']);
  expect(world.running.get('b')?.config.requireService).toBe(true);
});
