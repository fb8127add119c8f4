/** What deleted vClusters have left on the host, and Leases that only look as if they were theirs. */

import { afterEach, expect, test } from 'vitest';
import { silentLogger } from '../../src/base/logger.ts';
import { FormerMembers } from '../../src/fleet/former-members.ts';
import { plainMemberConfig } from '../../src/fleet/member-config.ts';
import { MemberLock } from '../../src/fleet/member-lock.ts';
import { FLEET } from '../../src/fleet/vcluster.ts';
import { objectKey, parseKey } from '../../src/kube/object.ts';
import { settle } from '../support/fake-clock.ts';
import { FleetHost, fleetIn } from './fleet-host.ts';

const FLEET_OF_TEAMS = fleetIn('team-*');
const RULES = {
  fleet: FLEET_OF_TEAMS,
  defaults: {},
  host: { kubeconfig: '', context: '', namespace: 'own' },
};
const ENDED = 'endpoint-syncer-replica-ended';
const QUEUE_METRICS = {
  depth: () => undefined,
  added: () => undefined,
  retried: () => undefined,
  queued: () => undefined,
  worked: () => undefined,
};

const open: World[] = [];
afterEach(() => Promise.all(open.splice(0).map((world) => world[Symbol.asyncDispose]())));

class World implements AsyncDisposable {
  readonly host = new FleetHost(FLEET_OF_TEAMS);
  readonly formers: FormerMembers;
  /** What was requested about each namespace. */
  readonly requests = new Map<string, number>();
  readonly live = new Set<string>();
  /** Lists of Endpoints are answered when it resolves. */
  listing: Promise<void> | undefined;
  placed = (_key: string): boolean => true;
  /** Its member has not ended yet. */
  readonly ending = new Set<string>();
  readonly #stopping = new AbortController();

  /** Of the member that comes next. */
  readonly nextLock: (key: string) => MemberLock;

  constructor() {
    const { client, clock, discovery } = this.host;
    const counted = this.#counted(client);
    const parts = { client: counted, clock, random: () => 0.5, logger: silentLogger };
    const { signal } = this.#stopping;
    const replicas = {
      identity: 'endpoint-syncer-replica-1',
      isLive: true,
      term: 1,
      isExpired: (holder: string) => !this.live.has(holder),
      signal,
    };
    const createLock = (key: string, isInUse?: () => boolean): MemberLock => {
      const { namespace, name } = parseKey(key);
      return new MemberLock({
        ...parts,
        replicas,
        lease: { namespace, name: `endpoint-syncer-${name}` },
        annotations: () => ({ [FLEET]: 'own' }),
        ...(isInUse && { isInUse }),
        retryPeriodMs: 2000,
      });
    };
    this.nextLock = (key) => createLock(key, () => this.formers.removals.isRemoving(key));
    this.formers = new FormerMembers({
      ...parts,
      discoveryClient: counted,
      discovery,
      rules: () => RULES,
      isPlacedHere: (key) => this.placed(key),
      isMember: (key) => this.ending.has(key),
      createLock: ({ host, name }) => createLock(`${host.namespace}/${name}`),
      queueMetrics: QUEUE_METRICS,
      signal,
    });
    open.push(this);
  }

  async start(): Promise<void> {
    await this.host.whenSynced();
    this.formers.start();
    await this.pass(0);
  }

  async pass(ms: number): Promise<void> {
    await this.host.clock.advanceAsync(ms);
    for (let turn = 0; turn < 200; turn++) await settle();
  }

  /** A Lease as a fleet leaves it, or as a user writes it. */
  lease(key: string, holderIdentity = ENDED, leaseDurationSeconds = 3600): void {
    const { namespace, name } = parseKey(key);
    const annotations = { [FLEET]: 'own' };
    this.host.put('leases.coordination.k8s.io', {
      metadata: { namespace, name: `endpoint-syncer-${name}`, annotations },
      spec: { holderIdentity, leaseDurationSeconds },
    });
  }

