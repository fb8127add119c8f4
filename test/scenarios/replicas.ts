/** Several replicas of one daemon with leader election, each behind a proxy of its own, so that every write has a writer and a time. */

import type { ApiProxy } from './api-proxy.ts';
import type { Daemon } from './daemon.ts';
import { eventually } from './eventually.ts';
import { endpoints, subset } from './objects.ts';
import { pair, type World } from './world.ts';

export interface LeaseTimes {
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
}

export interface Replica {
  readonly daemon: Daemon;
  readonly proxy: ApiProxy;
}

/** A stretch of time in which one replica held the Lease; `replica` undefined: nobody did. */
interface Term {
  readonly fromMs: number;
  readonly replica: Replica | undefined;
}

export interface Write {
  readonly atMs: number;
  readonly replica: Replica;
  readonly what: string;
}

const OBJECTS = 20;
/** Wall clock of one replica: an hour ahead. */
const HOUR_AHEAD = '--import=data:text/javascript,const%20now=Date.now;Date.now=()=>now.call(Date)+3600000';

export class Replicas {
  readonly all: readonly Replica[];
  readonly #world: World;
  readonly #terms: Term[] = [];
  #isUpdating = false;
  #updating: Promise<void> = Promise.resolve();
  #updates = 0;

  private constructor(world: World, all: readonly Replica[]) {
    this.#world = world;
    this.all = all;
  }

  /** Started one after another, so that the first leads; its clock is an hour ahead. */
  static async start(world: World, count: number, times: LeaseTimes): Promise<Replicas> {
    const all: Replica[] = [];
    const replicas = new Replicas(world, all);
    for (let index = 0; index < count; index++) {
      const proxy = await world.proxy('host');
      const daemon = await world.spawnDaemon({
        config: {
          endpointSyncer: {
            leaderElection: {
              enabled: true,
              leaseDuration: `${times.leaseDurationMs}ms`,
              renewDeadline: `${times.renewDeadlineMs}ms`,
              retryPeriod: `${times.retryPeriodMs}ms`,
            },
          },
        },
        kubeconfigs: { host: proxy.path },
        ...(index === 0 ? { env: { NODE_OPTIONS: HOUR_AHEAD } } : {}),
      });
      const replica = { daemon, proxy };
      replicas.#record(replica);
      await daemon.ready();
      if (index === 0)
        await eventually(
          () => daemon.metric('leader_election_master_status'),
          (leads) => leads === 1,
          { what: 'the first leader' },
        );
      all.push(replica);
    }
    return replicas;
  }

  get leader(): Replica {
    const replica = this.#terms.at(-1)?.replica;
    if (replica === undefined) throw new Error('no replica leads');
    return replica;
  }

  get standbys(): readonly Replica[] {
    return this.all.filter((one) => one !== this.leader);
  }

  /** How many changes were made so far. */
  get updates(): number {
    return this.#updates;
  }

  /** Changes one Endpoints after another without a pause. */
  async startUpdates(): Promise<void> {
    for (let index = 0; index < OBJECTS; index++)
      await this.#world.virtual.create('Endpoints', endpoints(keyOf(index)));
    this.#isUpdating = true;
    this.#updating = this.#update();
  }

  /** The last state of every object, synced. */
  async whenConverged(): Promise<void> {
    this.#isUpdating = false;
    await this.#updating;
    for (let index = 0; index < OBJECTS; index++)
      await this.#world.whenCopied(keyOf(index), { timeoutMs: 30_000 });
  }

  /** Every write to the host's Endpoints, in order. */
  writes(): readonly Write[] {
    return this.all
      .flatMap((replica) =>
        replica.proxy.requests
          .filter(({ isWrite, path }) => isWrite && path.includes('/endpoints'))
          .map(({ atMs, method, path }) => ({ atMs, replica, what: `${method} ${path}` })),
      )
      .toSorted((a, b) => a.atMs - b.atMs);
  }

  /** Writes of a replica at a time when another one held the Lease, or none did. */
  foreignWrites(): readonly Write[] {
    return this.writes().filter(({ atMs, replica }) => {
      const term = this.#terms.findLast(({ fromMs }) => fromMs <= atMs);
      return term?.replica !== replica;
    });
  }

  /** The first write of any other replica after `sinceMs`. */
  async whenWrittenByAnother(than: Replica, sinceMs: number, timeoutMs: number): Promise<Write> {
    const find = (): Write | undefined =>
      this.writes().find(({ atMs, replica }) => atMs >= sinceMs && replica !== than);
    const found = await eventually(
      async () => find(),
      (write) => write !== undefined,
      { timeoutMs, what: 'a write of another replica' },
    );
    if (found === undefined) throw new Error('it was there a moment ago');
    return found;
  }

  /** The Lease's history, from what the API server has stored. */
  #record(replica: Replica): void {
    replica.proxy.behaviour = {
      afterWrite: ({ path, body }, status) => {
        if (!path.includes('/leases') || status > 299) return;
        const { spec } = JSON.parse(body.toString('utf8')) as { spec: { holderIdentity: string } };
        const holder = spec.holderIdentity === '' ? undefined : replica;
        if (this.#terms.at(-1)?.replica !== holder)
          this.#terms.push({ fromMs: performance.now(), replica: holder });
      },
    };
  }

  async #update(): Promise<void> {
    while (this.#isUpdating) {
      const index = this.#updates % OBJECTS;
      const ip = `10.7.${Math.floor(this.#updates / 250) % 250}.${(this.#updates % 250) + 1}`;
      await this.#world.virtual.merge('Endpoints', pair(keyOf(index)), { subsets: [subset(ip)] });
      this.#updates += 1;
    }
  }
}

function keyOf(index: number): string {
  return `default/replicated-${index}`;
}