  /** A copy with the record of this program; `kinds`: that its vCluster imports. */
  copy(key: string, name: string): void {
    const { namespace, name: vcluster } = parseKey(key);
    this.host.put('endpoints', {
      metadata: {
        namespace,
        name: `${name}-x-default-x-${vcluster}`,
        labels: { 'vcluster.loft.sh/managed-by': vcluster },
        annotations: {
          'vcluster.loft.sh/object-name': name,
          'vcluster.loft.sh/object-namespace': 'default',
          'vcluster.loft.sh/object-kind': '/v1, Kind=Endpoints',
          'vcluster.loft.sh/object-host-name': `${name}-x-default-x-${vcluster}`,
          'vcluster.loft.sh/object-host-namespace': namespace,
          'endpoint-syncer/last-synced': '{}',
        },
      },
    });
  }

  left(plural: string, namespace: string): readonly string[] {
    return this.host.cluster
      .list(plural)
      .filter(({ metadata }) => metadata.namespace === namespace)
      .map(objectKey)
      .toSorted();
  }

  #counted(client: FleetHost['client']): FleetHost['client'] {
    const { requests } = this;
    const whenListed = (answer: () => unknown): unknown => this.listing?.then(answer) ?? answer();
    return new Proxy(client, {
      get(target, method: keyof FleetHost['client']) {
        const value: unknown = Reflect.get(target, method);
        if (typeof value !== 'function') return value;
        return (...args: readonly unknown[]): unknown => {
          const text = JSON.stringify(args.slice(1, 3));
          const [, namespace = ''] = /"namespace":"([^"]+)"/u.exec(text) ?? [];
          requests.set(namespace, (requests.get(namespace) ?? 0) + 1);
          const answer = (): unknown => Reflect.apply(value, target, args);
          const isHeld = method === 'list' && (args[0] as { plural?: string }).plural === 'endpoints';
          return isHeld ? whenListed(answer) : answer();
        };
      },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.formers.stop();
    await this.host[Symbol.asyncDispose]();
  }
}

test('what an earlier process has left is removed, and nothing of what exists, or is held by another replica', async () => {
  const world = new World();
  const [gone, held, kept] = ['team-a/gone', 'team-a/held', 'team-a/kept'];
  for (const key of [gone, held, kept]) {
    world.lease(key, key === held ? 'endpoint-syncer-replica-2' : ENDED);
    world.copy(key, 'web');
    world.copy(key, 'db');
  }
  world.live.add('endpoint-syncer-replica-2');
  world.host.setValues(kept, 'sync: {}');
  await world.start();
  const names = (key: string): string[] =>
    ['db', 'web'].map((one) => `team-a/${one}-x-default-x-${parseKey(key).name}`);
  expect(world.left('endpoints', 'team-a')).toEqual([...names(held), ...names(kept)].toSorted());
  expect(world.left('leases.coordination.k8s.io', 'team-a')).toEqual([
    'team-a/endpoint-syncer-held',
    'team-a/endpoint-syncer-kept',
  ]);
  // Its holder ends, and the one that is kept is deleted with its values.
  world.live.clear();
  world.host.remove('secrets', 'team-a/vc-config-kept');
  await world.pass(10_000);
  expect(world.left('endpoints', 'team-a')).toEqual(names(kept));
  await world.pass(7 * 60_000);
  expect(world.left('endpoints', 'team-a')).toEqual([]);
  expect(world.left('leases.coordination.k8s.io', 'team-a')).toEqual([]);
});

test('what a member of this process has written is removed once it has ended, whatever finds it before', async () => {
  const world = new World();
  const key = 'team-a/gone';
  world.lease(key, 'endpoint-syncer-replica-1');
  world.copy(key, 'web');
  world.ending.add(key);
  await world.start();
  await world.pass(7 * 60_000);
  expect(world.left('endpoints', 'team-a')).toEqual(['team-a/web-x-default-x-gone']);
  world.ending.clear();
  await world.pass(7 * 60_000);
  expect(world.left('endpoints', 'team-a')).toEqual([]);
  expect(world.left('leases.coordination.k8s.io', 'team-a')).toEqual([]);
});

test('the next vCluster of a name takes its Lease when the removal of the last one has ended, and keeps it', async () => {
  const world = new World();
  const key = 'team-a/again';
  const holders = (): unknown[] =>
    world.host.cluster
      .list('leases.coordination.k8s.io')
      .map(({ spec }) => (spec as { holderIdentity?: string }).holderIdentity);
  world.lease(key);
  world.copy(key, 'web');
  const listing = Promise.withResolvers<void>();
  world.listing = listing.promise;
  await world.start();
  expect(holders()).toEqual(['endpoint-syncer-replica-1']);
  world.host.setValues(key, 'sync: {}');
  const next = world.nextLock(key);
  expect(await next.tryAcquire()).toBe(false);
  listing.resolve();
  await world.pass(0);
  expect(await next.tryAcquire()).toBe(true);
  await world.pass(7 * 60_000);
  expect([next.isHeld, holders()]).toEqual([true, ['endpoint-syncer-replica-1']]);
});

test.for<[string, (world: World, key: string) => void]>([
  ['held for ever by nobody', (world, key) => world.lease(key, 'me', 2 ** 31 - 1)],
  ['held by a live replica', (world, key) => world.lease(key, 'endpoint-syncer-replica-2')],
  [
    'held by a replica of a name that is too long',
    (world, key) => world.lease(key, `endpoint-syncer-replica-${'x'.repeat(1000)}`),
  ],
  ['that anybody may take', (world, key) => world.lease(key, '')],
])(
  'of 1500 Leases planted in one namespace %s, a few are looked at, and those of another are removed',
  async ([, plant]) => {
    const world = new World();
    world.live.add('endpoint-syncer-replica-2');
    for (let at = 0; at < 1500; at++) plant(world, `team-evil/f${at}`);
    world.lease('team-good/gone');
    world.copy('team-good/gone', 'web');
    await world.start();
    expect(world.left('endpoints', 'team-good')).toEqual([]);
    expect(world.left('leases.coordination.k8s.io', 'team-good')).toEqual([]);
    await world.pass(60_000);
    // 20 of them, in each of seven attempts at most.
    expect(world.requests.get('team-evil')).toBeLessThan(20 * 8 * 7);
  },
);

test('of many vClusters that were deleted with one member, all is removed', async () => {
  const world = new World();
  const keys = Array.from({ length: 50 }, (_, at) => `team-a/v${at}`);
  for (const key of keys) world.copy(key, 'web');
  await world.start();
  for (const vcluster of keys.map(parseKey)) {
    const config = plainMemberConfig({ ...RULES, vcluster });
    if (config !== undefined) world.formers.removals.ended(config);
    world.formers.removals.deleted(vcluster);
  }
  await world.pass(1000);
  expect(world.left('endpoints', 'team-a')).toEqual([]);
  expect(world.left('leases.coordination.k8s.io', 'team-a')).toEqual([]);
  // Lists of each kind for 20 at a time, not for each.
  expect(world.requests.get('team-a')).toBeLessThan(50 * 9 + 60);
});

test('what is not deleted, or is placed on another replica, is left alone', async () => {
  const world = new World();
  world.copy('team-a/a', 'web');
  world.copy('team-b/b', 'web');
  world.host.install('team-a/a');
  world.placed = (key) => key !== 'team-b/b';
  await world.start();
  for (const key of ['team-a/a', 'team-b/b']) {
    const config = plainMemberConfig({ ...RULES, vcluster: parseKey(key) });
    if (config !== undefined) world.formers.removals.ended(config);
    world.formers.removals.deleted(parseKey(key));
  }
  await world.pass(60_000);
  expect(['team-a', 'team-b'].flatMap((namespace) => world.left('endpoints', namespace))).toHaveLength(2);
});
